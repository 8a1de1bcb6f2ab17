"""Divergences asked for again and again; epsilon of the paper's box; Gromov-Wasserstein as a function."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scwormhole as wh
from scwormhole.ot import Targets, TransportWarning
from scwormhole.ot._drive import Drive

MEMBERS = np.array([[0, 1, 2, 3], [5, 3, 1, 7]])
SOME = 27  # pairs, of 28 that there are


@pytest.fixture
def clouds(make):
    return make(5, 6, 7, 8, 5, 6, 7, 8)


def dots(x, y, p=1.5):
    return (jnp.abs(x - y) ** p).sum()


@pytest.mark.parametrize("n_pairs", [SOME, 28])
@pytest.mark.parametrize("metric", ["S2", "W2", "S1", "GS"])
def test_blocks_are_those_of_all_pairs(clouds, metric, n_pairs):
    targets = Targets(clouds, metric, n_pairs=n_pairs)
    blocks = targets.blocks(MEMBERS)
    table = wh.ot.pairwise(clouds, metric, epsilon=targets.epsilon, relative_epsilon=None, progress=False)
    expected = table[MEMBERS[:, :, None], MEMBERS[:, None]]
    np.testing.assert_allclose(blocks, expected, rtol=5e-3, atol=2e-3 * np.abs(table).max())
    np.testing.assert_allclose(np.einsum("bii->bi", blocks), np.diag(table)[MEMBERS], rtol=1e-3)
    assert (np.einsum("bii->bi", blocks) > 0).all() == metric.startswith("W")


def test_self_terms_are_solved_once(clouds, monkeypatch):
    alone, asked = Drive.alone, []

    def counted(self, clouds, padded, some=None, **options):
        asked.extend(some.tolist())
        return alone(self, clouds, padded, some, **options)

    monkeypatch.setattr(Drive, "alone", counted)
    targets = Targets(clouds, n_pairs=SOME)
    first = targets.blocks(MEMBERS[:1])
    both = targets.blocks(MEMBERS)
    np.testing.assert_allclose(targets.blocks(MEMBERS[:, ::-1])[:, ::-1, ::-1], both, rtol=1e-6)
    np.testing.assert_allclose(both[:1], first, rtol=1e-6)
    assert sorted(asked) == [0, 1, 2, 3, 5, 7]


def test_a_small_cohort_is_solved_once(clouds):
    targets = Targets(clouds)
    first = targets.blocks(MEMBERS)
    assert targets.n_solved == 28
    assert np.array_equal(targets.blocks(MEMBERS), first)
    assert targets.n_solved == 28


def test_pairs_of_many_clouds_are_not_remembered(clouds):
    targets = Targets(clouds, n_pairs=SOME)
    first = targets.blocks(MEMBERS)
    assert np.array_equal(targets.blocks(MEMBERS), first)
    assert targets.n_solved == 2 * 12


def test_a_pair_does_not_depend_on_its_block(clouds):
    one, other = Targets(clouds, n_pairs=SOME), Targets(clouds, n_pairs=SOME)
    np.testing.assert_allclose(
        one.blocks(np.arange(8)[None])[0][:4, :4], other.blocks(MEMBERS[:1])[0], rtol=1e-3, atol=1e-3
    )


def test_pairs_that_do_not_converge_are_told(clouds):
    targets = Targets(clouds, n_pairs=SOME)
    targets.blocks(MEMBERS[:1])
    targets.warn()
    targets.n_unconverged = 3
    with pytest.warns(TransportWarning, match="3 of 6 solved pairs"):
        targets.warn()


@pytest.mark.parametrize("dim", [2, 5])
@pytest.mark.parametrize(("metric", "degree"), [("S2", 2), ("W2", 2), ("S1", 1), ("GS", 4)])
def test_epsilon_of_the_box(make, metric, degree, dim):
    clouds = make(5, 6, 7, dim=dim)
    points = np.concatenate([cloud.points for cloud in clouds])
    factor = 2 / np.ptp(points) / (np.sqrt(dim) if dim > 3 else 1)
    targets = Targets(clouds, metric, epsilon=0.1, relative_epsilon="box")
    assert targets.epsilon == pytest.approx(0.1 / factor**degree, rel=1e-6)


def test_an_own_cost_has_no_box(clouds):
    with pytest.raises(ValueError, match="no box"):
        wh.ot.pairwise(clouds, dots, relative_epsilon="box", progress=False)


def test_a_coupling_has_no_box(clouds):
    with pytest.raises(ValueError, match=r"'box'.*cohort"):
        wh.ot.coupling(clouds[0], clouds[1], relative_epsilon="box")


def two_batches(dtype=np.float64):
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(2, 6, 2)), generator.normal(size=(2, 5, 2)) * [1.0, 2.0]
    a, b = generator.dirichlet(np.full(6, 3.0), size=2), generator.dirichlet(np.full(5, 3.0), size=2)
    return tuple(jnp.asarray(array, dtype) for array in (x, y, a, b))


@pytest.mark.parametrize("metric", ["GW", "GS"])
def test_gromov_as_a_function_is_gromov_as_a_distance(metric):
    x, y, a, b = two_batches(np.float32)
    found = wh.ot.divergence(x, y, a, b=b, metric=metric, epsilon=0.5, max_iterations=1000)
    first, second = (
        wh.PointClouds.from_list(list(map(np.asarray, p)), list(map(np.asarray, w))) for p, w in ((x, a), (y, b))
    )
    expected = wh.ot.distances(first, second, metric, epsilon=0.5, relative_epsilon=None, progress=False)
    np.testing.assert_allclose(found, expected, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("metric", ["GW", "GS"])
def test_the_slope_of_gromov_for_small_epsilon(metric):
    with jax.enable_x64(True):
        x, y, a, b = two_batches()

        @jax.jit
        @jax.value_and_grad
        def total(x):
            options = {"epsilon": 0.02, "tol": 1e-10, "max_iterations": 5000}
            return wh.ot.divergence(x, y, a, b=b, metric=metric, **options).sum()

        slopes = np.asarray(total(x)[1])
        for seed in range(3):
            direction = np.random.default_rng(seed).normal(size=x.shape)
            step = 1e-4
            expected = float(total(x + step * direction)[0] - total(x - step * direction)[0]) / (2 * step)
            assert (slopes * direction).sum() == pytest.approx(expected, rel=0.05, abs=0.05 * np.abs(slopes).max())


def test_a_pair_is_the_same_to_the_bit_when_it_is_asked_for_again(clouds):
    """A training that is taken up again asks anew for what it had remembered."""
    targets = Targets(clouds)
    first = targets.blocks(MEMBERS[1:])
    np.testing.assert_array_equal(targets.blocks(MEMBERS[1:]), first)


@pytest.mark.parametrize("members", [MEMBERS[1:, ::-1], MEMBERS[[1, 0]]], ids=["turned round", "with another block"])
def test_a_pair_is_the_same_to_the_bit_whatever_it_is_asked_with(clouds, members):
    """Single precision is what a training sees of it."""
    first = Targets(clouds).blocks(MEMBERS[1:])[0]
    found = Targets(clouds).blocks(members)[0]
    order = np.argsort(members[0])[np.argsort(np.argsort(MEMBERS[1]))]
    np.testing.assert_array_equal(found[np.ix_(order, order)].astype(np.float32), first.astype(np.float32))
