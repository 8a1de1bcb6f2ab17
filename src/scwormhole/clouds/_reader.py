"""Points that are not in memory, read a run of rows at a time: touches NumPy and SciPy, and the store by slices only.

Stores are compressed by the run, so a few rows cost as much as many. What was read is kept while it fits, for the next
clouds need much of the same; and it is known again: a store that changes while it is in use is noticed.
"""

import zlib
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ._rows import Points, is_backed, is_sparse, read_block, rows_per_chunk

KEPT_BYTES = 2**25  # of rows that are kept for the next ones who ask, unless more is allowed
MOST_STRETCHED = 4  # a run is made this many times longer, at most, to end where the store's own runs do
UNREADABLE = (OSError, KeyError, ValueError, RuntimeError, IndexError, TypeError, EOFError)


class Reader:
    """Rows of points on disk or of dask, from memory where they were read before.

    Parameters
    ----------
    source
        The points, as the user gave them.

    Attributes
    ----------
    source
        The points.
    rows_at_once
        Rows of a run, the least that is read.
    kept_bytes
        Most bytes of runs that are kept.
    """

    def __init__(self, source: Points) -> None:
        self.source = source
        self.shape: tuple[int, ...] = (int(source.shape[0]), int(source.shape[1]))
        self.dtype: np.dtype[Any] = np.dtype(source.dtype)
        self.rows_at_once = _aligned(rows_per_chunk(source), source)
        self.kept_bytes = KEPT_BYTES
        self._kept: OrderedDict[int, Any] = OrderedDict()
        self._marks: dict[int, int] = {}
        self._lock = RLock()

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy needs: what was read stays here, but a store that changes is noticed there too."""
        return {**self.__dict__, "_kept": OrderedDict(), "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Undo :meth:`__getstate__`."""
        self.__dict__.update(state, _lock=RLock())

    def __getitem__(self, key: Any) -> Any:
        """Return rows, given by a slice or as sorted numbers, sparse where the source is."""
        rows = np.arange(*key.indices(self.shape[0])) if isinstance(key, slice) else np.asarray(key, np.int64)
        if not len(rows):
            return np.empty((0, self.shape[1]), self.dtype)
        runs, first = np.unique(rows // self.rows_at_once, return_index=True)
        parts = []
        for run, some in zip(runs.tolist(), np.split(rows, first[1:]), strict=True):
            block, places = self._run(run), some - run * self.rows_at_once
            whole = len(places) == block.shape[0] and (np.diff(places) == 1).all()
            parts.append(block if whole else block[places])
        if len(parts) == 1:
            return parts[0]
        return sparse.vstack(parts, format="csr") if is_sparse(parts[0]) else np.concatenate(parts)

    @property
    def row_bytes(self) -> float:
        """Bytes of a row as it is stored, by those that were read last."""
        with self._lock:
            held = [(_n_bytes(block), block.shape[0]) for block in self._kept.values()] or [(_n_bytes(self[:1]), 1)]
        stored, rows = (sum(column) for column in zip(*held, strict=True))
        return float(stored / rows)

    @contextmanager
    def keeping(self, n_bytes: int) -> Iterator[None]:
        """Keep up to so many bytes of runs for a while."""
        before, self.kept_bytes = self.kept_bytes, n_bytes
        try:
            with self._lock:
                self._forget()
            yield
        finally:
            self.kept_bytes = before
            with self._lock:
                self._forget()

    def _run(self, run: int) -> Any:
        with self._lock:
            if run not in self._kept:
                self._kept[run] = self._read(run)
            self._kept.move_to_end(run)
            block = self._kept[run]
            self._forget()
            return block

    def _forget(self) -> None:
        held = sum(map(_n_bytes, self._kept.values()))
        while held > self.kept_bytes and len(self._kept) > 1:
            held -= _n_bytes(self._kept.popitem(last=False)[1])

    def _read(self, run: int) -> Any:
        start = run * self.rows_at_once
        stop = min(start + self.rows_at_once, self.shape[0])
        where = f"rows {start:,} to {stop - 1:,} of the points"
        try:
            block = read_block(self.source[start:stop])
        except UNREADABLE as error:
            raise OSError(
                f"{where} cannot be read ({type(error).__name__}: {error}); is the file or store whole, open, and "
                "still there?"
            ) from error
        if block.shape != (stop - start, self.shape[1]):
            raise OSError(
                f"{where} came back with shape {block.shape}: the store was cut while it was in use. Make the clouds "
                "again from what is there now."
            )
        mark = _mark(block)
        if self._marks.setdefault(run, mark) != mark:
            raise OSError(
                f"{where} are not what they were when they were first read: the store was changed while it was in use. "
                "Make the clouds again from what is there now."
            )
        return block


def reading(points: Points) -> Points:
    """Return points as they are if they are in memory, and behind a reader if they are not."""
    return Reader(points) if is_backed(points) and not isinstance(points, Reader) else points


def source_of(points: Points) -> Points:
    """Return points as the user gave them."""
    return points.source if isinstance(points, Reader) else points


def _aligned(step: int, source: Any) -> int:
    """Return a number of rows that ends where the runs of a store end, if these are not too long."""
    chunks = getattr(source, "chunks", None)
    rows = np.max(chunks[0]) if chunks and len(chunks) == 2 else 1  # dask tells the length of every run
    if step >= rows:
        return int(step - step % rows)
    return int(rows) if rows <= MOST_STRETCHED * step else step


def _n_bytes(block: Any) -> int:
    return int(block.data.nbytes + block.indices.nbytes + block.indptr.nbytes) if is_sparse(block) else block.nbytes


def _mark(block: Any) -> int:
    """Return a number that changes with any value of a block."""
    parts: list[NDArray[Any]] = [block.data, block.indices, block.indptr] if is_sparse(block) else [block]
    mark = 0
    for part in parts:
        mark = zlib.crc32(np.ascontiguousarray(part).view(np.uint8).data if part.size else b"", mark)
    return mark
