"""Reads rows of points wherever they live: touches NumPy and SciPy, and arrays on disk by their own methods only.

Points may be larger than memory, so nothing here reads more than the rows asked for, or than one chunk at a time.
"""

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

CHUNK_BYTES = 2**24


class Points(Protocol):
    """What a cohort asks of its points: a shape, a type, slices of rows and sorted lists of rows."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of points and of dimensions."""

    @property
    def dtype(self) -> Any:
        """Type of the stored numbers."""

    def __getitem__(self, key: Any, /) -> Any: ...


def is_sparse(points: object) -> bool:
    """Return whether points are a SciPy sparse matrix or array in memory."""
    return bool(sparse.issparse(points))


def float_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """Return the type in which points of a stored type are read: float32 for half and single precision or float64."""
    dtype = np.dtype(dtype)
    return np.dtype(np.float32) if dtype.kind == "f" and dtype.itemsize <= 4 else np.dtype(np.float64)


def is_backed(points: object) -> bool:
    """Return whether points are read through slices (HDF5, zarr, AnnData's sparse datasets, dask), not held in memory.

    Arrays of other libraries that live in memory (JAX, PyTorch) offer ``__dlpack__``; arrays on disk do not.
    """
    if isinstance(points, np.ndarray) or is_sparse(points):
        return False
    readable = all(hasattr(points, name) for name in ("shape", "dtype", "__getitem__"))
    return readable and not hasattr(points, "__dlpack__")


def whereabouts(points: Points) -> list[str]:
    """Return what is worth saying about where points are kept: sparse, lazy, on disk."""
    # AnnData's datasets state a format, and dask keeps an empty example of its blocks.
    sparse_blocks = getattr(points, "format", None) == "csr" or is_sparse(getattr(points, "_meta", None))
    words = ["sparse"] if is_sparse(points) or sparse_blocks else []
    if is_backed(points) and hasattr(points, "compute"):
        words.append("lazy")
    elif is_backed(points) or isinstance(points, np.memmap):
        words.append("on disk")
    return words


def rows_per_chunk(points: Points) -> int:
    """Return how many dense rows fit in a chunk; a reader knows how many it reads at once."""
    own: int | None = getattr(points, "rows_at_once", None)
    return own or max(1, CHUNK_BYTES // (points.shape[1] * float_dtype(points.dtype).itemsize))


def row_chunks(points: Points) -> Iterator[tuple[int, Any]]:
    """Yield the first row and the rows of every chunk, sparse where the points are sparse, as floats.

    A sparse matrix in memory is one chunk, since a slice of it would be a copy.

    Parameters
    ----------
    points
        Points in memory or on disk.
    """
    step = points.shape[0] if is_sparse(points) else rows_per_chunk(points)
    for start in range(0, points.shape[0], step):
        stop = min(start + step, points.shape[0])
        block = points if is_sparse(points) else points[start:stop]
        yield start, read_block(block).astype(float_dtype(points.dtype), copy=False)


def take_rows(points: Points, rows: NDArray[np.int64]) -> NDArray[Any]:
    """Return rows of points as a dense float array, reading each distinct row on disk once.

    Parameters
    ----------
    points
        Points in memory or on disk.
    rows
        Row numbers, in any order, repeats allowed.
    """
    dtype = float_dtype(points.dtype)
    if not is_backed(points):
        return dense_block(points[rows]).astype(dtype, copy=False)
    # HDF5 accepts increasing row numbers only, and niches share most of their cells.
    distinct, inverse = np.unique(rows, return_inverse=True)
    return np.take(dense_block(read_block(points[distinct])).astype(dtype, copy=False), inverse, axis=0)


def read_block(block: Any) -> Any:
    """Return a block of rows in memory; dask computes it here, HDF5 and zarr have read it already."""
    block = block.compute() if hasattr(block, "compute") else block
    return block.tocsr() if is_sparse(block) else np.asarray(block)


def stored_values(block: Any) -> NDArray[Any]:
    """Return the numbers a block holds; a sparse one may have room for more than it uses."""
    values: NDArray[Any] = block.data[: block.indptr[-1]] if is_sparse(block) else block
    return values


def dense_block(block: Any) -> NDArray[Any]:
    """Return a block of rows as a dense array."""
    dense: NDArray[Any] = block.toarray() if is_sparse(block) else np.asarray(block)
    return dense
