"""Goes through cohorts and tables in blocks of bounded size. NumPy only."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from scwormhole.ot._cohort import Batch, Cohort
from scwormhole.ot._pool import BATCH_NUMBERS

MOST_ROWS = 1024  # clouds of a block
MOST_CLOUDS = 4096  # clouds that something is learned from


def steps(n: int, width: int) -> Iterator[slice]:
    """Yield stretches of rows, each of which needs so many numbers, that fit into a block."""
    step = max(1, BATCH_NUMBERS // max(width, 1))
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def blocks(rungs: NDArray[np.int64], size: Callable[[int], int]) -> list[NDArray[np.int64]]:
    """Return clouds of one padded size each in blocks, of few clouds where these are large.

    Parameters
    ----------
    rungs
        Padded size of each cloud.
    size
        Numbers held for a cloud of a padded size.
    """
    found = []
    for rung in np.unique(rungs):
        step = int(np.clip(BATCH_NUMBERS // size(int(rung)), 1, MOST_ROWS))
        members = np.flatnonzero(rungs == rung)
        found += [members[start : start + step] for start in range(0, len(members), step)]
    return found


def batches(clouds: Cohort, width: int) -> Iterator[Batch]:
    """Go through a cohort in padded batches of bounded size, none of which is filled up with repeats.

    Parameters
    ----------
    clouds
        The cohort.
    width
        Numbers held for each point.
    """
    return (clouds.padded(some) for some in blocks(clouds.rungs, lambda rung: rung * width))


def learned_from(clouds: Cohort, rng: int) -> NDArray[np.int64]:
    """Return which clouds of a cohort something is learned from: all, or a seeded sample of many."""
    return np.random.default_rng(rng).permutation(len(clouds))[:MOST_CLOUDS]
