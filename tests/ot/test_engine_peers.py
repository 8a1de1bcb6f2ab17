"""Values held to POT, to OTT, and to a reference that proves its own accuracy."""

import warnings
from functools import partial

import numpy as np
import ot
import pytest

import scwormhole as wh

SHARES = [0.5, 0.05, 0.005]
METRICS = ["S2", "W2", "S1", "W1"]


def relative_error(found, expected):
    """Largest relative error over the pairs, the diagonal too where it is not zero."""
    used = expected > 0
    return (np.abs(found - expected)[used] / expected[used]).max()


@pytest.fixture(scope="module")
def peers():
    """The parts of OTT that are used, in double precision."""
    import jax
    import jax.numpy as jnp

    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # of jaxopt
        from ott.geometry import costs, pointcloud
        from ott.solvers import linear
        from ott.tools import sinkhorn_divergence

    ground = {"2": costs.SqEuclidean(), "1": costs.PNormP(p=1)}
    tight = {"threshold": 1e-9, "max_iterations": 100_000}

    @partial(jax.jit, static_argnames="metric")
    def solved(x, y, a, b, epsilon, metric):
        cost = ground[metric[1]]
        if metric.startswith("S"):
            found, out = sinkhorn_divergence.sinkdiv(x, y, a=a, b=b, cost_fn=cost, epsilon=epsilon, solve_kwargs=tight)
            return found, jnp.asarray(out.converged).all()
        out = linear.solve(pointcloud.PointCloud(x, y, cost_fn=cost, epsilon=epsilon), a=a, b=b, **tight)
        return out.reg_ot_cost, out.converged

    def value(metric, clouds, epsilon):
        (x, a), (y, b) = clouds
        with jax.enable_x64(True):
            found, converged = solved(*(jnp.asarray(array) for array in (x, y, a, b)), epsilon, metric)
            assert converged
            return float(found)

    return value


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dim", [2, 50, 254])
def test_at_the_default_tolerance(dim, metric, share, make, reference):
    clouds = make(20, 24, 13, 5, dim=dim, rng=dim)
    epsilon = share * reference.mean_cost(clouds, metric)
    found = wh.ot.pairwise(clouds, metric, epsilon=epsilon, relative_epsilon=None)
    assert relative_error(found, reference.table(metric, clouds, epsilon)) <= 1e-3


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dim", [2, 254])
def test_in_double_precision(dim, metric, share, make, reference):
    clouds = make(20, 24, 13, 5, dim=dim, rng=dim)
    epsilon = share * reference.mean_cost(clouds, metric)
    options = {"tol": 1e-6, "max_iterations": 20_000}
    found = wh.ot.pairwise(clouds, metric, epsilon=epsilon, relative_epsilon=None, **options)
    assert relative_error(found, reference.table(metric, clouds, epsilon)) <= 1e-5


NOT_YET = pytest.mark.xfail(reason="the last digits of a divergence far below epsilon are not reached, and it is told")


@pytest.mark.parametrize(
    ("jitter", "tol", "bound"),
    [
        (0.3, 1e-3, 1e-3),
        (0.1, 1e-3, 1e-3),
        (0.01, 1e-3, 1e-3),
        (0.3, 1e-6, 1e-5),
        (0.1, 1e-6, 1e-5),
        pytest.param(0.01, 1e-6, 1e-5, marks=NOT_YET),
    ],
)
def test_clouds_that_hardly_differ(jitter, tol, bound, reference):
    """Such as the niches of neighbours: their divergence is far below epsilon, and their plan hard to find."""
    rng = np.random.default_rng(1)
    points = rng.normal(size=(20, 2))
    clouds = wh.PointClouds.from_list([points, points + jitter * rng.normal(size=(20, 2))])
    found, info = wh.ot.pairwise(clouds, tol=tol, max_iterations=20_000, return_info=True)
    expected = reference.transport("S2", clouds, info.epsilon)
    # single precision sees costs, not divergences: it adds its own rounding
    rounding = 1e-6 * info.epsilon / 0.05 if tol == 1e-3 else 0
    assert abs(found[0, 1] - expected) <= bound * expected + rounding


@pytest.mark.parametrize("share", [0.5, 0.05])
@pytest.mark.parametrize("metric", ["S2", "W2", "W1"])
def test_against_ott(metric, share, make, reference, peers):
    clouds = make(20, 24, dim=3, rng=9)
    epsilon = share * reference.mean_cost(clouds, metric)
    expected = peers(metric, clouds, epsilon)
    for tol, bound in ((1e-3, 1e-3), (1e-6, 1e-5)):
        found = wh.ot.pairwise(clouds, metric, epsilon=epsilon, relative_epsilon=None, tol=tol)
        assert found[0, 1] == pytest.approx(expected, rel=bound)


