"""What a fit can afford in limited time: a clock, and how fast pairs are solved here. Touches no network.

What it decides depends on the machine, so it is kept with a checkpoint, for a fit to be taken up again as it was.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scwormhole.clouds import PointClouds
from scwormhole.ot._base_fitting import n_pairs_for

from ._settings import Transport
from ._strata import Strata

TRIED = 8  # clouds whose pairs are solved to see how long that takes
BASE_SHARE, LOOK_SHARE, TABLE_SHARE = 0.2, 0.1, 0.4  # of the time: base, held-out pairs, all pairs of a small cohort
FEWEST_PAIRS, FEWEST_LOOKED_AT = 100, 8
COMPILING = 3.0  # how much longer the first steps take than a first look, about; both are mostly compilation


class Clock:
    """Seconds since a fit began, and how long what may come again took at most.

    Parameters
    ----------
    earlier
        Seconds of the fit before it was interrupted.
    """

    def __init__(self, earlier: float = 0.0) -> None:
        self._zero = time.perf_counter() - earlier
        self._longest: dict[str, float] = {}

    def elapsed(self) -> float:
        """Return the seconds since the fit began."""
        return time.perf_counter() - self._zero

    def allows(self, limit: float | None, *work: str) -> bool:
        """Return whether kinds of work can be begun and ended in time, as far as is known how long they take."""
        return limit is None or self.elapsed() + sum(map(self._expected, work)) < limit

    def _expected(self, work: str) -> float:
        first = COMPILING * self._longest.get("first look", 0.0) if work == "first steps" else 0.0
        return self._longest.get(work, first)

    @contextmanager
    def timing(self, work: str) -> Iterator[None]:
        """Measure a kind of work."""
        began = self.elapsed()
        yield
        self._longest[work] = max(self._longest.get(work, 0.0), self.elapsed() - began)


class Plan(NamedTuple):
    """How much is solved; None for as much as suits the cohort."""

    base_pairs: int | None = None  # to regress the base on
    looked_at: int | None = None  # held-out clouds whose pairs are looked at
    pairs: int | None = None  # in all, beyond which a small cohort is not solved at once


def make_plan(clouds: PointClouds, transport: Transport, strata: Strata, *, seconds: float, rng: int) -> Plan:
    """Solve a few pairs, and return how many more there is time for.

    Parameters
    ----------
    clouds
        The cohort.
    transport
        What is solved.
    strata
        What batches are made of.
    seconds
        Time that is left.
    rng
        Seed.
    """
    tried = spread_out(np.stack([strata.batch(0), strata.batch(1)]), TRIED)
    targets = transport.targets(clouds, 1, rng)
    began = time.perf_counter()
    targets.blocks(tried[:1])  # compiles
    compiled = time.perf_counter()
    targets.blocks(tried[1:])
    now = time.perf_counter()
    most = n_pairs_for(clouds, targets.metric)
    count = tried.shape[1] * (tried.shape[1] - 1) // 2
    left = max(seconds - (now - began), 0.0) * count / max(now - compiled, 1e-3)
    return Plan(
        base_pairs=int(np.clip(BASE_SHARE * left, FEWEST_PAIRS, most)),
        looked_at=max(FEWEST_LOOKED_AT, int(np.sqrt(2 * LOOK_SHARE * left))),
        pairs=int(TABLE_SHARE * left),
    )


def spread_out(members: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Return so many clouds at most of a list, or of each block, evenly from its first to its last."""
    size = members.shape[-1]
    return members[..., np.unique(np.linspace(0, size - 1, min(count, size)).round().astype(int))]
