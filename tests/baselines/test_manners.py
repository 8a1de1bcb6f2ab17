"""What all rivals have in common: they see distributions, answer in tables, and refuse what they cannot use."""

import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import scwormhole as wh
from scwormhole import baselines
from scwormhole.baselines import _blocks, _common

MODELS = [
    baselines.Frechet(),
    baselines.GaussianGW(),
    baselines.LinearOT(n_points=24),
    baselines.Moments(solver="exact", n_pairs=100, scaled=True),
    baselines.SlicedFeatures(solver="exact", n_pairs=100),
    baselines.SlicedRegression(solver="exact", n_pairs=100, n_directions=16),
]
DIMS = [2, 6]
every_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
of_transport = pytest.mark.parametrize(
    "model",
    [model for model in MODELS if not isinstance(model, baselines.GaussianGW)],
    ids=lambda model: type(model).__name__,
)


@pytest.fixture(scope="module", params=DIMS)
def clouds(request, make_clouds):
    return make_clouds(24, request.param, weighted=True)


def rebuilt(clouds, change):
    """The same cohort with points and weights of each cloud changed."""
    both = [change(*cloud) for cloud in clouds]
    return wh.PointClouds.from_list([points for points, _ in both], [weights for _, weights in both])


def split(points, weights):
    """The first point in two pieces, the last in three; a point without weight far away."""
    where = np.concatenate([[0, 0], np.arange(1, len(points) - 1), [len(points) - 1] * 3])
    pieces = np.concatenate([[0.3, 0.7], np.ones(len(points) - 2), [0.2, 0.5, 0.3]])
    far = np.full((1, points.shape[1]), 1e3)
    return np.concatenate([far, points[where]]), np.append(0.0, weights[where] * pieces)


def shuffled(points, weights):
    order = np.random.default_rng(len(points)).permutation(len(points))
    return points[order], weights[order]


@every_model
@pytest.mark.parametrize("change", [split, shuffled])
def test_a_cloud_is_a_distribution(model, clouds, change):
    model = clone(model).fit(clouds)
    found = model.pairwise(clouds)
    np.testing.assert_allclose(model.pairwise(rebuilt(clouds, change)), found, rtol=1e-5, atol=1e-5 * found.max())


@every_model
def test_padding_and_blocks_are_not_seen(model, clouds, monkeypatch):
    model = clone(model).fit(clouds)
    found = model.pairwise(clouds)
    many = rebuilt(clouds[3:4], lambda points, weights: (np.repeat(points, 9, axis=0), np.repeat(weights, 9)))
    large = wh.PointClouds.concatenate([clouds[:3], many], names=list("abcd"))
    np.testing.assert_allclose(model.pairwise(large), found[:4, :4], rtol=1e-5, atol=1e-5 * found.max())
    monkeypatch.setattr(_blocks, "BATCH_NUMBERS", 700)
    in_blocks = model.pairwise(clouds)
    np.testing.assert_allclose(in_blocks, found, rtol=1e-6, atol=1e-6 * found.max())
    np.testing.assert_array_equal(in_blocks, in_blocks.T)


def test_blocks_are_bounded_by_the_width_of_vectors(clouds, monkeypatch):
    model = baselines.SlicedFeatures(scaled=False, n_directions=4, n_cells=50).fit(clouds)
    heights, crossed = [], model._crossed
    monkeypatch.setattr(model, "_crossed", lambda x, y: heights.append(len(x)) or crossed(x, y))
    monkeypatch.setattr(_blocks, "BATCH_NUMBERS", 800)
    model.pairwise(clouds)
    assert heights == [4] * 6


def test_tables_are_symmetric_to_the_bit(clouds, monkeypatch):
    """A matrix product of a block with itself need not be."""
    model = baselines.GaussianGW().fit(clouds)
    monkeypatch.setattr(model, "transform", lambda clouds: np.random.default_rng(0).normal(size=(203, 999)))
    table = model.pairwise(clouds)
    np.testing.assert_array_equal(table, table.T)


def test_copies_of_a_cloud_take_little_memory():
    clouds = wh.PointClouds.from_list([*np.random.default_rng(0).normal(size=(2, 5, 2))] * 100)
    model = baselines.SlicedFeatures(scaled=False).fit(clouds)
    tracemalloc.start()
    found = model.pairwise(clouds)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 60e6  # all pairs of copies at once would take 300 MB
    assert (found[::2, ::2] == 0).all()