@pytest.mark.parametrize("share", [0.5, 0.05])
@pytest.mark.parametrize("metric", ["W2", "W1"])
def test_against_the_sinkhorn_of_pot(metric, share, make, reference):
    clouds = make(20, 24, dim=3, rng=9)
    (x, a), (y, b) = clouds
    cost = reference.costs[metric](x, y)
    epsilon = share * reference.mean_cost(clouds, metric)
    plan = ot.sinkhorn(a, b, cost, epsilon, method="sinkhorn_log", numItermax=20_000, stopThr=1e-11)
    expected = (plan * cost).sum() + epsilon * (plan * np.log(plan / np.outer(a, b))).sum()
    found = wh.ot.pairwise(clouds, metric, epsilon=epsilon, relative_epsilon=None, tol=1e-6)
    assert found[0, 1] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("metric", METRICS)
def test_a_small_epsilon_tends_to_the_exact_cost_of_pot(metric, make, reference):
    clouds = make(20, 24, dim=3, rng=9)
    (x, a), (y, b) = clouds
    expected = ot.emd2(a, b, reference.costs[metric](x, y))
    assert wh.ot.pairwise(clouds, metric, solver="exact")[0, 1] == pytest.approx(expected, rel=1e-9)
    off = [abs(wh.ot.pairwise(clouds, metric, epsilon=share)[0, 1] - expected) for share in (0.2, 0.02, 0.002)]
    assert off[0] > off[1] > off[2]
    assert off[2] < 0.01 * expected


def test_the_exact_solver_takes_a_ground_cost_of_the_user(make, reference):
    import jax.numpy as jnp

    clouds = make(20, 24, dim=3, rng=9)
    (x, a), (y, b) = clouds
    found = wh.ot.pairwise(clouds, lambda p, q: jnp.abs(p - q).max(), solver="exact")
    expected = ot.emd2(a, b, np.abs(x[:, None] - y).max(-1))
    assert found[0, 1] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("metric", "tol"), [("S2", 1e-3), ("S1", 1e-6)])
def test_a_ground_cost_of_the_user_gives_what_the_named_one_gives(make, reference, metric, tol):
    import jax.numpy as jnp

    def square(p, q):
        return ((p - q) ** 2).sum()

    def city(p, q):
        return jnp.abs(p - q).sum()

    clouds = make(20, 24, 13, 5)
    options = {"epsilon": 0.1 * reference.mean_cost(clouds, metric), "relative_epsilon": None, "tol": tol}
    named = wh.ot.pairwise(clouds, metric, **options)
    found = wh.ot.pairwise(clouds, {"S2": square, "S1": city}[metric], **options)
    np.testing.assert_allclose(found, named, rtol=2 * tol, atol=1e-6 * named.max())


def test_one_to_one_over_many_sizes(make, reference):
    sizes = [1, 3, 8, 13, 20, 24]
    first, second = make(*sizes, rng=1), make(*sizes[::-1], rng=2)
    found, info = wh.ot.distances(first, second, return_info=True)
    expected = [reference.transport("S2", pair, info.epsilon) for pair in zip(first, second, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-3)
    # epsilon is a share of the mean cost between the clouds of both cohorts
    both = wh.PointClouds.concatenate([first, second], names=list("abcdefghijkl"))
    assert info.epsilon == pytest.approx(0.05 * reference.mean_cost(both, "S2"), rel=1e-6)


@pytest.mark.parametrize("metric", ["S2", "S1"])
def test_epsilon_is_a_share_of_the_mean_cost_between_clouds(metric, make, reference):
    clouds = make(20, 24, 13, 5)
    info = wh.ot.pairwise(clouds, metric, epsilon=0.3, return_info=True)[1]
    # the L1 cost has no closed form and is averaged over a sample of points
    assert info.epsilon == pytest.approx(0.3 * reference.mean_cost(clouds, metric), rel=1e-9 if metric == "S2" else 0.2)


@pytest.mark.slow
@pytest.mark.parametrize("metric", METRICS)
def test_large_clouds(metric, make, reference):
    clouds = make(300, 257, dim=5, rng=3)
    for share in (0.05, 0.005):
        epsilon = share * reference.mean_cost(clouds, metric)
        expected = reference.transport(metric, clouds, epsilon)
        for tol, bound in ((1e-3, 1e-3), (1e-6, 1e-5)):
            options = {"tol": tol, "max_iterations": 5000}
            found = wh.ot.pairwise(clouds, metric, epsilon=epsilon, relative_epsilon=None, **options)
            assert found[0, 1] == pytest.approx(expected, rel=bound)


@pytest.mark.slow
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dim", [2, 3, 50, 254])
def test_against_ott_in_many_dimensions(dim, metric, make, reference, peers):
    clouds = make(20, 24, dim=dim, rng=dim)
    for share in SHARES:
        epsilon = share * reference.mean_cost(clouds, metric)
        expected = peers(metric, clouds, epsilon)
        for tol, bound in ((1e-3, 1e-3), (1e-6, 1e-5)):
            found = wh.ot.pairwise(clouds, metric, epsilon=epsilon, relative_epsilon=None, tol=tol)
            assert found[0, 1] == pytest.approx(expected, rel=bound)
