"""Entropic Gromov-Wasserstein against OTT and POT.

The problem is not convex: theirs start from the product of the weights, ours from there and from aligned axes, and ends
no higher. It descends slowly, so values agree to a percent and not to the tolerance.
"""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import ot
import pytest

import scwormhole as wh


@pytest.fixture(scope="module")
def theirs():
    """The regularised cost of OTT, in double precision."""
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # of jaxopt
        from ott.geometry.pointcloud import PointCloud
        from ott.problems.quadratic.quadratic_problem import QuadraticProblem
        from ott.solvers.linear.sinkhorn import Sinkhorn
        from ott.solvers.quadratic.gromov_wasserstein import GromovWasserstein

    @jax.jit
    def cost(x, y, a, b, epsilon):
        linear = Sinkhorn(threshold=1e-8, max_iterations=5000)
        solver = GromovWasserstein(linear_solver=linear, epsilon=epsilon, threshold=1e-6, max_iterations=100)
        return solver(QuadraticProblem(PointCloud(x), PointCloud(y), a=a, b=b)).reg_gw_cost

    def value(one, other, epsilon):
        with jax.enable_x64(True):
            return float(cost(*(jnp.asarray(array) for array in (one[0], other[0], one[1], other[1])), epsilon))

    return value


def pot_cost(one, other, epsilon, reference, *, start=None):
    """Regularised cost of POT's plan; its gradient is twice that of OTT, and so is its epsilon."""
    (x, a), (y, b) = one, other
    left, right = reference.squared(x, x), reference.squared(y, y)
    plan = ot.gromov.entropic_gromov_wasserstein(
        left,
        right,
        a,
        b,
        "square_loss",
        epsilon=2 * epsilon,
        max_iter=500,
        tol=1e-10,
        numItermax=5000,
        stopThr=1e-10,
        G0=start,
    )
    constant = (a @ left**2 @ a) + (b @ right**2 @ b)
    gromov = constant - 2 * np.einsum("ij,ik,jl,kl->", plan, left, right, plan, optimize=True)
    return gromov + epsilon * (plan * np.log(plan / np.outer(a, b))).sum()


