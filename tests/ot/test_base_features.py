"""Base features: an embedding in the user's units, the same for the same seed, sane at the edges."""

import json

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import special_ortho_group
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import scwormhole as wh
from scwormhole.ot import BaseFeatures, Targets, pairwise

QUICK = {"solver": "exact", "n_components": 32, "n_pairs": 1500, "progress": False}


def simulated(n_clouds, dim, *, n_points=24, rng=0):
    """Mixtures of three fixed clusters, stretched and shifted a little: not told apart by their means alone."""
    generator = np.random.default_rng(rng)
    centres = 3 * np.random.default_rng(99).normal(size=(3, dim))
    arrays = []
    for _ in range(n_clouds):
        shares = generator.dirichlet(np.ones(3))
        kinds = generator.choice(3, size=int(generator.integers(n_points // 2, n_points + 1)), p=shares)
        scale = generator.uniform(0.3, 1.0, size=dim)
        arrays.append(
            centres[kinds] + scale * generator.normal(size=(len(kinds), dim)) + 0.3 * generator.normal(size=dim)
        )
    return wh.PointClouds.from_list(arrays)


def mapped(clouds, change):
    """The same cohort with its points changed."""
    return wh.PointClouds(change(clouds.points), clouds.indptr, clouds.indices, clouds.weights)


def pairs(n):
    return np.triu_indices(n, 1)


def agreement(found, true):
    return np.corrcoef(found, true)[0, 1]


@pytest.fixture(scope="module", params=[2, 12], ids=["plane", "12d"])
def cohorts(request):
    clouds = simulated(100, request.param)
    return clouds[:60], clouds[60:]


@pytest.fixture(scope="module")
def fitted(cohorts):
    return BaseFeatures(**QUICK).fit(cohorts[0])


@pytest.fixture(scope="module")
def truth(cohorts):
    return pairwise(cohorts[1], solver="exact", progress=False)[pairs(40)]


def test_held_out_clouds_are_where_transport_puts_them(cohorts, fitted, truth):
    one, other = pairs(40)
    z, nugget = fitted.embed(cohorts[1])
    found = ((z[one] - z[other]) ** 2).sum(1) + nugget[one] + nugget[other]
    means = np.stack([cloud.weights @ cloud.points for cloud in cohorts[1]])
    plain = ((means[one] - means[other]) ** 2).sum(1)
    assert agreement(found, truth) > 0.96
    assert agreement(found, truth) > agreement(plain, truth) + 0.01
    np.testing.assert_allclose(found.mean(), truth.mean(), rtol=0.05)
    paired = fitted.distances(cohorts[1][:39], cohorts[1][1:])
    np.testing.assert_allclose(paired, found[np.flatnonzero(other == one + 1)], rtol=1e-4)


def test_the_report_tells_how_well_it_does(fitted):
    report = fitted.report_
    assert (report.n_clouds, report.n_pairs) == (52, 26 * 51)
    assert report.correlation > report.held_out_correlation > 0.95
    assert 0 < report.held_out_error < 0.3
    assert fitted.nugget_ == (report.nugget_share > 0.03)


def test_sampling_noise_in_high_dimension_is_a_nugget():
    clouds = simulated(80, 40, n_points=12)
    with_nugget = BaseFeatures(**QUICK).fit(clouds)
    without = BaseFeatures(nugget=False, **QUICK).fit(clouds)
    assert with_nugget.nugget_
    assert with_nugget.report_.nugget_share > 0.1
    assert np.all(with_nugget.nugget(clouds) >= 0)
    assert not without.nugget(clouds).any()
    assert with_nugget.report_.held_out_error < without.report_.held_out_error


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_a_translate_is_at_the_square_of_the_shift(dim):
    clouds = simulated(40, dim)
    base = BaseFeatures(nugget=False, **QUICK).fit(clouds)
    shift = np.array([3.0, -4.0, 12.0])[:dim]
    found = base.distances(clouds, mapped(clouds, lambda points: points + shift))
    np.testing.assert_allclose(found, (shift**2).sum(), rtol=1e-3)


def test_units_are_the_users(cohorts, fitted):
    train, test = (mapped(clouds, lambda points: 1e4 * points) for clouds in cohorts)
    other = BaseFeatures(**QUICK).fit(train)
    np.testing.assert_allclose(other.nugget(test), 1e8 * fitted.nugget(cohorts[1]), rtol=1e-2)
    one, second = pairs(40)
    z, scaled = fitted.transform(cohorts[1]), other.transform(test)
    apart = [((rows[one] - rows[second]) ** 2).sum(1) for rows in (1e4 * z, scaled)]
    np.testing.assert_allclose(*apart, rtol=2e-2)


def test_the_same_seed_gives_the_same_embedding(cohorts, fitted):
    again = BaseFeatures(**QUICK).fit(cohorts[0])
    np.testing.assert_array_equal(again.transform(cohorts[1]), fitted.transform(cohorts[1]))
    other = BaseFeatures(rng=1, **QUICK).fit(cohorts[0])
    assert not np.allclose(other.transform(cohorts[1]), fitted.transform(cohorts[1]))


def test_fitting_leaves_the_global_random_state_alone(cohorts):
    before = np.random.get_state()[1].copy()  # noqa: NPY002  # it is what must not change
    BaseFeatures(**QUICK).fit(cohorts[1])
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_nothing_depends_on_order_padding_splitting_or_company(cohorts, fitted):
    clouds = cohorts[1]
    z, nugget = fitted.embed(clouds)
    tol = {"rtol": 1e-3, "atol": 1e-4 * np.abs(z).max()}
    batch = clouds.padded([3, 7], size=50)
    found = fitted.features(batch.points, batch.weights)
    np.testing.assert_allclose(found.z, z[[3, 7]], **tol)
    np.testing.assert_allclose(found.nugget, nugget[[3, 7]], **tol)
    order = np.random.default_rng(0).permutation(50)
    np.testing.assert_allclose(fitted.features(batch.points[:, order], batch.weights[:, order]).z, z[[3, 7]], **tol)
    points, weights = (
        np.concatenate([batch.points, batch.points[:, :1]], axis=1),
        np.pad(batch.weights, ((0, 0), (0, 1))),
    )
    weights[:, [0, -1]] = weights[:, :1] / 2
    np.testing.assert_allclose(fitted.features(points, weights).z, z[[3, 7]], **tol)
    np.testing.assert_allclose(fitted.transform(clouds[[5]]), z[[5]], **tol)


def test_arrays_and_header_hold_all_of_it(cohorts, fitted):
    arrays, header = fitted.to_arrays()
    assert all(isinstance(array, np.ndarray) and array.dtype != object for array in arrays.values())
    back = BaseFeatures.from_arrays(
        {name: array.copy() for name, array in arrays.items()}, json.loads(json.dumps(header))
    )
    for one, other in zip(back.embed(cohorts[1]), fitted.embed(cohorts[1]), strict=True):
        np.testing.assert_array_equal(one, other)
    assert back.get_params() == fitted.get_params()
    assert back.report_ == fitted.report_
    assert (back.kind_, back.epsilon_, back.nugget_) == (fitted.kind_, fitted.epsilon_, fitted.nugget_)
    again, _ = back.to_arrays()
    assert again.keys() == arrays.keys()
    with pytest.raises(ValueError, match="format 99"):
        BaseFeatures.from_arrays(arrays, header | {"format": 99})


def test_sparse_points_are_as_good_as_dense_ones(cohorts, fitted):
    train, test = (mapped(clouds, sparse.csr_array) for clouds in cohorts)
    z = BaseFeatures(**QUICK).fit(train).transform(test)
    np.testing.assert_allclose(z, fitted.transform(cohorts[1]), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("metric", ["S2", "GS"])
def test_the_engine_solves_the_pairs(metric):
    clouds = simulated(20, 3, n_points=8)
    base = BaseFeatures(metric=metric, n_components=8).fit(clouds)
    assert base.kind_ == ("invariant" if metric == "GS" else "tree")
    assert base.epsilon_ > 0
    assert base.report_.correlation > 0.95
    z = base.transform(clouds)
    assert z.shape == (20, 8)
    turned = base.transform(mapped(clouds, lambda points: points @ special_ortho_group(3, seed=0).rvs() + 7.0))
    assert np.allclose(turned, z, atol=1e-3 * np.abs(z).max()) == (metric == "GS")


@pytest.mark.parametrize("metric", ["W2", "S1", "W1"])
def test_other_costs_are_regressed_too(metric):
    clouds = simulated(60, 2)
    base = BaseFeatures(metric=metric, **QUICK).fit(clouds)
    assert base.report_.held_out_correlation > 0.95


@pytest.mark.parametrize("kind", ["sliced", "tree"])
@pytest.mark.parametrize("dim", [2, 5])
def test_kinds(kind, dim):
    base = BaseFeatures(kind=kind, **QUICK).fit(simulated(40, dim))
    assert base.kind_ == kind
    assert base.report_.held_out_correlation > 0.9


@pytest.mark.parametrize("n_components", [1, 2, 5, 200])
def test_any_width(n_components):
    clouds = simulated(30, 2)
    base = BaseFeatures(**(QUICK | {"n_components": n_components})).fit(clouds)
    assert base.transform(clouds).shape == (30, n_components)
    assert base.report_.correlation > 0.7


EDGES = {
    "two": [np.eye(2), np.eye(2) + 1.0],
    "equal": [np.eye(3)] * 5,
    "equal, high": [np.eye(6)] * 5,
    "one place": [np.ones((3, 2))] * 5,
    "one place, high": [np.ones((3, 7))] * 5,
    "diracs": [np.full((1, 2), float(i)) for i in range(9)],
    "diracs, high": [np.arange(5.0)[None] * i for i in range(9)],
    "flat": [np.array([[i, 0.0, 0.0], [0.0, 2.0 * i, 0.0]]) for i in range(9)],
    "flat, high": [np.array([[i, 0, 0, 0, 0], [0, 2.0 * i, 0, 0, 0]]) for i in range(9)],
    "far": [np.eye(2) * i + 1e6 for i in range(9)],
}


@pytest.mark.parametrize("name", EDGES)
def test_edges_are_sane(name):
    clouds = wh.PointClouds.from_list(EDGES[name])
    base = BaseFeatures(**QUICK).fit(clouds)
    z, nugget = base.embed(clouds)
    true = pairwise(clouds, solver="exact", progress=False)
    found = ((z[:, None] - z) ** 2).sum(-1) + nugget[:, None] + nugget
    off = pairs(len(clouds))
    assert np.isfinite(z).all()
    np.testing.assert_allclose(found[off], true[off], rtol=0.1, atol=0.1 * true.max() + 1e-9)


def test_a_single_cloud_cannot_be_fitted_but_embedded(cohorts, fitted):
    with pytest.raises(ValueError, match="a single cloud; at least two"):
        BaseFeatures().fit(cohorts[0][:1])
    assert fitted.transform(cohorts[0][:1]).shape == (1, 32)


@pytest.mark.parametrize(
    ("params", "fault"),
    [
        ({"kind": "trees"}, "kind is 'trees'; give one of 'auto', 'sliced', 'tree', 'invariant'"),
        ({"kind": "tree", "metric": "GW"}, "kind is 'tree', but metric 'GW' wants 'invariant'"),
        ({"kind": "invariant"}, "metric 'S2' wants 'sliced' or 'tree'"),
        ({"nugget": "maybe"}, "nugget is 'maybe'; give 'auto', True or False"),
        ({"n_components": 0}, "n_components is 0"),
        ({"n_pairs": -1}, "n_pairs is -1"),
        ({"metric": "S3"}, "metric is 'S3'"),
        ({"epsilon": 0.0}, "epsilon is 0.0"),
    ],
)
def test_wrong_parameters_are_told(params, fault, cohorts):
    with pytest.raises(ValueError, match=fault):
        BaseFeatures(**params).fit(cohorts[1])


def test_wrong_cohorts_are_told(cohorts, fitted):
    with pytest.raises(NotFittedError, match=r"call \.fit\(clouds\) first"):
        BaseFeatures().transform(cohorts[1])
    with pytest.raises(TypeError, match=r"give a scwormhole\.PointClouds"):
        fitted.transform([np.eye(2)])
    with pytest.raises(ValueError, match="clouds have 7 dimensions, and the base was fitted in"):
        fitted.transform(simulated(3, 7))
    with pytest.raises(ValueError, match="first has 40 clouds and second 39"):
        fitted.distances(cohorts[1], cohorts[1][:39])


def test_divergences_that_are_not_finite_are_told(cohorts, monkeypatch):
    monkeypatch.setattr(Targets, "blocks", lambda self, members: np.full((*members.shape, members.shape[1]), np.nan))
    with pytest.raises(ValueError, match="divergences are not finite"):
        BaseFeatures().fit(cohorts[1])


def test_scikit_learn_finds_its_way():
    base = BaseFeatures(kind="sliced", nugget=False)
    assert repr(base) == "BaseFeatures(kind='sliced', nugget=False)"
    assert clone(base).get_params() == base.get_params()
    assert base.set_params(nugget=True).get_params()["nugget"] is True
    with pytest.raises(ValueError, match="no parameter depth; there are kind, metric"):
        base.set_params(depth=3)


def test_few_pairs_are_solved_if_few_are_asked_for(cohorts, monkeypatch):
    solved, blocks = [], Targets.blocks

    def count(self, members):
        solved.append(members.shape)
        return blocks(self, members)

    monkeypatch.setattr(Targets, "blocks", count)
    base = BaseFeatures(n_pairs=400, n_components=8).fit(cohorts[0])
    assert solved == [(3, 16)]
    assert base.report_.n_pairs == 3 * 120


@pytest.mark.parametrize("distance", [1.0, 1e3, 1e4])
def test_clouds_far_from_one_another_keep_their_spread(distance):
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(12, 20)) + distance * rng.normal(size=20) / np.sqrt(20) for _ in range(30)]
    clouds = wh.PointClouds.from_list(arrays)
    fitted = wh.ot.BaseFeatures(n_pairs=50).fit(clouds)._fit()
    batch = clouds.padded(np.arange(30))
    found = fitted.parts.measure(batch.points, batch.weights).spread
    expected = [array.var(axis=0).sum() for array in arrays]
    np.testing.assert_allclose(found, expected, rtol=2e-3)
