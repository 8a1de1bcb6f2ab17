"""Reads all points of a cohort once, a chunk at a time, wherever they live: NumPy and SciPy only."""

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._rows import dense_block, is_sparse, read_block, rows_per_chunk
from ._store import PointClouds


def point_range(clouds: PointClouds) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the least and the largest coordinates of all points that weigh something."""
    low, high = np.full(clouds.dim, np.inf), np.full(clouds.dim, -np.inf)
    for block in _chunks(clouds):
        low = np.minimum(low, dense_block(block.min(axis=0)).ravel())
        high = np.maximum(high, dense_block(block.max(axis=0)).ravel())
    return low, high


def digest(clouds: PointClouds) -> str:
    """Return a number that is the same for the same clouds, points and weights, and for no others."""
    found = hashlib.blake2b(digest_size=16)
    parts: list[Any] = [clouds.indptr, clouds.indices, clouds.weights]
    for block in _chunks(clouds):
        parts += [block.data, block.indices, block.indptr] if is_sparse(block) else [block]
        for part in parts:
            found.update(np.ascontiguousarray(part).data)
        parts = []
    return found.hexdigest()


def used_points(clouds: PointClouds) -> NDArray[np.bool_]:
    """Return which of the shared points weigh something in a cloud."""
    used = np.zeros(clouds.n_points, bool)  # far quicker than to sort out distinct numbers
    used[clouds.indices[clouds.weights > 0]] = True
    return used


def _chunks(clouds: PointClouds) -> Iterator[Any]:
    """Yield the points that weigh something in a cloud, a chunk of rows at a time, sparse where they are."""
    points = clouds._layout.points
    rows = np.flatnonzero(used_points(clouds))
    step = rows_per_chunk(points)
    for part in np.split(rows, range(step, len(rows), step)):
        together = part[-1] - part[0] + 1 == len(part)
        yield read_block(points[part[0] : part[-1] + 1] if together else points[part])
