"""Checks what a cohort is built from: changes nothing it is given, reads points in chunks, raises or stays silent."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ._names import Names
from ._rows import Points, is_sparse, row_chunks, stored_values
from ._wording import SHOWN, count, listed


def check_numeric(dtype: DTypeLike, what: str) -> None:
    """Refuse anything but real numbers."""
    if np.dtype(dtype).kind not in "biuf":
        raise TypeError(
            f"{what} hold values of type {np.dtype(dtype)}; real numbers are allowed (floats, integers, booleans). "
            "Convert them first, for example with .astype(float)."
        )


def check_matrix(points: Points, what: str) -> None:
    """Refuse points that are not a matrix with rows and columns."""
    shape = tuple(points.shape)
    if len(shape) == 1:
        raise ValueError(
            f"{what} have shape {shape}; a matrix with one row a point is needed. "
            "For points on a line use .reshape(-1, 1)."
        )
    if len(shape) != 2:
        raise ValueError(
            f"{what} have shape {shape}; a matrix with one row a point and one column a dimension is needed."
        )
    if any(length != length for length in shape):
        raise ValueError(f"{what} have the unknown shape {shape}; call .compute_chunk_sizes() on the dask array first.")
    if shape[0] == 0:
        raise ValueError(f"{what} have shape {shape}, no rows; at least one point is needed.")
    if shape[1] == 0:
        raise ValueError(f"{what} have 0 dimensions; at least one column is needed. Check how the columns were chosen.")


def check_one_dimension(dims: NDArray[np.int64], names: Names) -> None:
    """Refuse clouds of different dimensions, saying which has which."""
    values, first, counts = np.unique(dims, return_index=True, return_counts=True)
    if len(values) > 1:
        found = (
            f"{count(int(value), 'dimension')} in {count(int(number), 'cloud')} (first {names.label(int(position))})"
            for value, position, number in zip(values, first, counts, strict=True)
        )
        raise ValueError(
            f"clouds have different dimensions: {listed(found, len(values))}. "
            "All clouds of a cohort live in one space: select the same columns for each."
        )


def check_layout(n_points: int, indptr: NDArray[np.int64], indices: NDArray[np.int64]) -> None:
    """Refuse an ``indptr`` or ``indices`` that does not describe rows of points."""
    if len(indptr) < 2:
        raise ValueError(f"the cohort is empty: indptr has length {len(indptr)}; at least one cloud is needed.")
    if indptr[0] != 0 or indptr[-1] != len(indices):
        raise ValueError(
            f"indptr runs from {indptr[0]} to {indptr[-1]}; it must start at 0 and end at {len(indices)}, "
            "the length of indices."
        )
    falls = np.flatnonzero(np.diff(indptr) < 0)
    if len(falls):
        at = int(falls[0])
        raise ValueError(
            f"indptr falls from {indptr[at]} to {indptr[at + 1]} at cloud {at}; it must never fall: "
            "cloud i holds the entries indptr[i] to indptr[i + 1]."
        )
    outside = np.flatnonzero((indices < 0) | (indices >= n_points))
    if len(outside):
        at = int(outside[0])
        owner = int(np.searchsorted(indptr, at, side="right")) - 1
        raise ValueError(
            f"indices leaves the points {count(len(outside), 'time')}, first with {indices[at]} in cloud {owner}; "
            f"there are {count(n_points, 'point')}, so 0 to {n_points - 1} is allowed."
        )


def check_not_empty(sizes: NDArray[np.int64], names: Names) -> None:
    """Refuse clouds without points."""
    empty = np.flatnonzero(sizes == 0)
    if len(empty):
        raise ValueError(
            f"{len(empty):,} of {count(len(sizes), 'cloud')} without points: {names.labels(empty)}. "
            "A cloud needs at least one point with weight: drop these clouds, or widen the radius that made them."
        )


def check_weights(weights: NDArray[np.float64], indptr: NDArray[np.int64], names: Names) -> NDArray[np.float64]:
    """Refuse weights that are no distribution, and return their sum over each cloud."""
    for fault, wrong in (("NaN", np.isnan(weights)), ("infinite", np.isinf(weights)), ("negative", weights < 0)):
        if wrong.any():
            at = np.flatnonzero(wrong)
            owners = np.unique(np.searchsorted(indptr, at, side="right") - 1)
            raise ValueError(
                f"{count(len(at), f'{fault} weight')} in {count(len(owners), 'cloud')}: {names.labels(owners)}. "
                "Weights must be finite and not negative; set the ones you do not want to zero."
            )
    with np.errstate(over="ignore"):  # said in words below
        sums: NDArray[np.float64] = np.add.reduceat(weights, indptr[:-1])
    void = np.flatnonzero(sums == 0)
    if len(void):
        raise ValueError(
            f"all weights are zero in {count(len(void), 'cloud')}: {names.labels(void)}. "
            "A cloud needs at least one positive weight: drop these clouds or weight their points."
        )
    endless = np.flatnonzero(np.isinf(sums))
    if len(endless):
        raise ValueError(
            f"weights are too large to be summed in {count(len(endless), 'cloud')}: {names.labels(endless)}. "
            "Divide them by their maximum first."
        )
    return sums


def check_finite(points: Points, indptr: NDArray[np.int64], indices: NDArray[np.int64], names: Names) -> None:
    """Refuse NaN and infinite points, saying in which rows and clouds; never holds more than a chunk."""
    n_nan = n_infinite = n_rows = 0
    first: list[int] = []
    for start, block in row_chunks(points):
        values = stored_values(block)
        finite = np.isfinite(values)
        if finite.all():
            continue
        n_nan += int(np.isnan(values).sum())
        n_infinite += int(np.isinf(values).sum())
        rows = _rows_with(~finite, block) + start
        n_rows += len(rows)
        first += rows[: SHOWN - len(first)].tolist()
    if not n_rows:
        return
    entries = np.flatnonzero(np.isin(indices, first))
    owners = np.unique(np.searchsorted(indptr, entries, side="right") - 1)
    where = f"in {names.labels(owners)}" if len(owners) else "in no cloud"
    raise ValueError(
        f"points hold {n_nan:,} NaN and {n_infinite:,} infinite values in {count(n_rows, 'row')}: "
        f"{listed(first, n_rows)} ({where}). Every point must be finite: drop these rows or fill them in first."
    )


def _rows_with(wrong: NDArray[np.bool_], block: Any) -> NDArray[np.int64]:
    """Return the rows of a block that hold a wrong value."""
    if is_sparse(block):
        return np.unique(np.searchsorted(block.indptr, np.flatnonzero(wrong), side="right") - 1)
    return np.flatnonzero(wrong.any(axis=1))
