"""Transport that is known in closed form: Diracs, translations, the line, isometries, Gaussians."""

import warnings

import numpy as np
import pytest
from scipy.linalg import sqrtm

import scwormhole as wh

SHIFTS = np.array([[0.0, 0.0], [3.0, -4.0], [0.5, 0.25]])


def translated(points, dtype, base):
    """A cloud and two copies, on a grid that single precision holds at any base."""
    return wh.PointClouds.from_list([(points + shift + base).astype(dtype) for shift in SHIFTS])


@pytest.fixture(scope="module")
def grid_points():
    return np.random.default_rng(0).integers(-16, 17, size=(20, 2)) / 4


def squared_shifts():
    return ((SHIFTS[:, None] - SHIFTS) ** 2).sum(-1)


@pytest.mark.parametrize(
    ("metric", "expected"), [("S2", 25.0), ("W2", 25.0), ("S1", 7.0), ("W1", 7.0), ("GS", 0.0), ("GW", 0.0)]
)
@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_two_diracs_are_at_their_ground_cost(metric, expected, tol):
    clouds = wh.PointClouds.from_list([np.zeros((1, 2)), np.array([[3.0, 4.0]]), np.full((3, 2), [3.0, 4.0])])
    found = wh.ot.pairwise(clouds, metric, tol=tol)
    np.testing.assert_allclose(found, expected * np.array([[0, 1, 1], [1, 0, 0], [1, 0, 0]]), atol=1e-5)


@pytest.mark.parametrize("epsilon", [0.5, 0.05, 0.005, 0.0005])
@pytest.mark.parametrize("metric", ["W2", "W1"])
def test_a_dirac_is_at_its_mean_cost_whatever_epsilon(metric, epsilon, reference):
    rng = np.random.default_rng(3)
    points = [rng.normal(size=(1, 2)), rng.normal(size=(7, 2)), rng.normal(size=(24, 2))]
    weights = [np.ones(1), rng.dirichlet(np.full(7, 0.3)), rng.dirichlet(np.ones(24))]
    clouds = wh.PointClouds.from_list(points, weights)
    expected = [w @ reference.costs[metric](points[0], p)[0] for p, w in zip(points, weights, strict=True)]
    np.testing.assert_allclose(wh.ot.pairwise(clouds, metric, epsilon=epsilon)[0], expected, rtol=1e-3)
    np.testing.assert_allclose(wh.ot.pairwise(clouds, metric, solver="exact")[0], expected, rtol=1e-12)


@pytest.mark.parametrize("weights", [[0.9, 0.1], [0.5, 0.5], [0.999, 0.001]])
@pytest.mark.parametrize("places", [[0.0, 5e3], [5e3, 0.0], [0.0, 1e5]])
def test_a_dirac_and_two_points_thousands_of_epsilons_apart(places, weights):
    clouds = wh.PointClouds.from_list([np.zeros((1, 1)), np.array(places)[:, None]], [[1.0], weights])
    with warnings.catch_warnings(action="ignore", category=wh.ot.TransportWarning):
        found, info = wh.ot.pairwise(clouds, "W1", epsilon=1.0, relative_epsilon=None, return_info=True)
    off = abs(found[0, 1] - np.dot(places, weights))
    assert off < 1e-3 * found[0, 1] if info.converged[0, 1] else off < 3 * info.error[0, 1]


@pytest.mark.parametrize("base", [0.0, 1e6])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("tol", "rtol"), [(1e-3, 1e-4), (1e-6, 1e-6)])
def test_a_translated_copy_is_at_its_squared_shift(grid_points, dtype, base, tol, rtol):
    clouds = translated(grid_points, dtype, base)
    np.testing.assert_allclose(wh.ot.pairwise(clouds, tol=tol), squared_shifts(), rtol=rtol, atol=0)


@pytest.mark.parametrize("metric", ["S2", "W2", "S1", "W1"])
@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_a_common_shift_changes_nothing(metric, tol):
    rng = np.random.default_rng(5)
    points = [rng.integers(0, 64, size=(n, 2)) / 4 for n in (20, 7, 3)]
    at = {base: wh.PointClouds.from_list([p + base for p in points]) for base in (0.0, 1e6)}
    found = {
        base: wh.ot.pairwise(clouds, metric, epsilon=0.5, relative_epsilon=None, tol=tol) for base, clouds in at.items()
    }
    np.testing.assert_allclose(found[1e6], found[0.0], rtol=1e-3 * tol, atol=1e-6 * found[0.0].max())


@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_points_stored_in_single_precision_give_the_same_distances(tol):
    # whole numbers, which both types hold; sizes whose equal weights single precision does not hold
    rng = np.random.default_rng(6)
    points = [rng.integers(0, 16, size=(n, 2)) + 1e6 for n in (3, 7, 20, 23)]
    single, double = (wh.PointClouds.from_list([p.astype(dtype) for p in points]) for dtype in (np.float32, np.float64))
    np.testing.assert_allclose(wh.ot.pairwise(single, tol=tol), wh.ot.pairwise(double, tol=tol), rtol=tol)


