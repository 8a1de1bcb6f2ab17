"""From the user's units to the network's and back: NumPy only.

The network sees points around zero of about unit size, and embeds in the same unit of length (for a divergence that
grows with another power of the coordinates, in the matching power of it).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scwormhole.clouds import PaddedBatch, PointClouds
from scwormhole.clouds._scan import point_range

SAMPLE = 512  # clouds whose size and place are measured


@dataclass(frozen=True)
class Frame:
    """Where zero is, and how long one is."""

    origin: NDArray[np.float64]  # [d]
    length: float  # of points
    unit: float  # of embeddings: their squared distances are divergences
    centred: bool  # points are seen from their own cloud's mean
    low: NDArray[np.float64]  # [d] least coordinates that were seen
    high: NDArray[np.float64]

    def points(self, batch: PaddedBatch) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return points and weights as the network sees them, padding at zero."""
        weights = batch.weights / batch.weights.sum(1, keepdims=True)
        points = np.empty(batch.points.shape, np.float32)
        np.subtract(batch.points, self.origin, out=points, casting="unsafe")
        if self.centred:
            points -= np.einsum("bn,bnd->bd", weights, batch.points - self.origin)[:, None].astype(np.float32)
        points *= ((batch.weights > 0) / self.length).astype(np.float32)[..., None]
        return points, weights.astype(np.float32)

    def metric(self, metric: Any) -> Any:
        """Return a metric for points as the network sees them; a cost of the user's still gets the user's units."""
        return FramedCost(metric, tuple(map(float, self.origin)), self.length) if callable(metric) else metric

    def clouds(self, points: NDArray[Any], margin: float) -> NDArray[np.float64]:
        """Return decoded points in the user's units, at most a margin outside of where points were seen."""
        reach = margin * (self.high - self.low)
        return np.clip(self.origin + self.length * points.astype(np.float64), self.low - reach, self.high + reach)


@dataclass(frozen=True)
class FramedCost:
    """A ground cost of the user's, on points as the network sees them; hashable, so that it can be compiled in."""

    cost: Any
    origin: tuple[float, ...]
    length: float

    def __call__(self, x: Any, y: Any) -> Any:
        """Return the cost of two points."""
        origin = np.asarray(self.origin, np.float32)
        return self.cost(origin + self.length * x, origin + self.length * y)


def frame_of(
    clouds: PointClouds,
    *,
    degree: int | None,
    mean_divergence: float,
    origin: NDArray[np.float64] | None,
    box: tuple[NDArray[np.float64], float] | None,
    rng: int,
) -> Frame:
    """Measure a seeded sample of a cohort, and the range of all its points.

    Parameters
    ----------
    clouds
        The cohort.
    degree
        With this power of the coordinates the divergence grows; None if that is not known.
    mean_divergence
        Mean divergence of two clouds.
    origin
        Point from which the means of clouds are taken into the embedding as they are, or None if they are not.
    box
        Shift and factor that the network is to see points by, as in the paper; None for unit size around their mean.
    rng
        Seed.
    """
    low, high = point_range(clouds)
    chosen = np.random.default_rng(rng).permutation(len(clouds))[:SAMPLE]
    middles, squares = [], []
    for cloud in clouds[np.sort(chosen)]:
        points = np.asarray(cloud.points, np.float64)
        middle = cloud.weights @ points
        middles.append(middle)
        squares.append(cloud.weights @ ((points - middle) ** 2).sum(1))
    centred = origin is not None
    origin = np.mean(middles, axis=0) if origin is None else origin
    square = np.mean(squares) + (0.0 if centred else ((np.array(middles) - origin) ** 2).sum(1).mean())
    length = float(np.sqrt(square)) or 1.0
    if box is not None and not centred:
        origin, length = box[0], 1.0 / box[1]
    unit = length ** (degree / 2) if degree is not None else float(np.sqrt(max(mean_divergence, 0.0))) or 1.0
    return Frame(origin, length, unit, centred, low, high)
