"""Clouds to try the engine on, and a slow reference in double precision that proves its own accuracy."""

from types import SimpleNamespace

import numpy as np
import pytest

import scwormhole as wh


def squared(x, y):
    """Squared Euclidean ground costs, by differences."""
    return ((x[:, None] - y[None]) ** 2).sum(-1)


def cityblock(x, y):
    """L1 ground costs."""
    return np.abs(x[:, None] - y[None]).sum(-1)


COSTS = {"S2": squared, "W2": squared, "S1": cityblock, "W1": cityblock}


def softmin(exponent, axis):
    """Minus the logarithm of a sum of exponentials."""
    top = exponent.max(axis, keepdims=True)
    return -(np.log(np.exp(exponent - top).sum(axis)) + top.squeeze(axis))


def rounded(plan, a, b):
    """A plan near the given one with exact marginals."""
    plan = plan * np.minimum(1, a / plan.sum(1))[:, None]
    plan = plan * np.minimum(1, b / plan.sum(0))
    rows, columns = np.maximum(a - plan.sum(1), 0), np.maximum(b - plan.sum(0), 0)
    return plan + np.outer(rows, columns) / max(rows.sum(), np.finfo(float).tiny)


def bounds(cost, a, b, f, g):
    """The dual value of potentials and the primal value of their rounded plan; the optimum is in between."""
    with np.errstate(over="ignore"):  # potentials that are not yet dual to one another; rounding takes care of it
        plan = np.minimum(np.exp(np.log(a)[:, None] + np.log(b) + f[:, None] + g - cost), 1e100)
    plan = rounded(plan, a, b)
    ratio = np.where(plan > 0, plan / (a[:, None] * b), 1.0)
    return a @ f + b @ g, (plan * cost).sum() + (plan * np.log(ratio)).sum(), plan


def newton(cost, a, b, f, g):
    """One step of Newton's method on the dual as a function of g, f being its transform; shortened until it climbs."""
    log_b = np.log(b)
    plan = np.exp(np.log(a)[:, None] + log_b + f[:, None] + g - cost)
    marginal = np.maximum(plan.sum(0), 1e-300)
    scale = 1 / np.sqrt(marginal)
    curvature = scale[:, None] * (np.diag(marginal) - plan.T @ (plan / a[:, None])) * scale
    step = scale * (np.linalg.pinv(curvature, rcond=1e-13, hermitian=True) @ (scale * (b - marginal)))
    height = a @ f + b @ g
    for shorter in 0.5 ** np.arange(20):
        new_g = g + shorter * step
        new_f = softmin(new_g - cost + log_b, 1)
        if a @ new_f + b @ new_g > height:
            return new_f
    return f


def entropic(cost, a, b, epsilon, *, tol=1e-9, most=100):
    """Entropic transport in the log domain: Sinkhorn and Newton steps, annealed, until primal and dual agree.

    Returns the dual value, the primal value above it, and the plan, in the units of the cost. They agree to ``tol`` of
    epsilon or of the value, whichever is larger, or as well as ``most`` steps can make them.
    """
    cost = cost / epsilon
    log_a, log_b = np.log(a), np.log(b)
    f = np.zeros(len(a))
    for t in [*(t for t in 2.0 ** np.arange(60, 0, -1) if t < cost.max() / 5), 1.0]:
        for step in range(4 if t > 1 else most):
            for _ in range(10):
                g = t * softmin((f[:, None] - cost) / t + log_a[:, None], 0)
                f = t * softmin((g - cost) / t + log_b, 1)
            if t == 1:
                low, high, plan = bounds(cost, a, b, f, g)
                if high - low <= tol * max(1.0, abs(low)):
                    break
            if t > 1 or step >= 4:
                f = t * newton(cost / t, a, b, f / t, g / t)
    return SimpleNamespace(low=low * epsilon, high=high * epsilon, plan=plan)


def bracket(metric, clouds, epsilon, **options):
    """Entropic cost or Sinkhorn divergence of two weighted clouds: numbers that it lies between."""
    middle = np.asarray(clouds[0][0], np.float64).mean(0)
    (x, a), (y, b) = ((np.asarray(p, np.float64)[w > 0] - middle, w[w > 0] / w.sum()) for p, w in clouds)
    table = COSTS[metric]
    both = entropic(table(x, y), a, b, epsilon, **options)
    if metric.startswith("W"):
        return both.low, both.high
    own = [entropic(table(p, p), w, w, epsilon, **options) for p, w in ((x, a), (y, b))]
    return both.low - 0.5 * sum(s.high for s in own), both.high - 0.5 * sum(s.low for s in own)


def transport(metric, clouds, epsilon, **options):
    """Entropic cost or Sinkhorn divergence of two weighted clouds, to nine digits of the cost."""
    low, high = bracket(metric, clouds, epsilon, **options)
    assert high - low <= 1e-8 * (epsilon + abs(high)), "the reference is not certain of itself"
    return 0.5 * (low + high)


def pairs_of(clouds, diagonal):
    """Positions of every two clouds."""
    return list(zip(*np.triu_indices(len(clouds), 0 if diagonal else 1), strict=True))


def table(metric, clouds, epsilon):
    """All pairs of a cohort, from the reference."""
    found = np.zeros((len(clouds), len(clouds)))
    for i, j in pairs_of(clouds, diagonal=metric.startswith("W")):
        found[i, j] = found[j, i] = transport(metric, (clouds[int(i)], clouds[int(j)]), epsilon)
    return found


def mean_cost(clouds, metric):
    """Mean ground cost between two different clouds of a cohort, points by their weights."""
    middle = np.asarray(clouds[0].points, np.float64).mean(0)
    centred = [(np.asarray(points, np.float64) - middle, weights) for points, weights in clouds]
    costs = [
        (centred[i][1][:, None] * centred[j][1] * COSTS[metric](centred[i][0], centred[j][0])).sum()
        for i, j in pairs_of(centred, diagonal=False)
    ]
    return float(np.mean(costs))


def cohort(*sizes, dim=2, rng=0, weighted=True, spread=1.0):
    """Random clouds at random places, of random weights and scales."""
    generator = np.random.default_rng(rng)
    points = [
        generator.normal(size=(n, dim)) * generator.uniform(0.5, 1.5, dim) + spread * generator.normal(size=dim)
        for n in sizes
    ]
    weights = [generator.dirichlet(np.full(n, 2.0)) if weighted else np.full(n, 1 / n) for n in sizes]
    return wh.PointClouds.from_list(points, weights)


@pytest.fixture(scope="session")
def reference():
    """The reference, by name."""
    return SimpleNamespace(
        bracket=bracket,
        cityblock=cityblock,
        costs=COSTS,
        entropic=entropic,
        mean_cost=mean_cost,
        squared=squared,
        table=table,
        transport=transport,
    )


@pytest.fixture(scope="session")
def make():
    """A maker of random cohorts: ``make(20, 24, dim=3)`` has two clouds."""
    return cohort
