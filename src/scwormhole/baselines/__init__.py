"""Rivals of the model, to be run beside it: the room's menu."""

from ._diffusion_emd import DiffusionEMD
from ._dwe import DWE
from ._frechet import Frechet
from ._gaussian_gw import GaussianGW
from ._grid import Grid
from ._labels import knn_labels
from ._linear_ot import LinearOT
from ._moments import Moments
from ._sliced import SlicedFeatures
from ._sliced_regression import SlicedRegression

__all__ = [
    "DWE",
    "DiffusionEMD",
    "Frechet",
    "GaussianGW",
    "Grid",
    "LinearOT",
    "Moments",
    "SlicedFeatures",
    "SlicedRegression",
    "knn_labels",
]
