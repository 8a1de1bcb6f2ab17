"""Rivals of the model, to be run beside it: the room's menu."""

from ._common import knn_labels
from ._frechet import Frechet

__all__ = ["Frechet", "knn_labels"]
