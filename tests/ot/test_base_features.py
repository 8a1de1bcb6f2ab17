"""The embedding without training: its slices and codes against closed forms, its fit on clouds it has not seen."""

import json

import numpy as np
import ot as pot
import pytest

import scwormhole as wh
from scwormhole.ot._mahalanobis import non_negative
from scwormhole.ot._slices import quantile_cells, sliced, spread_directions
from scwormhole.ot._tree import grow_tree, node_masses, thermometer


def squared(x, y):
    return ((x - y) ** 2).sum(-1)


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_a_translate_is_at_the_square_of_its_shift(dim):
    rng = np.random.default_rng(dim)
    points, shift = rng.normal(size=(1, 11, dim)), rng.normal(size=dim)
    directions = spread_directions(dim, 256)
    weights = rng.dirichlet(np.ones(11))[None]
    one, other = (sliced(p, weights, directions, n_cells=16) for p in (points, points + shift))
    assert squared(one, other)[0] == pytest.approx(shift @ shift, rel=1e-2 if dim == 3 else 1e-6)


def test_slices_agree_with_pot_along_the_same_directions():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(1, 16, 2)), rng.normal(size=(1, 16, 2)) + 1
    directions = spread_directions(2, 32)
    even = np.full((1, 16), 1 / 16)
    across = directions.T if directions.shape[0] == 32 else directions
    expected = pot.sliced_wasserstein_distance(x[0], y[0], projections=across, p=2) ** 2
    one, other = (sliced(p, even, directions, n_cells=16) for p in (x, y))
    assert squared(one, other)[0] == pytest.approx(2 * expected, rel=1e-6)


def test_quantile_cells_are_averages_of_the_quantile_function():
    values = np.array([[[4.0, 0.0, 1.0, 9.0]]])
    weights = np.array([[0.5, 0.25, 0.25, 0.0]])  # the last is padding
    np.testing.assert_allclose(quantile_cells(values, weights, 4)[0, 0], [0, 1, 4, 4])
    np.testing.assert_allclose(quantile_cells(values, weights, 2)[0, 0], [0.5, 4])


def test_slices_do_not_mind_order_padding_or_a_point_split_in_two():
    rng = np.random.default_rng(1)
    points, weights = rng.normal(size=(1, 6, 2)), rng.dirichlet(np.ones(6))[None]
    directions = spread_directions(2, 8)
    plain = sliced(points, weights, directions, n_cells=8)
    order = rng.permutation(6)
    split = np.concatenate([points, points[:, :1], np.zeros((1, 3, 2))], 1)
    halves = np.concatenate([weights, weights[:, :1] / 2, np.zeros((1, 3))], 1)
    halves[:, 0] /= 2
    np.testing.assert_allclose(sliced(points[:, order], weights[:, order], directions, n_cells=8), plain, atol=1e-9)
    np.testing.assert_allclose(sliced(split, halves, directions, n_cells=8), plain, atol=1e-9)


def test_thermometers_turn_differences_into_squared_distances():
    rng = np.random.default_rng(2)
    a, b = rng.random((2, 500, 1))
    cells = 32
    codes = [thermometer(v, np.ones(1), n_cells=cells) for v in (a, b)]
    gap, true = squared(*codes)[:, 0], np.abs(a - b)[:, 0]
    assert (gap <= true + 1e-12).all()
    assert (true - gap).max() <= 0.5 / (cells - 1) + 1e-12


def test_masses_on_a_tree_sum_to_one_and_nest():
    rng = np.random.default_rng(3)
    pool = rng.normal(size=(4000, 3)) + 6 * rng.integers(0, 3, size=(4000, 1))
    tree = grow_tree(pool, rng=0)
    points, weights = rng.normal(size=(5, 20, 3)) + 3, rng.dirichlet(np.ones(20), size=5)
    masses = node_masses(tree, points, weights)
    assert masses.min() >= 0
    np.testing.assert_allclose(masses.max(1), masses[:, :4].sum(1).max(), atol=1)
    doubled = node_masses(tree, np.repeat(points, 2, 1), np.repeat(weights, 2, 1) / 2)
    np.testing.assert_allclose(masses, doubled, atol=1e-12)


def test_non_negative_regression_recovers_planted_scales():
    rng = np.random.default_rng(4)
    columns, planted = rng.random((400, 6)), np.array([2.0, 0.0, 1.0, 0.5, 0.0, 3.0])
    np.testing.assert_allclose(non_negative(columns, columns @ planted), planted, atol=1e-6)


