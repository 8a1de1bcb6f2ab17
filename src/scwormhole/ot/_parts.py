"""What is measured of a cloud before any regression: mean, quantiles along directions, masses on a tree. NumPy only.

All of it lies in one flat vector of which each stretch is a part: a squared distance that the regression will scale.
Absolute differences are among them, as squared distances of thermometer codes.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._cohort import Cohort
from ._nearest import MOST_NEAR, nearest
from ._pool import draw_points, principal_axes, stream
from ._slices import LOW_DIMENSION, quantile_cells, sliced, spread_directions
from ._tree import Tree, grow_tree, leaves_of, node_masses, thermometer

MOST_AXES = 64  # principal axes with quantiles and a place in the tree
MOST_MEAN_AXES = 256  # principal axes with means, and coordinates with absolute differences
N_DIRECTIONS = 32
N_CELLS = 16
N_DEGREES = 8  # cells of a thermometer
N_ABSOLUTE = 4  # quantiles of a coordinate whose absolute differences count; the mean alone in high dimension
DEPTH = 3  # 84 nodes; with a level more the regression has more to choose from than pairs can tell
HINT = 0.1  # share of its scale that a mass keeps beside centred quantiles, which say most; codes are rough


class Measured(NamedTuple):
    """What is known of a batch of clouds."""

    values: NDArray[Any]  # [b, p]
    spread: NDArray[np.float64]  # [b] mean squared distance of the points from their mean
    share: NDArray[np.float64]  # [b] sum of squared weights: one over the effective number of points
    scatter: NDArray[np.float64]  # [b] mean squared distance of the points from others of their kind


class _Seen(NamedTuple):
    middle: NDArray[Any]  # [b, d]
    spread: NDArray[np.float64]  # [b]
    scatter: NDArray[np.float64]  # [b]
    inside: NDArray[np.float32]  # [b, n, r] points on the first axes
    masses: NDArray[np.float64]  # [b, nodes]
    coordinates: NDArray[np.float32]  # [b, d * q] quantiles of coordinates


@dataclass(frozen=True)
class EuclideanParts:
    """Mean, quantiles along directions, masses on a tree and, for costs of first degree, absolute differences."""

    origin: NDArray[np.float64]  # [d]
    axes: NDArray[np.float64]  # [a, d] orthonormal; means are taken along all of them
    directions: NDArray[np.float64]  # [l, r] unit vectors in the space of the first r axes
    tree: Tree  # in the space of the first r axes
    tops: NDArray[np.float64]  # [nodes] where the thermometers' fine cells end
    floor: NDArray[np.float64]  # [d * q] lowest quantiles of coordinates; of length 0 where these do not count
    reach: NDArray[np.float64]  # [d * q] how far the highest ones are above
    size: NDArray[np.float64]  # [] mean squared distance of all points from the origin
    centred: bool  # quantiles and tree see each cloud from its own mean

    @property
    def n_mean(self) -> int:
        """How many of the first values are the mean."""
        return len(self.axes)

    @property
    def width(self) -> int:
        """Numbers held for each point while a batch is measured."""
        return max(len(self.origin), len(self.directions), len(self.tree.parents) + 1, MOST_NEAR * self._sees_near)

    @property
    def _sees_near(self) -> bool:
        return len(self.origin) > LOW_DIMENSION

    @property
    def families(self) -> NDArray[np.int64]:
        """Kind of part that each value belongs to: mean, quantiles, each level of the tree, absolute differences."""
        levels = np.repeat(self.tree.levels + 2, N_DEGREES)
        counts = [self.n_mean, len(self.directions) * N_CELLS, len(levels), len(self.floor) * N_DEGREES]
        families = np.repeat([0, 1, 2, levels.max() + 1], counts)
        families[counts[0] + counts[1] :][: len(levels)] = levels
        return families

    @property
    def groups(self) -> NDArray[np.int64]:
        """Part that each value belongs to. Even directions count alike, and so do a level's nodes beside them."""
        n_directions, n_axes = self.directions.shape
        if n_axes <= LOW_DIMENSION:
            along, nodes = np.zeros(n_directions, np.int64), self.tree.levels
        else:
            along, nodes = np.arange(n_directions), np.arange(len(self.tree.parents))
        n_coordinates = len(self.floor) // (len(self.floor) // len(self.origin) or 1)
        runs = [
            np.zeros(self.n_mean, np.int64),
            np.repeat(along, N_CELLS),
            np.repeat(nodes, N_DEGREES),
            np.repeat(np.arange(n_coordinates), len(self.floor) * N_DEGREES // (n_coordinates or 1)),
        ]
        firsts = np.cumsum([0, *(run.max(initial=-1) + 1 for run in runs)])
        return np.concatenate([run + first for run, first in zip(runs, firsts[:-1], strict=True)])

    @property
    def trust(self) -> NDArray[np.float64]:
        """Share of its scale that each value keeps before principal components are taken."""
        return np.where((self.families >= 2) & self.centred, HINT, 1.0)

    def measure(self, points: NDArray[Any], weights: NDArray[Any]) -> Measured:
        """Measure a padded batch."""
        share = weights / weights.sum(axis=1, keepdims=True, dtype=np.float64)
        seen = self._look(points, share)
        cells = sliced(seen.inside, share, self.directions, n_cells=N_CELLS)
        codes = thermometer(seen.masses, self.tops, n_cells=N_DEGREES)
        risen = np.clip((seen.coordinates - self.floor) / self.reach, 0, 1)
        absolute = thermometer(risen, np.ones(len(self.floor)), n_cells=N_DEGREES)
        absolute *= np.sqrt(self.reach * len(self.origin) / (len(self.floor) or 1))[:, None]
        # in units of a length, all of them, whatever the user's unit is
        codes, absolute = codes * np.sqrt(self.size), absolute * np.sqrt(np.sqrt(self.size))
        flat = (part.reshape(len(points), -1) for part in (cells, codes, absolute))
        mean = seen.middle @ self.axes.T.astype(seen.middle.dtype)
        values = np.concatenate([mean, *flat], axis=1, dtype=seen.middle.dtype, casting="same_kind")
        return Measured(values, seen.spread, (share**2).sum(axis=1), seen.scatter)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what has to be kept to measure again."""
        return {name: getattr(self, name) for name in _PLAIN} | {
            "tree_centres": self.tree.centres,
            "tree_parents": self.tree.parents,
            "centred": np.array(self.centred),
        }

    @classmethod
    def of_arrays(cls, arrays: dict[str, NDArray[Any]]) -> "EuclideanParts":
        """Undo :meth:`arrays`."""
        tree = Tree(arrays["tree_centres"], arrays["tree_parents"])
        return cls(**{name: arrays[name] for name in _PLAIN}, tree=tree, centred=bool(arrays["centred"]))

    @classmethod
    def fit(
        cls, clouds: Cohort, chosen: NDArray[np.int64], *, centred: bool, tree: bool, absolute: bool, rng: int
    ) -> "EuclideanParts":
        """Learn axes, tree and ranges from some clouds.

        Parameters
        ----------
        clouds
            The cohort.
        chosen
            Clouds to learn from.
        centred
            Whether quantiles and tree see each cloud from its own mean.
        tree
            Whether to grow one; else it is a single node, of which every cloud has all.
        absolute
            Whether absolute differences of coordinates count.
        rng
            Seed.
        """
        dim = clouds.dim
        points, origin = draw_points(clouds, chosen, centred=centred, rng=rng)
        if dim <= LOW_DIMENSION:
            axes, directions = np.eye(dim), spread_directions(dim, N_DIRECTIONS)
        else:
            axes = principal_axes(points, min(dim, MOST_MEAN_AXES), rng)
            directions = np.eye(min(len(axes), MOST_AXES))
        grown = grow_tree(points @ axes[: directions.shape[1]].T, depth=DEPTH if tree else 0, rng=rng)
        n_absolute = 0 if not absolute or dim > MOST_MEAN_AXES else N_ABSOLUTE if dim <= LOW_DIMENSION else 1
        zeros, ones = np.zeros(dim * n_absolute), np.ones(dim * n_absolute)
        parts = cls(origin, axes, directions, grown, np.ones(len(grown.parents)), zeros, ones, np.ones(()), centred)
        return parts._with_ranges(clouds, chosen)

    def _look(self, points: NDArray[Any], share: NDArray[np.float64]) -> _Seen:
        seen = self._from_origin(points)
        middle = np.matmul(share[:, None].astype(seen.dtype), seen)  # [b, 1, d]
        apart = seen - middle
        around = squares(apart)
        spread = (share * around).sum(axis=1)
        viewed, square = (apart, around) if self.centred else (seen, squares(seen))
        axes = self.axes[: self.directions.shape[1]].astype(seen.dtype)
        flat = viewed.reshape(-1, viewed.shape[2]) @ axes.T  # one product is quicker than one for each cloud
        inside = flat.reshape(*viewed.shape[:2], -1).astype(np.float32, copy=False)
        leaf = leaves_of(self.tree, inside)
        beside = square - squares(inside)  # what the axes do not span
        from_leaf = squares(inside - self.tree.centres.astype(np.float32)[leaf])
        alike = np.maximum(beside + from_leaf, 0)
        if self._sees_near:  # a kind of points that the tree has not seen is far from its leaves, and near its own
            alike = np.minimum(alike, nearest(viewed, share))
        scatter = (share * alike).sum(axis=1)
        n_absolute = len(self.floor) // len(self.origin)
        coordinates = middle[:, 0] if n_absolute == 1 else np.empty((len(points), 0), np.float32)
        if n_absolute > 1:
            along = np.ascontiguousarray(seen.transpose(0, 2, 1), np.float32)
            coordinates = quantile_cells(along, share, n_absolute).reshape(len(points), -1)
        return _Seen(middle[:, 0], spread, scatter, inside, node_masses(self.tree, leaf, share), coordinates)

    def _from_origin(self, points: NDArray[Any]) -> NDArray[Any]:
        """Return points from the origin; of many coordinates in single precision, which is what takes the time."""
        if self._sees_near and points.dtype == np.float32:
            return np.asarray(points - self.origin.astype(np.float32))
        seen = np.empty(points.shape, np.float32 if self._sees_near else np.float64)
        np.subtract(points, self.origin, out=seen, casting="unsafe")
        return seen

    def _with_ranges(self, clouds: Cohort, chosen: NDArray[np.int64]) -> "EuclideanParts":
        """Return the same with thermometers as high as the masses and coordinates that clouds were seen to have."""
        tops = np.full(len(self.tops), 1e-3)
        low, high = np.full(len(self.floor), np.inf), np.full(len(self.floor), -np.inf)
        squares = 0.0
        for batch in stream(clouds, self.width, chosen):
            seen = self._look(batch.points, batch.weights / batch.weights.sum(axis=1, keepdims=True, dtype=np.float64))
            tops = np.maximum(tops, seen.masses.max(axis=0))
            low = np.minimum(low, seen.coordinates.min(axis=0, initial=np.inf))
            high = np.maximum(high, seen.coordinates.max(axis=0, initial=-np.inf))
            squares += (seen.spread + (seen.middle**2).sum(axis=1))[: len(batch.index)].sum()
        size = np.array(squares / len(chosen) or 1.0)
        reach = np.where(high > low, high - low, np.sqrt(size))
        return replace(self, tops=np.minimum(tops, 1), floor=low, reach=reach, size=size)


def squares(vectors: NDArray[Any]) -> NDArray[Any]:
    """Return the squared lengths of vectors, those of the last axis."""
    return np.asarray(np.einsum("...d,...d->...", vectors, vectors))


_PLAIN = ("origin", "axes", "directions", "tops", "floor", "reach", "size")
