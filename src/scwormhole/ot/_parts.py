"""What is measured of a cloud before any regression: its mean, its quantiles along directions, its masses on a tree.

All of it lies in one flat vector of which each stretch is a part: a squared distance that the regression will scale.
Absolute differences of masses are among them, as squared distances of thermometer codes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.extmath import randomized_svd

from ._cohort import Batch, Cohort
from ._slices import LOW_DIMENSION, sliced, spread_directions
from ._tree import Tree, grow_tree, node_masses, thermometer

MOST_AXES = 64  # principal axes with quantiles and a place in the tree
MOST_MEAN_AXES = 256  # principal axes with means
N_DIRECTIONS = 32
N_CELLS = 16
N_DEGREES = 8  # cells of a thermometer
HINT = 0.1  # share of their scale that masses keep in low dimension, where quantiles say most and codes are rough
DEPTH = 3  # 84 nodes; with a level more the regression has more to choose from than pairs can tell
SAMPLE_POINTS = 20_000
SAMPLE_NUMBERS = 1 << 26  # coordinates of those points, at most
BATCH_NUMBERS = 1 << 21  # a batch that stays near the processor
EXACT_SVD = 512  # smaller side of a matrix that is decomposed in full


class Measured(NamedTuple):
    """What is known of a batch of clouds."""

    values: NDArray[Any]  # [b, p]
    spread: NDArray[np.float64]  # [b] mean squared distance of the points from their mean
    share: NDArray[np.float64]  # [b] sum of squared weights: one over the effective number of points


@dataclass(frozen=True)
class EuclideanParts:
    """Mean, quantiles along directions, and masses on a tree."""

    origin: NDArray[np.float64]  # [d]
    axes: NDArray[np.float64]  # [a, d] orthonormal; means are taken along all of them
    directions: NDArray[np.float64]  # [l, r] unit vectors in the space of the first r axes
    tree: Tree  # in the space of the first r axes
    tops: NDArray[np.float64]  # [nodes] where the thermometers' fine cells end
    centred: bool  # quantiles and tree see each cloud from its own mean

    @property
    def n_mean(self) -> int:
        """How many of the first values are the mean."""
        return len(self.axes)

    @property
    def width(self) -> int:
        """Numbers held for each point while a batch is measured."""
        return max(self.axes.shape[1], len(self.directions), len(self.tree.parents) + 1)

    @property
    def groups(self) -> NDArray[np.int64]:
        """Part that each value belongs to: the mean, each axis (or all even directions together), each node."""
        n_axes, n_directions = self.directions.shape[::-1]
        even = n_axes <= LOW_DIMENSION
        along = np.zeros(n_directions, np.int64) if even else np.arange(n_directions)
        nodes = self.tree.levels if even else np.arange(len(self.tree.parents))
        ends = [np.zeros(self.n_mean, np.int64), np.repeat(along, N_CELLS) + 1]
        return np.concatenate([*ends, np.repeat(nodes, N_DEGREES) + ends[-1][-1] + 1])

    @property
    def families(self) -> NDArray[np.int64]:
        """Kind of part that each value belongs to: the mean, quantiles, each level of the tree."""
        counts = [self.n_mean, len(self.directions) * N_CELLS]
        return np.concatenate([np.repeat([0, 1], counts), np.repeat(self.tree.levels + 2, N_DEGREES)])

    @property
    def trust(self) -> NDArray[np.float64]:
        """Share of its scale that each value keeps before principal components are taken."""
        low = self.directions.shape[1] <= LOW_DIMENSION
        return np.where(self.families >= 2, HINT if low else 1.0, 1.0)

    def measure(self, points: NDArray[Any], weights: NDArray[Any]) -> Measured:
        """Measure a padded batch."""
        seen = points - self.origin
        share = weights / weights.sum(axis=1, keepdims=True, dtype=np.float64)
        middle = np.matmul(share[:, None], seen)  # [b, 1, d]
        spread = np.einsum("bn,bnd,bnd->b", share, seen - middle, seen - middle)
        n_axes = self.directions.shape[1]
        inside = ((seen - middle if self.centred else seen) @ self.axes[:n_axes].T).astype(np.float32)
        cells = sliced(inside, share, self.directions, n_cells=N_CELLS)
        codes = thermometer(node_masses(self.tree, inside, share), self.tops, n_cells=N_DEGREES)
        mean = middle[:, 0] @ self.axes.T
        values = np.concatenate([mean, cells, codes.reshape(len(points), -1)], axis=1)
        return Measured(values, spread, (share**2).sum(axis=1))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what has to be kept to measure again."""
        return {
            "origin": self.origin,
            "axes": self.axes,
            "directions": self.directions,
            "tree_centres": self.tree.centres,
            "tree_parents": self.tree.parents,
            "tops": self.tops,
            "centred": np.array(self.centred),
        }

    @classmethod
    def of_arrays(cls, arrays: dict[str, NDArray[Any]]) -> "EuclideanParts":
        """Undo :meth:`arrays`."""
        tree = Tree(arrays["tree_centres"], arrays["tree_parents"])
        own = {name: arrays[name] for name in ("origin", "axes", "directions", "tops")}
        return cls(tree=tree, centred=bool(arrays["centred"]), **own)

    @classmethod
    def fit(cls, clouds: Cohort, chosen: NDArray[np.int64], *, centred: bool, tree: bool, rng: int) -> "EuclideanParts":
        """Learn axes and tree from points of some clouds.

        Parameters
        ----------
        clouds
            The cohort.
        chosen
            Clouds to learn from.
        centred
            Whether quantiles and tree see each cloud from its own mean.
        tree
            Whether to grow one; else it is a single node, which weighs nothing.
        rng
            Seed.
        """
        points, middles = _pooled(clouds, chosen, rng)
        origin = points.mean(axis=0, dtype=np.float64)
        dim = clouds.dim
        if dim <= LOW_DIMENSION:
            axes, directions = np.eye(dim), spread_directions(dim, N_DIRECTIONS)
        else:
            axes = principal_axes(points - origin, min(dim, MOST_MEAN_AXES), rng)
            directions = np.eye(min(len(axes), MOST_AXES))
        inside = (points - (middles if centred else origin)) @ axes[: directions.shape[1]].T
        grown = grow_tree(inside, depth=DEPTH if tree else 0, rng=rng)
        parts = cls(origin, axes, directions, grown, np.ones(len(grown.parents)), centred)
        return cls(origin, axes, directions, grown, parts._tops(clouds, chosen), centred)

    def _tops(self, clouds: Cohort, chosen: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the largest mass that a cloud was seen to have on each node."""
        tops = np.zeros(len(self.tree.parents))
        n_axes = self.directions.shape[1]
        for batch in stream(clouds, self.width, chosen):
            seen = batch.points - self.origin
            if self.centred:
                seen -= np.einsum("bn,bnd->bd", batch.weights / batch.weights.sum(1, keepdims=True), seen)[:, None]
            masses = node_masses(self.tree, (seen @ self.axes[:n_axes].T).astype(np.float32), batch.weights)
            tops = np.maximum(tops, masses.max(axis=0))
        return np.clip(tops, 1e-3, 1)


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
    """Return up to ``n`` orthonormal directions of most variance of centred rows; at least one."""
    n = min(n, *points.shape)
    if min(points.shape) <= EXACT_SVD:
        _, values, axes = np.linalg.svd(points, full_matrices=False)
    else:
        _, values, axes = randomized_svd(points, n, n_iter=4, random_state=rng)
    n = max(1, min(n, int((values > 1e-6 * values[0]).sum())))
    axes = np.asarray(axes[:n], np.float64)
    top = np.abs(axes).argmax(axis=1)
    return axes * np.sign(axes[np.arange(n), top])[:, None]


def _pooled(clouds: Cohort, chosen: NDArray[np.int64], rng: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return points of some clouds, as many of each, drawn by weight, and beside each point the mean of its cloud."""
    generator = np.random.default_rng(rng)
    most = max(1_000, min(SAMPLE_POINTS, SAMPLE_NUMBERS // clouds.dim))
    each = max(1, most // len(chosen))
    points, middles = [], []
    for batch in stream(clouds, clouds.dim, chosen[:most]):
        for row in range(len(batch.index)):
            weights = batch.weights[row].astype(np.float64)
            weights /= weights.sum()
            here = batch.points[row]
            drawn = generator.choice(len(here), min(each, int((weights > 0).sum())), p=weights)
            points.append(here[drawn])
            middles.append(np.broadcast_to(weights @ here, points[-1].shape))
    return np.concatenate(points), np.concatenate(middles)
