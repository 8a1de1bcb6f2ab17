"""Solves pairs of clouds through any solver: gathers and samples them, and keeps all cores busy. Host code only."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from ._cohort import Cohort
from ._metrics import Metric
from ._schedule import Tile, fit, padded_sizes, run, tiles, workers
from ._solver import CrossingSolver, Prepared, Solved, Solver

Index = NDArray[np.int64]


@dataclass(frozen=True)
class Drive:
    """A solver, a budget, and how much to say."""

    solver: Solver
    metric: Metric
    chunk: Callable[[int, int], int]  # pairs of two padded sizes that the solver likes to be given at once
    max_points: int | None
    max_memory: int
    dim: int
    progress: bool
    rng: int

    def all_pairs(self, clouds: Cohort) -> Solved:
        """Return the table of every cloud with every cloud."""
        n = len(clouds)
        table = Solved.empty(n, n)
        padded = padded_sizes(self._rungs(clouds), n / 2)
        alone = self._alone(clouds, padded)
        late = [] if self.solver.crosses else [np.stack(np.triu_indices(n, 1))]
        with self._bar(n * (n - 1) // 2) as bar:
            for tile, solved in self._tiles(clouds, padded, alone):
                rows, columns, pick = _once(tile)
                table.put((rows, columns), solved, pick)
                table.put((columns, rows), solved, pick)
                slow = (~solved.converged & (solved.iterations < self._most_iterations))[pick]
                late.append(np.stack([rows[slow], columns[slow]]))
                bar.update(len(rows) - slow.sum())
            first, second = np.concatenate([np.empty((2, 0), np.int64), *late], 1)
            for rows, columns, solved in self._pairs(clouds, clouds, first, second, alone, alone):
                table.put((rows, columns), solved)
                table.put((columns, rows), solved)
                bar.update(len(rows))
        diagonal = np.diag_indices(n)
        if self.metric.debiased:
            table.blame(alone.error[:, None], alone.converged[:, None])
            table.blame(alone.error, alone.converged)
            table.put(diagonal, Solved.empty(n))
        else:
            table.put(diagonal, alone)
        return table

    def one_to_one(self, first: Cohort, second: Cohort) -> Solved:
        """Return the distances of clouds paired by position."""
        n = len(first)
        table = Solved.empty(n)
        everyone = np.arange(n)
        alone, others_alone = (
            self._alone(c, padded_sizes(self._rungs(c), 1)) if self.metric.debiased else Solved.empty(n)
            for c in (first, second)
        )
        with self._bar(n) as bar:
            for rows, _, solved in self._pairs(first, second, everyone, everyone, alone, others_alone):
                table.put(rows, solved)
                bar.update(len(rows))
        if self.metric.debiased:
            table.blame(alone.error, alone.converged)
            table.blame(others_alone.error, others_alone.converged)
        return table

    def _tiles(self, clouds: Cohort, padded: Index, alone: Solved) -> Iterator[tuple[Tile, Solved]]:
        """Solve each with each, tile by tile, if the solver does so; the slowest pairs of a tile may come back open."""
        if not self.solver.crosses:
            return iter(())
        solver = cast(CrossingSolver, self.solver)

        def tasks() -> Iterator[tuple[Tile, Prepared]]:
            strip, y = None, None
            for tile in tiles(padded, self._affordable):
                if y is None or tile.columns is not strip:
                    strip, y = tile.columns, self._prepared(clouds, tile.columns, tile.column_size, alone)
                yield tile, y

        def solve(task: tuple[Tile, Prepared]) -> tuple[Tile, Solved]:
            tile, y = task
            return tile, solver.crossed(self._prepared(clouds, tile.rows, tile.row_size, alone), y)

        return run(solve, tasks(), self._threads(padded))

    def _pairs(
        self, clouds: Cohort, others: Cohort, first: Index, second: Index, alone: Solved, others_alone: Solved
    ) -> Iterator[tuple[Index, Index, Solved]]:
        """Solve listed pairs, both clouds of a pair padded to one size."""
        if not len(first):
            return
        padded = padded_sizes(np.maximum(self._rungs(clouds)[first], self._rungs(others)[second]), 1)

        def solve(group: tuple[int, Index]) -> tuple[Index, Solved]:
            size, members = group
            x = self._prepared(clouds, first[members], size, alone)
            y = self._prepared(others, second[members], size, others_alone)
            return members, self.solver.paired(x, y)

        for members, solved in run(solve, self._groups(padded), self._threads(padded)):
            count = len(np.unique(members))  # what comes after is filler
            yield first[members][:count], second[members][:count], solved.first(count)

    def _alone(self, clouds: Cohort, padded: Index) -> Solved:
        """Solve the transport of each cloud to itself, once."""
        table = Solved.empty(len(clouds))

        def solve(group: tuple[int, Index]) -> tuple[Index, Solved]:
            size, members = group
            return members, self.solver.alone(self._prepared(clouds, members, size, None))

        for members, solved in run(solve, self._groups(padded), self._threads(padded)):
            table.put(members, solved)
        return table

    def _groups(self, padded: Index) -> Iterator[tuple[int, Index]]:
        """Yield positions of one padded size, as many as are worked on at once."""
        for size in map(int, np.unique(padded)):
            members = np.flatnonzero(padded == size)
            step = self._affordable(size, size)
            for start in range(0, len(members), step):
                yield size, fit(members[start : start + step], step, len(members))

    def _prepared(self, clouds: Cohort, index: Index, size: int, alone: Solved | None) -> Prepared:
        if self.max_points is None or clouds.sizes[index].max() <= self.max_points:
            batch = clouds.padded(index, size)
            prepared = self.solver.prepare(batch.points, batch.weights)
        else:
            prepared = self.solver.prepare(*self._sampled(clouds, index, size))
        return prepared if alone is None else prepared._replace(alone=alone.value[index])

    def _sampled(self, clouds: Cohort, index: Index, size: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Gather clouds, those above ``max_points`` as a systematic sample by weight, seeded by their position."""
        points = np.zeros((len(index), size, clouds.dim))
        weights = np.zeros((len(index), size))
        for row, position in enumerate(index):
            cloud, mass = clouds[int(position)]
            count = len(cloud)
            if self.max_points is not None and count > self.max_points:
                generator = np.random.default_rng([self.rng, int(position)])
                # along the widest coordinate, so that the sample is spread as the cloud is
                order = np.argsort(cloud[:, cloud.var(0).argmax()], kind="stable")
                steps = (np.arange(self.max_points) + generator.random()) / self.max_points
                chosen = order[np.minimum(np.searchsorted(np.cumsum(mass[order]), steps), count - 1)]
                cloud, mass = cloud[chosen], np.full(self.max_points, 1 / self.max_points)
                count = self.max_points
            points[row, :count], weights[row, :count] = cloud, mass
        return points, weights

    def _rungs(self, clouds: Cohort) -> Index:
        return clouds.rungs if self.max_points is None else np.minimum(clouds.rungs, self.max_points)

    @property
    def _most_iterations(self) -> int:
        return cast(CrossingSolver, self.solver).max_iterations

    def _bytes(self, n: int, m: int) -> int:
        """Return the memory of a pair at work: its matrices, and the points on their way to them."""
        return self.solver.bytes_per_pair(n, m) + 32 * (n + m) * self.dim

    def _affordable(self, n: int, m: int) -> int:
        """Return how many pairs fit both the solver's liking and the memory."""
        fit_in_all = self.max_memory // self._bytes(n, m)
        if fit_in_all < 1:
            raise MemoryError(
                f"a pair of clouds padded to {n:,} and {m:,} points takes {self._bytes(n, m):,} bytes; "
                f"max_memory is {self.max_memory:,}. Raise it, or set max_points."
            )
        return max(1, min(self.chunk(n, m), fit_in_all // workers()))

    def _threads(self, padded: Index) -> int:
        """Return how many groups may be under way: all cores, or as many as large clouds leave memory for."""
        largest = int(padded.max())
        return max(1, min(workers(), self.max_memory // self._bytes(largest, largest)))

    def _bar(self, total: int) -> Any:
        return tqdm(total=total, desc=self.metric.name, unit="pair", disable=not self.progress, delay=2, leave=False)


def _once(tile: Tile) -> tuple[Index, Index, tuple[NDArray[Any], ...]]:
    """Return rows and columns of a tile's pairs, each unordered pair of different clouds once, and where they stand."""
    new_row = np.r_[True, tile.rows[1:] != tile.rows[:-1]]
    new_column = np.r_[True, tile.columns[1:] != tile.columns[:-1]]
    mask = new_row[:, None] & new_column
    if tile.row_size == tile.column_size:
        mask &= tile.rows[:, None] < tile.columns
    pick = np.nonzero(mask)
    return tile.rows[pick[0]], tile.columns[pick[1]], pick
