"""Neighbours of positions in space, library by library: NumPy and SciPy only, no AnnData and no array a niche."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial import Delaunay, KDTree, QhullError

Index = NDArray[np.int64]
Positions = NDArray[np.float64]


class Edges(NamedTuple):
    """From which cell to which, one entry an edge; no edge from a cell to itself."""

    rows: Index
    columns: Index

    def lengths(self, positions: Positions) -> NDArray[np.float64]:
        """Return the length of each edge."""
        return np.asarray(np.sqrt(((positions[self.rows] - positions[self.columns]) ** 2).sum(1)))


Neighbours = Callable[[Positions], Edges]


def within(radius: float) -> Neighbours:
    """Return what finds all cells no farther than a radius."""

    def find(positions: Positions) -> Edges:
        one, other = KDTree(positions).query_pairs(radius, output_type="ndarray").T
        return Edges(np.concatenate([one, other]), np.concatenate([other, one]))

    return find


def nearest(n_neighbors: int) -> Neighbours:
    """Return what finds so many nearest cells, or all others where there are fewer."""

    def find(positions: Positions) -> Edges:
        n = len(positions)
        k = min(n_neighbors, n - 1)
        found = KDTree(positions).query(positions, k + 1, workers=-1)[1].reshape(n, k + 1)
        # cells in one place may hide a cell from itself: then the farthest of the others is one too many
        own = found == np.arange(n)[:, None]
        own[~own.any(1), -1] = True
        return Edges(np.repeat(np.arange(n), k), found[~own].astype(np.int64))

    return find


def triangulated(positions: Positions) -> Edges:
    """Find the cells that share a triangle of Delaunay's."""
    try:
        indptr, indices = Delaunay(positions).vertex_neighbor_vertices
    except (QhullError, ValueError) as error:
        raise ValueError(
            f"{len(positions):,} positions of a library have no Delaunay triangulation, being too few or on a line; "
            "leave such libraries out, or use radius or n_neighbors."
        ) from error
    return Edges(np.repeat(np.arange(len(positions)), np.diff(indptr)), indices.astype(np.int64))


def find_edges(positions: Positions, libraries: Iterable[Index], neighbours: Neighbours) -> Edges:
    """Return the edges of each library; none goes from one to another.

    Parameters
    ----------
    positions
        One row a cell.
    libraries
        Cells of each library.
    neighbours
        What finds the neighbours among positions.
    """
    found = [(cells, neighbours(positions[cells])) for cells in libraries]
    rows, columns = zip(*((cells[edges.rows], cells[edges.columns]) for cells, edges in found), strict=True)
    return Edges(np.concatenate(rows), np.concatenate(columns))


def to_graph(edges: Edges, weights: NDArray[np.float32], own: NDArray[np.float32]) -> sparse.csr_matrix:
    """Return edges as a matrix, cells by cells, sorted by column.

    Parameters
    ----------
    edges
        The edges, each once.
    weights
        Weight of each.
    own
        Weight of each cell in its own niche; nothing is stored where it is zero.
    """
    n = len(own)
    selves = np.flatnonzero(own)
    place = np.int32 if n < np.iinfo(np.int32).max else np.int64
    ends: list[Any] = [np.concatenate([part, selves]).astype(place, copy=False) for part in edges]
    values: NDArray[np.float32] = np.concatenate([weights, own[selves]])
    graph = sparse.csr_matrix((values, tuple(ends)), shape=(n, n))
    graph.sort_indices()
    return graph
