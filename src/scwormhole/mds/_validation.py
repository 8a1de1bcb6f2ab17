"""What may be called a table of divergences, what a whole number, and whom a warning is for: NumPy and SciPy only."""

import inspect
import warnings
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

PACKAGE = __name__.partition(".")[0]
ROUNDING = 1e-5  # of an entry, or of the median one if that is larger: single precision, and what solvers leave
OWN_COSTS = " Regularised transport has costs from a cloud to itself: take 'S2', 'S1' or 'GS', or solver='exact'."


def as_divergences(table: ArrayLike, name: str = "divergences") -> NDArray[np.float64]:
    """Return a table in double precision, symmetric, hollow and non-negative, or say what is wrong with it.

    What misses that by rounding only is put right, and a warning tells.

    Parameters
    ----------
    table
        Squared distances or divergences, each cloud with each.
    name
        What to call it.
    """
    found = as_square(table, name)
    if len(found) < 2:
        raise ValueError(f"{name} has {len(found)} rows; at least two clouds are needed.")
    clean = np.maximum(as_symmetric(found, name), 0)
    allowed = np.full(found.shape, ROUNDING * _typical(found))
    _refuse(np.abs(np.diag(np.diag(found))), allowed, f"{name} is not hollow", "away from zero by", OWN_COSTS)
    _refuse(np.maximum(-found, 0), allowed, f"{name} has negative entries", "below zero by")
    np.fill_diagonal(clean, 0)
    off = np.abs(clean - found).max()
    if off > 0:
        warn(
            f"{name} was not quite symmetric, hollow and non-negative: entries were changed by up to {off:.2g}, which "
            "is rounding."
        )
    return clean


def as_symmetric(table: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return a symmetric table in double precision; the symmetric part of one that misses that by rounding."""
    found = as_square(table, name)
    size = np.abs(found)
    allowed = ROUNDING * np.maximum(np.maximum(size, size.T), _typical(found))
    _refuse(np.abs(found - found.T), allowed, f"{name} is not symmetric", "entries differ by")
    return np.asarray((found + found.T) / 2)


def as_square(table: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return a copy of a square table of finite numbers, in double precision."""
    found = _numbers(table, name)
    if found.ndim != 2 or found.shape[0] != found.shape[1] or not found.size:
        raise ValueError(f"{name} has shape {found.shape}; give a square table, a row and a column for each cloud.")
    if not np.isfinite(found).all():
        row, column = np.argwhere(~np.isfinite(found))[0]
        raise ValueError(
            f"{name} has {(~np.isfinite(found)).sum():,} entries that are not finite, the first in row {row}, "
            f"column {column}; solve these pairs again, or leave out clouds that have any."
        )
    return found


def check_count(name: str, value: int) -> None:
    """Refuse what is not a whole number of at least one."""
    if not (isinstance(value, Integral) and value >= 1):
        raise ValueError(f"{name} is {value!r}; give a whole number of at least 1.")


def warn(message: str) -> None:
    """Warn at the user's line, however many functions of this package lie between."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == PACKAGE:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)


def _numbers(table: ArrayLike, name: str) -> NDArray[np.float64]:
    if sparse.issparse(table):
        raise TypeError(f"{name} is a sparse {type(table).__name__}; give a dense table, for example by .toarray().")
    if isinstance(table, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array; the divergence of every pair is needed. Drop clouds that lack one.")
    try:
        found = np.asarray(table)
    except ValueError:
        raise ValueError(f"{name} has rows of different lengths; give a square table.") from None
    if found.dtype.kind not in "biuf":
        raise TypeError(f"{name} holds {found.dtype}; give real numbers, for example by .astype(float).")
    return found.astype(np.float64)


def _typical(found: NDArray[np.float64]) -> float:
    """Return the size of the median entry, which an outlier does not move; the mean where most are zero."""
    size = np.abs(found)
    return float(np.median(size)) or float(size.mean())


def _refuse(miss: NDArray[np.float64], allowed: NDArray[np.float64], what: str, how: str, advice: str = "") -> None:
    if (miss > allowed).any():
        row, column = np.unravel_index((miss - allowed).argmax(), miss.shape)
        raise ValueError(
            f"{what}: {how} {miss[row, column]:.3g} in row {row}, column {column}; {allowed[row, column]:.2g} would "
            f"pass as rounding.{advice}"
        )
