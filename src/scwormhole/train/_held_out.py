"""Clouds that training does not see, and how good the embedding is on them: NumPy and SciPy only.

Clouds may share points, as neighbouring niches do. Then whole patches of neighbours are held out, and clouds that share
a point with them are left out of training: a copy of a held-out cloud must not be learned.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from scwormhole.clouds import PointClouds
from scwormhole.clouds._scan import used_points

FEWEST = 8  # clouds below which none can be spared
SHARE = 5  # at most one cloud in so many is held out
PATCHES = 8
MOST_LEARNED = 1 << 16  # clouds that a training sees, at most; 1,000 steps take half as many
FEWEST_LEARNED = 1 << 10  # below this no memory is saved
Index = NDArray[np.int64]


class Split(NamedTuple):
    """Positions of clouds that are trained on, and of those held out."""

    train: Index
    held_out: Index


class Look(NamedTuple):
    """Agreement with the divergence on held-out pairs."""

    correlation: float
    error: float  # root mean squared error over the standard deviation


def split_clouds(clouds: PointClouds, n_held_out: int, rng: int) -> Split:
    """Choose clouds to hold out, in patches where clouds share points.

    Parameters
    ----------
    clouds
        The cohort.
    n_held_out
        How many, at most a fifth of the cohort.
    rng
        Seed.
    """
    n = len(clouds)
    count = min(n_held_out, n // SHARE) if n >= FEWEST else 0
    generator = np.random.default_rng([rng, 17])
    order = generator.permutation(n)
    if count == 0:
        return Split(np.arange(n), np.empty(0, np.int64))
    shared = _membership(clouds)
    if shared is None:
        return Split(np.sort(order[count:]), np.sort(order[:count]))
    held = np.zeros(n, bool)
    each = -(-count // PATCHES)
    for seed in order:
        if held.sum() >= count:
            break
        if not held[seed]:
            held |= _patch(shared, seed, min(each, count - int(held.sum())), held)
    touched = _neighbours(shared, held)
    if (~touched).sum() < n // 2:  # everything hangs together: patches would leave too little
        return Split(np.sort(order[count:]), np.sort(order[:count]))
    return Split(np.flatnonzero(~touched), np.flatnonzero(held))


def learned_from(clouds: PointClouds, split: Split, *, max_bytes: int, rng: int) -> tuple[PointClouds, Index]:
    """Return the clouds that a fit looks at, with points in memory, and where they are in the cohort.

    What a training sees does not grow with the cohort: of a large one it is a seeded sample, and all held-out clouds.
    Points that are not in memory are read once, in their order; where they would take too much, the sample is smaller.

    Parameters
    ----------
    clouds
        The cohort.
    split
        What is held out of it.
    max_bytes
        Most bytes of points that are read.
    rng
        Seed.
    """
    count, order = min(len(split.train), MOST_LEARNED), split.train
    if len(order) > count:
        order = np.random.default_rng([rng, 18]).permutation(order)
    while True:
        positions = np.sort(np.concatenate([order[:count], split.held_out]))
        some = clouds if len(positions) == len(clouds) else clouds[positions]
        if some.unread_bytes <= max_bytes or count <= FEWEST_LEARNED:
            break
        order = np.random.default_rng([rng, 18]).permutation(split.train)
        count //= 2
    return (some.to_memory() if some.unread_bytes else some), positions


def look(predicted: NDArray[np.floating], true: NDArray[np.floating]) -> Look:
    """Compare divergences of pairs."""
    spread = float(true.std())
    error = float(np.sqrt(((predicted - true) ** 2).mean()))
    if not spread > 0:
        return Look(float("nan"), error)
    if not predicted.std() > 0:
        return Look(0.0, error / spread)
    return Look(float(np.corrcoef(predicted, true)[0, 1]), error / spread)


def _membership(clouds: PointClouds) -> sparse.csr_matrix | None:
    """Return which cloud holds which point, or None if no point is in two clouds."""
    indices, indptr = clouds.indices, clouds.indptr
    if used_points(clouds).sum() == np.count_nonzero(clouds.weights):
        return None
    ones = np.ones(len(indices), np.int8)
    return sparse.csr_matrix((ones, indices, indptr), shape=(len(clouds), clouds.points.shape[0]))


def _neighbours(shared: sparse.csr_matrix, some: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the clouds that share a point with some clouds, these among them."""
    points = shared.T.astype(np.int32) @ some.astype(np.int32) > 0
    return np.asarray(shared.astype(np.int32) @ points.astype(np.int32) > 0)


def _patch(shared: sparse.csr_matrix, seed: int, size: int, taken: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Grow a patch from one cloud through those that share points with it."""
    patch = np.zeros(len(taken), bool)
    patch[seed] = True
    while patch.sum() < size:
        ring = _neighbours(shared, patch) & ~patch & ~taken
        if not ring.any():
            break
        patch[np.flatnonzero(ring)[: size - int(patch.sum())]] = True
    return patch
