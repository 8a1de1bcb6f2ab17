"""The cohort of point clouds, its padding and its file: NumPy and SciPy only, no JAX and no AnnData."""

from ._padding import PaddedBatch, ladder
from ._store import Cloud, PointClouds

__all__ = ["Cloud", "PaddedBatch", "PointClouds", "ladder"]
