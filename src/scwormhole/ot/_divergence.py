"""The divergence as a function to differentiate: pure JAX, for use inside a compiled loss.

At the optimum the derivative of the dual with respect to the potentials vanishes, so they are constants to the gradient
(the envelope theorem): one more pass over the costs, and no iteration is unrolled.
"""

import jax.numpy as jnp
from jax import Array, lax

from ._gromov import coupling_cost, descend
from ._metrics import GroundCost, Metric, as_metric, paired_costs
from ._sinkhorn import coupling_of, solve, solve_self


def divergence(
    x: Array,
    y: Array,
    a: Array | None = None,
    *,
    b: Array | None = None,
    metric: str | GroundCost = "S2",
    epsilon: float | Array,
    tol: float = 1e-3,
    max_iterations: int = 200,
) -> Array:
    """Compute transport between clouds paired one to one, differentiable in points and weights.

    For GW and GS the slope is that with the coupling held as it is, which lacks a term of the order of epsilon.

    Code to be compiled, on arrays: nothing is checked, epsilon is absolute, and pairs that do not converge are not
    reported. For distances to look at, use :func:`pairwise` and :func:`distances`.

    Parameters
    ----------
    x
        Clouds, ``[k, n, d]``.
    y
        Clouds, ``[k, m, d]``.
    a
        Weights of ``x``, ``[k, n]``, rows summing to one and zero on padding; equal by default.
    b
        Weights of ``y``, ``[k, m]``.
    metric
        See :func:`pairwise`.
    epsilon
        Regularisation in units of the ground cost.
    tol
        Relative tolerance.
    max_iterations
        Where a pair that does not converge is left.

    Returns
    -------
    One value a pair, in units of the ground cost.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, scwormhole as wh
    >>> x = jnp.array([[[0.0, 0.0], [0.0, 1.0]]])
    >>> move = jax.grad(lambda shift: wh.ot.divergence(x, x + shift, epsilon=0.1).sum())
    >>> [round(float(slope), 2) for slope in move(jnp.array([3.0, 0.0]))]
    [6.0, 0.0]
    """
    known = as_metric(metric)
    a = jnp.full(x.shape[:2], 1.0 / x.shape[1], x.dtype) if a is None else a
    b = jnp.full(y.shape[:2], 1.0 / y.shape[1], y.dtype) if b is None else b
    x, y = _filled(x, a), _filled(y, b)
    if known.gromov:
        crossed = _gromov_cost(x, a, y, b, epsilon, tol, max_iterations)
        if not known.debiased:
            return crossed
        alone = (epsilon, 0.01 * tol, max_iterations)  # as everywhere: subtracted from what may be close to it
        return crossed - 0.5 * (_gromov_cost(x, a, x, a, *alone) + _gromov_cost(y, b, y, b, *alone))
    gap = jnp.zeros(len(x), x.dtype)
    if known.separates_means:
        mean_x, mean_y = (jnp.einsum("kn,knd->kd", w, p)[:, None] for w, p in ((a, x), (b, y)))
        x, y, gap = x - mean_x, y - mean_y, ((mean_x - mean_y) ** 2).sum((1, 2))
    own = 0.5 * (_alone(known, x, a, epsilon, tol) + _alone(known, y, b, epsilon, tol)) if known.debiased else 0.0
    cost = paired_costs(known.cost, x, y) / epsilon
    fixed = lax.stop_gradient((cost, a, b))
    offset = lax.stop_gradient((own - gap) / epsilon)
    solution = solve(*fixed, offset=offset, tol=tol, max_iterations=max_iterations)
    return epsilon * _dual(cost, a, b, solution.f, solution.g) - own + gap


def _gromov_cost(
    x: Array, a: Array, y: Array, b: Array, epsilon: float | Array, tol: float, max_iterations: int
) -> Array:
    """Return the entropic Gromov-Wasserstein cost, with the slope of its coupling's cost: the coupling is held."""
    x, y = (p - jnp.einsum("kn,knd->kd", w, p)[:, None] for p, w in ((x, a), (y, b)))
    x, y = x / epsilon**0.25, y / epsilon**0.25
    fixed = lax.stop_gradient((x, a, y, b))
    found = descend(*fixed, jnp.zeros(len(x), x.dtype), jnp.asarray(tol, x.dtype), jnp.asarray(max_iterations))
    energy = coupling_cost(x, a, y, b, lax.stop_gradient(found.coupling))
    return epsilon * (found.value + energy - lax.stop_gradient(energy))


def _filled(x: Array, a: Array) -> Array:
    """Move padding, wherever it lies, to the first point of its cloud."""
    first = jnp.take_along_axis(x, (a > 0).argmax(1)[:, None, None], 1)
    return jnp.where((a > 0)[:, :, None], x, first)


def _alone(metric: Metric, x: Array, a: Array, epsilon: float | Array, tol: float) -> Array:
    cost = paired_costs(metric.cost, x, x) / epsilon
    solution = solve_self(*lax.stop_gradient((cost, a)), tol=1e-3 * tol)
    return epsilon * _dual(cost, a, a, solution.f, solution.g)


def _dual(cost: Array, a: Array, b: Array, f: Array, g: Array) -> Array:
    f, g = lax.stop_gradient((f, g))
    return (a * f).sum(1) + (b * g).sum(1) - coupling_of(cost, a, b, f, g).sum((1, 2)) + 1.0
