"""Euclidean distance matrices, of squared distances throughout: the room's menu. NumPy and SciPy only.

How far a table of divergences is from one of squared Euclidean distances bounds what any embedding can reach.
"""

from ._classical import classical_mds
from ._criterion import Bounds, bounds, criterion, is_euclidean, spectrum
from ._embeddability import Embeddability
from ._nearest import NearestEDM, nearest_edm
from ._projections import dykstra, project_conditional, project_hollow, project_nonnegative

__all__ = [
    "Bounds",
    "Embeddability",
    "NearestEDM",
    "bounds",
    "classical_mds",
    "criterion",
    "dykstra",
    "is_euclidean",
    "nearest_edm",
    "project_conditional",
    "project_hollow",
    "project_nonnegative",
    "spectrum",
]
