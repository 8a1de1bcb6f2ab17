"""What is measured of a cloud that no rotation, reflection or shift changes, for Gromov-Wasserstein. NumPy only.

Gromov-Wasserstein compares the squared distances within one cloud with those within another, so these are measured:
quantile functions of each point's distances from the others, and of the points' mean distances, and the cloud's
principal variances. For two clouds the squared difference of the mean distances' quantiles is Memoli's first lower
bound.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._cohort import Cohort
from ._parts import Measured
from ._pool import stream
from ._slices import quantile_cells

MOST_POINTS = 128  # a cloud of more is thinned out before its pairs are looked at
N_ROOT_CELLS = 32
N_LOCAL, N_LOCAL_CELLS = 8, 16  # quantiles over a point's partners, and cells of their quantiles over points
MOST_VARIANCES = 16


@dataclass(frozen=True)
class InvariantParts:
    """Quantiles of squared distances within a cloud, and its principal variances."""

    dim: int
    size: NDArray[np.float64]  # [] mean squared distance of points from their cloud's mean

    @property
    def n_mean(self) -> int:
        """How many of the first values are the mean: none, it is not invariant."""
        return 0

    @property
    def width(self) -> int:
        """Numbers held for each point while a batch is measured."""
        return max(self.dim, 4 * MOST_POINTS)

    @property
    def groups(self) -> NDArray[np.int64]:
        """Part that each value belongs to."""
        counts = [N_ROOT_CELLS, *[N_LOCAL_CELLS] * N_LOCAL, min(self.dim, MOST_VARIANCES)]
        return np.repeat(np.arange(len(counts)), counts)

    @property
    def families(self) -> NDArray[np.int64]:
        """Kind of part that each value belongs to: points, partners of points, variances."""
        counts = [N_ROOT_CELLS, N_LOCAL_CELLS * N_LOCAL, min(self.dim, MOST_VARIANCES)]
        return np.repeat(np.arange(3), counts)

    @property
    def trust(self) -> NDArray[np.float64]:
        """Share of its scale that each value keeps before principal components are taken: all of it."""
        return np.ones(len(self.groups))

    def measure(self, points: NDArray[Any], weights: NDArray[Any]) -> Measured:
        """Measure a padded batch."""
        share = weights / weights.sum(axis=1, keepdims=True, dtype=np.float64)
        seen = points - np.matmul(share[:, None], points)
        root = (seen**2).sum(axis=2)  # [b, n]; with the spread added, the mean squared distance from each point
        spread = (share * root).sum(axis=1)
        covariance = np.einsum("bn,bni,bnj->bij", share, seen, seen, optimize=True)
        variances = np.linalg.eigvalsh(covariance)[:, ::-1][:, :MOST_VARIANCES]
        roots = quantile_cells((root + spread[:, None])[:, None], share, N_ROOT_CELLS)
        few, mass = thinned(seen, share, root)
        squares = (few**2).sum(axis=2)
        within = np.maximum(squares[:, :, None] + squares[:, None] - 2 * few @ few.transpose(0, 2, 1), 0)
        within = within.astype(np.float32)  # [b, m, m]
        local = quantile_cells(within, mass, N_LOCAL)  # [b, m, local]
        partners = quantile_cells(np.ascontiguousarray(local.transpose(0, 2, 1)), mass, N_LOCAL_CELLS)
        values = [roots[:, 0] / np.sqrt(N_ROOT_CELLS), partners.reshape(len(points), -1) / np.sqrt(N_LOCAL_CELLS)]
        return Measured(np.concatenate([*values, variances], axis=1), spread, (share**2).sum(axis=1), spread)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what has to be kept to measure again."""
        return {"dim": np.array(self.dim), "size": self.size}

    @classmethod
    def of_arrays(cls, arrays: dict[str, NDArray[Any]]) -> "InvariantParts":
        """Undo :meth:`arrays`."""
        return cls(int(arrays["dim"]), arrays["size"])

    @classmethod
    def fit(cls, clouds: Cohort, chosen: NDArray[np.int64]) -> "InvariantParts":
        """Learn how large clouds are.

        Parameters
        ----------
        clouds
            The cohort.
        chosen
            Clouds to learn from.
        """
        parts = cls(clouds.dim, np.ones(()))
        batches = stream(clouds, parts.width, chosen)
        total = sum(parts.measure(batch.points, batch.weights).spread[: len(batch.index)].sum() for batch in batches)
        return cls(clouds.dim, np.array(total / len(chosen) or 1.0))


def thinned(
    points: NDArray[Any], weights: NDArray[Any], root: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return at most ``MOST_POINTS`` points of each cloud, with weights.

    A larger cloud is sorted by distance from its mean and taken at equal steps of weight, which then weigh the same. So
    nothing is drawn at random, and neither order nor rotation matters.

    Parameters
    ----------
    points
        Points, clouds by places by dimensions.
    weights
        Weights, clouds by places, zero on padding; they sum to one.
    root
        Squared distances from the mean, clouds by places.
    """
    n_clouds, n_places = weights.shape
    if n_places <= MOST_POINTS:
        return points, weights
    order = np.argsort(np.where(weights > 0, root, np.inf), axis=1, kind="stable")
    ordered = np.take_along_axis(weights, order, axis=1)
    size = (weights > 0).sum(axis=1)
    steps = (np.arange(MOST_POINTS) + 0.5) / MOST_POINTS
    reached = np.cumsum(ordered, axis=1)
    taken = np.stack([np.searchsorted(row, steps * row[-1]) for row in reached])
    small = size <= MOST_POINTS
    taken[small] = np.arange(MOST_POINTS)
    places = np.take_along_axis(order, taken, axis=1)
    mass = np.full((n_clouds, MOST_POINTS), 1 / MOST_POINTS)
    mass[small] = ordered[small, :MOST_POINTS]
    return np.take_along_axis(points, places[:, :, None], axis=1), mass
