"""Entropic Gromov-Wasserstein of padded clouds with squared Euclidean distances: mirror descent around our Sinkhorn.

The loss is linearised at the present coupling, solved as entropic transport, and so on (Peyre et al. 2016). That is
OTT's algorithm too, and the tests hold it to OTT's values. It is here because a batch of many small problems runs
several times faster on our Sinkhorn, warm-started, because squared Euclidean distances have rank d + 2, which makes the
linearised cost cheap, and because of where it starts. Of centred clouds the linearised cost is, but for terms of each
point alone, ``-8 x_i' M y_j`` and ``-2 |x_i|^2 |y_j|^2``, with ``M = sum_kl P_kl x_k y_l'``. The product of the weights
has ``M = 0``: it knows distances from the middle and no direction, and a descent from it often stays on such a saddle,
far above the minimum. So each pair is descended twice, from there and from the ``M`` of clouds that lie with their
principal axes on each other, and the lower end is taken.
"""

from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from numpy.typing import NDArray

from ._entropic import SINGLE_PRECISION_TOL
from ._metrics import Metric, paired_costs, squared_euclidean
from ._sinkhorn import coupling_of, solve
from ._solver import Prepared, Solved, centred, fill

INNER = 2000  # Sinkhorn iterations a linearised problem may take


@dataclass(frozen=True)
class Gromov:
    """Entropic Gromov-Wasserstein."""

    metric: Metric
    epsilon: float
    tol: float = 1e-3
    max_iterations: int = 1000

    name: ClassVar[str] = "gromov"
    crosses: ClassVar[bool] = False

    def prepare(self, points: NDArray[Any], weights: NDArray[Any]) -> Prepared:
        """Centre the clouds, which changes nothing, and bring the cost, of fourth degree, to units of epsilon."""
        double = self.tol < SINGLE_PRECISION_TOL
        dtype = np.float64 if double else np.float32
        filled, weights = fill(points, weights)
        filled = centred(filled, weights)[0] / self.epsilon**0.25
        return Prepared(
            filled.astype(dtype), np.asarray(weights, dtype), np.zeros((len(filled), 1)), np.zeros(len(filled))
        )

    def alone(self, x: Prepared) -> Solved:
        """Transport of each cloud to itself."""
        # subtracted from values that may be close to it, so solved beyond the tolerance
        return replace(self, tol=0.01 * self.tol)._solve(x, x, np.zeros(len(x.points)))

    def paired(self, x: Prepared, y: Prepared) -> Solved:
        """Divergence of the clouds of ``x`` from those of ``y``, one to one."""
        return self._solve(x, y, 0.5 * (x.alone + y.alone) if self.metric.debiased else np.zeros(len(x.points)))

    def bytes_per_pair(self, n: int, m: int) -> int:
        """Cost, coupling, kernel, and what the compiler keeps beside them, of both descents."""
        return 12 * n * m * (8 if self.tol < SINGLE_PRECISION_TOL else 4)

    def plan(self, x: Prepared, y: Prepared) -> tuple[NDArray[np.float64], bool]:
        """Coupling of the first cloud of each side; its second marginal is met up to the tolerance."""
        state = self._descend(x, y, np.full(1, -self.epsilon))  # the tolerance is relative to one epsilon at least
        return np.asarray(state.coupling[0], np.float64), bool(state.converged[0])

    def _solve(self, x: Prepared, y: Prepared, minus: NDArray[np.float64]) -> Solved:
        state = self._descend(x, y, minus)
        value, error, iterations, converged = jax.device_get(
            (state.value, state.error, state.iterations, state.converged)
        )
        return Solved(
            value.astype(np.float64) * self.epsilon - minus,
            error.astype(np.float64) * self.epsilon,
            iterations.astype(np.int64),
            converged,
        )

    def _descend(self, x: Prepared, y: Prepared, minus: NDArray[np.float64]) -> "Linearised":
        dtype = x.points.dtype
        offset = (minus / self.epsilon).astype(dtype)
        with jax.enable_x64(True) if dtype == np.float64 else nullcontext():
            return descend(
                x.points, x.weights, y.points, y.weights, offset, np.asarray(self.tol, dtype), self.max_iterations
            )


class Linearised(NamedTuple):
    """Where the descent stands for each pair of a batch, in units of epsilon."""

    coupling: Array  # [k, n, m]
    g: Array  # [k, m]
    value: Array  # [k] regularised cost of the last linearisation
    change: Array  # [k] its last change
    error: Array  # [k] estimate of how far the descent still goes
    iterations: Array  # [k] Sinkhorn iterations in all
    converged: Array  # [k]


@jax.jit
def descend(x: Array, a: Array, y: Array, b: Array, offset: Array, tol: Array, max_iterations: Array) -> Linearised:
    """Descend from two starts and return the lower end, for clouds paired one to one, in units of epsilon."""
    aligned = -8.0 * _aligned(x, a, y, b)
    guesses = jnp.concatenate([jnp.zeros_like(aligned), aligned])
    x, a, y, b, offset = (jnp.concatenate([part, part]) for part in (x, a, y, b, offset))
    ends = _descend(x, a, y, b, offset, tol, max_iterations, guesses)
    first, second = (jax.tree.map(lambda part, half=half: jnp.split(part, 2)[half], ends) for half in (0, 1))
    better = second.value < first.value
    chosen = jax.tree.map(lambda o, w: jnp.where(better.reshape(-1, *(1,) * (w.ndim - 1)), w, o), first, second)
    return chosen._replace(iterations=first.iterations + second.iterations)


