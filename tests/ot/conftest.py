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


def gap_of(cost, a, b, f, g):
    """Dual value of potentials, and the primal value of the rounded plan above it: the optimum is in between."""
    plan = rounded(np.exp(np.log(a)[:, None] + np.log(b) + f[:, None] + g - cost), a, b)
    ratio = np.where(plan > 0, plan / (a[:, None] * b), 1.0)
    return a @ f + b @ g, (plan * cost).sum() + (plan * np.log(ratio)).sum(), plan


def entropic(cost, a, b, epsilon, *, tol=1e-9, most=200):
    """Entropic transport in the log domain: annealed Sinkhorn, then Newton steps, until primal and dual agree to ``tol``.

    Returns the dual value, the potentials and the plan, all in the units of the cost; raises where it cannot vouch for
    its value to within ``tol`` of epsilon or of the value, whichever is larger.
    """
    rows, columns = a > 0, b > 0
    cost, a, b = cost[np.ix_(rows, columns)] / epsilon, a[rows] / a.sum(), b[columns] / b.sum()
    log_a, log_b = np.log(a), np.log(b)

    def transforms(f, t=1.0):
        g = t * softmin((f[:, None] - cost) / t + log_a[:, None], 0)
        return t * softmin((g - cost) / t + log_b, 1), g

    f = np.zeros(len(a))
    for t in [*(t for t in 2.0 ** np.arange(40, 0, -1) if t < cost.max() / 5), *[1.0] * 10]:
        for _ in range(10):
            f, g = transforms(f, t)
    for _ in range(most):
        low, high, plan = gap_of(cost, a, b, f, g)
        if high - low <= tol * max(1.0, abs(low)):
            return SimpleNamespace(value=low * epsilon, plan=plan, f=f * epsilon, g=g * epsilon)
        f, g = newton(cost, a, b, f, g)
        for _ in range(10):
            f, g = transforms(f)
    raise AssertionError(f"the reference itself is uncertain: between {low * epsilon} and {high * epsilon}")


def newton(cost, a, b, f, g):
    """One step of Newton's method on the dual as a function of g, f being its transform; shortened until it climbs."""
    log_b = np.log(b)
    plan = np.exp(np.log(a)[:, None] + log_b + f[:, None] + g - cost)
    marginal = plan.sum(0)
    curvature = np.diag(marginal) - plan.T @ (plan / a[:, None])
    scale = 1 / np.sqrt(marginal)
    step = scale * (np.linalg.pinv(scale[:, None] * curvature * scale, rcond=1e-13, hermitian=True) @ (scale * (b - marginal)))
    height = a @ f + b @ g
    for shorter in 0.5 ** np.arange(12):
        new_g = g + shorter * step
        new_f = softmin(new_g - cost + log_b, 1)
        if a @ new_f + b @ new_g > height:
            return new_f, new_g
    return f, g


def transport(metric, x, y, a, b, epsilon, **options):
    """Entropic cost or Sinkhorn divergence of two weighted clouds."""
    points = [np.asarray(p, np.float64) for p in (x, y)]
    middle = points[0].mean(0)
    x, y = (p - middle for p in points)
    table = COSTS[metric]
    value = entropic(table(x, y), a, b, epsilon, **options).value
    if metric.startswith("S"):
        value -= 0.5 * entropic(table(x, x), a, a, epsilon, **options).value
        value -= 0.5 * entropic(table(y, y), b, b, epsilon, **options).value
    return value


def table(metric, clouds, epsilon, **options):
    """All pairs of a cohort, from the reference."""
    found = np.zeros((len(clouds), len(clouds)))
    for i, (x, a) in enumerate(clouds):
        for j, (y, b) in enumerate(clouds):
            if i < j or (i == j and metric.startswith("W")):
                found[i, j] = found[j, i] = transport(metric, x, y, a, b, epsilon, **options)
    return found


def mean_cost(clouds, metric):
    """Mean ground cost between two different clouds of a cohort, points by their weights."""
    costs = [
        (a[:, None] * b * COSTS[metric](np.asarray(x, float), np.asarray(y, float))).sum()
        for i, (x, a) in enumerate(clouds)
        for j, (y, b) in enumerate(clouds)
        if i < j
    ]
    return float(np.mean(costs))


def cohort(*sizes, dim=2, rng=0, weighted=True, spread=1.0, dtype=np.float64):
    """Random clouds at random places, of random weights and scales."""
    generator = np.random.default_rng(rng)
    points = [
        (generator.normal(size=(n, dim)) * generator.uniform(0.5, 1.5, dim) + spread * generator.normal(size=dim)).astype(
            dtype
        )
        for n in sizes
    ]
    weights = [generator.dirichlet(np.full(n, 2.0)) if weighted else np.full(n, 1 / n) for n in sizes]
    return wh.PointClouds.from_list(points, weights)


@pytest.fixture(scope="session")
def reference():
    """The reference, by name."""
    return SimpleNamespace(
        entropic=entropic,
        transport=transport,
        table=table,
        mean_cost=mean_cost,
        squared=squared,
        cityblock=cityblock,
        costs=COSTS,
    )


@pytest.fixture(scope="session")
def make():
    """A maker of random cohorts."""
    return cohort
