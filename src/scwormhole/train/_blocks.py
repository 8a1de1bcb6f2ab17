"""What a step is fed with: clouds, their features and their divergences, made ready on the host in the background.

A block is a batch of clouds with the divergences of all its pairs. Where solving them takes longer than a step, a block
comes again a few times before the next one is solved.
"""

from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from scwormhole.clouds import PaddedBatch, PointClouds
from scwormhole.ot import BaseFeatures, Targets

from ._frame import Frame
from ._settings import Network
from ._strata import Strata
from ._use import nothing_known

MOST_KEPT = 1 << 28  # bytes of features and divergences that are kept for another turn
SOLVED = 900.0  # what solving an entry of a cost matrix costs, in floating-point operations of the network
GROMOV_WORK = 10  # how many times dearer a pair is for Gromov-Wasserstein
MOST_TURNS = 16
GROUP = 4  # blocks that are solved together, to fill the solver's batches


class Feed(NamedTuple):
    """Arrays of several steps, the steps in front."""

    points: tuple[NDArray[np.float32], ...]  # of each stratum [s, b, n, d]
    weights: tuple[NDArray[np.float32], ...]  # [s, b, n]
    features: NDArray[np.float32]  # [s, B, k]
    noise: NDArray[np.float32]  # [s, B]
    target: NDArray[np.float32]  # [s, B, B]
    fresh: NDArray[np.float32]  # [s, B, B] mass that two clouds do not have in common


class Known(NamedTuple):
    """What is kept of a block."""

    features: NDArray[np.float32]  # [B, k]
    noise: NDArray[np.float32]  # [B]
    target: NDArray[np.float32]  # [B, B]
    fresh: NDArray[np.float32]  # [B, B]


def turns_for(mean_square: float, strata: Strata, network: Network, *, gromov: bool) -> int:
    """Return how often a block is used: solving it is then about as much work as the steps it serves.

    Parameters
    ----------
    mean_square
        Mean of the product of two clouds' sizes.
    strata
        What batches are made of.
    network
        Sizes of the network.
    gromov
        Whether pairs are of Gromov-Wasserstein.
    """
    size = strata.batch_size
    solving = SOLVED * (GROMOV_WORK if gromov else 1) * mean_square * size * (size - 1) / 2
    return int(np.clip(round(solving / max(step_flops(strata, network), 1.0)), 1, MOST_TURNS))


def step_flops(strata: Strata, network: Network) -> float:
    """Return the floating-point operations of a step, about: three times those of the encoder."""
    linear = 2 * (4 * network.width**2 + 2 * network.width * network.hidden)
    places = zip(strata.counts, strata.sizes, strict=True)
    seen = 2 * network.n_induced
    return 3.0 * network.n_blocks * sum(b * n * (linear + 4 * (seen or n) * network.width) for b, n in places)


