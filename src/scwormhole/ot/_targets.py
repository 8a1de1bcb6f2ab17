"""Divergences asked for again and again, a few blocks of clouds at a time: remembers self-terms.

A small cohort, all of whose pairs will be needed, is solved at once and remembered.

Host code around a drive. What a regression or a training is fitted to comes from here.
"""

import warnings

import numpy as np
from numpy.typing import NDArray

from ._cohort import Cohort, as_cohort
from ._info import TransportWarning
from ._metrics import GroundCost
from ._options import Options, RelativeEpsilon, SolverName
from ._schedule import padded_sizes
from ._solver import Solved


class Targets:
    """The divergences within blocks of clouds of one cohort, each self-term solved once.

    Parameters
    ----------
    clouds
        The cohort.
    metric
        See :func:`pairwise`.
    epsilon
        See :func:`pairwise`.
    relative_epsilon
        See :func:`pairwise`.
    solver
        See :func:`pairwise`.
    tol
        See :func:`pairwise`.
    max_points
        See :func:`pairwise`.
    max_memory
        See :func:`pairwise`.
    n_pairs
        How many pairs will be asked for in all, about. It decides how many padded sizes are worth compiling, and
        whether all pairs of the cohort are solved at once and remembered.
    rng
        Seed of all sampling.

    Attributes
    ----------
    epsilon
        Epsilon in units of the ground cost.
    metric
        The metric's record.
    n_solved
        Pairs solved so far.
    n_unconverged
        Those of them that did not reach the tolerance.

    Examples
    --------
    >>> import numpy as np, scwormhole as wh
    >>> clouds = wh.PointClouds.from_list([np.full((3, 2), float(i)) for i in range(4)])
    >>> wh.ot.Targets(clouds, n_pairs=2).blocks(np.array([[0, 1], [1, 3]])).round(3).tolist()
    [[[0.0, 2.0], [2.0, 0.0]], [[0.0, 8.0], [8.0, 0.0]]]
    """

    def __init__(
        self,
        clouds: Cohort,
        metric: str | GroundCost = "S2",
        *,
        epsilon: float = 0.05,
        relative_epsilon: RelativeEpsilon = "mean",
        solver: SolverName = "auto",
        tol: float = 1e-3,
        max_points: int | None = None,
        max_memory: int | str = "2 GiB",
        n_pairs: int = 10_000,
        rng: int = 0,
    ) -> None:
        self._clouds = clouds = as_cohort(clouds, "clouds")
        options = Options(
            metric=metric,
            epsilon=epsilon,
            relative_epsilon=relative_epsilon,
            solver=solver,
            tol=tol,
            max_iterations=1000,
            max_points=max_points,
            rank=32,
            max_memory=max_memory,
            progress=False,
            rng=rng,
        )
        self._drive = options.drive((clouds,))
        self.epsilon, self.metric = self._drive.solver.epsilon, self._drive.metric
        self._padded = padded_sizes(self._drive.rungs(clouds), n_pairs / len(clouds))
        self._alone = Solved.empty(len(clouds))
        self._known = np.zeros(len(clouds), bool)
        self._all = len(clouds) * (len(clouds) - 1) // 2 <= n_pairs
        self._table: NDArray[np.float64] | None = None
        self.n_solved, self.n_unconverged = 0, 0

    def blocks(self, members: NDArray[np.integer]) -> NDArray[np.float64]:
        """Return the divergences of the clouds of each block from one another, blocks by clouds by clouds.

        Parameters
        ----------
        members
            Positions of the clouds of each block, blocks by clouds, without repeats within a block.
        """
        members = np.asarray(members, np.int64)
        if self._all:
            if self._table is None:
                self._table = self._solve_all()
            return self._table[members[:, :, None], members[:, None]]
        count, size = members.shape
        self._solve_alone(np.unique(members))
        rows, columns = np.triu_indices(size, 1)
        pairs = np.sort(np.stack([members[:, rows].ravel(), members[:, columns].ravel()]), axis=0)
        values = np.empty(pairs.shape[1])
        for places, solved in self._drive.listed(self._clouds, pairs, self._padded, self._alone, whole=True):
            values[places] = solved.value
            self._count(solved.converged)
        blocks = np.zeros((count, size, size))
        blocks[:, rows, columns] = blocks[:, columns, rows] = values.reshape(count, -1)
        if not self.metric.debiased:
            blocks[:, np.arange(size), np.arange(size)] = self._alone.value[members]
        return np.maximum(blocks, 0.0) if self.metric.non_negative else blocks

    def warn(self, stacklevel: int = 2) -> None:
        """Warn if some of the pairs solved so far did not reach the tolerance.

        Parameters
        ----------
        stacklevel
            See :func:`warnings.warn`.
        """
        if self.n_unconverged:
            warnings.warn(
                f"{self.n_unconverged:,} of {self.n_solved:,} solved pairs did not reach the tolerance; "
                "raise epsilon, or look at them with scwormhole.ot.pairwise(..., return_info=True).",
                TransportWarning,
                stacklevel=stacklevel + 1,
            )

    def _solve_all(self) -> NDArray[np.float64]:
        table = self._drive.all_pairs(self._clouds)
        self._count(table.converged[np.triu_indices(len(table.converged), 1)])
        return np.maximum(table.value, 0.0) if self.metric.non_negative else table.value

    def _solve_alone(self, some: NDArray[np.int64]) -> None:
        new = some[~self._known[some]]
        if len(new):
            self._alone.put(new, self._drive.alone(self._clouds, self._padded, new, whole=True))
            self._known[new] = True

    def _count(self, converged: NDArray[np.bool_]) -> None:
        self.n_solved += converged.size
        self.n_unconverged += int((~converged).sum())
