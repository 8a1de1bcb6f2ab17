"""Solves pairs of clouds through any solver: gathers and samples them, counts what went wrong. Host code only."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from ._cohort import Cohort
from ._metrics import Metric
from ._schedule import Tile, fit, padded_sizes, run, tiles, workers
from ._solver import Prepared, Solved, Solver


class TransportWarning(UserWarning):
    """Some distances are less certain than asked for."""


@dataclass(frozen=True)
class TransportInfo:
    """How a table of distances came about; arrays have the shape of the table.

    Parameters
    ----------
    epsilon
        Regularisation used, in units of the ground cost; 0 for an unregularised solver.
    converged
        Whether a pair met its tolerance.
    iterations
        Iterations spent on a pair.
    error
        Estimated error of a pair's distance, in its units.
    sampled
        Whether a pair was solved on a sample of its points.
    solver
        Name of the solver of each pair.
    """

    epsilon: float
    converged: NDArray[np.bool_]
    iterations: NDArray[np.int64]
    error: NDArray[np.float64]
    sampled: NDArray[np.bool_]
    solver: NDArray[np.str_]

    def __repr__(self) -> str:
        names = ", ".join(map(str, np.unique(self.solver)))
        return (
            f"TransportInfo: {self.converged.size:,} pairs by {names}, {self.converged.mean():.2%} converged, "
            f"epsilon {self.epsilon:.4g}, median of {np.median(self.iterations):.0f} iterations"
        )


class Table(NamedTuple):
    """A solved table before it is dressed for the user."""

    value: NDArray[np.float64]
    error: NDArray[np.float64]
    iterations: NDArray[np.int64]
    converged: NDArray[np.bool_]

    @classmethod
    def empty(cls, *shape: int) -> "Table":
        """Return a table with nothing in it yet."""
        return cls(np.zeros(shape), np.zeros(shape), np.zeros(shape, np.int64), np.ones(shape, bool))

    def put(self, where: Any, solved: Solved, pick: Any = ...) -> None:
        """Write solved pairs to their places."""
        for ours, theirs in zip(self, solved, strict=True):
            ours[where] = theirs[pick]


@dataclass(frozen=True)
class Drive:
    """A solver, a budget, and how much to say."""

    solver: Solver
    metric: Metric
    chunk: Callable[[int, int], int]  # pairs of two padded sizes that the solver likes to be given at once
    max_points: int | None
    max_memory: int
    progress: bool
    rng: int

    def all_pairs(self, clouds: Cohort) -> Table:
        """Return the table of every cloud with every cloud."""
        n = len(clouds)
        table = Table.empty(n, n)
        padded = padded_sizes(self._rungs(clouds), n / 2)
        alone = self._alone(clouds, padded)
        everyone = np.arange(n)
        if not self.metric.debiased:
            table.put((everyone, everyone), alone)

        def tasks() -> Iterator[tuple[Tile, Prepared]]:
            strip, y = None, None
            for tile in tiles(padded, self._affordable):
                if y is None or tile.columns is not strip:
                    strip, y = tile.columns, self._prepared(clouds, tile.columns, tile.column_size, alone)
                yield tile, y

        def solve_tile(task: tuple[Tile, Prepared]) -> tuple[Tile, Solved]:
            tile, y = task
            return tile, self.solver.crossed(self._prepared(clouds, tile.rows, tile.row_size, alone), y)

        stragglers = []
        with self._bar(n * (n - 1) // 2) as bar:
            for tile, solved in run(solve_tile, tasks()):
                rows, columns, pick = _once(tile)
                table.put((rows, columns), solved, pick)
                table.put((columns, rows), solved, pick)
                late = ~solved.converged[pick]
                stragglers.append(np.stack([rows[late], columns[late]], 1))
                bar.update(len(rows) - late.sum())
            first, second = np.concatenate([np.empty((0, 2), np.int64), *stragglers]).T
            for rows, columns, solved in self._pairs(clouds, clouds, first, second, alone, alone):
                table.put((rows, columns), solved)
                table.put((columns, rows), solved)
                bar.update(len(rows))
        return table

    def one_to_one(self, first: Cohort, second: Cohort) -> Table:
        """Return the distances of clouds paired by position."""
        n = len(first)
        table = Table.empty(n)
        everyone = np.arange(n)
        alone = [self._alone(clouds, padded_sizes(self._rungs(clouds), 1)) for clouds in (first, second)]
        with self._bar(n) as bar:
            for rows, _, solved in self._pairs(first, second, everyone, everyone, *alone):
                table.put(rows, solved)
                bar.update(len(rows))
        return table

    def _pairs(
        self,
        clouds: Cohort,
        others: Cohort,
        first: NDArray[np.int64],
        second: NDArray[np.int64],
        alone: Solved,
        others_alone: Solved,
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], Solved]]:
        """Solve listed pairs, both clouds of a pair padded to one size."""
        if not len(first):
            return
        size = padded_sizes(np.maximum(self._rungs(clouds)[first], self._rungs(others)[second]), 1)

        def tasks() -> Iterator[tuple[int, NDArray[np.int64]]]:
            for padded in np.unique(size):
                members = np.flatnonzero(size == padded)
                step = self._affordable(int(padded), int(padded))
                for start in range(0, len(members), step):
                    yield int(padded), fit(members[start : start + step], step, len(members))

        def solve_some(task: tuple[int, NDArray[np.int64]]) -> tuple[NDArray[np.int64], Solved]:
            padded, members = task
            x = self._prepared(clouds, first[members], padded, alone)
            y = self._prepared(others, second[members], padded, others_alone)
            return members, self.solver.paired(x, y)

        for members, solved in run(solve_some, tasks()):
            yield first[members], second[members], solved

    def _alone(self, clouds: Cohort, padded: NDArray[np.int64]) -> Solved:
        """Solve the transport of each cloud to itself, once."""
        n = len(clouds)
        table = Table.empty(n)

        def tasks() -> Iterator[tuple[int, NDArray[np.int64]]]:
            for size in np.unique(padded):
                members = np.flatnonzero(padded == size)
                step = self._affordable(int(size), int(size))
                for start in range(0, len(members), step):
                    yield int(size), fit(members[start : start + step], step, len(members))

        def solve_some(task: tuple[int, NDArray[np.int64]]) -> tuple[NDArray[np.int64], Solved]:
            size, members = task
            return members, self.solver.alone(self._prepared(clouds, members, size, None))

        for members, solved in run(solve_some, tasks()):
            table.put(members, solved)
        return Solved(*table)

    def _prepared(self, clouds: Cohort, index: NDArray[np.int64], size: int, alone: Solved | None) -> Prepared:
        if self.max_points is None or clouds.sizes[index].max() <= self.max_points:
            batch = clouds.padded(index, size)
            prepared = self.solver.prepare(batch.points, batch.weights)
        else:
            prepared = self.solver.prepare(*self._sampled(clouds, index, size))
        return prepared if alone is None else prepared._replace(alone=alone.value[index])

    def _sampled(self, clouds: Cohort, index: NDArray[np.int64], size: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Gather clouds, those above ``max_points`` as a systematic sample by weight, seeded by their position."""
        points = np.zeros((len(index), size, clouds.dim))
        weights = np.zeros((len(index), size))
        for row, position in enumerate(index):
            cloud, mass = clouds[int(position)]
            count = len(cloud)
            if self.max_points is not None and count > self.max_points:
                generator = np.random.default_rng([self.rng, int(position)])
                order = generator.permutation(count)
                steps = (np.arange(self.max_points) + generator.random()) / self.max_points
                chosen = order[np.minimum(np.searchsorted(np.cumsum(mass[order]), steps), count - 1)]
                cloud, mass = cloud[chosen], np.full(self.max_points, 1 / self.max_points)
                count = self.max_points
            points[row, :count], weights[row, :count] = cloud, mass
        return points, weights

    def _rungs(self, clouds: Cohort) -> NDArray[np.int64]:
        return clouds.rungs if self.max_points is None else np.minimum(clouds.rungs, self.max_points)

    def _affordable(self, n: int, m: int) -> int:
        """Return how many pairs fit both the solver's liking and the memory."""
        at_once = self.max_memory // workers() // self.solver.bytes_per_pair(n, m)
        if at_once < 1:
            raise MemoryError(
                f"a pair of clouds padded to {n:,} and {m:,} points takes {self.solver.bytes_per_pair(n, m):,} bytes "
                f"on each of {workers()} threads; max_memory is {self.max_memory:,}. Raise it, or set max_points."
            )
        return min(self.chunk(n, m), at_once)

    def _bar(self, total: int) -> Any:
        return tqdm(total=total, desc=self.metric.name, unit="pair", disable=not self.progress, delay=2, leave=False)


