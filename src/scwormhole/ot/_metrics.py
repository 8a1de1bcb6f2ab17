"""Which divergence a name stands for: ground costs on one pair of points, and the table of metrics. JAX only.

A ground cost is written for one pair of points and batched by ``vmap``. The squared Euclidean cost, which is nearly all
use, has a form of its own by matrix products; a test holds it to the plain one.
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array, lax

GroundCost = Callable[[Array, Array], Array]


def squared_euclidean(x: Array, y: Array) -> Array:
    """Return the squared Euclidean distance of two points."""
    return ((x - y) ** 2).sum()


def manhattan(x: Array, y: Array) -> Array:
    """Return the L1 distance of two points."""
    gap = x - y
    return (gap * jnp.sign(gap)).sum()  # JAX gives the absolute value a slope of one at zero; this has none


@dataclass(frozen=True)
class Metric:
    """A divergence between clouds: a ground cost, and what is done with it."""

    name: str
    cost: GroundCost
    debiased: bool  # a Sinkhorn divergence: minus half of each cloud's transport to itself
    gromov: bool = False  # compares distances within the clouds
    degree: int | None = 2  # costs grow with this power of the coordinates; None for a cost we know nothing of

    @property
    def separates_means(self) -> bool:
        """Whether the means can be taken out of the clouds exactly, and their squared distance added afterwards."""
        return self.cost is squared_euclidean and not self.gromov

    @property
    def non_negative(self) -> bool:
        """Whether the divergence is known not to be negative, so that what is below zero is rounding."""
        return self.debiased and self.degree in (1, 2)


METRICS = {
    "S2": Metric("S2", squared_euclidean, debiased=True),
    "W2": Metric("W2", squared_euclidean, debiased=False),
    "S1": Metric("S1", manhattan, debiased=True, degree=1),
    "W1": Metric("W1", manhattan, debiased=False, degree=1),
    "GS": Metric("GS", squared_euclidean, debiased=True, gromov=True, degree=4),
    "GW": Metric("GW", squared_euclidean, debiased=False, gromov=True, degree=4),
}


def as_metric(metric: str | GroundCost) -> Metric:
    """Return the metric of a name, or the Sinkhorn divergence of a ground cost the user wrote."""
    if isinstance(metric, str) and metric in METRICS:
        return METRICS[metric]
    if callable(metric):
        return Metric(getattr(metric, "__name__", "cost"), metric, debiased=True, degree=None)
    raise ValueError(
        f"metric is {metric!r}; give one of {', '.join(map(repr, METRICS))}, "
        "or a ground cost: a function of two points, written in jax.numpy, that returns one number."
    )


def paired_costs(cost: GroundCost, x: Array, y: Array) -> Array:
    """Return the ground costs of clouds paired one to one: ``[k, n, d]`` and ``[k, m, d]`` give ``[k, n, m]``."""
    if cost is squared_euclidean:
        inner = jnp.einsum("kid,kjd->kij", x, y, precision=lax.Precision.HIGHEST)
        return _squared(x, y, inner, (1, 2))
    return jax.vmap(_table(cost))(x, y)


def crossed_costs(cost: GroundCost, x: Array, y: Array) -> Array:
    """Return the ground costs of each cloud with each: ``[p, n, d]`` and ``[q, m, d]`` give ``[p * q, n, m]``."""
    p, n, _ = x.shape
    q, m, _ = y.shape
    if cost is squared_euclidean:
        # one product of two flat matrices runs at the machine's rate; many small ones do not
        inner = jnp.einsum("pid,qjd->piqj", x, y, precision=lax.Precision.HIGHEST).transpose(0, 2, 1, 3)
        both = _squared(x[:, None], y[None, :], inner, (2, 3))
        return both.reshape(p * q, n, m)
    crossed = jax.vmap(jax.vmap(_table(cost), (None, 0)), (0, None))(x, y)
    return crossed.reshape(p * q, n, m)


def _table(cost: GroundCost) -> GroundCost:
    return jax.vmap(jax.vmap(cost, (None, 0)), (0, None))


def _squared(x: Array, y: Array, inner: Array, axes: tuple[int, int]) -> Array:
    rows, columns = axes
    xx = jnp.expand_dims((x**2).sum(-1), columns)
    yy = jnp.expand_dims((y**2).sum(-1), rows)
    return jnp.maximum(xx + yy - 2.0 * inner, 0.0)
