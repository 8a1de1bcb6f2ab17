"""What all rivals have in common: they see distributions, answer in tables, and refuse what they cannot use."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import scwormhole as wh
from scwormhole import baselines
from scwormhole.baselines import _common

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
    return points[where], weights[where] * pieces


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
    monkeypatch.setattr(_common, "BATCH_NUMBERS", 700)
    np.testing.assert_allclose(model.pairwise(clouds), found, rtol=1e-6, atol=1e-6 * found.max())


@every_model
def test_tables_and_pairs_agree(model, clouds):
    model = clone(model).fit(clouds)
    table = model.pairwise(clouds)
    assert table.shape == (24, 24)
    assert table.dtype == np.float64
    assert (np.diag(table) == 0).all()
    assert (table >= 0).all()
    np.testing.assert_allclose(table, table.T, rtol=1e-9)
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
        clone(model).fit(larger).pairwise(larger), 1e4 * found, rtol=2e-2, atol=2e-3 * 1e4 * found.max()
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
        (baselines.Moments(n_components=-1), "n_components is -1"),
        (baselines.Moments(metric="GW", scaled=True), "squared Euclidean"),
        (baselines.SlicedRegression(model="lasso"), "model is 'lasso'"),
        (baselines.SlicedRegression(n_quantiles=0), "n_quantiles is 0"),
        (baselines.SlicedRegression(metric="nothing"), "metric is 'nothing'"),
        (baselines.SlicedFeatures(n_directions=1.5), r"n_directions is 1\.5"),
        (baselines.SlicedFeatures(n_cells=0), "n_cells is 0"),
        (baselines.SlicedFeatures(n_pairs=True), "n_pairs is True"),
        (baselines.SlicedFeatures(metric="S1"), "squared Euclidean"),
    ],
)
def test_bad_parameters_are_refused(model, message, make_clouds):
    with pytest.raises(ValueError, match=message):
        model.fit(make_clouds(4, 2))


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
