"""A tree over the points of a cohort and the masses of clouds on its nodes: NumPy, and scikit-learn to grow it.

A tree-Wasserstein distance is a weighted L1 distance between masses on nodes. L1 is a squared L2 of unary codes: a
thermometer with one cell a degree, of which the mass fills the lower ones.
"""

import operator
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

MOST_ROUNDS = 50  # of k-means in a node; the tree need not be the best there is


@dataclass(frozen=True, eq=False)  # arrays have no single truth
class Tree:
    """Nested clusters of points. A node's number is higher than its parent's; the root, which holds all, is left out.

    Parameters
    ----------
    centres
        Centres of the nodes, one row each.
    parents
        Number of each node's parent; -1 for the children of the root.

    Examples
    --------
    >>> import numpy as np
    >>> tree = grow_tree(np.arange(8.0)[:, None], branching=2, depth=2, least=2, rng=0)
    >>> np.bincount(tree.levels)
    array([2, 4])
    >>> tree.is_leaf.sum()
    np.int64(4)
    """

    centres: NDArray[np.float64]
    parents: NDArray[np.int64]

    @cached_property
    def levels(self) -> NDArray[np.int64]:
        """Steps from each node up to a child of the root."""
        levels = np.zeros(len(self.parents), np.int64)
        for node, parent in enumerate(self.parents):
            levels[node] = levels[parent] + 1 if parent >= 0 else 0
        return levels

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        """Which nodes have no children."""
        return ~np.isin(np.arange(len(self.parents)), self.parents)

    @cached_property
    def descends(self) -> NDArray[np.float64]:
        """A matrix of ones where the node of the row is that of the column or lies below it."""
        below = np.eye(len(self.parents))
        for node, parent in enumerate(self.parents):  # a child has a higher number than its parent
            if parent >= 0:
                below[node] += below[parent]
        return below

    @cached_property
    def children(self) -> NDArray[np.int64]:
        """Each node's children, of a leaf itself, and in the last row the root's; the number of nodes for no more."""
        n_nodes = len(self.parents)
        lists: list[list[int]] = [[] for _ in range(n_nodes + 1)]
        for node, parent in enumerate(self.parents):
            lists[parent].append(node)
        table = np.full((n_nodes + 1, max(map(len, lists))), n_nodes)
        for row, nodes in enumerate(lists):
            table[row, : max(1, len(nodes))] = nodes or row
        return table


def grow_tree(points: NDArray[Any], *, branching: int = 4, depth: int = 4, least: int = 40, rng: int = 0) -> Tree:
    """Split points by k-means, the parts again, and so on.

    Parameters
    ----------
    points
        Points, one row each.
    branching
        Parts of a node.
    depth
        Levels below the root.
    least
        Fewest points of a node that is split.
    rng
        Seed.

    Returns
    -------
    The tree. Where points coincide a node has fewer children; where all do it has none, and the tree may be a single
    node.
    """
    if operator.index(branching) < 2:
        raise ValueError(f"branching is {branching}; at least 2 parts a node are needed.")
    centres: list[NDArray[np.float64]] = []
    parents: list[int] = []
    members = {-1: np.arange(len(points))}
    for _ in range(depth):
        parts: dict[int, NDArray[np.int64]] = {}
        for parent, inside in members.items():
            if len(inside) < max(least, branching):
                continue
            labels = _split(points[inside], branching, rng)
            for label in np.unique(labels):
                part = inside[labels == label]
                parts[len(parents)] = part
                parents.append(parent)
                centres.append(points[part].mean(axis=0, dtype=np.float64))
        members = parts
    if not parents:
        parents, centres = [-1], [points.mean(axis=0, dtype=np.float64)]
    return Tree(np.stack(centres), np.array(parents, np.int64))


def leaves_of(tree: Tree, points: NDArray[Any]) -> NDArray[np.int64]:
    """Return the leaf that each point ends on: it goes down from the root, always to the nearest child.

    Parameters
    ----------
    tree
        The tree.
    points
        Points, clouds by places by dimensions.

    Returns
    -------
    Clouds by places.
    """
    return _leaf_of(tree, points.reshape(-1, points.shape[2])).reshape(points.shape[:2])


