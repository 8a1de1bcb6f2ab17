"""Which clouds make up a batch: NumPy only.

Every batch has the cohort's own mix of sizes: so many small clouds, so many large ones, each kind padded to its own
size. All batches then have one shape, and a step is compiled once.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

MOST_STRATA = 3
Index = NDArray[np.int64]


@dataclass(frozen=True)
class Strata:
    """Clouds by size, and how many of each kind a batch has."""

    members: tuple[Index, ...]  # positions of the clouds of each stratum
    sizes: tuple[int, ...]  # what they are padded to
    counts: tuple[int, ...]  # of them in a batch
    seed: int

    @property
    def batch_size(self) -> int:
        """Clouds of a batch."""
        return sum(self.counts)

    @property
    def n_pairs(self) -> int:
        """Pairs of a batch."""
        return self.batch_size * (self.batch_size - 1) // 2

    def batch(self, number: int) -> Index:
        """Return the clouds of a batch, stratum after stratum; over the batches each cloud has its turn."""
        parts = [
            self._turn(stratum, members, count, number)
            for stratum, (members, count) in enumerate(zip(self.members, self.counts, strict=True))
        ]
        return np.concatenate(parts)

    def _turn(self, stratum: int, members: Index, count: int, number: int) -> Index:
        epoch, place = divmod(number, len(members) // count)
        return members[_order(self.seed, stratum, epoch, len(members))[place * count : (place + 1) * count]]


@lru_cache(MOST_STRATA * 4)
def _order(seed: int, stratum: int, epoch: int, n: int) -> Index:
    """Return the order of clouds in an epoch; many batches ask for the same one."""
    return np.random.default_rng([seed, stratum, epoch]).permutation(n)


def stratify(rungs: Index, batch_size: int, seed: int) -> Strata:
    """Divide clouds by size so that batches are padded least.

    Parameters
    ----------
    rungs
        Padded size of each cloud.
    batch_size
        Clouds of a batch; a smaller cohort makes smaller batches.
    seed
        Seed of the order of the clouds.
    """
    present, counts = np.unique(rungs, return_counts=True)
    batch_size = min(batch_size, len(rungs))
    tops = min(
        (np.array([*some, present[-1]]) for k in range(MOST_STRATA) for some in combinations(present[:-1], k)),
        key=lambda tops: _padded(tops, present, counts, batch_size),
    )
    of = np.searchsorted(tops, rungs)
    members = tuple(np.flatnonzero(of == stratum) for stratum in range(len(tops)))
    return Strata(members, tuple(map(int, tops)), _counts(np.array([len(m) for m in members]), batch_size), seed)


def _counts(present: Index, batch_size: int) -> tuple[int, ...]:
    """Return how many clouds of each stratum a batch has: as they are in the cohort, and at least one."""
    share = present * batch_size / present.sum()
    counts = np.maximum(1, np.floor(share)).astype(int)
    for stratum in np.argsort(-(share - np.floor(share)), kind="stable"):
        if counts.sum() < batch_size and counts[stratum] < present[stratum]:
            counts[stratum] += 1
    return tuple(map(int, counts))


def _padded(tops: Index, present: Index, counts: Index, batch_size: int) -> int:
    """Return how many places a batch has."""
    of = np.searchsorted(tops, present)
    each = np.array([counts[of == stratum].sum() for stratum in range(len(tops))])
    return int((np.array(_counts(each, batch_size)) * tops).sum())
