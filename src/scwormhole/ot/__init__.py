"""Optimal transport between many clouds at once: the room's menu."""

from ._drive import TransportInfo, TransportWarning
from ._pairwise import distances, pairwise

__all__ = ["TransportInfo", "TransportWarning", "distances", "pairwise"]
