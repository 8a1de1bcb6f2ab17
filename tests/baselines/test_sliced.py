"""Plain sliced features: the sliced distance of POT, times the dimension and one factor."""

import numpy as np
import pytest

import scwormhole as wh
from scwormhole.baselines import SlicedFeatures
from scwormhole.baselines._directions import turned_directions
from scwormhole.baselines._solved import draw_pairs


@pytest.mark.parametrize("dim", [2, 3, 7])
def test_is_the_sliced_distance_of_pot(dim):
    from ot import sliced_wasserstein_distance

    rng = np.random.default_rng(0)
    clouds = wh.PointClouds.from_list([rng.normal(size=(20, dim)) * rng.uniform(1, 3, size=dim) for _ in range(4)])
    model = SlicedFeatures(n_directions=16, n_cells=20, scaled=False).fit(clouds)
    found = model.pairwise(clouds)
    for i in range(4):
        for j in range(i):
            sliced = sliced_wasserstein_distance(clouds[i].points, clouds[j].points, projections=model.directions_.T)
            np.testing.assert_allclose(found[i, j], dim * sliced**2, rtol=1e-5)


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_translates_are_exact_up_to_the_plane_and_nearly_so_in_space(make_clouds, dim):
    clouds = make_clouds(4, dim, weighted=True)
    shift = np.arange(1.0, dim + 1)
    moved = wh.PointClouds(clouds.points + shift, clouds.indptr, clouds.indices, clouds.weights)
    model = SlicedFeatures(n_directions=64, scaled=False).fit(clouds)
    np.testing.assert_allclose(model.distances(clouds, moved), (shift**2).sum(), rtol=2e-2 if dim == 3 else 1e-5)


def test_the_factor_is_that_of_least_squares(make_clouds):
    clouds = make_clouds(20, 2)
    plain, fitted = (
        SlicedFeatures(scaled=scaled, solver="exact", n_pairs=1000, n_directions=8).fit(clouds)
        for scaled in (False, True)
    )
    one, other = np.triu_indices(20, 1)
    x, y = plain.pairwise(clouds)[one, other], wh.ot.pairwise(clouds, solver="exact", progress=False)[one, other]
    assert fitted.scale_ == pytest.approx(np.linalg.lstsq(x[:, None], y, rcond=None)[0][0], rel=1e-5)
    np.testing.assert_allclose(fitted.pairwise(clouds)[one, other], fitted.scale_ * x, rtol=1e-4, atol=1e-5)


def test_pairs_are_different_and_none_comes_twice():
    first, second = draw_pairs(5, 100, 0)
    assert sorted(zip(first, second, strict=True)) == [(i, j) for i in range(5) for j in range(i + 1, 5)]
    for n_clouds in (40, 10_000):
        first, second = draw_pairs(n_clouds, 200, 0)
        assert len(first) == 200
        assert (first < second).all()
        assert len({*zip(first, second, strict=True)}) == 200
        assert not np.array_equal(first, draw_pairs(n_clouds, 200, 1)[0])


@pytest.mark.parametrize("dim", [2, 3, 20])
def test_directions_are_unit_vectors_off_the_axes(dim):
    n = 50 if dim < 4 else 20_000  # random ones are even only on average
    directions = turned_directions(dim, n, 0)
    np.testing.assert_allclose((directions**2).sum(1), 1)
    assert np.abs(directions).min() > 1e-9
    np.testing.assert_allclose(dim * directions.T @ directions / n, np.eye(dim), atol=1e-9 if dim == 2 else 0.05)