def _descend(
    x: Array, a: Array, y: Array, b: Array, offset: Array, tol: Array, max_iterations: Array, guess: Array
) -> Linearised:
    """Descend from the product of the weights, or from where a guess of the linearised cost's last term leads."""
    k = len(x)
    left, right = _factors(x), _factors(y)
    squares = _second_moment(x, a)[:, :, None] + _second_moment(y, b)[:, None, :]

    def linear_cost(coupling: Array) -> Array:
        return squares - 2.0 * _sandwich(left, coupling, right)

    def step(s: Linearised, g: Array | None = None, guess: Array | float = 0.0) -> Linearised:
        cost = linear_cost(s.coupling) + guess
        floor = cost.min((1, 2), keepdims=True)  # a constant: transport does not mind it
        solved = solve(cost - floor, a, b, tol=0.01 * tol, max_iterations=INNER, g=g)
        value = solved.value + floor[:, 0, 0]
        coupling = coupling_of(cost - floor, a, b, solved.f, solved.g)
        change = jnp.abs(value - s.value)
        # the descent is linear at last: what is left is a geometric series
        rate = jnp.where(jnp.isfinite(s.change), jnp.clip(change / s.change, 0.1, 0.95), 0.95)
        left = change * rate / (1.0 - rate)
        rounding = 64 * jnp.finfo(value.dtype).eps * (1 + jnp.abs(value))
        enough = solved.converged & (left <= tol * jnp.abs(value - offset) + rounding)
        new = Linearised(
            coupling, solved.g, value, change, left + solved.error, s.iterations + solved.iterations, enough
        )
        return jax.tree.map(lambda o, w: jnp.where(s.converged.reshape(-1, *(1,) * (w.ndim - 1)), o, w), s, new)

    unknown = jnp.full((k,), jnp.inf, x.dtype)
    count = jnp.zeros((k,), jnp.int32)
    nowhere = jnp.zeros((k,), bool)
    product = a[:, :, None] * b[:, None, :]
    start = Linearised(product, jnp.zeros_like(b), unknown, unknown, unknown, count, nowhere)
    first = step(start, guess=guess)._replace(value=unknown)  # which was that of a guess

    def unfinished(s: Linearised) -> Array:
        return (~s.converged & ((s.iterations < max_iterations) | jnp.isinf(s.value))).any()

    return lax.while_loop(unfinished, lambda s: step(s, s.g), first)


def coupling_cost(x: Array, a: Array, y: Array, b: Array, coupling: Array) -> Array:
    """Return the Gromov-Wasserstein cost of couplings, without entropy, as a function of the points."""
    own = (a * _second_moment(x, a)).sum(1) + (b * _second_moment(y, b)).sum(1)
    return own - 2.0 * (coupling * _sandwich(_factors(x), coupling, _factors(y))).sum((1, 2))


def _aligned(x: Array, a: Array, y: Array, b: Array) -> Array:
    """Return ``x_i' M y_j`` for the ``M`` of clouds whose principal axes lie on each other, longest on longest."""
    (along_x, long_x), (along_y, long_y) = _principal(x, a), _principal(y, b)
    return jnp.einsum("kni,ki,kmi->knm", along_x, long_x * long_y, along_y, precision=lax.Precision.HIGHEST)


def _principal(x: Array, a: Array) -> tuple[Array, Array]:
    """Return points along their cloud's principal axes, each towards its longer tail, and deviations along them."""
    product = partial(jnp.einsum, precision=lax.Precision.HIGHEST)
    variances, axes = jnp.linalg.eigh(product("kn,kni,knj->kij", a, x, x))
    along = product("kni,kij->knj", x, axes)
    tail = product("kn,knj->kj", a, along**3)
    return along * jnp.where(tail < 0, -1.0, 1.0)[:, None], jnp.sqrt(jnp.maximum(variances, 0.0))


def _factors(x: Array) -> tuple[Array, Array]:
    """Return ``U`` and ``V`` with ``U V^T`` the squared distances within each cloud."""
    square = (x**2).sum(-1, keepdims=True)
    one = jnp.ones_like(square)
    if x.shape[2] + 2 < x.shape[1]:
        return jnp.concatenate([square, one, -2.0 * x], -1), jnp.concatenate([one, square, x], -1)
    distances = paired_costs(squared_euclidean, x, x)
    return distances, jnp.broadcast_to(jnp.eye(x.shape[1], dtype=x.dtype), distances.shape)


def _sandwich(left: tuple[Array, Array], coupling: Array, right: tuple[Array, Array]) -> Array:
    """Distances of one side times the coupling times distances of the other."""
    product = partial(jnp.einsum, precision=lax.Precision.HIGHEST)
    inner = product("knr,knm,kms->krs", left[1], coupling, right[0])
    return product("knr,krs,kms->knm", left[0], inner, right[1])


def _second_moment(x: Array, a: Array) -> Array:
    """Mean of the squared cost from each point to its own cloud."""
    return jnp.einsum("kij,kj->ki", paired_costs(squared_euclidean, x, x) ** 2, a, precision=lax.Precision.HIGHEST)