@pytest.mark.parametrize("metric", ["S2", "S1"])
def test_far_from_the_origin_epsilon_is_the_same_share_of_the_cost(metric):
    points = np.random.default_rng(7).integers(-16, 17, size=(3, 20, 2)) / 4
    used = []
    for base in (0.0, 1e6, 2.0**27):
        clouds = wh.PointClouds.from_list(list(points + base))
        used.append(wh.ot.pairwise(clouds, metric, return_info=True)[1].epsilon)
    np.testing.assert_allclose(used, used[0], rtol=1e-3)


@pytest.mark.parametrize(("metric", "power"), [("W2", 2), ("W1", 1)])
def test_on_the_line_points_go_in_order(metric, power):
    rng = np.random.default_rng(1)
    x, y = np.sort(rng.normal(size=(2, 20)), axis=1)
    expected = (np.abs(x - y + 2) ** power).mean()
    clouds = wh.PointClouds.from_list([rng.permutation(x)[:, None] + 2, rng.permutation(y)[:, None]])
    assert wh.ot.pairwise(clouds, metric, solver="exact")[0, 1] == pytest.approx(expected, rel=1e-12)
    off = []
    for epsilon in (0.1, 0.01, 0.001):
        found, info = wh.ot.pairwise(clouds, metric, epsilon=epsilon, return_info=True)
        off.append(found[0, 1] - expected)
        # the plan that moves points in order has an entropy of log n
        assert -1e-3 * expected < off[-1] < info.epsilon * np.log(20) + 1e-3 * expected
    assert off[0] > off[1] > off[2]


def test_on_the_line_weighted_points_go_in_order():
    rng = np.random.default_rng(2)
    x, y, a, b = rng.normal(size=13), rng.normal(size=20), rng.dirichlet(np.ones(13)), rng.dirichlet(np.ones(20))
    # quantile functions are steps: integrate their difference between all the jumps of both
    steps = np.sort(np.r_[0, np.cumsum(a[np.argsort(x)]), np.cumsum(b[np.argsort(y)])])
    middle, width = 0.5 * (steps[1:] + steps[:-1]), np.diff(steps)
    quantiles = [
        np.sort(p)[np.minimum(np.searchsorted(np.cumsum(w[np.argsort(p)]), middle), len(p) - 1)]
        for p, w in ((x, a), (y, b))
    ]
    clouds = wh.PointClouds.from_list([x[:, None], y[:, None]], [a, b])
    gap = np.abs(quantiles[0] - quantiles[1])
    assert wh.ot.pairwise(clouds, "W2", solver="exact")[0, 1] == pytest.approx(width @ gap**2, rel=1e-9)
    assert wh.ot.pairwise(clouds, "W1", solver="exact")[0, 1] == pytest.approx(width @ gap, rel=1e-9)


@pytest.mark.parametrize("dim", [2, 3])
def test_isometric_copies_are_at_no_gromov_distance(dim):
    rng = np.random.default_rng(dim)
    points = rng.normal(size=(20, dim)) * np.arange(1, dim + 1)
    turn = np.linalg.qr(rng.normal(size=(dim, dim)))[0]
    moved = (points @ turn + 10 * rng.normal(size=dim))[rng.permutation(20)]
    other = rng.normal(size=(20, dim)) * 2
    clouds = wh.PointClouds.from_list([points, moved, points[::-1] * [-1] + 5, other])
    found = wh.ot.pairwise(clouds, "GS")
    # in units of the divergence from a cloud of another shape
    assert found[:3, 3].min() > 0
    assert np.abs(found[:3, :3]).max() < 1e-3 * found[:3, 3].min()


def bures(mean, cov, other_mean, other_cov):
    root = sqrtm(cov)
    return ((mean - other_mean) ** 2).sum() + np.trace(cov + other_cov - 2 * sqrtm(root @ other_cov @ root).real)


@pytest.mark.parametrize("solver", ["auto", "exact"])
def test_samples_of_gaussians_are_near_bures_wasserstein(solver):
    rng = np.random.default_rng(4)
    cov, other_cov = np.array([[1.0, 0.3], [0.3, 0.5]]), np.array([[2.0, -0.5], [-0.5, 1.0]])
    mean, other_mean = np.zeros(2), np.array([1.0, 2.0])
    n, repeats = 96, 4
    first = [rng.multivariate_normal(mean, cov, n) for _ in range(repeats)]
    second = [rng.multivariate_normal(other_mean, other_cov, n) for _ in range(repeats)]
    here, there = (wh.PointClouds.from_list(sample) for sample in (first, second))
    found = wh.ot.distances(here, there, epsilon=0.02, solver=solver)
    expected = bures(mean, cov, other_mean, other_cov)
    # the squared distance of means alone has a standard error of 2 |gap| sqrt((s + s') / n), about 0.7 here
    error = 2 * np.linalg.norm(other_mean) * np.sqrt((cov[1, 1] + other_cov[1, 1]) / n / repeats)
    assert abs(found.mean() - expected) < 3 * error + 0.05 * expected
