"""Rivals of the model, to be run beside it: the room's menu."""

from ._common import knn_labels
from ._frechet import Frechet
from ._gaussian_gw import GaussianGW
from ._linear_ot import LinearOT
from ._moments import Moments
from ._sliced import SlicedFeatures
from ._sliced_regression import SlicedRegression

__all__ = ["Frechet", "GaussianGW", "LinearOT", "Moments", "SlicedFeatures", "SlicedRegression", "knn_labels"]
