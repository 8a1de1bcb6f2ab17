"""The options that the public functions share: checked in one place, and turned into a drive. Host code only."""

import re
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Literal, get_args

import numpy as np

from ._drive import Drive
from ._entropic import Entropic, chunk_pairs
from ._exact import Exact
from ._gromov import Gromov
from ._low_rank import LowRank
from ._metrics import GroundCost, as_metric
from ._scale import Cohorts, as_epsilon, check_cost, mean_and_spread
from ._solver import Solver

SolverName = Literal["auto", "sinkhorn", "exact", "low_rank"]
RelativeEpsilon = Literal["mean", "box"] | None
UNITS = {
    "": 1,
    "b": 1,
    "bytes": 1,
    "kib": 1 << 10,
    "mib": 1 << 20,
    "gib": 1 << 30,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
}


@dataclass(frozen=True)
class Options:
    """How transport is to be computed, as :func:`scwormhole.ot.pairwise` documents it."""

    metric: str | GroundCost
    epsilon: float
    relative_epsilon: RelativeEpsilon
    solver: SolverName
    tol: float
    max_iterations: int
    max_points: int | None
    rank: int
    max_memory: int | str
    progress: bool
    rng: int

    def drive(self, cohorts: Cohorts) -> Drive:
        """Check everything, calibrate epsilon, and return what solves pairs of these cohorts."""
        metric = as_metric(self.metric)
        if self.solver not in get_args(SolverName):
            raise ValueError(f"solver is {self.solver!r}; give one of {', '.join(map(repr, get_args(SolverName)))}.")
        if metric.gromov and self.solver in ("exact", "low_rank"):
            raise ValueError(f"solver {self.solver!r} cannot solve metric {metric.name!r}; leave it at 'auto'.")
        if not (isinstance(self.tol, Real) and np.isfinite(self.tol) and self.tol > 0):
            raise ValueError(f"tol is {self.tol!r}; give a relative tolerance above 0, such as 1e-3.")
        for name, least in (("max_iterations", 1), ("rank", 1), ("max_points", 1), ("rng", 0)):
            value = getattr(self, name)
            optional = name == "max_points" and value is None
            if not optional and not (isinstance(value, Integral) and value >= least):
                raise ValueError(f"{name} is {value!r}; give a whole number of at least {least}.")
        max_memory = as_bytes(self.max_memory)
        check_cost(cohorts, metric, self.rng)
        return Drive(
            solver=self._solver(cohorts),
            metric=metric,
            chunk=self._chunk,
            max_points=self.max_points,
            max_memory=max_memory,
            dim=int(np.shape(cohorts[0][0][0])[1]),
            progress=self.progress,
            rng=self.rng,
        )

    def _solver(self, cohorts: Cohorts) -> Solver:
        metric = as_metric(self.metric)
        if self.solver == "exact":
            return Exact(metric)
        if self.solver == "low_rank":
            return LowRank(metric, rank=self.rank, tol=self.tol, max_iterations=self.max_iterations, rng=self.rng)
        epsilon = as_epsilon(cohorts, metric, self.epsilon, self.relative_epsilon, self.rng)
        if metric.gromov:
            return Gromov(metric, epsilon, tol=self.tol, max_iterations=self.max_iterations)
        centre = mean_and_spread(cohorts, self.rng)[0].mean(0) if metric.degree == 1 else None
        return Entropic(metric, epsilon, tol=self.tol, max_iterations=self.max_iterations, centre=centre)

    def _chunk(self, n: int, m: int) -> int:
        return chunk_pairs(n, m)


def as_bytes(memory: int | str) -> int:
    """Return a number of bytes from a number or from text such as ``"2 GiB"``."""
    if isinstance(memory, str):
        found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)\s*", memory.lower())
        if found and found[2] in UNITS and float(found[1]) > 0:
            return int(float(found[1]) * UNITS[found[2]])
    elif isinstance(memory, Real) and not isinstance(memory, bool) and np.isfinite(memory) and memory > 0:
        return int(memory)
    raise ValueError(f"max_memory is {memory!r}; give bytes, or text such as '2 GiB' or '500 MB'.")
