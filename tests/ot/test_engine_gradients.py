"""The divergence as a function: its gradient against finite differences and OTT, and what it costs."""

import warnings
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scwormhole as wh

METRICS = ["S2", "W2", "S1", "W1"]
TIGHT = {"tol": 1e-13, "max_iterations": 20_000}


@cache
def compiled(metric, tight=True):
    """Sum of the divergences of a batch, with its gradient in points and weights."""

    def total(x, y, a, b, epsilon):
        return wh.ot.divergence(x, y, a, b=b, metric=metric, epsilon=epsilon, **(TIGHT if tight else {})).sum()

    return jax.jit(jax.value_and_grad(total, argnums=(0, 1, 2, 3)))


@pytest.fixture
def double():
    """Double precision, for differences that are meant to be small."""
    with jax.enable_x64(True):
        yield


def two_batches(dtype=np.float64, m=7):
    """Two clouds and two others, and their weights."""
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(2, 8, 2)), generator.normal(size=(2, m, 2)) + 0.5
    a, b = generator.dirichlet(np.full(8, 3.0), size=2), generator.dirichlet(np.full(m, 3.0), size=2)
    return tuple(jnp.asarray(array, dtype) for array in (x, y, a, b))


def slope(function, at, direction, step):
    """Central difference of a function along a direction."""
    return float(function(at + step * direction) - function(at - step * direction)) / (2 * step)


@pytest.mark.parametrize("epsilon", [0.5, 0.1])
@pytest.mark.parametrize("metric", METRICS)
def test_gradient_in_points_and_weights(double, metric, epsilon):
    """Weights along directions that keep their sum: outside of it transport is not defined."""
    arrays = two_batches()
    gradient = compiled(metric)(*arrays, epsilon)[1]
    for place, step, bound in ((0, 1e-5, 1e-5), (1, 1e-5, 1e-5), (2, 1e-5, 1e-4), (3, 1e-5, 1e-4)):

        def along(array, place=place):
            return compiled(metric)(*arrays[:place], array, *arrays[place + 1 :], epsilon)[0]

        for seed in range(3):
            direction = np.random.default_rng(seed).normal(size=arrays[place].shape)
            if place >= 2:
                direction -= direction.mean(1, keepdims=True)
            expected = slope(along, arrays[place], direction, step)
            assert float((gradient[place] * direction).sum()) == pytest.approx(expected, rel=bound, abs=bound * 0.1)


def test_gradient_in_a_parameter_of_the_cost(double):
    """The envelope theorem holds for whatever the costs depend on."""
    x, y, a, b = two_batches()

    @jax.jit
    @jax.value_and_grad
    def total(scale):
        def cost(p, q):
            return ((p - q) ** 2 * scale).sum()

        return wh.ot.divergence(x, y, a, b=b, metric=cost, epsilon=0.3, **TIGHT).sum()

    at, direction = jnp.array([1.0, 2.0]), jnp.array([0.3, -1.0])
    expected = slope(lambda scale: total(scale)[0], at, direction, 1e-5)
    assert float(total(at)[1] @ direction) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("metric", ["W2", pytest.param("S2", marks=pytest.mark.slow)])
