"""Projections onto the three sets whose intersection are the Euclidean distance matrices. NumPy and SciPy only."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._criterion import truncated
from ._validation import as_square, as_symmetric, check_count, warn

Projection = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def project_conditional(table: ArrayLike) -> NDArray[np.float64]:
    """Return the nearest table whose criterion matrix is positive semidefinite; neither hollow nor non-negative.

    Parameters
    ----------
    table
        A symmetric matrix.

    Examples
    --------
    >>> project_conditional([[0.0, -2.0], [-2.0, 0.0]])
    array([[-1., -1.],
           [-1., -1.]])
    """
    return truncated(as_symmetric(table, "table"))


def project_hollow(table: ArrayLike) -> NDArray[np.float64]:
    """Return the nearest table with zeros on the diagonal.

    Parameters
    ----------
    table
        A square matrix.

    Examples
    --------
    >>> project_hollow([[1.0, 2.0], [2.0, 1.0]])
    array([[0., 2.],
           [2., 0.]])
    """
    hollow = as_square(table, "table")
    np.fill_diagonal(hollow, 0)
    return hollow


def project_nonnegative(table: ArrayLike) -> NDArray[np.float64]:
    """Return the nearest table without negative entries.

    Parameters
    ----------
    table
        A square matrix.

    Examples
    --------
    >>> project_nonnegative([[0.0, -2.0], [-2.0, 0.0]])
    array([[0., 0.],
           [0., 0.]])
    """
    return np.maximum(as_square(table, "table"), 0)


def dykstra(
    table: ArrayLike,
    projections: Sequence[Any] = (project_conditional, project_nonnegative, project_hollow),
    *,
    tol: float = 1e-9,
    max_iter: int = 10_000,
) -> tuple[NDArray[np.float64], bool]:
    """Return the point nearest to a table in an intersection of convex sets, by Dykstra's alternating projections.

    The sets of the default are those of the Euclidean distance matrices, and :func:`nearest_edm` finds the same point
    in far fewer decompositions; this is the general tool, and the check on it.

    Parameters
    ----------
    table
        A symmetric matrix.
    projections
        Projection onto each of the sets.
    tol
        Ends when a round changes the table by less than this share of its norm.
    max_iter
        Rounds at most.

    Returns
    -------
    The nearest table, and whether it was reached.

    Examples
    --------
    >>> table, reached = dykstra([[1.0, 2.0], [2.0, 1.0]])
    >>> table.round(6), reached
    (array([[0., 2.],
           [2., 0.]]), True)
    """
    now = as_symmetric(table, "table")
    if not len(projections):
        raise ValueError("projections is empty; give at least one.")
    if not 0 < tol < 1:
        raise ValueError(f"tol is {tol}; give a share between 0 and 1.")
    check_count("max_iter", max_iter)
    enough = tol * (np.linalg.norm(now) or 1.0)
    owed = [np.zeros_like(now) for _ in projections]
    for _ in range(max_iter):
        before = now
        moved = 0.0
        for place, projection in enumerate(projections):
            wanted = now + owed[place]
            now = projection(wanted)
            moved += float(np.linalg.norm(wanted - now - owed[place]))
            owed[place] = wanted - now
        if np.linalg.norm(now - before) + moved <= enough:
            return now, True
    warn(f"stopped after {max_iter} rounds, before one changed the table by less than tol={tol:g}; raise max_iter.")
    return now, False
