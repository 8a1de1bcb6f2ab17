"""Optimal transport between many clouds at once: the room's menu."""

from ._base import BaseFeatures
from ._base_fit import BaseReport, Embedded
from ._calibrate import Calibration, calibrate
from ._coupling import coupling
from ._divergence import divergence
from ._info import TransportInfo, TransportWarning
from ._pairwise import distances, pairwise
from ._targets import Targets

__all__ = [
    "BaseFeatures",
    "BaseReport",
    "Calibration",
    "Embedded",
    "Targets",
    "TransportInfo",
    "TransportWarning",
    "calibrate",
    "coupling",
    "distances",
    "divergence",
    "pairwise",
]
