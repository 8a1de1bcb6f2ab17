"""Accepts points as they come and stacks them: touches NumPy and SciPy, and arrays on disk through ``_rows``."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from ._reader import reading
from ._rows import Points, dense_block, float_dtype, is_backed, is_sparse, read_block
from ._validation import check_matrix, check_numeric


def as_array(points: Any, what: str) -> Any:
    """Return numbers in a container with a shape and a type: sparse, mapped and backed ones as they are.

    Parameters
    ----------
    points
        Anything that may hold points.
    what
        How errors call the points.
    """
    if isinstance(points, np.ma.MaskedArray):
        raise TypeError(f"{what} are a masked array; drop or fill the masked points first, for example with .filled().")
    if not is_sparse(points) and not is_backed(points) and not isinstance(points, np.memmap):
        try:
            points = np.asarray(points)
        except ValueError as error:
            raise ValueError(f"{what} are no matrix ({error}); give all points the same dimension.") from None
    check_numeric(points.dtype, what)
    return points


def as_points(points: Any) -> Points:
    """Return points a cohort can keep: a float array, a float CSR matrix, or a reader of what is not in memory.

    Floats in memory are shared, not copied. Integers in memory become floats once; those on disk as they are read.

    Parameters
    ----------
    points
        Matrix with one row a point: NumPy, SciPy sparse, a memory map, HDF5, zarr, AnnData's backed sparse, dask, or
        anything NumPy can turn into an array.
    """
    points = as_array(points, "points")
    check_matrix(points, "points")
    if is_backed(points) and getattr(points, "format", "csr") != "csr":
        raise ValueError(
            f"points are sparse on disk by column ({type(points).__name__}), where one point cannot be read "
            "without all; write them as CSR, or read them with .to_memory()."
        )
    if is_backed(points):
        return reading(points)
    kept: Points = points
    if not isinstance(points, np.memmap):
        rows = points.tocsr() if is_sparse(points) else points
        kept = rows.astype(float_dtype(points.dtype), copy=False)
    return kept


def stack_points(parts: Sequence[Points]) -> Points:
    """Return points in memory, one part below the other: sparse if all parts are, else dense.

    Parameters
    ----------
    parts
        Points of one dimension. A single part is returned as it is, wherever it lives.
    """
    if len(parts) == 1:
        return parts[0]
    dtype = np.result_type(*(float_dtype(part.dtype) for part in parts))
    blocks: list[Any] = [read_block(part[:]) if is_backed(part) else part for part in parts]
    n_sparse = sum(is_sparse(block) for block in blocks)
    if n_sparse == len(blocks):
        stacked: Points = sparse.vstack(blocks, format="csr", dtype=dtype)
        return stacked
    if n_sparse:
        warnings.warn(
            f"{n_sparse:,} of {len(blocks):,} parts are sparse and are made dense to stand beside the dense ones; "
            "make all of them sparse to keep them so.",
            stacklevel=4,
        )
    return np.concatenate([dense_block(block) for block in blocks], dtype=dtype, casting="same_kind")
