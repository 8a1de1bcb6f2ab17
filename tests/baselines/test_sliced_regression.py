"""Sliced regression: bounds are bounds, those of POT where it has them, and the regression finds what is there."""

import numpy as np
import pytest

import scwormhole as wh
from scwormhole.baselines import SlicedRegression
from scwormhole.baselines._sliced_regression import BOUNDS, _bounds, _quantile_places, _regress

QUICK = {"solver": "exact", "n_directions": 16, "n_pairs": 150}


def equal_clouds(n_clouds, dim, n=20, rng=0):
    generator = np.random.default_rng(rng)
    return wh.PointClouds.from_list(
        [
            generator.normal(size=(n, dim)) * generator.uniform(0.5, 2, size=dim) + generator.normal(size=dim)
            for _ in range(n_clouds)
        ]
    )


@pytest.mark.parametrize("dim", [2, 3, 10])
def test_bounds_are_bounds(dim):
    clouds = equal_clouds(12, dim)
    model = SlicedRegression(n_quantiles=20, **QUICK).fit(clouds)
    found = model.bounds(clouds[:6], clouds[6:])
    exact = np.sqrt(wh.ot.distances(clouds[:6], clouds[6:], solver="exact", progress=False))
    order = ["sliced", "energy_sliced", "max_sliced", "exact", "min_lifted", "expected", "projected"]
    values = np.stack([{**found, "exact": exact}[name] for name in order])
    assert (np.diff(values, axis=0) >= -1e-9).all()
    assert (np.diff(values[2:5], axis=0) > 1e-6).any()


def test_bounds_are_those_of_sorting():
    from ot import max_sliced_wasserstein_distance, sliced_wasserstein_distance

    clouds = equal_clouds(6, 3)
    model = SlicedRegression(n_quantiles=20, **QUICK).fit(clouds)
    found = model.bounds(clouds[:2], clouds[2:4])
    for pair in range(2):
        x, y = clouds[pair].points, clouds[pair + 2].points
        for name, theirs in (("sliced", sliced_wasserstein_distance), ("max_sliced", max_sliced_wasserstein_distance)):
            assert found[name][pair] == pytest.approx(theirs(x, y, projections=model.directions_.T))
        lifted = [
            ((x[np.argsort(x @ direction)] - y[np.argsort(y @ direction)]) ** 2).sum(1).mean()
            for direction in model.directions_
        ]
        assert found["projected"][pair] == pytest.approx(np.sqrt(np.mean(lifted)))
        assert found["min_lifted"][pair] == pytest.approx(np.sqrt(np.min(lifted)))


def test_on_a_line_all_bounds_are_w2():
    clouds = equal_clouds(14, 1)
    for model in ("constrained", "unconstrained"):
        rival = SlicedRegression(model=model, **{**QUICK, "n_pairs": 20}, n_quantiles=20).fit(clouds)
        exact = wh.ot.pairwise(clouds, solver="exact", progress=False)
        np.testing.assert_allclose(rival.pairwise(clouds), exact, rtol=1e-6, atol=1e-9)


def test_translates_are_at_the_shift_from_above(make_clouds):
    clouds = make_clouds(10, 2, weighted=True)
    shift = np.array([3.0, 4.0])
    moved = wh.PointClouds(clouds.points + shift, clouds.indptr, clouds.indices, clouds.weights)
    rival = SlicedRegression(**QUICK).fit(clouds)
    found = rival.bounds(clouds, moved)
    for name in ("projected", "expected", "min_lifted"):
        np.testing.assert_allclose(found[name], 5.0)
    np.testing.assert_allclose(found["sliced"], 5.0 / np.sqrt(2))
    np.testing.assert_allclose(found["max_sliced"], np.abs(rival.directions_ @ shift).max())


def test_the_constrained_model_is_a_mean_of_pairs(make_clouds):
    coefficients = SlicedRegression(model="constrained", **QUICK).fit(make_clouds(10, 2)).coefficients_
    assert list(coefficients) == [*BOUNDS]
    values = np.array([*coefficients.values()])
    np.testing.assert_allclose(values[:3] + values[3:], 1 / 3)
    assert (values >= -1e-9).all()


@pytest.mark.parametrize("dim", [2, 8])
def test_predicts_pairs_it_has_not_seen(make_clouds, dim):
    clouds = make_clouds(40, dim)
    rival = SlicedRegression(**QUICK).fit(clouds[:20])
    test = clouds[20:]
    pairs = np.triu_indices(20, 1)
    exact = wh.ot.pairwise(test, solver="exact", progress=False)[pairs]
    found = rival.pairwise(test)[pairs]
    assert np.corrcoef(found, exact)[0, 1] > 0.98
    np.testing.assert_allclose(found.mean(), exact.mean(), rtol=0.05)
    assert {*rival.held_out_error_} == {"constrained", "unconstrained"}
    assert rival.held_out_error_[rival.model_] == min(rival.held_out_error_.values()) < 0.2


def test_quantiles_are_as_many_as_the_largest_cloud_has_points():
    for n, wanted in ((21, 21), (130, 128)):  # neither is a padded size
        clouds = equal_clouds(6, 2, n=n)
        assert SlicedRegression(**QUICK).fit(clouds).n_quantiles_ == wanted


@pytest.mark.parametrize("model", ["auto", "constrained", "unconstrained"])
def test_few_pairs_are_warned_of(model):
    rival = SlicedRegression(model=model, **{**QUICK, "n_pairs": 9})
    with pytest.warns(UserWarning, match="fitted to 9 pairs") as caught:
        rival.fit(equal_clouds(8, 2))
    assert caught[0].filename == __file__
    assert rival.model_ == ("constrained" if model == "auto" else model)


def test_regression_finds_planted_coefficients():
    rng = np.random.default_rng(0)
    bounds = rng.uniform(1, 2, size=(200, 6))
    planted = np.array([0.1, -0.4, 0.2, 0.5, 0.7, 0.3])
    np.testing.assert_allclose(_regress(bounds, bounds @ planted, "unconstrained"), planted, atol=1e-9)
    share = np.array([0.2, 0.9, 0.5])
    planted = np.concatenate([share, 1 - share]) / 3
    np.testing.assert_allclose(_regress(bounds, bounds @ planted, "constrained"), planted, atol=1e-6)


def test_energies_draw_means_towards_extremes():
    costs = np.array([[1.0, 2.0, 6.0]])
    bounds = dict(zip(BOUNDS, _bounds(costs, costs + 1)[0] ** 2, strict=True))
    weights = np.exp(costs[0] / 3)
    assert bounds["energy_sliced"] == pytest.approx(weights @ costs[0] / weights.sum())
    assert bounds["sliced"] < bounds["energy_sliced"] < bounds["max_sliced"]
    assert bounds["min_lifted"] < bounds["expected"] < bounds["projected"]
    np.testing.assert_array_equal(_bounds(0 * costs, 0 * costs), np.zeros((1, 6)))


def test_quantiles_are_found_by_mass():
    values = np.array([[[3.0, 1.0, 2.0, 0.0]], [[1.0, 2.0, 3.0, 4.0]]])
    weights = np.array([[1.0, 1.0, 2.0, 0.0], [0.25, 0.25, 0.25, 0.25]])
    np.testing.assert_array_equal(_quantile_places(values, weights, 4), [[[1, 2, 2, 0]], [[0, 1, 2, 3]]])
