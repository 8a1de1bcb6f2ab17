"""How much mass clouds have in common: touches the arrays of a cohort, and never its points.

Neighbouring niches hold the same cells. Of two clouds, ``sum_p min(a_p, b_p)`` over the points ``p`` need not move.
"""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ._layout import Layout, entries
from ._reader import source_of


def shared_table(layout: Layout, positions: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the mass that some clouds have in common with one another, clouds by clouds; one on the diagonal.

    Parameters
    ----------
    layout
        The cohort.
    positions
        The clouds.
    """
    table = np.eye(len(positions))
    held = _masses(layout, positions)
    if held.nnz == held.shape[1]:  # no point is in two clouds
        return table
    pattern = (held > 0).astype(np.int32)
    one, other = sparse.triu(pattern @ pattern.T, 1).nonzero()
    if len(one):
        common = np.asarray(held[one].minimum(held[other]).sum(axis=1)).ravel()
        table[one, other] = table[other, one] = common
    return table


def shared_pairs(first: Layout, second: Layout) -> NDArray[np.float64]:
    """Return the mass that the clouds of two cohorts have in common, one to one; none if their points are not the same.

    Parameters
    ----------
    first
        A cohort.
    second
        Another of as many clouds.
    """
    if source_of(first.points) is not source_of(second.points):
        return np.zeros(len(first.names))
    shape = (len(first.names), first.points.shape[0])
    one, other = (sparse.csr_array((c.weights, c.indices, c.indptr), shape=shape) for c in (first, second))
    return np.asarray(one.minimum(other).sum(axis=1)).ravel()


def _masses(layout: Layout, positions: NDArray[np.int64]) -> sparse.csr_array:
    """Return weights, clouds by those points that are in one of them."""
    places, indptr = entries(layout.indptr, positions), np.concatenate([[0], np.cumsum(layout.sizes[positions])])
    points, columns = np.unique(layout.indices[places], return_inverse=True)
    held = sparse.csr_array((layout.weights[places], columns, indptr), shape=(len(positions), len(points)))
    held.sum_duplicates()
    return held
