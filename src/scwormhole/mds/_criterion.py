"""The criterion matrix of a table of divergences, and what its spectrum says of every embedding. NumPy and SciPy only.

With ``J = I - 11'/n`` a table D is one of squared Euclidean distances if and only if it is hollow and ``F = -JDJ`` is
positive semidefinite (Schoenberg 1935). Negative eigenvalues of F are what no Euclidean space can hold. Nearest to D
among the tables with ``-JD'J`` positive semidefinite is D with these left out of F, at the sum of their squares: a
lower bound on the stress. Made hollow by ``d_ij - (d_ii + d_jj) / 2``, it is a table of squared Euclidean distances,
and its stress an upper bound: that of classical scaling with all components, which makes the same table.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from ._validation import as_divergences

NEGLIGIBLE = 1e-6  # size of a negative eigenvalue, as a share of the largest, that counts as rounding


class Bounds(NamedTuple):
    """Between which the least stress lies that any embedding can have, of whatever length."""

    lower: float
    upper: float


def criterion(divergences: ArrayLike) -> NDArray[np.float64]:
    """Return the criterion matrix, ``-JDJ``: twice the scalar products of centred vectors, where there are any.

    Parameters
    ----------
    divergences
        Squared distances, each cloud with each.

    Examples
    --------
    >>> criterion([[0.0, 4.0], [4.0, 0.0]])
    array([[ 2., -2.],
           [-2.,  2.]])
    """
    return -centred(as_divergences(divergences))


def spectrum(divergences: ArrayLike) -> NDArray[np.float64]:
    """Return the eigenvalues of the criterion matrix, by falling size.

    Parameters
    ----------
    divergences
        Squared distances, each cloud with each.

    Examples
    --------
    >>> spectrum([[0.0, 4.0], [4.0, 0.0]]).round(6) + 0.0
    array([4., 0.])
    """
    return np.asarray(linalg.eigvalsh(criterion(divergences)), np.float64)[::-1]


def is_euclidean(divergences: ArrayLike, *, rtol: float = NEGLIGIBLE) -> bool:
    """Return whether vectors exist that have these squared distances.

    Parameters
    ----------
    divergences
        Squared distances, each cloud with each.
    rtol
        Size of a negative eigenvalue, as a share of the largest, that counts as rounding.

    Examples
    --------
    >>> is_euclidean([[0, 1, 4], [1, 0, 1], [4, 1, 0]])  # three points on a line
    True
    >>> is_euclidean([[0, 1, 9], [1, 0, 1], [9, 1, 0]])
    False
    """
    if not 0 <= rtol < 1:
        raise ValueError(f"rtol is {rtol}; give a share of at least 0 and below 1.")
    return not lost(spectrum(divergences), rtol).any()


def bounds(divergences: ArrayLike) -> Bounds:
    """Return between which the least stress lies: the squared errors, summed over the whole table.

    It is in squared units of the table, and infinite or zero where these leave the range of double precision.

    Parameters
    ----------
    divergences
        Squared distances, each cloud with each.

    Examples
    --------
    >>> bounds([[0.0, 1.0], [1.0, 0.0]])
    Bounds(lower=0.0, upper=0.0)
    """
    table = as_divergences(divergences)
    unit = root_mean_square(table)
    lower, upper = between(table / unit, truncated(table / unit))
    return Bounds(lower * unit * unit, upper * unit * unit)


def between(table: NDArray[np.float64], inside: NDArray[np.float64]) -> Bounds:
    """Return the bounds that follow from the nearest table whose criterion matrix is positive semidefinite."""
    upper = squared_error(table, made_hollow(inside))
    return Bounds(min(squared_error(table, inside), upper), upper)  # of a Euclidean table both are rounding


def lost(values: NDArray[np.float64], rtol: float = NEGLIGIBLE) -> NDArray[np.bool_]:
    """Return which eigenvalues of a criterion matrix are negative, by more than rounding."""
    return np.asarray(values < -rtol * max(values.max(), 0.0))


def root_mean_square(table: NDArray[np.float64]) -> float:
    """Return the root mean square of a table, the unit in which it can safely be squared; one if all is zero."""
    largest = float(np.abs(table).max()) or 1.0
    return largest * float(np.sqrt(((table / largest) ** 2).mean())) or 1.0


def centred(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a symmetric table without the means of its rows and columns, ``JDJ``."""
    means = table.mean(axis=0)
    return np.asarray(table - (means + means[:, None]) + means.mean())


def truncated(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the nearest table whose criterion matrix is positive semidefinite.

    The means of rows and columns stay as they are, ``PD + DP - PDP`` with ``P = 11'/n``: the last sign is what
    ``D = JDJ + PD + DP - PDP`` asks for, though the paper prints a plus.
    """
    inner = centred(table)
    values, vectors = linalg.eigh(inner)
    positive = values > 0  # of JDJ, so they are the negative ones of the criterion matrix
    part = vectors[:, positive]
    outside = (part * values[positive]) @ part.T
    return np.asarray(table - (outside + outside.T) / 2)


def made_hollow(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the only hollow table with the same criterion matrix; non-negative where that is semidefinite."""
    own = np.diag(table) / 2
    hollow = np.maximum(table - (own + own[:, None]), 0)
    np.fill_diagonal(hollow, 0)
    return np.asarray(hollow)


def squared_error(table: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Return the stress: the squared differences of two tables, summed over all entries."""
    return float(((table - other) ** 2).sum())