@pytest.mark.parametrize("share", [0.5, 0.1])
def test_against_ott(share, make, theirs):
    clouds = make(20, 24, dim=3, rng=3)
    found, info = wh.ot.pairwise(clouds, "GW", epsilon=share, return_info=True)
    assert found[0, 1] == pytest.approx(theirs(clouds[0], clouds[1], info.epsilon), rel=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize("tol", [1e-3, 1e-5])
@pytest.mark.parametrize("dim", [2, 10])
def test_against_ott_with_self_terms(dim, tol, make, theirs):
    clouds = make(20, 24, dim=dim, rng=3)
    for share in (0.5, 0.1, 0.05):
        options = {"epsilon": share, "tol": tol, "max_iterations": 5000}
        found, info = wh.ot.pairwise(clouds, "GW", return_info=True, **options)
        one, both, other = (theirs(clouds[i], clouds[j], info.epsilon) for i, j in ((0, 0), (0, 1), (1, 1)))
        assert found[0, 1] == pytest.approx(both, rel=1e-2)
        assert np.diag(found) == pytest.approx([one, other], rel=1e-2)
        divergence = wh.ot.pairwise(clouds, "GS", **options)[0, 1]
        assert divergence == pytest.approx(both - 0.5 * (one + other), rel=1e-2)


@pytest.mark.parametrize("share", [0.5, 0.1])
def test_against_pot(share, make, reference):
    clouds = make(20, 24, 13, 5, rng=3)
    found, info = wh.ot.pairwise(clouds, "GW", epsilon=share, return_info=True)
    for i, j in ((0, 1), (0, 2), (1, 3), (2, 3)):
        assert found[i, j] <= 1.01 * pot_cost(clouds[i], clouds[j], info.epsilon, reference)
        options = {"epsilon": info.epsilon, "relative_epsilon": None, "tol": 1e-3}
        plan = wh.ot.coupling(clouds[i], clouds[j], "GW", **options)
        assert found[i, j] == pytest.approx(
            pot_cost(clouds[i], clouds[j], info.epsilon, reference, start=plan), rel=1e-2
        )


def test_clouds_that_are_symmetric_do_not_stay_on_the_saddle(reference):
    """The product of the weights knows no direction, and of a rectangle only rounding makes it learn one, at last."""
    grid = np.stack(np.meshgrid(np.arange(7.0), np.arange(3.0)), -1).reshape(-1, 2)
    turn = np.array([[0.6, 0.8], [-0.8, 0.6]])
    clouds = wh.PointClouds.from_list([grid, grid @ turn])
    cost, info = wh.ot.pairwise(clouds, "GW", epsilon=0.05, return_info=True)
    assert cost[0, 1] == pytest.approx(pot_cost(clouds[0], clouds[1], info.epsilon, reference), rel=1e-2)
    divergence = wh.ot.pairwise(clouds, "GS", epsilon=info.epsilon, relative_epsilon=None)
    np.testing.assert_allclose(divergence, 0, atol=1e-3 * cost.max())


def test_at_a_large_epsilon_the_plan_is_the_product(make, reference):
    clouds = make(20, 24, 13, 5, rng=3)
    found = wh.ot.pairwise(clouds, "GW", epsilon=1e7, relative_epsilon=None, tol=1e-5)
    for i in range(4):
        for j in range(4):
            (x, a), (y, b) = clouds[i], clouds[j]
            left, right = reference.squared(x, x), reference.squared(y, y)
            expected = (a @ left**2 @ a) + (b @ right**2 @ b) - 2 * (a @ left @ a) * (b @ right @ b)
            assert found[i, j] == pytest.approx(expected, rel=1e-3)


def test_the_divergence_is_the_cost_without_half_of_each_self_term(make):
    clouds = make(20, 24, 13, 5, rng=3)
    cost, info = wh.ot.pairwise(clouds, "GW", epsilon=0.2, tol=1e-5, max_iterations=20_000, return_info=True)
    options = {"epsilon": info.epsilon, "relative_epsilon": None, "tol": 1e-5, "max_iterations": 20_000}
    divergence = wh.ot.pairwise(clouds, "GS", **options)
    own = np.diag(cost)
    np.testing.assert_allclose(divergence, cost - 0.5 * (own[:, None] + own), atol=1e-3 * cost.max())


@pytest.mark.parametrize("dim", [2, 30])
def test_turns_and_shifts_change_nothing(dim, make):
    """In few dimensions distances are kept in factors of low rank, in many as a matrix."""
    clouds = make(20, 24, 13, 5, dim=dim, rng=3)
    rng = np.random.default_rng(0)
    moved = []
    for points, weights in clouds:
        turn = np.linalg.qr(rng.normal(size=(dim, dim)))[0]
        moved.append((points @ turn + 100 * rng.normal(size=dim), weights))
    options = {"epsilon": wh.ot.pairwise(clouds, "GW", return_info=True)[1].epsilon, "relative_epsilon": None}
    found = wh.ot.pairwise(clouds, "GW", **options)
    again = wh.ot.pairwise(wh.PointClouds.from_list(*zip(*moved, strict=True)), "GW", **options)
    np.testing.assert_allclose(again, found, rtol=1e-2)


def test_epsilon_is_a_share_of_the_mean_cost(make, reference):
    """Of ``(|x - x'|^2 - |y - y'|^2)^2`` over independent points of different clouds, from a sample of them."""
    clouds = make(*[20] * 40, rng=3)
    info = wh.ot.calibrate(clouds, "GW", epsilon=0.2, n_pairs=1)
    within = [reference.squared(points, points) for points, _ in clouds]
    moments = np.array(
        [[a @ square**power @ a for power in (1, 2)] for square, (_, a) in zip(within, clouds, strict=True)]
    )
    first, second = moments.T
    costs = second[:, None] + second - 2 * np.outer(first, first)
    expected = costs[np.triu_indices(40, 1)].mean()
    assert info.epsilon == pytest.approx(0.2 * expected, rel=0.25)
