"""Clouds that nobody would think of: hypothesis draws them, and the reference brackets every distance.

Bounds. A pair that counts as converged may be off by its tolerance, relative to the distance, and by the rounding of
single precision, which sees ground costs and not divergences: 5e-6 of the mean cost. A pair that does not converge must
say so, and its estimate must cover the truth up to a factor of three. The reference states what it is uncertain of, and
that is allowed for.
"""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import scwormhole as wh

SIZES = st.sampled_from([1, 2, 3, 7, 13, 20])
quick = settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
long = settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def clouds_of(draw, dims, sizes, largest):
    """Four clouds, one of them of the largest size, so that few shapes have to be compiled."""
    dim = draw(dims)
    scale = 10.0 ** draw(st.integers(-6, 6))
    place = draw(st.sampled_from([0.0, 1.0, 1e6]))
    counts = [*(draw(sizes) for _ in range(3)), largest]
    points, weights = zip(*(draw(cloud(count, dim)) for count in counts), strict=True)
    return wh.PointClouds.from_list([scale * (x + place) for x in points], weights)


@st.composite
def cloud(draw, count, dim):
    """One cloud: spread out, on a line or grid, of few distinct points or one, in two far groups, with outliers."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["normal", "line", "grid", "repeats", "point", "groups", "outliers"]))
    x = rng.normal(size=(count, dim))
    if kind == "line":
        x = x[:, :1] * rng.normal(size=dim)
    elif kind == "grid":
        x = np.round(x)
    elif kind == "repeats":
        x = x[rng.integers(0, max(1, count // 4), size=count)]
    elif kind == "point":
        x[:] = x[0]
    elif kind == "groups":
        x[: count // 2] += 10
    elif kind == "outliers":
        x *= 10.0 ** rng.uniform(-1, 2, size=(count, 1))
    raw = {
        "equal": np.ones(count),
        "uneven": rng.dirichlet(np.full(count, 0.3)) + 1e-6,
        "tiny": 10.0 ** rng.uniform(-6, 0, size=count),
        "one": np.r_[1.0, np.full(count - 1, 1e-6)],
    }[draw(st.sampled_from(["equal", "uneven", "tiny", "one"]))]
    return x * 10.0 ** rng.uniform(-1, 1) + rng.normal(size=dim), raw / raw.sum()


def check(clouds, metric, share, tol, reference):
    """Hold a table of distances to the reference."""
    with warnings.catch_warnings(record=True, action="always") as told:
        found, info = wh.ot.pairwise(clouds, metric, epsilon=share, tol=tol, return_info=True)
    assert all(issubclass(warning.category, wh.ot.TransportWarning) for warning in told)
    assert bool(told) == (not info.converged.all())
    assert np.isfinite(found).all()
    assert not np.isnan(info.error).any()
    assert np.array_equal(found, found.T)
    assert (found >= 0).all()
    mean = info.epsilon / share
    for i, j in zip(*np.triu_indices(4, 0 if metric.startswith("W") else 1), strict=True):
        pair = clouds[int(i)], clouds[int(j)]
        low, high = reference.bracket(metric, pair, info.epsilon, tol=1e-7)
        off = max(low - found[i, j], found[i, j] - high, 0.0)
        allowed = tol * max(high, 0.0) + 5e-6 * mean if info.converged[i, j] else 3 * info.error[i, j]
        assert off <= allowed, f"{metric} of {i} and {j}: {found[i, j]}, truly {low} to {high}"


@pytest.mark.parametrize("metric", ["S2", "W2", "S1", "W1"])
@quick
@given(clouds=clouds_of(st.sampled_from([1, 2]), SIZES, 24))
def test_any_clouds_at_the_default_tolerance(metric, reference, clouds):
    check(clouds, metric, 0.05, 1e-3, reference)


@pytest.mark.parametrize("metric", ["S2", "S1"])
@quick
@given(clouds=clouds_of(st.just(2), SIZES, 24), share=st.sampled_from([0.5, 0.005]))
def test_any_clouds_at_any_epsilon(metric, reference, clouds, share):
    check(clouds, metric, share, 1e-3, reference)


@settings(quick, max_examples=15)
@given(clouds=clouds_of(st.just(2), SIZES, 24))
def test_no_clouds_break_gromov_wasserstein(clouds):
    with warnings.catch_warnings(action="ignore", category=wh.ot.TransportWarning):
        cost, info = wh.ot.pairwise(clouds, "GW", return_info=True)
        divergence = wh.ot.pairwise(clouds, "GS")
    assert np.isfinite(cost).all()
    assert np.isfinite(divergence).all()
    assert np.array_equal(cost, cost.T)
    # a regularised cost is not below zero, and the product coupling, whose mean cost epsilon is a share of, bounds it
    assert cost.min() >= -1e-3 * info.epsilon


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["S2", "W2", "S1", "W1"])
@long
@given(clouds=clouds_of(st.integers(1, 5), SIZES, 24), share=st.sampled_from([0.5, 0.05, 0.005]))
def test_many_clouds(metric, reference, clouds, share):
    check(clouds, metric, share, 1e-3, reference)


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["S2", "S1"])
@settings(long, max_examples=20)
@given(clouds=clouds_of(st.just(3), st.sampled_from([1, 30, 180]), 300))
def test_large_clouds(metric, reference, clouds):
    check(clouds, metric, 0.05, 1e-3, reference)