class Blocks:
    """Makes the arrays of any step, always the same ones for a step.

    Parameters
    ----------
    clouds
        The cohort.
    strata
        What batches are made of.
    targets
        Solves pairs, or None where their divergences are not needed.
    base
        Features, or None.
    frame
        Units.
    n_components
        Length of an embedding.
    turns
        How often a block is used.
    rotate
        Whether to turn each cloud at random.
    """

    def __init__(
        self,
        clouds: PointClouds,
        strata: Strata,
        targets: Targets | None,
        base: BaseFeatures | None,
        frame: Frame,
        *,
        n_components: int,
        turns: int,
        rotate: bool,
    ) -> None:
        self.clouds, self.strata, self.targets, self.base, self.frame = clouds, strata, targets, base, frame
        self.n_components, self.turns, self.rotate = n_components, turns, rotate
        self._kept: OrderedDict[int, list[Known]] = OrderedDict()
        each = 4 * GROUP * strata.batch_size * (n_components + 1 + 2 * strata.batch_size)
        self._most_groups = max(1, MOST_KEPT // each)

    def without_targets(self) -> "Blocks":
        """Return the same blocks without divergences, each used once."""
        return Blocks(
            self.clouds,
            self.strata,
            None,
            self.base,
            self.frame,
            n_components=self.n_components,
            turns=1,
            rotate=self.rotate,
        )

    def block_of(self, step: int) -> int:
        """Return which block a step uses: a new one every so many steps, and between them any of the last ones."""
        newest, turn = divmod(step, self.turns)
        if turn == 0 or newest == 0:
            return newest
        back = np.random.default_rng([self.strata.seed, step]).integers(min(newest, GROUP * self._most_groups))
        return newest - int(back)

    def solves(self, steps: range) -> bool:
        """Return whether some steps need pairs that those before them did not."""
        first, last = (step // self.turns // GROUP for step in (steps.start - 1, steps[-1]))
        return self.targets is not None and first < last

    def feed(self, steps: range) -> Feed:
        """Return the arrays of some steps."""
        numbers = [self.block_of(step) for step in steps]
        known = [self._known(number) for number in numbers]
        clouds = [self._gather(step, number) for step, number in zip(steps, numbers, strict=True)]
        points, weights = (tuple(map(np.stack, zip(*part, strict=True))) for part in zip(*clouds, strict=True))
        return Feed(points, weights, *(np.stack(part) for part in zip(*known, strict=True)))

    def _known(self, number: int) -> Known:
        """Return a block, solved together with its neighbours, always the same ones: a value depends on its company."""
        group, place = divmod(number, GROUP)
        if group not in self._kept:
            self._kept[group] = self._solved(range(group * GROUP, (group + 1) * GROUP))
        found = self._kept[group][place]
        while len(self._kept) > self._most_groups:
            self._kept.popitem(last=False)
        return found

    def _solved(self, numbers: range) -> list[Known]:
        members = np.stack([self.strata.batch(number) for number in numbers])
        tables = np.zeros((*members.shape, members.shape[1]))
        if self.targets is not None:
            tables = self.targets.blocks(members) / self.frame.unit**2
        used, places = np.unique(members, return_inverse=True)
        z, noise = self._features(used)
        fresh = np.stack([1 - self.clouds.shared_mass(some) for some in members])
        rows = zip(places.reshape(members.shape), tables.astype(np.float32), fresh.astype(np.float32), strict=True)
        return [Known(z[place], noise[place], table, own) for place, table, own in rows]

    def _features(self, members: NDArray[np.int64]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return features and nuggets in the network's units."""
        if self.base is None:
            return nothing_known(len(members), self.n_components)
        z, noise = self.base.embed(self.clouds[members])
        return z / np.float32(self.frame.unit), noise / np.float32(self.frame.unit**2)

    def _gather(self, step: int, number: int) -> tuple[list[NDArray[np.float32]], list[NDArray[np.float32]]]:
        generator = np.random.default_rng([self.strata.seed, 1, step])
        points, weights = [], []
        first = 0
        members = self.strata.batch(number)
        for size, count in zip(self.strata.sizes, self.strata.counts, strict=True):
            batch = sampled(self.clouds, members[first : first + count], size, generator)
            x, w = self.frame.points(batch)
            points.append(turned(x, generator) if self.rotate else x)
            weights.append(w)
            first += count
        return points, weights


def sampled(clouds: PointClouds, members: NDArray[np.int64], size: int, generator: np.random.Generator) -> PaddedBatch:
    """Return clouds padded to a size; larger ones as a systematic sample by weight, drawn anew each time."""
    large = clouds.sizes[members] > size
    if not large.any():
        return clouds.padded(members, size)
    whole = clouds.padded(members)
    weights = whole.weights / whole.weights.sum(1, keepdims=True)
    points, mass = np.zeros((len(members), size, clouds.dim), whole.points.dtype), np.zeros((len(members), size))
    n = min(size, weights.shape[1])
    points[~large, :n], mass[~large, :n] = whole.points[~large, :n], weights[~large, :n]
    for row in np.flatnonzero(large):
        order = generator.permutation(weights.shape[1])
        steps = (np.arange(size) + generator.random()) / size
        edges = np.cumsum(weights[row, order])
        points[row] = whole.points[row, order[np.searchsorted(edges, steps * edges[-1], side="right")]]
        mass[row] = 1 / size
    return PaddedBatch(points, mass, members)


def turned(points: NDArray[np.float32], generator: np.random.Generator) -> NDArray[np.float32]:
    """Return each cloud turned, or mirrored, at random."""
    dim = points.shape[2]
    turns, scales = np.linalg.qr(generator.normal(size=(len(points), dim, dim)))
    turns = turns * np.sign(np.einsum("bii->bi", scales))[:, None]  # a decomposition leaves the signs open
    return np.asarray(np.matmul(points, turns), np.float32)


class Feeder(Protocol):
    """Makes the arrays of steps."""

    def feed(self, steps: range, /) -> Feed: ...


def prefetched(blocks: Feeder, spans: Iterator[range]) -> Iterator[tuple[range, Feed]]:
    """Yield the arrays of one span of steps after another, the next being made meanwhile."""
    with ThreadPoolExecutor(1) as pool:
        waiting: Future[Any] | None = None
        span = next(spans, None)
        if span is not None:
            waiting = pool.submit(blocks.feed, span)
        while span is not None and waiting is not None:
            following = next(spans, None)
            ahead = pool.submit(blocks.feed, following) if following is not None else None
            yield span, waiting.result()
            span, waiting = following, ahead
