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
_Gather = Callable[[int, Index], Prepared]  # clouds of one padded size, of the problems at some places


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
        padded = padded_sizes(self.rungs(clouds), n / 2)
        alone = self.alone(clouds, padded)
        late = [] if self.solver.crosses else [np.stack(np.triu_indices(n, 1))]
        with self._bar(n * (n - 1) // 2) as bar:
            for tile, solved in self._tiles(clouds, padded, alone):
                rows, columns, pick = _once(tile)
                table.put((rows, columns), solved, pick)
                table.put((columns, rows), solved, pick)
                slow = (~solved.converged & (solved.iterations < self._most_iterations))[pick]
                late.append(np.stack([rows[slow], columns[slow]]))
                bar.update(len(rows) - slow.sum())
            pairs = np.concatenate([np.empty((2, 0), np.int64), *late], 1)
            for members, solved in self.listed(clouds, pairs, padded, alone):
                rows, columns = pairs[:, members]
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
        alone, others_alone = (
            self.alone(c, padded_sizes(self.rungs(c), 1)) if self.metric.debiased else Solved.empty(n)
            for c in (first, second)
        )
        # both clouds of a pair are padded to one size, which keeps shapes few
        size = padded_sizes(np.maximum(self.rungs(first), self.rungs(second)), 1)

        def one(size: int, members: Index) -> Prepared:
            return self._prepared(first, members, size, alone)

        def other(size: int, members: Index) -> Prepared:
            return self._prepared(second, members, size, others_alone)

        with self._bar(n) as bar:
            for members, solved in self._pairs(one, other, size, size):
                table.put(members, solved)
                bar.update(len(members))
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

    def listed(
        self, clouds: Cohort, pairs: Index, padded: Index, alone: Solved, *, whole: bool = False
    ) -> Iterator[tuple[Index, Solved]]:
        """Solve listed pairs of one cohort, and yield where in the list they stand beside what was found.

        Parameters
        ----------
        clouds
            The cohort.
        pairs
            Positions of both clouds of each pair, two rows.
        padded
            Padded size of each cloud.
        alone
            Every cloud's transport to itself.
        whole
            Whether to fill up groups to one shape, because other calls follow.
        """
        # the smaller cloud first, for there are half as many pairs of sizes then
        pairs = np.where(padded[pairs[0]] <= padded[pairs[1]], pairs, pairs[::-1])
        used, places = np.unique(pairs, return_inverse=True)
        half = pairs.shape[1] // 2
        if half and 16 * int(padded[used].sum()) * self.dim > self.max_memory // 4:
            for before, part in ((0, pairs[:, :half]), (half, pairs[:, half:])):
                for members, solved in self.listed(clouds, part, padded, alone, whole=whole):
                    yield before + members, solved
            return
        # every cloud is prepared once, however many pairs it is in
        ready, place = {}, np.empty(len(used), np.int64)
        for size in np.unique(padded[used]):
            here = np.flatnonzero(padded[used] == size)
            ready[int(size)] = self._prepared(clouds, used[here], int(size), alone)
            place[here] = np.arange(len(here))
        first, second = places.reshape(pairs.shape)

        def some(size: int, rows: Index) -> Prepared:
            return Prepared(*(part[place[rows]] for part in ready[size]))

        yield from self._pairs(
            lambda size, members: some(size, first[members]),
            lambda size, members: some(size, second[members]),
            *padded[pairs],
            whole=whole,
        )

    def _pairs(
        self, one: _Gather, other: _Gather, n: Index, m: Index, *, whole: bool = False
    ) -> Iterator[tuple[Index, Solved]]:
        """Solve pairs, given their padded sizes and how to gather each side."""

        def solve(group: tuple[int, int, Index]) -> tuple[Index, Solved]:
            rows, columns, members = group
            return members, self.solver.paired(one(rows, members), other(columns, members))

        return self._each(solve, n, m, whole)

    def alone(self, clouds: Cohort, padded: Index, some: Index | None = None, *, whole: bool = False) -> Solved:
        """Solve the transport of each cloud to itself, or of some clouds."""
        some = np.arange(len(clouds)) if some is None else some
        table = Solved.empty(len(some))

        def solve(group: tuple[int, int, Index]) -> tuple[Index, Solved]:
            size, _, members = group
            return members, self.solver.alone(self._prepared(clouds, some[members], size, None))

        for members, solved in self._each(solve, padded[some], padded[some], whole):
            table.put(members, solved)
        return table

    def _each(
        self, solve: Callable[[tuple[int, int, Index]], tuple[Index, Solved]], n: Index, m: Index, whole: bool
    ) -> Iterator[tuple[Index, Solved]]:
        """Run a solver on all cores over problems grouped by their two padded sizes; fillers are left out."""
        if not len(n):
            return
        for members, solved in run(solve, self._groups(n, m, whole), self._threads(np.maximum(n, m))):
            count = len(np.unique(members))  # what comes after is filler
            yield members[:count], solved.first(count)

    def _groups(self, n: Index, m: Index, whole: bool) -> Iterator[tuple[int, int, Index]]:
        """Yield positions of one pair of padded sizes, as many as are worked on at once."""
        for rows, columns in np.unique(np.stack([n, m], 1), axis=0).tolist():
            members = np.flatnonzero((n == rows) & (m == columns))
            step = self._affordable(rows, columns)
            for start in range(0, len(members), step):
                yield rows, columns, fit(members[start : start + step], step, step if whole else len(members))

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

    def rungs(self, clouds: Cohort) -> Index:
        """Return the padded size that holds each cloud, or the sample of it that is solved."""
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
                f"a pair of clouds padded to {n:,} and {m:,} points takes {self._bytes(n, m) / 2**20:,.3g} MiB, and "
                f"max_memory is {self.max_memory / 2**20:,.3g} MiB. Raise it, or set max_points (of a Wormhole "
                "max_points_ot)."
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
