"""Checks of the parameters that rivals are made with. NumPy only."""

from numbers import Real
from typing import Any

import numpy as np


def check_counts(params: dict[str, Any], *names: str, least: int = 1, most: int | None = None) -> None:
    """Refuse parameters that are no whole numbers within limits.

    Parameters
    ----------
    params
        Parameters by name.
    *names
        Those to look at.
    least
        The smallest that is allowed.
    most
        The largest; there is none by default.
    """
    for name in names:
        value = params[name]
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not whole or value < least or (most is not None and value > most):
            allowed = f"of at least {least}" if most is None else f"from {least} to {most}"
            raise ValueError(f"{name} is {value!r}; give a whole number {allowed}.")


def check_amounts(params: dict[str, Any], *names: str) -> None:
    """Refuse parameters that are no finite numbers of at least zero.

    Parameters
    ----------
    params
        Parameters by name.
    *names
        Those to look at.
    """
    for name in names:
        value = params[name]
        if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) < np.inf:
            raise ValueError(f"{name} is {value!r}; give a number of at least 0.")
