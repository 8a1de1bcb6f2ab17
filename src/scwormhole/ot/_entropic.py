"""Sinkhorn costs and divergences of padded clouds: brings the solver, which knows epsilons only, to points and units.

Two exact facts about the squared Euclidean cost are used. The means can be taken out: the entropic cost is that of the
centred clouds plus the squared distance of the means, so single precision never sees a common shift and a translated
copy is at exactly its squared shift. And costs in units of epsilon are had by scaling the points.
"""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from numpy.typing import NDArray

from ._metrics import GroundCost, Metric, crossed_costs, paired_costs
from ._sinkhorn import Solution, solve, solve_self
from ._solver import Prepared, Solved, centred, fill, squared_gaps

SINGLE_PRECISION_TOL = 1e-4  # below this a tolerance is met in double precision only
WIDEST = 256  # pairs iterated on at once on a CPU: more would wait for their slowest
CACHE = 1 << 20  # bytes of kernels iterated on at once on a CPU: about what its second-level cache holds
DEVICE = 1 << 26  # the same on an accelerator, which wants wide batches


@dataclass(frozen=True)
class Entropic:
    """Entropic transport by our own batched Sinkhorn."""

    metric: Metric
    epsilon: float
    tol: float = 1e-3
    max_iterations: int = 1000
    centre: NDArray[np.float64] | None = None  # taken out of all points where the means cannot be

    name: ClassVar[str] = "sinkhorn"
    crosses: ClassVar[bool] = True

    @property
    def double(self) -> bool:
        """Whether the tolerance asks for double precision, or a cost that may not be centred does."""
        return self.tol < SINGLE_PRECISION_TOL or self.metric.degree is None

    def prepare(self, points: NDArray[Any], weights: NDArray[Any]) -> Prepared:
        """Centre and scale points so that their costs are in units of epsilon."""
        dtype = np.float64 if self.double else np.float32
        filled, weights = fill(points, weights)
        means = np.zeros((len(filled), filled.shape[2]))
        if self.metric.separates_means:
            filled, means = centred(filled, weights)
        elif self.centre is not None:
            filled = filled - self.centre
        if self.metric.degree is not None:
            filled = filled / self.epsilon ** (1 / self.metric.degree)
        return Prepared(filled.astype(dtype), np.asarray(weights, dtype), means, np.zeros(len(filled)))

    def alone(self, x: Prepared) -> Solved:
        """Transport of each cloud to itself."""
        return self._call(_alone, x.points, x.weights, shape=(len(x.points),))

    def crossed(self, x: Prepared, y: Prepared) -> Solved:
        """Divergence of each cloud of ``x`` from each of ``y``; the slowest pairs are left open, to be paired later."""
        p, n = x.weights.shape
        q, m = y.weights.shape
        known = squared_gaps(x.means, y.means)
        if self.metric.debiased:
            known -= 0.5 * (x.alone[:, None] + y.alone)
        chunk = max(1, min(q, chunk_pairs(n, m, self.double) // p))
        if q % chunk:
            chunk = next(c for c in range(chunk, 0, -1) if q % c == 0)
        arguments = (x.points, x.weights, y.points, y.weights)
        return self._call(partial(_crossed, chunk=chunk), *arguments, known=known, shape=(p, q))

    def paired(self, x: Prepared, y: Prepared) -> Solved:
        """Divergence of the clouds of ``x`` from those of ``y``, one to one."""
        known = ((x.means - y.means) ** 2).sum(1)
        if self.metric.debiased:
            known -= 0.5 * (x.alone + y.alone)
        arguments = (x.points, x.weights, y.points, y.weights)
        return self._call(_paired, *arguments, known=known, shape=known.shape)

    def plan(self, x: Prepared, y: Prepared) -> tuple[NDArray[np.float64], bool]:
        """Coupling of the first cloud of each side; its second marginal is met up to the tolerance."""
        with jax.enable_x64(True) if self.double else nullcontext():
            scale = 1.0 if self.metric.degree is not None else 1.0 / self.epsilon
            costs = scale * paired_costs(self.metric.cost, jnp.asarray(x.points[:1]), jnp.asarray(y.points[:1]))
            a, b = jnp.asarray(x.weights[:1]), jnp.asarray(y.weights[:1])
            solution = jax.jit(solve)(costs, a, b, tol=self.tol, max_iterations=self.max_iterations)
            # rows as shares: finite wherever the potentials were left
            plan = a[:, :, None] * jax.nn.softmax(jnp.log(b)[:, None] + solution.g[:, None] - costs, axis=-1)
            return np.asarray(plan[0], np.float64), bool(solution.converged[0])

    def bytes_per_pair(self, n: int, m: int) -> int:
        """Cost, kernel, and what the compiler keeps beside them."""
        return 3 * n * m * (8 if self.double else 4)

    def _call(
        self,
        solve_on_device: Callable[..., Solution],
        *arrays: NDArray[Any],
        shape: tuple[int, ...],
        known: NDArray[np.float64] | float = 0.0,
    ) -> Solved:
        dtype = arrays[0].dtype
        scale = np.asarray(1.0 if self.metric.degree is not None else 1.0 / self.epsilon, dtype)
        offset = np.asarray(np.broadcast_to(-np.asarray(known) / self.epsilon, shape), dtype)
        with jax.enable_x64(True) if self.double else nullcontext():
            solution = solve_on_device(
                *arrays, offset, scale, np.asarray(self.tol, dtype), self.max_iterations, cost=self.metric.cost
            )
            value, error, iterations, converged = jax.device_get(
                (solution.value, solution.error, solution.iterations, solution.converged)
            )
        return Solved(
            value.reshape(shape).astype(np.float64) * self.epsilon + known,
            error.reshape(shape).astype(np.float64) * self.epsilon,
            iterations.reshape(shape).astype(np.int64),
            converged.reshape(shape),
        )


def chunk_pairs(n: int, m: int, double: bool = False) -> int:
    """Return how many pairs of clouds of ``n`` and ``m`` points are best iterated on at once on the present device."""
    pair = n * m * (8 if double else 4)
    return max(1, min(WIDEST, CACHE // pair) if jax.default_backend() == "cpu" else DEVICE // pair)


@partial(jax.jit, static_argnames=("cost", "chunk"))
def _crossed(
    x: Array,
    a: Array,
    y: Array,
    b: Array,
    offset: Array,
    scale: Array,
    tol: Array,
    max_iterations: Array,
    *,
    cost: GroundCost,
    chunk: int,
) -> Solution:
    """Each cloud of ``x`` with each of ``y``, ``chunk`` clouds of ``y`` at a time to keep their kernels in cache."""
    p, q = len(x), len(y)

    def some(columns: tuple[Array, Array, Array]) -> Solution:
        y, b, offset = columns  # [c, m, d], [c, m], [p, c]
        costs = scale * crossed_costs(cost, x, y)
        rows = jnp.repeat(a, chunk, axis=0)
        solution = solve(
            costs,
            rows,
            jnp.tile(b, (p, 1)),
            offset=offset.reshape(-1),
            tol=tol,
            max_iterations=max_iterations,
            leave=p * chunk // 16,
        )
        return _without_potentials(solution, (p, chunk))

    strips = (
        y.reshape(q // chunk, chunk, *y.shape[1:]),
        b.reshape(q // chunk, chunk, -1),
        offset.reshape(p, q // chunk, chunk).swapaxes(0, 1),
    )
    solutions = lax.map(some, strips)  # leaves [q // c, p, c]
    return jax.tree.map(lambda leaf: leaf.swapaxes(0, 1).reshape(p, q), solutions)


@partial(jax.jit, static_argnames=("cost",))
def _paired(
    x: Array,
    a: Array,
    y: Array,
    b: Array,
    offset: Array,
    scale: Array,
    tol: Array,
    max_iterations: Array,
    *,
    cost: GroundCost,
) -> Solution:
    costs = scale * paired_costs(cost, x, y)
    solution = solve(costs, a, b, offset=offset, tol=tol, max_iterations=max_iterations)
    return _without_potentials(solution, offset.shape)


@partial(jax.jit, static_argnames=("cost",))
def _alone(
    x: Array, a: Array, _: Array, scale: Array, tol: Array, max_iterations: Array, *, cost: GroundCost
) -> Solution:
    # subtracted from values that may be close to it, so solved far beyond the tolerance: it takes a few iterations more
    solution = solve_self(scale * paired_costs(cost, x, x), a, tol=1e-3 * tol, max_iterations=max_iterations)
    return _without_potentials(solution, solution.value.shape)


def _without_potentials(solution: Solution, shape: tuple[int, ...]) -> Solution:
    """Leave the potentials behind, which are as large as the clouds."""
    nothing = jnp.zeros(shape)
    return jax.tree.map(lambda leaf: leaf.reshape(shape), solution._replace(f=nothing, g=nothing))
