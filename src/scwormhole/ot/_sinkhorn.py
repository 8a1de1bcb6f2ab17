"""The batched Sinkhorn solver: pure JAX on arrays in units of epsilon; knows no points, no clouds and no host code.

Costs, potentials and values are divided by epsilon throughout, so what is solved for each pair is::

    max_{f, g}  <a, f> + <b, g> - <a x b, exp(f + g - C)> + 1

Three things make it fast, and right in single precision:

*A kernel with the potentials absorbed.* An iteration is two matrix-vector products with ``K = exp(f0 + g0 - C)``. The
kernel is built anew around the current potentials when they have drifted or the temperature has changed, so nothing
under- or overflows however small epsilon is. Building it is one pass of exponentials, the price of a few iterations.

*Annealing.* A problem whose largest cost is over ``HOTTEST`` epsilons starts at a higher temperature and cools by a
factor of four every few iterations. Each problem of a batch has a temperature of its own.

*Over-relaxation.* Sinkhorn is a block coordinate ascent, so successive over-relaxation applies (Thibault et al. 2021;
Lehmann et al. 2022) and saves most of the iterations. The factor follows each problem's contraction by the rule of
Hageman and Young.

The dual value is second order in the error of the potentials: near the optimum it lacks half the stiffness times
``|residual|^2``, where the residual is the log of the marginal over the weights, and the stiffness grows with the
largest cost over epsilon. That estimate decides when a problem stops. Looks at convergence stay on the device, one
every ``LOOK`` iterations.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

LOOK = 4  # iterations between two looks at convergence
LEVEL = 2  # looks spent on each temperature above the last
COOLING = 4.0  # how many times lower each temperature is than the one before
HOTTEST = 40.0  # largest cost, in units of the temperature, that needs no annealing
FAR = 10.0  # log of a marginal over its weight above which over-relaxation waits
DRIFT = 30.0  # how far potentials may move (natural logarithm) before the kernel is rebuilt around them
FARTHEST = 37.0  # where they stop until it is: the product of two such factors is still a number in single precision
EXPECTED = 0.1  # of the largest cost over epsilon: the stiffness that the first relaxation factor is the best for
RELAXATION_FIRST, RELAXATION_MOST = 1.7, 1.95
STIFFNESS = (
    0.5  # of the largest cost over epsilon; measured 0.1 to 0.4 on digits, shapes and niches, more in rare pairs
)


class Solution(NamedTuple):
    """What is known of each problem of a batch, in units of epsilon."""

    f: Array  # [k, n] potentials of the first clouds: the exact soft c-transform of g
    g: Array  # [k, m]
    value: Array  # [k] dual value, a lower bound where the last temperature was reached
    error: Array  # [k] estimate of what the value lacks, rounding included; infinite where it was not
    iterations: Array  # [k]
    converged: Array  # [k]


class _Problem(NamedTuple):
    cost: Array  # [k, n, m]
    a: Array  # [k, n]
    b: Array  # [k, m]
    offset: Array  # [k]
    stiffness: Array  # [k]
    tol: Array  # []
    max_iterations: Array  # []
    leave: Array  # []


class _State(NamedTuple):
    f: Array  # [k, n] over-relaxed
    g: Array  # [k, m]
    exact: Array  # [k, n] the soft c-transform of g
    temperature: Array  # [k]
    relaxation: Array  # [k]
    residual: Array  # [k] at the last look
    value: Array  # [k]
    error: Array  # [k]
    iterations: Array  # [k]
    converged: Array  # [k]
    spent: Array  # [k] looks spent on the present temperature since potentials last ran as far as they may


class _Kernel(NamedTuple):
    matrix: Array  # [k, n, m] b * exp((f0 + g0 - C) / temperature); the largest of every row is one
    f0: Array  # [k, n]
    g0: Array  # [k, m]


def solve(
    cost: Array,
    a: Array,
    b: Array,
    *,
    offset: Array | float = 0.0,
    tol: Array | float = 1e-3,
    max_iterations: Array | int = 1000,
    leave: Array | int = 0,
    g: Array | None = None,
) -> Solution:
    """Solve a batch of entropic transport problems.

    Parameters
    ----------
    cost
        Ground costs divided by epsilon, ``[k, n, m]``.
    a, b
        Weights, ``[k, n]`` and ``[k, m]``, rows summing to one. Points of weight zero are padding and may lie anywhere.
    offset
        What will be subtracted from the values, ``[k]``: a problem stops at an error of ``tol * |value - offset|``.
    tol
        Tolerance, relative to ``value - offset``.
    max_iterations
        Where a problem that has not converged is left.
    leave
        How many problems of the batch may stay open when it is given up: the slowest, better solved together elsewhere.
    g
        Potentials to start from, ``[k, m]``; annealing is then left out.
    """
    k, _, m = cost.shape
    dtype = cost.dtype
    largest = cost.max((1, 2))
    problem = _Problem(
        cost=cost,
        a=a,
        b=b,
        offset=jnp.broadcast_to(jnp.asarray(offset, dtype), (k,)),
        stiffness=STIFFNESS * largest,
        tol=jnp.asarray(tol, dtype),
        max_iterations=jnp.asarray(max_iterations),
        leave=jnp.asarray(leave),
    )
    unknown = jnp.full((k,), jnp.inf, dtype)
    state = _State(
        f=jnp.zeros_like(a),
        g=jnp.zeros((k, m), dtype) if g is None else g,
        exact=jnp.zeros_like(a),
        temperature=jnp.maximum(largest / HOTTEST, 1.0) if g is None else jnp.ones_like(largest),
        relaxation=jnp.minimum(2.0 / (1.0 + (1.0 + EXPECTED * largest) ** -0.5), RELAXATION_FIRST),
        residual=unknown,
        value=-unknown,
        error=unknown,
        iterations=jnp.zeros((k,), jnp.int32),
        converged=jnp.zeros((k,), bool),
        spent=jnp.zeros((k,), jnp.int32),
    )
    state = lax.while_loop(lambda s: _go_on(s, problem), lambda s: _on_one_kernel(s, problem), state)
    return Solution(state.exact, state.g, state.value, state.error, state.iterations, state.converged)


def solve_self(cost: Array, a: Array, *, tol: Array | float = 1e-3, max_iterations: Array | int = 1000) -> Solution:
    """Solve the transport of clouds to themselves, by averaging the potentials of both sides.

    The kernel needs little care here: with the least cost taken out its diagonal is one, so no row loses its mass. The
    error at least halves with every iteration for a positive kernel (Feydy et al. 2019), so neither annealing nor
    over-relaxation is of use.

    Parameters
    ----------
    cost
        Symmetric ground costs divided by epsilon, ``[k, n, n]``.
    a
        Weights, ``[k, n]``.
    tol
        Tolerance, relative to one epsilon or to the value, whichever is smaller.
    max_iterations
        Where a problem that has not converged is left.
    """
    floor = cost.min((1, 2))[:, None]
    kernel = jnp.exp(floor[:, :, None] - cost)
    k, _ = a.shape

    def transform(f: Array) -> Array:
        return -jnp.log(_rows(kernel, a * jnp.exp(f)))

    def look(s: Solution) -> Solution:
        f = lax.fori_loop(0, LOOK, lambda _, f: 0.5 * (f + transform(f)), s.f)
        exact = transform(f)
        value = (a * (f + exact)).sum(1)
        rounding = _rounding(value)
        error = 0.5 * (a * (f - exact) ** 2).sum(1) + rounding
        new = Solution(
            f, exact, value, error, s.iterations + LOOK, error <= tol * jnp.minimum(jnp.abs(value), 1.0) + 2 * rounding
        )
        return jax.tree.map(lambda n, o: _where(s.converged, o, n), new, s)

    unknown = jnp.full((k,), jnp.inf, cost.dtype)
    state = Solution(
        jnp.zeros_like(a), jnp.zeros_like(a), -unknown, unknown, jnp.zeros((k,), jnp.int32), jnp.zeros((k,), bool)
    )
    last = lax.while_loop(lambda s: (~s.converged & (s.iterations < max_iterations)).any(), look, state)
    return last._replace(f=last.f + 0.5 * floor, g=last.g + 0.5 * floor, value=last.value + floor[:, 0])


def coupling_of(cost: Array, a: Array, b: Array, f: Array, g: Array) -> Array:
    """Return the couplings that potentials stand for, ``[k, n, m]``; padding gets nothing."""
    real = (a > 0)[:, :, None] & (b > 0)[:, None, :]
    exponent = jnp.where(real, f[:, :, None] + g[:, None, :] - cost, -jnp.inf)
    return a[:, :, None] * b[:, None, :] * jnp.exp(exponent)


def _on_one_kernel(state: _State, problem: _Problem) -> _State:
    """Cool where it is time, build the kernel, and iterate until it has to be rebuilt or all is done."""
    cools = state.spent >= LEVEL
    temperature = jnp.where(cools, jnp.maximum(state.temperature / COOLING, 1.0), state.temperature)
    kernel = _build(problem, state.g, temperature)
    exact = kernel.f0 - temperature[:, None] * jnp.log(kernel.matrix.sum(2))
    # over-relaxed potentials go on where they are near the exact ones, and start anew where they are not
    near = ((jnp.abs(state.f - exact).max(1) <= temperature) & (state.iterations > 0))[:, None]
    start = state._replace(
        f=jnp.where(near, state.f, exact), temperature=temperature, spent=jnp.where(cools, 0, state.spent)
    )

    def same_kernel(s: _State) -> Array:
        drift = jnp.maximum(jnp.abs(s.f - start.f).max(1), jnp.abs(s.g - start.g).max(1)) / s.temperature
        rebuild = (s.temperature > 1) & (s.spent >= LEVEL) | (drift > DRIFT)
        return _go_on(s, problem) & ~(_open(s, problem) & rebuild).any()

    return lax.while_loop(same_kernel, lambda s: _look(s, kernel, problem), start)


def _build(problem: _Problem, g: Array, temperature: Array) -> _Kernel:
    cooling = 1.0 / temperature
    height = g * cooling[:, None] + jnp.log(problem.b)  # minus infinity on padding
    exponent = height[:, None, :] - problem.cost * cooling[:, None, None]
    top = exponent.max(-1)
    return _Kernel(jnp.exp(exponent - top[:, :, None]), -temperature[:, None] * top, g)


def _look(state: _State, kernel: _Kernel, problem: _Problem) -> _State:
    """``LOOK`` iterations, and a look at how far they have brought each problem."""
    a, b = problem.a, problem.b
    t, relaxation = state.temperature[:, None], state.relaxation[:, None]
    log_b = jnp.log(b)
    least = jnp.finfo(b.dtype).tiny * 1e6  # a column out of reach of the kernel is drawn in over several rebuilds

    def iterate(_: int, carry: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        u, v = carry[:2]
        excess = v + jnp.log(jnp.maximum(_columns(kernel.matrix, a * jnp.exp(u)), least)) - log_b
        excess = jnp.where(b > 0, excess, 0.0)  # log of the second marginal over b
        # over-relaxation is for the neighbourhood of the optimum; far from it plain Sinkhorn is what converges
        factor = jnp.where(jnp.abs(excess).max(1, keepdims=True) < FAR, relaxation, 1.0)
        v = jnp.clip(v - factor * excess, -FARTHEST, FARTHEST)
        exact = -jnp.log(jnp.maximum(_rows(kernel.matrix, jnp.exp(v)), least))
        u = jnp.clip(u + factor * (exact - u), -FARTHEST, FARTHEST)
        return u, v, exact, excess

    u, v = (state.f - kernel.f0) / t, (state.g - kernel.g0) / t
    u, v, exact, excess = lax.fori_loop(0, LOOK, iterate, (u, v, u, v))
    f, g, exact = kernel.f0 + t * u, kernel.g0 + t * v, kernel.f0 + t * exact

    value = (a * exact).sum(1) + (b * g).sum(1)
    residual = jnp.sqrt((b * excess**2).sum(1))
    rounding = _rounding(value)
    coldest = state.temperature <= 1
    # above the last temperature the value is that of another problem, and nothing is known of this one's
    rate = (residual / state.residual) ** (1.0 / LOOK)
    left = jnp.clip(rate, 0.0, 0.999) ** (2 * LOOK)  # of the value's error, after as many iterations again
    slow = jnp.where(jnp.isfinite(state.residual), jnp.abs(value - state.value) * left / (1.0 - left), 0.0)
    # two clouds that hardly differ are matched point by point, which is the stiffest of all
    alike = jnp.clip(jnp.abs(value) / jnp.maximum(jnp.abs(value - problem.offset), rounding), 1.0, 1e3)
    lacking = jnp.maximum(0.5 * residual**2 * (1.0 + problem.stiffness) * alike, slow)
    error = jnp.where(coldest, lacking + rounding, jnp.inf)
    enough = coldest & (error <= problem.tol * jnp.abs(value - problem.offset) + 2 * rounding)
    new = _State(
        f=f,
        g=g,
        exact=exact,
        temperature=state.temperature,
        relaxation=_relax(state.relaxation, rate, residual > state.residual),
        residual=jnp.where(coldest, residual, jnp.inf),
        value=value,
        error=error,
        iterations=state.iterations + LOOK,
        converged=enough,
        spent=jnp.where(jnp.maximum(jnp.abs(u).max(1), jnp.abs(v).max(1)) < DRIFT, state.spent + 1, 0),
    )
    # a problem that has converged stays as it is, whatever its neighbours in the batch still need
    return jax.tree.map(lambda n, o: _where(state.converged, o, n), new, state)


def _relax(relaxation: Array, rate: Array, grew: Array) -> Array:
    """Return the relaxation factor that suits the contraction seen with the present one."""
    rate = jnp.clip(rate, relaxation - 1.0, 0.9999)
    plain = (rate + relaxation - 1.0) ** 2 / (rate * relaxation**2)  # contraction of plain Sinkhorn
    best = 2.0 / (1.0 + jnp.sqrt(jnp.maximum(1.0 - plain, 0.0)))
    return jnp.where(grew, 1.0 + 0.7 * (relaxation - 1.0), jnp.clip(best, relaxation, RELAXATION_MOST))


def _open(state: _State, problem: _Problem) -> Array:
    return ~state.converged & (state.iterations < problem.max_iterations)


def _go_on(state: _State, problem: _Problem) -> Array:
    return _open(state, problem).sum() > problem.leave


def _rounding(value: Array) -> Array:
    return 4 * jnp.finfo(value.dtype).eps * (1.0 + jnp.abs(value))


def _where(condition: Array, yes: Array, no: Array) -> Array:
    return jnp.where(condition.reshape(-1, *(1,) * (yes.ndim - 1)), yes, no)


def _rows(matrix: Array, v: Array) -> Array:
    return jnp.einsum("kij,kj->ki", matrix, v, precision=lax.Precision.HIGHEST)


def _columns(matrix: Array, u: Array) -> Array:
    return jnp.einsum("kij,ki->kj", matrix, u, precision=lax.Precision.HIGHEST)