def node_masses(tree: Tree, leaf: NDArray[np.int64], weights: NDArray[Any]) -> NDArray[np.float64]:
    """Return the mass that each cloud has on each node; children's add up to their parent's, and all leaves' to one.

    Parameters
    ----------
    tree
        The tree.
    leaf
        Leaf of each point, clouds by places.
    weights
        Weights, clouds by places, zero on padding.

    Returns
    -------
    Clouds by nodes.
    """
    n_clouds, _ = leaf.shape
    n_nodes = len(tree.parents)
    flat = np.arange(n_clouds)[:, None] * n_nodes + leaf
    on_leaf = np.bincount(flat.ravel(), weights.ravel(), n_clouds * n_nodes).reshape(n_clouds, n_nodes)
    return np.asarray(on_leaf @ tree.descends)


def thermometer(values: NDArray[Any], tops: NDArray[Any], *, n_cells: int) -> NDArray[np.float64]:
    """Return codes of numbers in [0, 1] whose squared distances are about the absolute differences of the numbers.

    The cells of a code are ``n_cells - 1`` equal ones from 0 to ``top`` and one from there to 1. Cell ``k`` of width
    ``h_k`` holds ``sqrt(h_k)`` times the share of it that the number covers. Two numbers differ by ``sum h_k f_k``,
    where ``f_k`` in [0, 1] is the share of cell ``k`` between them, and their codes by ``sum h_k f_k^2``; shares are
    broken in the two cells at the ends alone. So the codes never exceed the difference, and fall short of it by a
    quarter of each of these two cells' widths at most; steps in place of slopes would err by a whole cell to either
    side.

    Parameters
    ----------
    values
        Numbers in [0, 1], of any shape whose last axis is as long as ``tops``.
    tops
        Largest number each column is expected to hold.
    n_cells
        Cells of a code, at least two.

    Returns
    -------
    The codes, in a new last axis.

    Examples
    --------
    >>> import numpy as np
    >>> low, high = thermometer(np.array([[0.25], [0.75]]), np.array([1.0]), n_cells=5)
    >>> ((low - high) ** 2).sum()
    np.float64(0.5)
    """
    steps = np.linspace(0, 1, operator.index(n_cells))
    edges = np.concatenate([steps * np.asarray(tops)[:, None], np.ones((len(tops), 1))], axis=1)  # [columns, cells + 1]
    widths = np.diff(edges, axis=1)
    covered = np.clip(np.asarray(values)[..., None] - edges[:, :-1], 0, widths)
    return np.asarray(covered / np.sqrt(np.where(widths > 0, widths, 1)))


def _split(points: NDArray[Any], branching: int, rng: int) -> NDArray[np.int64]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer different points than parts: fewer parts then
        labels = KMeans(branching, n_init=1, max_iter=MOST_ROUNDS, random_state=rng).fit(points).labels_
    return np.asarray(labels, np.int64)


def _leaf_of(tree: Tree, points: NDArray[Any]) -> NDArray[np.int64]:
    """Return the leaf that each point ends on."""
    n_nodes = len(tree.parents)
    centres = tree.centres.astype(points.dtype, copy=False)
    distance = np.empty((len(points), n_nodes + 1), points.dtype)
    np.matmul(points, -2 * centres.T, out=distance[:, :-1])
    distance[:, :-1] += (centres**2).sum(axis=1)  # but for the point's own square, which is the same for all nodes
    distance[:, -1] = np.inf  # the child that is not there
    flat, row = distance.ravel(), np.arange(len(points))[:, None] * (n_nodes + 1)
    at = np.full(len(points), n_nodes)  # the root
    for _ in range(int(tree.levels.max()) + 1):
        candidates = tree.children[at]
        at = np.take_along_axis(candidates, flat[row + candidates].argmin(axis=1)[:, None], axis=1)[:, 0]
    return at