@pytest.mark.parametrize("model", [baselines.Frechet(), MODELS[-1]], ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("second", [None, slice(5, 20)])
def test_clouds_are_looked_at_as_few_times_as_memory_allows(model, second, clouds, monkeypatch):
    model = clone(model).fit(clouds)
    looked, keep = [], model._keep
    monkeypatch.setattr(model, "_keep", lambda points, weights: looked.append(len(points)) or keep(points, weights))
    monkeypatch.setattr(_blocks, "MOST_ROWS", 3)
    others = None if second is None else clouds[second]
    found = model.pairwise(clouds, others)
    assert sum(looked) == 24 + (0 if others is None else len(others))
    monkeypatch.setattr(_common, "KEPT_NUMBERS", 1)  # a block at a time
    np.testing.assert_array_equal(model.pairwise(clouds, others), found)


@every_model
def test_tables_and_pairs_agree(model, clouds):
    model = clone(model).fit(clouds)
    table = model.pairwise(clouds)
    assert table.shape == (24, 24)
    assert table.dtype == np.float64
    assert (np.diag(table) == 0).all()
    assert (table >= 0).all()
    np.testing.assert_array_equal(table, table.T)
    near = {"rtol": 1e-6, "atol": 1e-9 * table.max()}
    np.testing.assert_allclose(model.pairwise(clouds[:5], clouds[3:]), table[:5, 3:], **near)
    np.testing.assert_allclose(model.distances(clouds[:12], clouds[12:]), np.diag(table, 12), **near)
    if hasattr(model, "transform"):
        z = model.transform(clouds)
        np.testing.assert_allclose(((z[3] - z[5]) ** 2).sum(), table[3, 5], rtol=1e-4)


@of_transport
def test_says_something_about_transport(model, clouds):
    exact = wh.ot.pairwise(clouds, solver="exact", progress=False)
    found = clone(model).fit(clouds[:16]).pairwise(clouds)
    pairs = np.triu_indices(24, 1)
    assert np.corrcoef(found[pairs], exact[pairs])[0, 1] > 0.9


@of_transport
def test_units_are_the_users(model, clouds):
    larger = rebuilt(clouds, lambda points, weights: (100 * points + 5, weights))
    found = clone(model).fit(clouds).pairwise(clouds)
    np.testing.assert_allclose(
        clone(model).fit(larger).pairwise(larger), 1e4 * found, rtol=1e-3, atol=1e-5 * 1e4 * found.max()
    )


@every_model
def test_the_same_seed_gives_the_same(model, clouds):
    one, other = (clone(model).fit(clouds).pairwise(clouds) for _ in range(2))
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (baselines.LinearOT(n_points=0), "n_points is 0"),
        (baselines.LinearOT(solver="auto"), "give one of 'exact', 'sinkhorn'"),
        (baselines.LinearOT(solver="sinkhorn", epsilon=0.0), "epsilon is 0"),
        (baselines.LinearOT(reference=np.eye(5)), "reference has 5 dimensions"),
        (baselines.LinearOT(reference=np.ones(2)), "reference is not a cloud; give an array of points"),
        (baselines.LinearOT(reference=(np.eye(2), np.ones(2), "c")), "reference is not a cloud"),
        (baselines.LinearOT(reference=wh.PointClouds.from_list([np.eye(2)] * 2)), "reference is not a cloud"),
        (baselines.Moments(n_components=-1), "n_components is -1"),
        (baselines.Moments(metric="GW", scaled=True), "squared Euclidean"),
        (baselines.Moments(metric="GW"), "squared Euclidean"),
        (baselines.Moments(relative_epsilon="max"), "relative_epsilon is 'max'"),
        (baselines.SlicedRegression(model="lasso"), "model is 'lasso'"),
        (baselines.SlicedRegression(n_quantiles=0), "n_quantiles is 0"),
        (baselines.SlicedRegression(metric="nothing"), "metric is 'nothing'"),
        (baselines.SlicedFeatures(n_directions=1.5), r"n_directions is 1\.5"),
        (baselines.SlicedFeatures(n_cells=0), "n_cells is 0"),
        (baselines.SlicedFeatures(n_pairs=True), "n_pairs is True"),
        (baselines.SlicedFeatures(metric="S1"), "squared Euclidean"),
        (baselines.SlicedFeatures(metric="zzz", scaled=False), "metric is 'zzz'"),
        (baselines.SlicedFeatures(epsilon=-3, scaled=False), "epsilon is -3"),
        (baselines.SlicedFeatures(solver="nothing", scaled=False), "solver is 'nothing'"),
        (baselines.DiffusionEMD(side=2.5), r"side is 2\.5; give a whole number of at least 2"),
        (baselines.DiffusionEMD(box=(1, 2, 3)), r"box is \(1, 2, 3\); give two numbers"),
        (baselines.DiffusionEMD(box=3), "box is 3; give two numbers"),
        (baselines.DiffusionEMD(max_scale=1.5), r"max_scale is 1\.5"),
        (baselines.DWE(box="ab"), "box is 'ab'"),
        (baselines.DWE(n_channels="few"), "n_channels is 'few'"),
        (baselines.DWE(metric="zzz"), "metric is 'zzz'"),
    ],
)
def test_bad_parameters_are_refused_before_any_work(model, message):
    class Untouched(wh.PointClouds):
        def padded(self, *args, **kwargs):
            raise AssertionError("clouds were looked at")

        batches = padded

    with pytest.raises(ValueError, match=message):
        model.fit(Untouched.from_list([np.eye(2)] * 4))
    with pytest.raises(NotFittedError):
        model.pairwise(wh.PointClouds.from_list([np.eye(2)] * 4))