def test_gradient_of_ott(double, metric):
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # of jaxopt
        from ott.geometry.pointcloud import PointCloud
        from ott.solvers import linear
        from ott.tools.sinkhorn_divergence import sinkdiv

    _x, _y, _a, _b = arrays = two_batches()
    tight = {"threshold": 1e-11, "max_iterations": 20_000}

    @jax.jit
    @jax.value_and_grad
    def theirs(x, y, a, b):
        if metric == "S2":
            return sinkdiv(x, y, a=a, b=b, epsilon=0.5, solve_kwargs=tight)[0]
        return linear.solve(PointCloud(x, y, epsilon=0.5), a=a, b=b, **tight).reg_ot_cost

    value, gradient = compiled(metric)(*arrays, 0.5)
    expected = [theirs(*(array[k] for array in arrays)) for k in range(2)]
    assert float(value) == pytest.approx(float(expected[0][0] + expected[1][0]), rel=1e-8)
    for k in range(2):
        np.testing.assert_allclose(gradient[0][k], expected[k][1], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("metric", ["S2", "S1"])
def test_no_gradient_at_identical_clouds(double, metric):
    x, _, a, _ = two_batches()
    value, gradient = compiled(metric)(x, x[:, :7], a, a[:, :7], 0.5)
    assert float(value) > 0.01
    # the eighth point goes where the first is, and its weight with it
    x, a = x.at[:, 7].set(x[:, 0]), a / a.sum(1, keepdims=True)
    b = a[:, :7].at[:, 0].add(a[:, 7])
    value, gradient = compiled(metric)(x, x[:, :7], a, b, 0.5)
    assert float(value) == pytest.approx(0, abs=1e-9)
    np.testing.assert_allclose(gradient[0], 0, atol=1e-5)
    np.testing.assert_allclose(gradient[1], 0, atol=1e-5)


def loops(jaxpr):
    """How many while loops a computation holds, at any depth."""
    count = 0
    for equation in jaxpr.eqns:
        count += equation.primitive.name == "while"
        for inner in jax.tree.leaves(equation.params, is_leaf=lambda leaf: hasattr(leaf, "eqns")):
            inner = getattr(inner, "jaxpr", inner)
            if hasattr(inner, "eqns"):
                count += loops(inner)
    return count


def test_the_gradient_unrolls_nothing_and_solves_nothing_again():
    x, y, a, b = two_batches(np.float32)

    def total(x):
        return wh.ot.divergence(x, y, a, b=b, epsilon=0.3).sum()

    forward, both = jax.make_jaxpr(total)(x), jax.make_jaxpr(jax.value_and_grad(total))(x)
    assert loops(forward.jaxpr) > 0
    assert loops(both.jaxpr) == loops(forward.jaxpr)


@pytest.mark.parametrize("metric", ["S2", "W1"])
def test_single_precision_is_near_double(metric):
    value, gradient = compiled(metric, tight=False)(*two_batches(np.float32), 0.3)
    assert value.dtype == gradient[0].dtype == jnp.float32
    with jax.enable_x64(True):
        expected, expected_gradient = compiled(metric)(*two_batches(), 0.3)
    assert float(value) == pytest.approx(float(expected), rel=1e-3)
    for found, exact in zip(gradient[:2], expected_gradient[:2], strict=True):
        np.testing.assert_allclose(found, exact, atol=2e-2 * np.abs(exact).max())


def test_a_batch_is_its_pairs_whether_compiled_or_not():
    x, y, a, b = two_batches(np.float32)
    both = compiled("S2", tight=False)(x, y, a, b, 0.3)[0]
    one = [wh.ot.divergence(x[k : k + 1], y[k : k + 1], a[k : k + 1], b=b[k : k + 1], epsilon=0.3) for k in (0, 1)]
    assert one[0].shape == (1,)
    assert one[0].dtype == jnp.float32
    assert float(both) == pytest.approx(float(one[0][0] + one[1][0]), rel=1e-3)


def test_weights_are_equal_by_default():
    x, y, _, _ = two_batches(np.float32)
    found = jax.jit(lambda x, y: wh.ot.divergence(x, y, epsilon=0.3))(x, y)
    even = compiled("S2", tight=False)(x, y, jnp.full((2, 8), 1 / 8), jnp.full((2, 7), 1 / 7), 0.3)[0]
    np.testing.assert_allclose(found.sum(), even, rtol=1e-5)


@pytest.mark.parametrize("metric", ["S2", "S1"])
@pytest.mark.parametrize("place", [0.0, 20.0, 1e3])
def test_padding_may_lie_anywhere(metric, place):
    """Points of weight zero, at the origin, beside clouds that are elsewhere."""
    x, y, a, b = two_batches(np.float32)
    x, y = x + place, y + place
    value, gradient = compiled(metric, tight=False)(x, y, a, b, 0.3)
    padded = [jnp.pad(p, ((0, 0), (0, 3), (0, 0))) for p in (x, y)] + [jnp.pad(w, ((0, 0), (0, 3))) for w in (a, b)]
    padded_value, padded_gradient = compiled(metric, tight=False)(*padded, 0.3)
    assert float(padded_value) == pytest.approx(float(value), rel=2e-3)
    np.testing.assert_allclose(padded_gradient[0][:, 8:], 0, atol=1e-6)
    np.testing.assert_allclose(padded_gradient[0][:, :8], gradient[0], atol=2e-2 * np.abs(gradient[0]).max())


def test_far_from_the_origin_the_squared_cost_loses_nothing():
    x, y, a, b = two_batches(np.float32)
    near, far = (compiled("S2", tight=False)(x + place, y + place, a, b, 0.3)[0] for place in (0.0, 1024.0))
    assert float(far) == pytest.approx(float(near), rel=1e-3)


def test_descent_along_the_gradient_moves_a_cloud_onto_another():
    x, y, _, _ = two_batches(np.float32)
    a, b = jnp.full((2, 8), 1 / 8), jnp.full((2, 7), 1 / 7)
    values = []
    for _ in range(80):
        value, gradient = compiled("S2", tight=False)(x, y, a, b, 0.05)
        values.append(float(value))
        x = x - 8 * 0.2 * gradient[0]
    # eight points cannot be seven, but come close
    assert values[-1] < 0.1 * values[0]