def dress(table: Table, drive: Drive, sampled: NDArray[np.bool_]) -> tuple[NDArray[np.float64], TransportInfo]:
    """Return distances and their record; warn of what is less certain than asked for."""
    value = table.value
    if drive.metric.debiased and drive.metric.degree is not None:
        # a divergence of these costs is not negative: what is below zero is rounding
        value = np.where(value < 0, 0.0, value)
    name = drive.solver.name
    solver = np.where(sampled, f"{name} on {drive.max_points} points", name)
    info = TransportInfo(drive.solver.epsilon, table.converged, table.iterations, table.error, sampled, solver)
    broken = ~np.isfinite(value)
    if broken.any():
        warnings.warn(
            f"{broken.sum():,} of {value.size:,} distances are not finite, the first at {_place(broken)}: the costs "
            "leave the range of the solver. Scale the points, or raise epsilon.",
            TransportWarning,
            stacklevel=3,
        )
    late = ~table.converged & ~broken
    if late.any():
        worst = np.nanmax(np.where(late, table.error, 0) / np.maximum(np.abs(value), np.finfo(float).tiny))
        warnings.warn(
            f"{late.sum():,} of {value.size:,} distances did not reach the tolerance, the first at {_place(late)}; "
            f"estimated relative error up to {worst:.1e}. Raise max_iterations or epsilon; return_info tells which.",
            TransportWarning,
            stacklevel=3,
        )
    return value, info


def _place(mask: NDArray[np.bool_]) -> tuple[int, ...]:
    return tuple(int(i[0]) for i in np.nonzero(mask))


def _once(tile: Tile) -> tuple[NDArray[np.int64], NDArray[np.int64], tuple[NDArray[Any], ...]]:
    """Return rows and columns of a tile's pairs, each unordered pair of different clouds once, and where they stand."""
    new_row = np.r_[True, tile.rows[1:] != tile.rows[:-1]]
    new_column = np.r_[True, tile.columns[1:] != tile.columns[:-1]]
    mask = new_row[:, None] & new_column
    if tile.row_size == tile.column_size:
        mask &= tile.rows[:, None] < tile.columns
    pick = np.nonzero(mask)
    return tile.rows[pick[0]], tile.columns[pick[1]], pick