@every_model
def test_a_fit_that_fails_changes_nothing(model, clouds, make_clouds, monkeypatch):
    model = clone(model)
    whole = type(model)._fit

    def failing(self, clouds):
        whole(self, clouds)
        raise FloatingPointError("at the very end")

    def fails(clouds):
        with monkeypatch.context() as patch:
            patch.setattr(type(model), "_fit", failing)
            with pytest.raises(FloatingPointError):
                model.fit(clouds)

    fails(clouds)
    with pytest.raises(NotFittedError, match=r"call \.fit"):
        model.pairwise(clouds)
    found = model.fit(clouds).pairwise(clouds)
    fails(make_clouds(6, clouds.dim + 1))
    np.testing.assert_array_equal(model.pairwise(clouds), found)


@pytest.mark.parametrize(
    ("model", "changes"),
    [
        (baselines.LinearOT(n_points=8), {"solver": "sinkhorn"}),
        (baselines.SlicedFeatures(scaled=False), {"n_cells": 5, "n_directions": 3}),
        (baselines.SlicedRegression(solver="exact", n_directions=8), {"n_quantiles": 3, "model": "constrained"}),
        (baselines.Moments(), {"n_components": 1}),
        (baselines.DiffusionEMD(side=8), {"alpha": 0.9, "side": 5, "n_scales": 2}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_parameters_are_of_effect_at_the_next_fit(model, changes, make_clouds):
    clouds = make_clouds(8, 2)
    found = model.fit(clouds).pairwise(clouds)
    np.testing.assert_array_equal(model.set_params(**changes).pairwise(clouds), found)
    assert not np.array_equal(model.fit(clouds).pairwise(clouds), found)


@every_model
def test_bad_input_is_refused(model, clouds, make_clouds):
    model = clone(model)
    with pytest.raises(NotFittedError, match=r"call \.fit"):
        model.pairwise(clouds)
    with pytest.raises(NotFittedError, match=r"call \.fit"):
        model.distances(clouds, clouds)
    with pytest.raises(TypeError, match="PointClouds"):
        model.fit([np.eye(2)])
    with pytest.raises(ValueError, match="at least two"):
        model.fit(clouds[:1])
    model.fit(clouds)
    with pytest.raises(ValueError, match="one to one"):
        model.distances(clouds, clouds[:3])
    with pytest.raises(ValueError, match="fitted in"):
        model.pairwise(make_clouds(3, clouds.dim + 1))
    with pytest.raises(ValueError, match="second has"):
        model.distances(clouds[:3], make_clouds(3, clouds.dim + 1))
    with pytest.raises(TypeError, match="PointClouds"):
        model.pairwise(clouds, np.eye(2))
    with pytest.raises(ValueError, match="no parameter"):
        model.set_params(colour="red")


def test_every_rival_is_tried():
    named = {name for name in baselines.__all__ if isinstance(getattr(baselines, name), type)}
    on_grids = {"DWE", "DiffusionEMD", "Grid"}  # which have files of their own, as they see voxels
    assert {type(model).__name__ for model in MODELS} == named - on_grids
