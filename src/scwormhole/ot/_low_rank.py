"""Transport of large clouds by OTT's low-rank Sinkhorn. Imports OTT, and only when it is asked for."""

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from ._metrics import Metric, squared_euclidean
from ._solver import Prepared, Solved, centred, fill

GAMMA = 100.0  # step of the descent: ten, OTT's default, stays in poor optima where clouds have well-separated groups
FEWEST = 8  # points that OTT's solver is given: fewer are padded


@dataclass(frozen=True)
class LowRank:
    """Transport by couplings of low rank: linear in the size of the clouds, an upper bound of the exact cost."""

    metric: Metric
    rank: int = 32
    tol: float = 1e-3
    max_iterations: int = 1000
    rng: int = 0
    epsilon: float = 0.0

    name: ClassVar[str] = "low_rank"
    crosses: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.metric.cost is not squared_euclidean:
            raise ValueError(
                f"solver='low_rank' takes the squared Euclidean cost only (S2, W2), not {self.metric.name!r}."
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of jaxopt, which OTT imports
            import ott  # noqa: F401  # now, before threads compile with it

    def prepare(self, points: NDArray[Any], weights: NDArray[Any]) -> Prepared:
        """Centre the clouds, and let padding share its point's weight: a point split in many is the same point."""
        filled, weights = fill(points, weights)
        lacking = max(0, FEWEST - weights.shape[1])
        filled = np.concatenate([filled, np.repeat(filled[:, :1], lacking, 1)], 1)
        weights = np.pad(weights, ((0, 0), (0, lacking)))
        filled, means = centred(filled, weights)
        real = weights > 0
        first = real.argmax(1)
        rows = np.arange(len(weights))
        share = weights[rows, first] / (1 + (~real).sum(1))
        even = np.where(real, weights, share[:, None])
        even[rows, first] = share
        return Prepared(filled.astype(np.float32), even.astype(np.float32), means, np.zeros(len(filled)))

    def alone(self, x: Prepared) -> Solved:
        """Transport of each cloud to itself, which a low rank does not bring to zero."""
        return self._solve(x, x, np.zeros(len(x.points)))

    def paired(self, x: Prepared, y: Prepared) -> Solved:
        """Divergence of the clouds of ``x`` from those of ``y``, one to one."""
        known = ((x.means - y.means) ** 2).sum(1)
        return self._solve(x, y, known - 0.5 * (x.alone + y.alone) if self.metric.debiased else known)

    def bytes_per_pair(self, n: int, m: int) -> int:
        """Factors of the coupling and of the cost."""
        return 64 * (n + m) * self.rank

    def plan(self, x: Prepared, y: Prepared) -> tuple[NDArray[np.float64], bool]:
        """Coupling of the first cloud of each side."""
        _, _, converged, plan = self._run(x, y, with_plan=True)
        return np.asarray(plan[0], np.float64), bool(converged[0])

    def _solve(self, x: Prepared, y: Prepared, known: NDArray[np.float64]) -> Solved:
        value, iterations, converged = jax.device_get(self._run(x, y)[:3])
        value = value.astype(np.float64)
        unknown = np.full(len(value), np.nan)  # how far a low rank is from the optimum, nobody knows
        return Solved(value + known, unknown, iterations.astype(np.int64), converged)

    def _run(self, x: Prepared, y: Prepared, *, with_plan: bool = False) -> tuple[Array, Array, Array, Array]:
        rank = min(self.rank, x.points.shape[1], y.points.shape[1])
        options = {"threshold": 1e-3 * self.tol, "max_iterations": self.max_iterations, "with_plan": with_plan}
        return _low_rank(x.points, x.weights, y.points, y.weights, jax.random.key(self.rng), rank=rank, **options)


@partial(jax.jit, static_argnames=("rank", "threshold", "max_iterations", "with_plan"))
def _low_rank(
    x: Array,
    a: Array,
    y: Array,
    b: Array,
    key: Array,
    *,
    rank: int,
    threshold: float,
    max_iterations: int,
    with_plan: bool,
) -> tuple[Array, Array, Array, Array]:
    from ott.geometry.pointcloud import PointCloud
    from ott.initializers.linear.initializers_lr import RandomInitializer
    from ott.problems.linear.linear_problem import LinearProblem
    from ott.solvers.linear.sinkhorn_lr import LRSinkhorn

    solver = LRSinkhorn(
        rank=rank,
        gamma=GAMMA,
        threshold=threshold,
        max_iterations=max_iterations,
        initializer=RandomInitializer(rank),
    )

    def one(pair: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        x, a, y, b = pair
        out = solver(LinearProblem(PointCloud(x, y), a=a, b=b), rng=key)
        cost, count, enough = (jnp.asarray(part) for part in (out.primal_cost, out.n_iters, out.converged))
        return cost, count, enough, out.matrix if with_plan else jnp.zeros(())

    return jax.lax.map(one, (x, a, y, b))
