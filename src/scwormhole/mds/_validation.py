"""What may be called a table of divergences: NumPy only."""

import warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray

ROUNDING = 1e-5  # of the largest entry: single precision, and what iterative solvers leave


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
    found = np.array(table, np.float64)
    if found.ndim != 2 or found.shape[0] != found.shape[1]:
        raise ValueError(f"{name} has shape {found.shape}; give a square table, a row and a column for each cloud.")
    if len(found) < 2:
        raise ValueError(f"{name} has {len(found)} rows; at least two clouds are needed.")
    if not np.isfinite(found).all():
        row, column = np.argwhere(~np.isfinite(found))[0]
        raise ValueError(
            f"{name} has {(~np.isfinite(found)).sum():,} entries that are not finite, the first in row {row}, "
            f"column {column}."
        )
    allowed = ROUNDING * np.abs(found).max()
    _refuse(np.abs(found - found.T), allowed, f"{name} is not symmetric", "differ by")
    _refuse(np.diag(np.abs(np.diag(found))), allowed, f"{name} is not hollow", "are away from zero by")
    _refuse(np.maximum(-found, 0), allowed, f"{name} has negative entries", "are below zero by")
    clean = np.maximum((found + found.T) / 2, 0)
    np.fill_diagonal(clean, 0)
    off = np.abs(clean - found).max()
    if off > 0:
        warnings.warn(
            f"{name} was not quite symmetric, hollow and non-negative: entries were changed by up to {off:.2g}, "
            f"which is rounding beside the largest, {np.abs(found).max():.3g}.",
            stacklevel=3,
        )
    return clean


def _refuse(miss: NDArray[np.float64], allowed: float, what: str, how: str) -> None:
    if miss.max() > allowed:
        row, column = np.unravel_index(miss.argmax(), miss.shape)
        raise ValueError(
            f"{what}: entries {how} up to {miss.max():.3g}, most in row {row}, column {column}; {allowed:.2g} would "
            "pass as rounding."
        )
