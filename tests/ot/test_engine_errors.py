"""What is refused, and in which words."""

import jax.numpy as jnp
import numpy as np
import pytest

import scwormhole as wh


@pytest.fixture(scope="module")
def clouds(make):
    return make(5, 7)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "s2"}, r"metric is 's2'.*'S2'.*'GW'"),
        ({"metric": 2}, "metric is 2"),
        ({"metric": None}, "metric is None"),
        ({"metric": ["S2"]}, "metric is"),
        ({"solver": "fast"}, r"solver is 'fast'.*'auto'.*'low_rank'"),
        ({"solver": None}, "solver is None"),
        ({"metric": "GW", "solver": "exact"}, "'exact'.*'GW'"),
        ({"metric": "GS", "solver": "low_rank"}, "'low_rank'.*'GS'"),
        ({"metric": "S1", "solver": "low_rank"}, "low_rank.*squared Euclidean.*'S1'"),
        ({"epsilon": 0}, "epsilon is 0"),
        ({"epsilon": -0.1}, "epsilon is -0.1"),
        ({"epsilon": float("nan")}, "epsilon is nan"),
        ({"epsilon": float("inf")}, "epsilon is inf"),
        ({"epsilon": "small"}, "epsilon is 'small'"),
        ({"epsilon": None}, "epsilon is None"),
        ({"relative_epsilon": "median"}, r"relative_epsilon is 'median'.*'mean'.*None"),
        ({"relative_epsilon": True}, "relative_epsilon is True"),
        ({"tol": 0}, "tol is 0"),
        ({"tol": -1e-3}, "tol is -0.001"),
        ({"tol": float("nan")}, "tol is nan"),
        ({"tol": float("inf")}, "tol is inf"),
        ({"max_iterations": 0}, "max_iterations is 0"),
        ({"max_iterations": -4}, "max_iterations is -4"),
        ({"rank": 0}, "rank is 0"),
        ({"max_points": 0}, "max_points is 0"),
        ({"rng": -1}, "rng|non-negative"),
    ],
    ids=str,
)
def test_options(clouds, options, message):
    with pytest.raises(ValueError, match=message):
        wh.ot.pairwise(clouds, **options)
    with pytest.raises(ValueError, match=message):
        wh.ot.distances(clouds, clouds, **options)


@pytest.mark.parametrize(
    "options", [{"tol": "tight"}, {"tol": None}, {"max_iterations": 10.5}, {"max_points": "10"}, {"rank": 2.5}], ids=str
)
def test_options_of_the_wrong_kind(clouds, options):
    with pytest.raises((TypeError, ValueError)):
        wh.ot.pairwise(clouds, **options)


@pytest.mark.parametrize(
    "wrong", [[np.eye(2), np.eye(2)], np.zeros((2, 3, 2)), None, "clouds"], ids=lambda x: type(x).__name__
)
def test_what_is_no_cohort(clouds, wrong):
    for call in (
        lambda: wh.ot.pairwise(wrong),
        lambda: wh.ot.distances(wrong, clouds),
        lambda: wh.ot.distances(clouds, wrong),
        lambda: wh.ot.calibrate(wrong),
    ):
        with pytest.raises(TypeError, match=rf"{type(wrong).__name__}.*PointClouds\.from_list"):
            call()


def test_cohorts_that_do_not_match(clouds, make):
    with pytest.raises(ValueError, match=r"first has 2 clouds and second 3.*pairwise"):
        wh.ot.distances(clouds, make(5, 7, 9))
    with pytest.raises(ValueError, match="first has 2 dimensions and second 3"):
        wh.ot.distances(clouds, make(5, 7, dim=3))


def asymmetric(p, q):
    return (p[0] - 2 * q[0]) ** 2


def undefined(p, q):
    return jnp.log(p[0] - q[0])


def endless(p, q):
    return 1 / jnp.abs(p - q).sum() ** 0 * jnp.inf


def a_vector(p, q):
    return jnp.abs(p - q)


def negative(p, q):
    return -jnp.abs(p - q).sum()


def beside_the_point(p, q):
    return (p @ jnp.ones(7)) * (q @ jnp.ones(7))


def in_numpy(p, q):
    return float(np.abs(np.asarray(p) - np.asarray(q)).sum())


def of_one_argument(p):
    return p.sum()


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        (asymmetric, "'asymmetric' is not symmetric"),
        (undefined, "'undefined' is not finite"),
        (endless, "'endless' is not finite"),
        (a_vector, r"'a_vector' must return one number.*\(2,\)"),
        (negative, "'negative' is negative"),
        (beside_the_point, "'beside_the_point' could not be evaluated"),
        (in_numpy, "'in_numpy' could not be evaluated"),
        (of_one_argument, "'of_one_argument' could not be evaluated"),
    ],
)
def test_ground_costs(clouds, cost, message):
    for solver in ("auto", "exact"):
        with pytest.raises(ValueError, match=message):
            wh.ot.pairwise(clouds, cost, solver=solver)
    with pytest.raises(ValueError, match=message):
        wh.ot.coupling(clouds[0], clouds[1], cost)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_pairs": 0}, "n_pairs is 0"),
        ({"n_pairs": -1}, "n_pairs is -1"),
        ({"metric": "S3"}, "metric is 'S3'"),
        ({"epsilon": -1}, "epsilon is -1"),
        ({"relative_epsilon": "max"}, "relative_epsilon is 'max'"),
        ({"tol": 0}, "tol is 0"),
        ({"max_iterations": 0}, "max_iterations is 0"),
    ],
    ids=str,
)
def test_calibration(clouds, options, message):
    with pytest.raises(ValueError, match=message):
        wh.ot.calibrate(clouds, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "S3"}, "metric is 'S3'"),
        ({"solver": "fast"}, "solver is 'fast'"),
        ({"epsilon": 0}, "epsilon is 0"),
        ({"relative_epsilon": "max"}, "relative_epsilon is 'max'"),
        ({"tol": 0}, "tol is 0"),
        ({"max_iterations": 0}, "max_iterations is 0"),
        ({"metric": "GW", "solver": "exact"}, "'exact'.*'GW'"),
    ],
    ids=str,
)
def test_couplings(clouds, options, message):
    with pytest.raises(ValueError, match=message):
        wh.ot.coupling(clouds[0], clouds[1], **options)
