"""What simulators ask of their numbers. Touches nothing."""

from typing import Any

import numpy as np


def check_whole(name: str, value: Any, least: int | None = None) -> None:
    """Refuse what is no whole number, or a smaller one than can be.

    Parameters
    ----------
    name
        Name of the parameter.
    value
        What was given.
    least
        Smallest that may be given; any by default.
    """
    if not isinstance(value, int | np.integer):
        raise TypeError(f"{name} is {value!r}; give a whole number.")
    if least is not None and value < least:
        raise ValueError(f"{name} is {value}; give at least {least}.")
