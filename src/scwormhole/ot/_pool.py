"""Goes through a cohort in batches of bounded size, and finds what its points vary in. NumPy, SciPy and scikit-learn.

Points that are sparse or on disk are read a batch at a time, and never all at once.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.extmath import randomized_svd

from ._cohort import Batch, Cohort

SAMPLE_POINTS = 20_000
SAMPLE_NUMBERS = 1 << 26  # coordinates of those points, at most
BATCH_NUMBERS = 1 << 21  # a batch that stays near the processor
EXACT_SVD = 512  # smaller side of a matrix that is decomposed in full


def stream(clouds: Cohort, width: int, chosen: NDArray[np.int64] | None = None) -> Iterator[Batch]:
    """Yield clouds in batches of bounded size, few clouds at a time where clouds are large.

    Parameters
    ----------
    clouds
        The cohort.
    width
        Numbers held for each point.
    chosen
        Clouds to go through; all of them by default.
    """
    chosen = np.arange(len(clouds)) if chosen is None else chosen
    rungs = clouds.rungs[chosen]
    for rung in np.unique(rungs):
        rows = int(np.clip(BATCH_NUMBERS // (rung * width), 1, 1024))
        yield from clouds.batches(rows, chosen[rungs == rung])


def principal_axes(points: NDArray[Any], n: int, rng: int) -> NDArray[np.float64]:
    """Return orthonormal directions of most variance, one a row, by falling variance.

    Parameters
    ----------
    points
        Centred rows.
    n
        Most directions; those without variance are left out, but there is at least one.
    rng
        Seed, for matrices too large to be decomposed in full.
    """
    n = min(n, *points.shape)
    if min(points.shape) <= EXACT_SVD:
        _, values, axes = np.linalg.svd(points, full_matrices=False)
    else:
        _, values, axes = randomized_svd(points, n, n_iter=4, random_state=rng)
    n = max(1, min(n, int((values > 1e-6 * values[0]).sum())))
    axes = np.asarray(axes[:n], np.float64)
    largest = axes[np.arange(n), np.abs(axes).argmax(axis=1)]
    return axes * np.where(largest < 0, -1.0, 1.0)[:, None]  # a decomposition leaves the sign open


def draw_points(
    clouds: Cohort, chosen: NDArray[np.int64], *, centred: bool, rng: int
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return points of some clouds, drawn by weight, about as many of each, from the mean of all; and that mean.

    Parameters
    ----------
    clouds
        The cohort.
    chosen
        Clouds to draw from.
    centred
        Whether to return the points from their own cloud's mean instead.
    rng
        Seed.
    """
    generator = np.random.default_rng(rng)
    most = max(1_000, min(SAMPLE_POINTS, SAMPLE_NUMBERS // clouds.dim))
    each = max(1, most // len(chosen))
    points, middles = [], []
    for batch in stream(clouds, clouds.dim, chosen[:most]):
        for here, weights in zip(batch.points[: len(batch.index)], batch.weights, strict=False):
            share = weights / weights.sum(dtype=np.float64)
            drawn = generator.choice(len(here), min(each, int((weights > 0).sum())), p=share)
            middles.append(share @ here)
            points.append(here[drawn] - (middles[-1].astype(here.dtype) if centred else 0))
    origin = np.mean(middles, axis=0)
    pooled = np.concatenate(points)
    return pooled if centred else pooled - origin.astype(pooled.dtype), origin
