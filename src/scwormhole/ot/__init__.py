"""Optimal transport between many clouds at once: the room's menu."""

from ._calibrate import Calibration, calibrate
from ._coupling import coupling
from ._divergence import divergence
from ._info import TransportInfo, TransportWarning
from ._pairwise import distances, pairwise

__all__ = [
    "Calibration",
    "TransportInfo",
    "TransportWarning",
    "calibrate",
    "coupling",
    "distances",
    "divergence",
    "pairwise",
]
