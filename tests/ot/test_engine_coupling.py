"""The coupling of two clouds: its marginals, its values against POT, and the matches it should find."""

import warnings

import numpy as np
import ot
import pytest

import scwormhole as wh

OPTIONS = [
    {"metric": "W2"},
    {"metric": "W1"},
    {"metric": "S2", "epsilon": 0.01},
    {"metric": "W2", "solver": "exact"},
    pytest.param({"metric": "W2", "solver": "low_rank", "rank": 4}, marks=pytest.mark.slow),
    {"metric": "GW"},
    {"metric": "W2", "tol": 1e-3},
]


@pytest.fixture(scope="module")
def pair(make):
    return make(20, 13, dim=2, rng=31)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_marginals_are_exact(pair, options):
    (_x, a), (_y, b) = pair
    plan = wh.ot.coupling(*pair, **options)
    assert type(plan) is np.ndarray
    assert (plan.dtype, plan.shape) == (np.float64, (20, 13))
    assert plan.min() >= 0
    np.testing.assert_allclose(plan.sum(1), a, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(plan.sum(0), b, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("options", OPTIONS[:4], ids=str)
def test_points_of_no_weight_take_part_in_nothing(pair, options):
    (x, a), (y, b) = pair
    a = np.r_[0.0, a[1:]]
    plan = wh.ot.coupling((x, a), (y, b), **options)
    assert not plan[0].any()
    np.testing.assert_allclose(plan.sum(1), a / a.sum(), rtol=1e-12)


@pytest.mark.parametrize("share", [0.5, 0.05])
@pytest.mark.parametrize("metric", ["W2", "W1"])
def test_against_the_plan_of_pot(pair, metric, share, reference):
    (x, a), (y, b) = pair
    cost = reference.costs[metric](x, y)
    epsilon = share * (a @ cost @ b)
    expected = ot.sinkhorn(a, b, cost, epsilon, method="sinkhorn_log", numItermax=20_000, stopThr=1e-11)
    found = wh.ot.coupling(*pair, metric, epsilon=epsilon, relative_epsilon=None)
    assert np.abs(found - expected).sum() < 2e-3
    tight = wh.ot.coupling(*pair, metric, epsilon=epsilon, relative_epsilon=None, tol=1e-10)
    assert np.abs(tight - expected).sum() < 2e-5


def test_epsilon_is_a_share_of_the_mean_cost_between_the_two(pair, reference):
    (x, a), (y, b) = pair
    absolute = 0.1 * (a @ reference.squared(x, y) @ b)
    found = wh.ot.coupling(*pair, epsilon=0.1)
    np.testing.assert_allclose(found, wh.ot.coupling(*pair, epsilon=absolute, relative_epsilon=None), atol=1e-6)


def test_against_the_exact_plan_of_pot(pair, reference):
    (x, a), (y, b) = pair
    for metric in ("W2", "W1"):
        expected = ot.emd(a, b, reference.costs[metric](x, y))
        np.testing.assert_allclose(wh.ot.coupling(*pair, metric, solver="exact"), expected, atol=1e-12)


def test_the_cost_of_the_plan_is_the_distance(pair, reference):
    (x, a), (y, b) = pair
    cost = reference.squared(x, y)
    epsilon = 0.05 * (a @ cost @ b)
    plan = wh.ot.coupling(*pair, epsilon=epsilon, relative_epsilon=None, tol=1e-9)
    value = (plan * cost).sum() + epsilon * (plan * np.log(plan / np.outer(a, b))).sum()
    found = wh.ot.pairwise(pair, "W2", epsilon=epsilon, relative_epsilon=None, tol=1e-9)[0, 1]
    assert value == pytest.approx(found, rel=1e-6)


@pytest.mark.parametrize("base", [0.0, 1e6])
def test_a_translated_copy_is_matched_point_by_point(base):
    rng = np.random.default_rng(1)
    x = rng.permutation(25).reshape(25, 1) % 5 + np.array([0.0, 1.0]) * rng.permutation(25).reshape(25, 1)
    order = rng.permutation(25)
    plan = wh.ot.coupling(x + base, x[order] + 3 + base, epsilon=1e-3)
    assert (plan[order, np.arange(25)] > 0.99 / 25).all()


@pytest.mark.parametrize("dim", [2, 3])
def test_gromov_matches_an_isometric_copy(dim):
    rng = np.random.default_rng(dim)
    # places of a grid: points closer to one another than the blur of epsilon could not be told apart
    grid = np.stack(np.meshgrid(*[np.arange(4)] * dim), -1).reshape(-1, dim)
    x = rng.permutation(grid)[:13] * np.arange(1.0, dim + 1)
    turn, order = np.linalg.qr(rng.normal(size=(dim, dim)))[0], rng.permutation(13)
    # the last digits of its cost may not be reached, which is told; the match is there long before
    with warnings.catch_warnings(action="ignore", category=wh.ot.TransportWarning):
        plan = wh.ot.coupling(x, (x @ turn)[order] + 7, "GW", epsilon=0.01)
    assert (plan.argmax(0) == order).all()


def test_a_coupling_can_be_transposed(pair):
    one, other = pair
    np.testing.assert_allclose(wh.ot.coupling(one, other), wh.ot.coupling(other, one).T, atol=2e-4)


def test_what_counts_as_a_cloud(pair):
    (x, a), (y, b) = pair
    expected = wh.ot.coupling((x, a), (y, b))
    assert np.array_equal(wh.ot.coupling(pair[0], pair[1]), expected)
    assert np.array_equal(wh.ot.coupling((x.tolist(), a.tolist()), (y, b)), expected)
    np.testing.assert_allclose(wh.ot.coupling((x, 7 * a), (y, b)), expected, atol=1e-9)
    even = wh.ot.coupling(x, y)
    np.testing.assert_allclose(even.sum(1), 1 / 20)
    assert wh.ot.coupling(np.zeros((1, 2)), y).shape == (1, 13)


def test_giving_up_early_is_told(pair):
    with pytest.warns(wh.ot.TransportWarning):
        wh.ot.coupling(*pair, epsilon=1e-4, max_iterations=4)


def test_giving_up_early_is_told_of_gromov(pair):
    with pytest.warns(wh.ot.TransportWarning):
        wh.ot.coupling(*pair, "GW", epsilon=1e-4, max_iterations=4)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.zeros(3), r"x has shape \(3,\)"),
        (np.zeros((0, 2)), r"x has shape \(0, 2\)"),
        (np.zeros((2, 2, 2)), "x has shape"),
        (np.array([[0.0, np.nan], [1.0, 1.0]]), "x has points that are not finite.*row 0"),
        ((np.eye(2), np.ones(3)), r"x has 2 points and weights of shape \(3,\)"),
        ((np.eye(2), [1.0, -1.0]), "weights of x"),
        ((np.eye(2), [0.0, 0.0]), "weights of x"),
        ((np.eye(2), [1.0, np.nan]), "weights of x"),
        (np.zeros((4, 3)), "x has 3 dimensions and y 2"),
    ],
)
def test_clouds_that_are_none(x, message):
    with pytest.raises(ValueError, match=message):
        wh.ot.coupling(x, np.eye(2))


def test_a_tuple_that_is_no_cloud():
    with pytest.raises((TypeError, ValueError), match=r"x|points and weights"):
        wh.ot.coupling((np.eye(2), np.ones(2), np.ones(2)), np.eye(2))
