"""Clouds as histograms on a regular grid, for methods that know images and not points: NumPy only.

Voxels are as long one way as the other, since a way costs the same along each axis. The centres of the outermost ones
lie on the faces of the box, so that images whose pixels are the grid keep each pixel in a voxel of its own.
"""

import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from scwormhole.ot._cohort import Cohort, as_cohort
from scwormhole.ot._estimator import Estimator
from scwormhole.ot._pool import stream

SIDES = {2: 28, 3: 16}  # by dimension, as in the paper


class Grid(Estimator):
    """Clouds to histograms on a grid of square or cubic voxels, in two or three dimensions.

    Each point gives its weight to the nearest voxel, also if it lies outside the box.

    Parameters
    ----------
    side
        Voxels along each axis; 28 in two dimensions and 16 in three by default.
    box
        Lowest and highest coordinate, the same on each axis: where the centres of the outermost voxels lie. By default
        the smallest cube around the clouds that are fitted. Give it where points lie on a grid themselves:
        ``(-1, 1)`` for images that fill it.

    Attributes
    ----------
    side_
        Voxels along each axis.
    low_
        Centre of the first voxel.
    spacing_
        Distance of neighbours.

    Examples
    --------
    >>> import numpy as np, scwormhole as wh
    >>> from scwormhole.baselines import Grid
    >>> clouds = wh.PointClouds.from_list([np.array([[0.0, 0.0], [0.0, 2.0]]), np.array([[2.0, 1.0]])])
    >>> Grid(side=3).fit_transform(clouds).reshape(2, 3, 3).tolist()[0]
    [[0.5, 0.0, 0.5], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """

    def __init__(self, *, side: int | None = None, box: tuple[float, float] | None = None) -> None:
        super().__init__({"side": side, "box": box})

    @property
    def shape_(self) -> tuple[int, ...]:
        """Voxels along each axis, as arrays have it."""
        return (self._fitted().side_,) * self.dim_

    @property
    def n_voxels_(self) -> int:
        """Voxels in all."""
        return int(np.prod(self.shape_))

    @property
    def centres_(self) -> NDArray[np.float64]:
        """Centres of the voxels, in the order of a histogram."""
        places = np.stack(np.unravel_index(np.arange(self.n_voxels_), self.shape_), axis=1)
        return np.asarray(self.low_ + self.spacing_ * places)

    def fit(self, clouds: Cohort, y: None = None) -> "Grid":
        """Find the box.

        Parameters
        ----------
        clouds
            The cohort.
        y
            Of no effect.
        """
        clouds = as_cohort(clouds, "clouds")
        dim, box = clouds.dim, self._params["box"]
        if dim not in SIDES:
            raise ValueError(
                f"clouds have {dim} dimensions; grids are for 2 and 3, as voxels are as many as power {dim} of "
                "those along an axis. Take a method that works on points."
            )
        side = operator.index(SIDES[dim] if self._params["side"] is None else self._params["side"])
        if side < 2:
            raise ValueError(f"side is {side}; give at least 2 voxels along an axis.")
        if box is None:
            low, high = bounds(clouds)
        else:
            low, high = (np.full(dim, float(end)) for end in box)
            if not (np.isfinite(low) & (low < high) & np.isfinite(high)).all():
                raise ValueError(f"box is {box}; give the lowest coordinate and then a higher one, or None.")
        self.dim_, self.side_ = dim, side
        self.spacing_ = float((high - low).max()) / (side - 1) or 1.0
        self.low_ = (low + high - self.spacing_ * (side - 1)) / 2
        return self

    def transform(self, clouds: Cohort) -> NDArray[np.float32]:
        """Return one histogram a cloud, of mass one, flat: the last axis of the grid runs fastest.

        Parameters
        ----------
        clouds
            A cohort of the dimension that was fitted.
        """
        clouds = self.checked(clouds)
        masses = np.empty((len(clouds), self.n_voxels_), np.float32)
        for batch in stream(clouds, self.dim_):
            masses[batch.index] = self.histograms(batch.points, batch.weights)[: len(batch.index)]
        return masses

    def fit_transform(self, clouds: Cohort, y: None = None) -> NDArray[np.float32]:
        """Fit, and return one histogram a cloud.

        Parameters
        ----------
        clouds
            The cohort.
        y
            Of no effect.
        """
        return self.fit(clouds).transform(clouds)

    def histograms(self, points: NDArray[Any], weights: NDArray[Any]) -> NDArray[np.float64]:
        """Return the histograms of a padded batch, on arrays alone.

        Parameters
        ----------
        points
            Points, clouds by places by dimensions.
        weights
            Weights, clouds by places; zero on padding.
        """
        places = np.rint((points - self._fitted().low_) / self.spacing_)
        places = np.clip(places, 0, self.side_ - 1).astype(np.int64)
        voxels = np.ravel_multi_index(tuple(np.moveaxis(places, -1, 0)), self.shape_)  # [b, n]
        rows = self.n_voxels_ * np.arange(len(points))[:, None]
        mass = np.bincount((rows + voxels).ravel(), weights.ravel(), len(points) * self.n_voxels_)
        mass = mass.reshape(len(points), -1)
        return np.asarray(mass / mass.sum(1, keepdims=True))

    def checked(self, clouds: Cohort) -> Cohort:
        """Return a cohort if this grid can hold it, and say what is wrong if it cannot.

        Parameters
        ----------
        clouds
            The cohort.
        """
        self._fitted()
        clouds = as_cohort(clouds, "clouds")
        if clouds.dim != self.dim_:
            raise ValueError(f"clouds have {clouds.dim} dimensions, and the grid was fitted in {self.dim_}.")
        return clouds

    def _fitted(self) -> "Grid":
        if not hasattr(self, "side_"):
            raise NotFittedError("this grid is not fitted yet; call .fit(clouds) first.")
        return self


def bounds(clouds: Cohort) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the lowest and the highest coordinate on each axis of points that weigh something."""
    low, high = np.full(clouds.dim, np.inf), np.full(clouds.dim, -np.inf)
    for batch in stream(clouds, clouds.dim):
        real = batch.points[batch.weights > 0]
        low, high = np.minimum(low, real.min(0)), np.maximum(high, real.max(0))
    return low, high
