"""Measures of an embedding, on embeddings whose quality is known."""

import numpy as np
import pytest

import scwormhole as wh
from scwormhole.metrics import fidelity, label_accuracy, solve_exactly, squared_distances, stress
from scwormhole.ot import Embedded


class Known:
    """Single points embedded as themselves: squared distances are transport exactly; changed as asked."""

    epsilon_ = 0.1

    def __init__(self, change=lambda z: z, nugget=0.0, metric="S2"):
        self.change, self.own, self.metric_ = change, nugget, metric

    def embed(self, clouds):
        z = np.stack([cloud.points[0] for cloud in clouds])
        return Embedded(self.change(z), np.full(len(z), self.own))


def single_points(n=30, dim=2, rng=0):
    return wh.PointClouds.from_list(list(np.random.default_rng(rng).normal(size=(n, 1, dim))))


def shuffled(z):
    return np.random.default_rng(5).permutation(z)


def test_a_perfect_embedding():
    found = fidelity(Known(), single_points(), n_clouds=20, n_repeats=3)
    assert found.correlation == pytest.approx(1, abs=1e-6)
    assert found.correlation_euclidean == pytest.approx(1, abs=1e-6)
    assert found.correlation_exact == pytest.approx(1, abs=1e-6)
    assert found.correlation_std == pytest.approx(0, abs=1e-6)
    assert found.mse == pytest.approx(0, abs=1e-8)
    assert found.relative_error == pytest.approx(0, abs=1e-5)
    assert found.neighbour_recall == 1
    assert (found.n_clouds, found.n_repeats) == (20, 3)


def test_a_poor_embedding():
    found = fidelity(Known(shuffled), single_points(), n_repeats=2)
    assert abs(found.correlation) < 0.5
    assert found.neighbour_recall < 0.8
    assert found.relative_error > 0.3


def test_errors_in_the_units_of_the_box():
    """Twice as long vectors are off by three times the divergence; in the box coordinates span two."""
    clouds = single_points()
    found = fidelity(Known(lambda z: 2 * z), clouds, n_clouds=30, n_repeats=1)
    points = np.concatenate([cloud.points for cloud in clouds])
    squared = squared_distances(points * 2 / np.ptp(points))[np.triu_indices(30, 1)]
    assert found.correlation == pytest.approx(1, abs=1e-6)
    assert found.relative_error == pytest.approx(3, rel=1e-3)
    assert found.mse == pytest.approx(9 * (squared**2).mean(), rel=1e-3)


def test_the_same_clouds_in_other_units_have_the_same_error():
    one, other = single_points(), wh.PointClouds.from_list([1000 * cloud.points for cloud in single_points()])
    near, far = (fidelity(Known(lambda z: 1.1 * z), clouds, n_repeats=1).mse for clouds in (one, other))
    assert near == pytest.approx(far, rel=1e-2)


def test_nuggets_count():
    found = fidelity(Known(nugget=1.0), single_points(), n_repeats=1)
    truth = fidelity(Known(), single_points(), n_repeats=1)
    assert found.relative_error > truth.relative_error + 0.1


def test_exact_pairs_are_optional():
    assert fidelity(Known(), single_points(), n_repeats=1, n_exact=0).correlation_exact is None


@pytest.mark.parametrize(("n_pairs", "count"), [(3, 3), (9, 4), (10, 5), (1000, 8)])
def test_as_many_clouds_are_solved_exactly_as_make_so_many_pairs(n_pairs, count):
    pytest.importorskip("ot")
    clouds = single_points(8)
    found = solve_exactly(clouds, "S2", n_pairs=n_pairs, progress=False)
    points = np.concatenate([cloud.points for cloud in clouds])[:count]
    np.testing.assert_allclose(found, squared_distances(points), atol=1e-6)


def test_draws_follow_the_seed():
    one, same, other = (fidelity(Known(shuffled), single_points(), n_clouds=9, n_repeats=1, rng=r) for r in (0, 0, 1))
    assert one == same
    assert one.correlation != other.correlation


def test_clouds_that_are_all_one_have_no_correlation():
    clouds = wh.PointClouds.from_list([np.ones((1, 2))] * 5)
    found = fidelity(Known(), clouds, n_repeats=1)
    assert np.isnan(found.correlation)
    assert found.mse == found.relative_error == 0


def test_too_few_clouds():
    with pytest.raises(ValueError, match="at least three"):
        fidelity(Known(), single_points(2))


@pytest.mark.parametrize(
    ("name", "value"), [("n_clouds", 2), ("n_clouds", 3.5), ("n_repeats", 0), ("n_exact", -1), ("n_exact", 9.5)]
)
def test_numbers_of_draws_and_pairs_are_whole(name, value):
    with pytest.raises(ValueError, match=f"{name} is {value}; give a whole number of at least"):
        fidelity(Known(), single_points(5), **{name: value})


def test_stress_is_the_sum_of_squared_errors():
    z = np.random.default_rng(0).normal(size=(6, 3))
    squared = ((z[:, None] - z) ** 2).sum(-1)
    assert stress(z, squared) == pytest.approx(0, abs=1e-20)
    assert stress(z, squared + 1 - np.eye(6)) == pytest.approx(30)
    own = np.arange(6.0)
    assert stress(z, squared + own[:, None] + own - 2 * np.diag(own), own) == pytest.approx(0, abs=1e-20)


@pytest.mark.parametrize("shape", [(5, 5), (6, 5), (6,)])
def test_stress_wants_clouds_by_clouds(shape):
    with pytest.raises(ValueError, match="clouds by clouds"):
        stress(np.zeros((6, 2)), np.zeros(shape))


def test_squared_distances_far_from_zero():
    z = np.random.default_rng(0).normal(size=(5, 3))
    np.testing.assert_allclose(squared_distances(z + 1e6), ((z[:, None] - z) ** 2).sum(-1), atol=1e-6)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_labels_that_lie_apart_are_told_apart(scale):
    generator = np.random.default_rng(0)
    labels = np.repeat(["a", "b", "c"], 40)
    z = scale * (np.repeat(3 * np.eye(3), 40, axis=0) + 0.3 * generator.normal(size=(120, 3)))
    order = generator.permutation(120)
    train, test = order[:80], order[80:]
    assert label_accuracy(z[train], labels[train], test_z=z[test], test_labels=labels[test]) > 0.95
    assert (
        label_accuracy(z[train], labels[train], test_z=z[test], test_labels=generator.permutation(labels[test])) < 0.7
    )
