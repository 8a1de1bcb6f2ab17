"""Understands what stands in square brackets: touches keys and names only."""

import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._names import Names
from ._wording import count, listed

ALLOWED = "use a position, a name, a slice, a boolean mask, or a list of positions or names"


def find_clouds(key: Any, names: Names) -> int | slice | NDArray[np.int64]:
    """Return the clouds a key means: one position, an array of positions, none negative, or the slice itself.

    Parameters
    ----------
    key
        A position or a name for one cloud; a slice, a boolean mask, or positions or names for several.
    names
        Names of the cohort.
    """
    if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:  # how scikit-learn selects rows
        key = key[0]
    if isinstance(key, str):
        return names.find(key)
    if isinstance(key, slice):
        return key
    if isinstance(key, bool | np.bool_ | tuple):
        raise IndexError(f"{key!r} does not select clouds; {ALLOWED}.")
    if isinstance(key, list) and len({isinstance(item, str) for item in key}) > 1:
        raise IndexError(f"a list that mixes names with other things does not select clouds; {ALLOWED}.")
    try:
        position = operator.index(key)
    except TypeError:
        return _find_many(np.asarray(key), names)
    return int(_in_range(np.array([position]), names)[0])


def find_positions(key: Any, names: Names) -> NDArray[np.int64]:
    """Return the positions a key means as an array, in the key's order; a single cloud is an array of one.

    Parameters
    ----------
    key
        As for :func:`find_clouds`, or None for every cloud.
    names
        Names of the cohort.
    """
    if key is None:
        return np.arange(len(names))
    found = find_clouds(key, names)
    positions = np.arange(len(names))[[found] if isinstance(found, int) else found]
    if len(positions) == 0:
        raise IndexError(f"the selection holds no cloud; choose among {count(len(names), 'cloud')}.")
    return positions


def _find_many(key: NDArray[Any], names: Names) -> NDArray[np.int64]:
    if key.ndim != 1:
        raise IndexError(f"a key of shape {key.shape} and type {key.dtype} does not select clouds; {ALLOWED}.")
    if len(key) == 0:
        return np.empty(0, dtype=np.int64)
    if key.dtype.kind == "b":
        if len(key) != len(names):
            raise IndexError(
                f"the mask has length {len(key):,} for {count(len(names), 'cloud')}; give one value a cloud."
            )
        return np.flatnonzero(key)
    if key.dtype.kind in "iu":
        return _in_range(key.astype(np.int64), names)
    values = key.tolist()
    if all(isinstance(value, str) for value in values):
        return np.array([names.find(value) for value in values], dtype=np.int64)
    found = listed(map(repr, values), len(values))
    raise IndexError(f"a key of type {key.dtype} ({found}) does not select clouds; {ALLOWED}.")


def _in_range(positions: NDArray[np.int64], names: Names) -> NDArray[np.int64]:
    outside = positions[(positions < -len(names)) | (positions >= len(names))]
    if len(outside):
        raise IndexError(
            f"no cloud at position {listed(outside, len(outside))}: there are {count(len(names), 'cloud')}, "
            f"at positions 0 to {len(names) - 1:,}."
        )
    return np.where(positions < 0, positions + len(names), positions)
