"""What must be known of a cohort before any pair is solved, from a seeded sample. NumPy, and JAX for ground costs.

The mean ground cost between clouds sets epsilon; the box is the paper's scale.
"""

from collections.abc import Iterator
from numbers import Real
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ._cohort import Cohort
from ._metrics import Metric, paired_costs

Cohorts = tuple[Cohort, ...]

SAMPLE = 512  # clouds looked at
EACH = 16  # points drawn from each for a cost without a closed form
DRAWS = 1 << 13  # pairs of those points
LOW_DIMENSION = 3  # above it the paper divides by the square root of the dimension


def mean_and_spread(cohorts: Cohorts, rng: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the means of a sample of clouds, and the mean squared distances of their points from them."""
    means, spreads = [], []
    for points, weights in _sample(cohorts, rng):
        mean = weights @ points
        means.append(mean)
        spreads.append(weights @ ((points - mean) ** 2).sum(1))
    return np.array(means), np.array(spreads)


def mean_cost(cohorts: Cohorts, metric: Metric, rng: int = 0) -> float:
    """Return the mean ground cost between two different clouds of the cohorts, points drawn by their weights.

    For the squared Euclidean cost it comes in closed form from the moments, for Gromov-Wasserstein it is the mean of
    ``(|x - x'|^2 - |y - y'|^2)^2`` over independent points; any other cost is averaged over seeded draws.
    """
    if metric.separates_means:
        means, spreads = mean_and_spread(cohorts, rng)
        count = len(means)
        # over pairs of different clouds; a cloud alone is compared with itself
        mean = 2 * spreads.mean() + 2 * ((means - means.mean(0)) ** 2).sum(1).mean() * count / max(count - 1, 1)
    elif metric.gromov:
        within = _squared_within(cohorts, rng)
        mean = ((within - np.random.default_rng(rng).permutation(within)) ** 2).mean()
    else:
        with jax.enable_x64(True):
            mean = np.mean(jax.vmap(metric.cost)(*map(jnp.asarray, _drawn_pairs(cohorts, rng))))
    if not np.isfinite(mean):
        raise ValueError(
            f"the mean ground cost of metric {metric.name!r} over sampled pairs of points is {mean}; "
            "a ground cost must be finite wherever there are points. Are some points far out of range?"
        )
    return float(mean)


def check_cost(cohorts: Cohorts, metric: Metric, rng: int = 0) -> None:
    """Refuse a ground cost of the user's that is no number, not symmetric, or negative, before any work."""
    if metric.degree is not None:
        return
    x, y = (side[:64] for side in _drawn_pairs(cohorts, rng))
    try:
        hash(metric.cost)
        with jax.enable_x64(True):
            there = np.asarray(paired_costs(metric.cost, jnp.asarray(x[None]), jnp.asarray(y[None])))[0]
            back = np.asarray(paired_costs(metric.cost, jnp.asarray(y[None]), jnp.asarray(x[None])))[0]
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"the ground cost {metric.name!r} could not be evaluated on two points of {x.shape[1]} coordinates: {error}"
        ) from error
    if there.ndim != 2:
        raise ValueError(
            f"the ground cost {metric.name!r} must return one number for two points; got {there.shape[2:]}."
        )
    if not np.isfinite(there).all():
        raise ValueError(
            f"the ground cost {metric.name!r} is not finite for some pairs of points of the cohort; it must be."
        )
    if not np.allclose(there, back.swapaxes(0, 1), rtol=1e-3, atol=1e-6 * np.abs(there).max()):
        raise ValueError(f"the ground cost {metric.name!r} is not symmetric: cost(x, y) and cost(y, x) must agree.")
    if there.min() < -1e-6 * np.abs(there).max():
        raise ValueError(
            f"the ground cost {metric.name!r} is negative ({there.min():.3g}) for some points; add a constant."
        )


def as_epsilon(cohorts: Cohorts, metric: Metric, epsilon: float, relative_epsilon: str | None, rng: int = 0) -> float:
    """Return epsilon in units of the ground cost."""
    if isinstance(epsilon, bool) or not (isinstance(epsilon, Real) and np.isfinite(epsilon) and epsilon > 0):
        raise ValueError(f"epsilon is {epsilon!r}; give a number above 0, or solver='exact' for no regularisation.")
    if relative_epsilon not in ("mean", "box", None):
        raise ValueError(
            f"relative_epsilon is {relative_epsilon!r}; give 'mean' for a share of the mean ground cost, "
            "'box' for points scaled to [-1, 1], or None for epsilon in the units of the ground cost."
        )
    if relative_epsilon is None:
        return float(epsilon)
    if relative_epsilon == "box":
        if metric.degree is None:
            raise ValueError("relative_epsilon='box' is for the metrics with a name; a cost of your own has no box.")
        return float(epsilon) / box(cohorts)[1] ** metric.degree
    mean = mean_cost(cohorts, metric, rng)
    # all points are one point: every cost is zero, and any epsilon gives zero
    return float(epsilon) * (mean if mean > 0 else 1.0)


def box(cohorts: Cohorts) -> tuple[NDArray[np.float64], float]:
    """Return the shift and the factor that bring cohorts into the paper's box: ``(points - shift) * factor``.

    All coordinates together go to [-1, 1], in high dimension divided by the square root of the dimension. Every point
    is looked at, a batch at a time.
    """
    low, high = np.inf, -np.inf
    for batch in (batch for clouds in cohorts for batch in clouds.batches(256)):
        real = batch.points[batch.weights > 0]
        low, high = min(low, float(real.min())), max(high, float(real.max()))
    half = (high - low) / 2 or 1.0
    dim = cohorts[0].dim
    return np.full(dim, (high + low) / 2), 1.0 / half / (np.sqrt(dim) if dim > LOW_DIMENSION else 1.0)


def _sample(cohorts: Cohorts, rng: int) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Yield a seeded sample of all cohorts' clouds, in double precision."""
    owners = np.repeat(np.arange(len(cohorts)), [len(clouds) for clouds in cohorts])
    positions = np.concatenate([np.arange(len(clouds)) for clouds in cohorts])
    chosen = np.random.default_rng(rng).permutation(len(owners))[:SAMPLE]
    for at in np.sort(chosen):
        points, weights = cohorts[owners[at]][int(positions[at])]
        yield np.asarray(points, np.float64), np.asarray(weights, np.float64)


def _drawn_pairs(cohorts: Cohorts, rng: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return points of different clouds, drawn by weight."""
    generator = np.random.default_rng(rng)
    drawn = np.stack([_draw(points, weights, generator) for points, weights in _sample(cohorts, rng)])  # [s, r, d]
    count, each, _ = drawn.shape
    one = generator.integers(count, size=DRAWS)
    other = (one + generator.integers(1, max(count, 2), size=DRAWS)) % count
    of_one, of_other = generator.integers(each, size=(2, DRAWS))
    return drawn[one, of_one], drawn[other, of_other]


def _squared_within(cohorts: Cohorts, rng: int) -> NDArray[np.float64]:
    """Return squared distances of points of one cloud, over a sample of clouds."""
    generator = np.random.default_rng(rng)
    squared = []
    for points, weights in _sample(cohorts, rng):
        one, other = _draw(points, weights, generator), _draw(points, weights, generator)
        squared.append(((one - other) ** 2).sum(1))
    return np.concatenate(squared)


def _draw(
    points: NDArray[np.float64], weights: NDArray[np.float64], generator: np.random.Generator
) -> NDArray[np.float64]:
    return points[generator.choice(len(points), EACH, p=weights / weights.sum())]