def blobs(n, dim, rng, size=20):
    centres = rng.normal(size=(n, 1, dim)) * 2
    stretch = np.exp(rng.normal(size=(n, 1, dim)) / 2)
    return [c + s * rng.normal(size=(size, dim)) for c, s in zip(centres, stretch, strict=True)]


def fidelity(base, clouds, truth):
    z, nugget = base.transform(clouds), base.nugget(clouds)
    found = squared(z[:, None], z) + nugget[:, None] + nugget
    pairs = np.triu_indices(len(clouds), 1)
    return np.corrcoef(found[pairs], truth[pairs])[0, 1], found[pairs].mean() / truth[pairs].mean()


@pytest.fixture(scope="module", params=[2, 12], ids=["low dimension", "high dimension"])
def fitted(request):
    rng = np.random.default_rng(request.param)
    train, test = (wh.PointClouds.from_list(blobs(n, request.param, rng)) for n in (128, 48))
    return wh.ot.BaseFeatures(rng=0, progress=False).fit(train), train, test


def test_held_out_distances_are_close_to_transport_in_its_units(fitted):
    base, _, test = fitted
    truth = wh.ot.pairwise(test, epsilon=base.epsilon_, relative_epsilon=None, progress=False)
    correlation, ratio = fidelity(base, test, truth)
    means = np.array([points.mean(0) for points, _ in test])
    pairs = np.triu_indices(len(test), 1)
    plain = np.corrcoef(squared(means[:, None], means)[pairs], truth[pairs])[0, 1]
    assert correlation > max(plain, 0.97)
    assert ratio == pytest.approx(1, abs=0.1)


def test_embedding_does_not_depend_on_the_batch_and_is_seeded(fitted):
    base, train, test = fitted
    whole = base.transform(test)
    np.testing.assert_allclose(base.transform(test[:5]), whole[:5], rtol=1e-4, atol=1e-4 * np.abs(whole).max())
    again = wh.ot.BaseFeatures(rng=0, progress=False).fit(train)
    np.testing.assert_array_equal(again.transform(test), whole)


def test_distances_are_squared_gaps_and_nuggets(fitted):
    base, _, test = fitted
    z, nugget = base.transform(test), base.nugget(test)
    expected = squared(z[:24], z[24:]) + nugget[:24] + nugget[24:]
    np.testing.assert_allclose(base.distances(test[:24], test[24:]), expected, rtol=1e-3, atol=1e-3)


def test_arrays_bring_back_the_same_embedding(fitted):
    base, _, test = fitted
    arrays, header = base.to_arrays()
    back = wh.ot.BaseFeatures.from_arrays(arrays, json.loads(json.dumps(header)))
    np.testing.assert_array_equal(back.transform(test), base.transform(test))
    np.testing.assert_array_equal(back.nugget(test), base.nugget(test))


def test_invariant_features_do_not_see_rotation_or_shift():
    rng = np.random.default_rng(5)
    shapes = [rng.normal(size=(24, 3)) * np.exp(rng.normal(size=3)) for _ in range(40)]
    base = wh.ot.BaseFeatures(metric="GS", rng=0, progress=False).fit(wh.PointClouds.from_list(shapes))
    assert base.kind_ == "invariant"
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    moved = wh.PointClouds.from_list([shape[::-1] @ turn + 5 for shape in shapes])
    still = base.transform(wh.PointClouds.from_list(shapes))
    np.testing.assert_allclose(base.transform(moved), still, atol=1e-3 * np.abs(still).max())


@pytest.mark.parametrize("clouds", [np.ones((5, 4, 2)), np.arange(12.0).reshape(6, 1, 2)], ids=["equal", "points"])
def test_degenerate_cohorts_give_numbers(clouds):
    cohort = wh.PointClouds.from_list(list(clouds))
    base = wh.ot.BaseFeatures(rng=0, progress=False).fit(cohort)
    assert np.isfinite(base.transform(cohort)).all()
    assert np.isfinite(base.nugget(cohort)).all()


def test_a_single_cloud_cannot_be_fitted():
    with pytest.raises(ValueError, match="cloud"):
        wh.ot.BaseFeatures(progress=False).fit(wh.PointClouds.from_list([np.eye(3)]))
