"""The batched Sinkhorn by itself, in units of epsilon."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from scwormhole.ot._sinkhorn import LOOK, coupling_of, solve, solve_self

run = jax.jit(solve)
run_self = jax.jit(solve_self)


def problems(k=8, n=20, m=24, dim=2, share=0.05, rng=0):
    """Random problems, their costs in units of epsilon."""
    generator = np.random.default_rng(rng)
    x = generator.normal(size=(k, n, dim))
    y = generator.normal(size=(k, m, dim)) * generator.uniform(0.5, 2, size=(k, 1, 1)) + 0.5
    a, b = generator.dirichlet(np.full(n, 2.0), size=k), generator.dirichlet(np.full(m, 2.0), size=k)
    cost = ((x[:, :, None] - y[:, None]) ** 2).sum(-1)
    mean = np.einsum("kn,km,knm->k", a, b, cost)
    return cost / (share * mean)[:, None, None], a, b


def single(*arrays):
    return tuple(jnp.asarray(array, jnp.float32) for array in arrays)


@pytest.mark.parametrize("share", [0.5, 0.05, 0.005])
def test_single_precision_against_the_reference(share, reference):
    cost, a, b = problems(share=share)
    found = run(*single(cost, a, b))
    assert found.converged.all()
    expected = np.array([reference.entropic(*problem, 1.0).low for problem in zip(cost, a, b, strict=True)])
    np.testing.assert_allclose(found.value, expected, rtol=1e-3)
    assert (np.abs(found.value - expected) <= 3 * found.error).all()


@pytest.mark.parametrize("share", [0.5, 0.05, 0.005])
def test_the_value_is_a_lower_bound_once_an_error_is_known(share, reference):
    cost, a, b = problems(share=share)
    expected = np.array([reference.entropic(*problem, 1.0).high for problem in zip(cost, a, b, strict=True)])
    for most in (4, 20, 100):
        found = run(*single(cost, a, b), max_iterations=most)
        known = np.isfinite(found.error)
        assert known.all() or most < 100
        assert (found.value <= expected * (1 + 1e-5))[known].all()


@pytest.mark.parametrize("share", [0.05, 0.005])
def test_potentials_are_dual_to_one_another(share):
    arrays = single(*problems(share=share))
    cost, a, b = arrays
    found = run(*arrays)
    plan = coupling_of(cost, a, b, found.f, found.g)
    np.testing.assert_allclose(plan.sum(2), a, rtol=1e-3)  # f is the exact transform of g
    np.testing.assert_allclose(plan.sum(1), b, atol=0.05 * b.mean())
    np.testing.assert_allclose((a * found.f).sum(1) + (b * found.g).sum(1), found.value, rtol=1e-5)


def test_a_problem_is_not_moved_by_slow_neighbours():
    easy, hard = problems(share=0.5), problems(share=0.005, rng=1)
    mixed = [np.concatenate([one[:4], other[:4]]) for one, other in zip(easy, hard, strict=True)]
    alone, together = run(*single(*easy)), run(*single(*mixed))
    assert together.iterations[4:].max() > alone.iterations.max()
    # once converged nothing is touched; how long the others take may shift a look by one kernel
    np.testing.assert_allclose(together.value[:4], alone.value[:4], rtol=1e-3)
    assert (together.iterations[:4] <= alone.iterations[:4] + 2 * LOOK).all()
    assert together.converged.all()


def test_what_has_converged_stays_as_it_is():
    arrays = single(*problems(share=0.05))
    reached = run(*arrays)
    again = run(*arrays, max_iterations=5000)
    for one, other in zip(reached, again, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("share", [0.5, 0.05, 0.005])
def test_a_start_from_the_solution_ends_at_once(share):
    arrays = single(*problems(share=share))
    found = run(*arrays)
    again = run(*arrays, g=found.g)
    assert again.converged.all()
    # over-relaxation has to gather speed again, so a few looks may be needed
    assert again.iterations.max() <= 16
    assert again.iterations.mean() <= max(4, 0.5 * found.iterations.mean())  # four is the least there is
    np.testing.assert_allclose(again.value, found.value, rtol=1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("largest", [1e2, 1e3, 1e4, 1e5])
@pytest.mark.parametrize("shape", [(1, 8), (8, 1), (3, 20)])
def test_extreme_ranges_of_cost_stay_finite(shape, largest, dtype):
    generator = np.random.default_rng(0)
    n, m = shape
    cost = generator.uniform(0, largest, size=(64, n, m))
    cost[:, 0, 0] = 0.0
    a, b = generator.dirichlet(np.ones(n), size=64), generator.dirichlet(np.ones(m), size=64)
    with jax.enable_x64(dtype == np.float64):
        found = run(*(jnp.asarray(array, dtype) for array in (cost, a, b)), max_iterations=200)
        assert all(np.isfinite(leaf).all() for leaf in found._replace(error=found.f))
        assert not np.isnan(found.error).any()
        # a lower bound of any plan's cost, such as the product's
        assert (found.value <= (1 + 1e-5) * np.einsum("kn,km,knm->k", a, b, cost)).all()


@pytest.mark.parametrize("least", [1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("share", [0.05, 0.005])
def test_weight_on_few_points(share, least, reference):
    """One point holds nearly all of the weight, on both sides."""
    cost, _, _ = problems(k=64, n=4, m=8, share=1.0)
    a, b = np.full((64, 4), least), np.full((64, 8), least)
    a[:, 0], b[:, 0] = 1 - 3 * least, 1 - 7 * least
    cost = cost / (share * np.einsum("kn,km,knm->k", a, b, cost))[:, None, None]
    found = run(*single(cost, a, b))
    assert np.isfinite(found.value).all()
    for k in np.flatnonzero(found.converged)[:16]:
        expected = reference.entropic(cost[k], a[k], b[k], 1.0).low
        assert float(found.value[k]) == pytest.approx(expected, rel=1e-3)


def test_one_row_or_column_is_solved_at_once():
    """A Dirac leaves no choice: plain Sinkhorn needs one iteration."""
    generator = np.random.default_rng(0)
    for largest in (20.0, 100.0, 300.0):
        cost = generator.uniform(0, largest, size=(64, 1, 8))
        a, b = np.ones((64, 1)), generator.dirichlet(np.ones(8), size=64)
        for arrays in ((cost, a, b), (cost.swapaxes(1, 2), b, a)):
            found = run(*single(*arrays))
            assert found.converged.all()
            np.testing.assert_allclose(found.value, (cost[:, 0] * b).sum(1), rtol=1e-3)


def test_padding_may_lie_anywhere():
    cost, a, b = problems(share=0.05)
    generator = np.random.default_rng(1)
    far = np.pad(cost, ((0, 0), (0, 4), (0, 8)))
    far[:, 20:] = generator.uniform(0, 50, size=far[:, 20:].shape)
    far[:, :, 24:] = generator.uniform(0, 50, size=far[:, :, 24:].shape)
    padded = run(*single(far, np.pad(a, ((0, 0), (0, 4))), np.pad(b, ((0, 0), (0, 8)))))
    found = run(*single(cost, a, b))
    np.testing.assert_allclose(padded.value, found.value, rtol=1e-3)
    assert all(np.isfinite(leaf).all() for leaf in padded)
    plan = coupling_of(*single(far, np.pad(a, ((0, 0), (0, 4))), np.pad(b, ((0, 0), (0, 8)))), padded.f, padded.g)
    assert not plan[:, 20:].any()
    assert not plan[:, :, 24:].any()


def test_max_iterations_is_where_a_problem_is_left():
    arrays = single(*problems(share=0.005))
    found = run(*arrays, max_iterations=8)
    assert (found.iterations <= 8).all()
    assert not found.converged.all()
    assert not np.isnan(found.error).any()
    assert np.isfinite(found.value).all()


def test_some_may_be_left_open():
    arrays = single(*problems(share=0.005))
    found = run(*arrays, leave=3)
    assert 1 <= (~found.converged).sum() <= 3


def test_the_tolerance_is_relative_to_what_is_left_of_the_value():
    arrays = single(*problems(share=0.05))
    found = run(*arrays)
    strict = run(*arrays, offset=found.value * 0.99)
    assert (strict.iterations >= found.iterations).all()
    assert strict.iterations.sum() > found.iterations.sum()
    assert (strict.error <= 1e-3 * (0.011 * found.value) + 1e-4).all()


@pytest.mark.parametrize("share", [0.5, 0.05, 0.005])
def test_transport_of_a_cloud_to_itself(share, reference):
    generator = np.random.default_rng(0)
    x = generator.normal(size=(8, 20, 2))
    a = generator.dirichlet(np.full(20, 2.0), size=8)
    cost = ((x[:, :, None] - x[:, None]) ** 2).sum(-1)
    cost /= share * np.einsum("kn,km,knm->k", a, a, cost)[:, None, None]
    found = run_self(*single(cost, a), tol=1e-4)
    assert found.converged.all()
    expected = [reference.entropic(c, w, w, 1.0).low for c, w in zip(cost, a, strict=True)]
    np.testing.assert_allclose(found.value, expected, rtol=1e-3)
    other = run(*single(cost, a, a), max_iterations=5000)
    np.testing.assert_allclose(found.value, other.value, rtol=2e-3)


def test_transport_to_itself_with_padding():
    generator = np.random.default_rng(0)
    x = generator.normal(size=(4, 20, 2))
    x = np.concatenate([x, np.repeat(x[:, :1], 4, axis=1)], 1)
    a = np.pad(generator.dirichlet(np.full(20, 2.0), size=4), ((0, 0), (0, 4)))
    cost = ((x[:, :, None] - x[:, None]) ** 2).sum(-1)
    padded, plain = run_self(*single(cost, a)), run_self(*single(cost[:, :20, :20], a[:, :20]))
    np.testing.assert_allclose(padded.value, plain.value, rtol=1e-4)
