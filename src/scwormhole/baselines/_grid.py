"""Clouds as histograms on a regular grid, for methods that know images and not points: NumPy only.

Voxels are as long one way as the other, since a way costs the same along each axis. The centres of the outermost ones
lie on the faces of the box, so that images whose pixels are the grid keep each pixel in a voxel of its own.
"""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from scwormhole.ot._cohort import Cohort

from ._blocks import batches
from ._checks import check_counts
from ._common import Transformer

SIDES = {2: 28, 3: 16}  # by dimension, as in the paper


class Grid(Transformer):
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

    _fewest: ClassVar[int] = 1

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

    def _fit(self, clouds: Cohort) -> None:
        """Find the box."""
        dim, side, box = clouds.dim, self._params["side"], self._params["box"]
        if dim not in SIDES:
            raise ValueError(
                f"clouds have {dim} dimensions; grids are for 2 and 3, as voxels are as many as power {dim} of "
                "those along an axis. Take a method that works on points."
            )
        if side is not None:
            check_counts(self._params, "side", least=2)
        low, high = bounds(clouds) if box is None else as_box(box, dim)
        self.side_ = int(side or SIDES[dim])
        self.spacing_ = float((high - low).max()) / (self.side_ - 1) or 1.0
        self.low_ = (low + high - self.spacing_ * (self.side_ - 1)) / 2

    def transform(self, clouds: Cohort) -> NDArray[np.float32]:
        """Return one histogram a cloud, of mass one, flat: the last axis of the grid runs fastest.

        Parameters
        ----------
        clouds
            A cohort of the dimension that was fitted.
        """
        clouds = self._known(clouds)
        masses = np.empty((len(clouds), self.n_voxels_), np.float32)
        for batch in batches(clouds, self.dim_):
            masses[batch.index] = self.histograms(batch.points, batch.weights)
        return masses

    def histograms(self, points: NDArray[Any], weights: NDArray[Any]) -> NDArray[np.float64]:
        """Return the histograms of a padded batch, on arrays alone.

        Parameters
        ----------
        points
            Points, clouds by places by dimensions.
        weights
            Weights, clouds by places; zero on padding.
        """
        # half way between two centres is the upper one's: to the even one would depend on where the grid begins
        places = np.floor((points - self._fitted().low_) / self.spacing_ + 0.5)
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
        return self._known(clouds)


def as_box(box: Any, dim: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the lowest and the highest coordinate on each axis of a box that was given, or say why it is none."""
    try:
        low, high = map(float, box)
    except (TypeError, ValueError):
        low = high = np.nan
    if not -np.inf < low < high < np.inf:
        raise ValueError(f"box is {box!r}; give two numbers, the lowest coordinate and then a higher one, or None.")
    return np.full(dim, low), np.full(dim, high)


def bounds(clouds: Cohort) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the lowest and the highest coordinate on each axis of points that weigh something."""
    low, high = np.full(clouds.dim, np.inf), np.full(clouds.dim, -np.inf)
    for batch in batches(clouds, clouds.dim):
        real = batch.points[batch.weights > 0]
        low, high = np.minimum(low, real.min(0)), np.maximum(high, real.max(0))
    return low, high
