"""Cuts the pairs of a cohort into tiles of one padded size, and runs them on all cores. NumPy and threads, no solver.

XLA on a CPU works through a batch of small kernels on one core, so tiles are handed to as many threads as there are
cores; on an accelerator the device is fed by two. Each padded size is compiled once, which for a small cohort costs
more than the padding it saves: the sizes in use are the rungs of the ladder that make the sum of both least.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import combinations
from typing import NamedTuple, TypeVar, cast

import jax
import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
R = TypeVar("R")

COMPILE = 1e8  # what compiling one pair of sizes costs, in elements of cost matrix worked through in the same time
MOST_SIZES = 6  # padded sizes in use for one cohort
MOST_CANDIDATES = 10  # rungs tried for them: the most common, as all subsets are gone through
STRIP = 32  # clouds on the second side of a tile, at most: wider tiles would solve more pairs twice
WORK = 1 << 20  # elements of cost matrix in a tile, about: enough that handing it over costs little


class Tile(NamedTuple):
    """Clouds of one padded size on each side, each with each."""

    rows: NDArray[np.int64]
    row_size: int
    columns: NDArray[np.int64]
    column_size: int


def padded_sizes(rungs: NDArray[np.int64], n_partners: float) -> NDArray[np.int64]:
    """Return the padded size of each cloud: its rung, or a higher one where a compilation would cost more than padding.

    Parameters
    ----------
    rungs
        Rung of the ladder that holds each cloud.
    n_partners
        How many clouds each is compared with, on average.
    """
    present, counts = np.unique(rungs, return_counts=True)
    common = np.sort(np.argsort(-counts[:-1], kind="stable")[:MOST_CANDIDATES])
    lower, top = present[:-1][common], present[-1]
    best, least = (top,), np.inf
    for kept in range(min(len(lower), MOST_SIZES - 1) + 1):
        for some in combinations(lower, kept):
            chosen = np.array([*some, top])
            padded = chosen[np.searchsorted(chosen, present)]
            mean = (padded * counts).sum() / counts.sum()
            price = (padded * counts).sum() * mean * n_partners + COMPILE * len(chosen) * (len(chosen) + 1) / 2
            if price < least:
                best, least = tuple(chosen), price
    chosen = np.array(best)
    return chosen[np.searchsorted(chosen, rungs)]


def tiles(padded: NDArray[np.int64], chunk: Callable[[int, int], int]) -> Iterator[Tile]:
    """Yield tiles that cover every pair of different clouds at least once.

    Parameters
    ----------
    padded
        Padded size of each cloud.
    chunk
        How many pairs of two padded sizes are worked on at once.
    """
    groups = [(int(size), np.flatnonzero(padded == size)) for size in np.unique(padded)]
    for second, (column_size, columns) in enumerate(groups):
        for row_size, rows in groups[: second + 1]:
            pairs = chunk(row_size, column_size)
            height = max(1, int(np.sqrt(pairs)))
            strip_width = min(STRIP, WORK // (height * row_size * column_size))
            width = pairs // height * max(1, strip_width * height // pairs)
            same = row_size == column_size
            for left in range(0, len(columns), width):
                strip = fit(columns[left : left + width], width, len(columns))
                for top in range(0, min(left + width, len(rows)) if same else len(rows), height):
                    yield Tile(fit(rows[top : top + height], height, len(rows)), row_size, strip, column_size)


def fit(positions: NDArray[np.int64], width: int, available: int) -> NDArray[np.int64]:
    """Return positions filled up to ``width`` with repeats of the last, so that every tile has the same shape.

    A cohort smaller than a tile makes a smaller tile: a power of two, to keep shapes few.
    """
    width = min(width, 1 << (available - 1).bit_length())
    return np.concatenate([positions, np.repeat(positions[-1:], max(0, width - len(positions)))])


def workers() -> int:
    """Return how many tiles are worked on at once."""
    if jax.default_backend() != "cpu":
        return 2
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield items, the next one being made in the background meanwhile."""
    end = object()
    with ThreadPoolExecutor(1) as pool:
        waiting: Future[T | object] = pool.submit(next, items, end)
        while (item := waiting.result()) is not end:
            waiting = pool.submit(next, items, end)
            yield cast(T, item)


def run(work: Callable[[T], R], tasks: Iterable[T], threads: int) -> Iterator[R]:
    """Yield the results of tasks in their order, with few of them under way at any time."""
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[R]] = deque()
        try:
            for task in tasks:
                waiting.append(pool.submit(work, task))
                if len(waiting) > 2 * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
