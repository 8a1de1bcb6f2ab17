"""Turns labels of points into codes and names of groups: touches NumPy arrays, and pandas only by its attributes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._wording import count, listed


def code_labels(labels: Any) -> tuple[NDArray[np.int64], list[str]]:
    """Return a group number for every label and the names of the groups.

    Groups follow the order of the categories where labels are categorical, without those nobody has, else sorted order.

    Parameters
    ----------
    labels
        One label a point: an array, a list, a pandas Series, Index or Categorical.
    """
    categorical = getattr(labels, "cat", labels)
    if hasattr(categorical, "categories") and hasattr(categorical, "codes"):
        codes = np.asarray(categorical.codes, dtype=np.int64)
        _check_missing(codes < 0)
        used, codes = np.unique(codes, return_inverse=True)
        return codes, [str(level) for level in np.asarray(categorical.categories)[used]]
    # NumPy would write the NaN of a list of strings as the string "nan".
    array = np.asarray(labels, dtype=object if isinstance(labels, list | tuple) else None)
    if array.ndim != 1:
        raise ValueError(f"labels have shape {array.shape}; one label a point is needed, a one-dimensional array.")
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8")
    return _code_objects(array) if array.dtype.kind in "OUT" else _code_numbers(array)


def _code_numbers(array: NDArray[Any]) -> tuple[NDArray[np.int64], list[str]]:
    _check_missing(array != array)
    levels, codes = np.unique(array, return_inverse=True)
    return codes.astype(np.int64, copy=False), [str(level) for level in levels]


def _code_objects(array: NDArray[Any]) -> tuple[NDArray[np.int64], list[str]]:
    # A dictionary codes a million strings in a tenth of the time that sorting them takes.
    values = array.tolist()
    try:
        levels = set(values)
    except TypeError as error:
        raise TypeError(f"labels cannot be told apart ({error}); give strings, numbers or a categorical.") from None
    if any(map(_is_missing, levels)):
        _check_missing(np.fromiter(map(_is_missing, values), bool, len(values)))
    try:
        ordered = sorted(levels)
    except TypeError:
        kinds = sorted({type(level).__name__ for level in levels})
        raise TypeError(f"labels mix the types {', '.join(kinds)}; give one type, for example as strings.") from None
    code = {level: number for number, level in enumerate(ordered)}
    return np.fromiter(map(code.__getitem__, values), np.int64, len(values)), [str(level) for level in ordered]


def _is_missing(label: object) -> bool:
    """Return whether a label is None, NaN or one of pandas' own kinds of nothing, which compare with nothing."""
    if isinstance(label, float | np.floating):
        return bool(np.isnan(label))
    return label is None or type(label).__name__ in {"NAType", "NaTType"}


def _check_missing(missing: NDArray[np.bool_]) -> None:
    if missing.any():
        where = np.flatnonzero(missing)
        raise ValueError(
            f"labels are missing at {count(len(where), 'position')} of {len(missing):,}: {listed(where, len(where))}. "
            "Every point belongs to a group: drop these points, or fill in a label of their own."
        )
