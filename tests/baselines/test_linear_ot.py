"""Linear transport: exact where it must be, and the mean of the map elsewhere."""

import numpy as np
import pytest

import scwormhole as wh
from scwormhole.baselines import LinearOT

SOLVERS = ["exact", "sinkhorn"]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("dim", [2, 8])
def test_translates_are_at_the_square_of_the_shift(make_clouds, solver, dim):
    clouds = make_clouds(6, dim, weighted=True)
    shift = 3 * np.random.default_rng(0).normal(size=dim) + 1e3
    moved = wh.PointClouds(clouds.points + shift, clouds.indptr, clouds.indices, clouds.weights)
    model = LinearOT(n_points=10, solver=solver).fit(clouds)
    np.testing.assert_allclose(model.distances(clouds, moved), (shift**2).sum(), rtol=1e-5)
    z = model.transform(clouds).reshape(6, 10, dim) / np.sqrt(model.weights_)[:, None]
    means = np.stack([cloud.weights @ cloud.points for cloud in clouds])
    origin = model.weights_ @ model.reference_
    np.testing.assert_allclose(np.einsum("m,bmd->bd", model.weights_, z) + origin, means, atol=1e-4)


def test_is_transport_on_a_line_for_as_many_equal_points():
    rng = np.random.default_rng(0)
    arrays = [rng.gamma(2.0, size=(12, 1)) * rng.uniform(1, 3) for _ in range(5)]
    clouds = wh.PointClouds.from_list(arrays)
    found = LinearOT(reference=rng.normal(size=(12, 1))).fit(clouds).pairwise(clouds)
    sorted_points = np.sort(np.stack(arrays)[..., 0], axis=1)
    np.testing.assert_allclose(found, ((sorted_points[:, None] - sorted_points) ** 2).mean(-1), rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("solver", SOLVERS)
def test_reference_points_without_weight_are_left_out(make_clouds, solver):
    clouds, points = make_clouds(4, 2), np.random.default_rng(0).normal(size=(5, 2))
    weights = np.array([0.2, 0.0, 0.3, 0.0, 0.5])
    model, lighter = (
        LinearOT(reference=reference, solver=solver).fit(clouds)
        for reference in ((points, weights), (points[weights > 0], weights[weights > 0]))
    )
    assert model.reference_.shape == (3, 2)
    np.testing.assert_array_equal(model.transform(clouds), lighter.transform(clouds))
    assert np.isfinite(model.pairwise(clouds)).all()


def test_is_transport_from_the_reference_itself(make_clouds):
    """Seen from a cloud of the cohort, that cloud's row is its exact distance, where points are as many."""
    rng = np.random.default_rng(1)
    clouds = wh.PointClouds.from_list([rng.normal(size=(15, 3)) * rng.uniform(0.5, 2, size=3) for _ in range(5)])
    found = LinearOT(reference=clouds[0]).fit(clouds).pairwise(clouds)
    exact = wh.ot.pairwise(clouds, solver="exact", progress=False)
    np.testing.assert_allclose(found[0], exact[0], rtol=1e-5)
    assert (found >= exact * (1 - 1e-5)).all()  # a coupling through the reference is a coupling
    assert (found[1:, 1:] > 1.01 * exact[1:, 1:])[np.triu_indices(4, 1)].any()


def test_entropic_maps_tend_to_the_exact_ones(make_clouds):
    clouds = make_clouds(8, 2)
    exact = LinearOT(n_points=12).fit(clouds).pairwise(clouds)
    errors = [
        np.abs(LinearOT(n_points=12, solver="sinkhorn", epsilon=epsilon).fit(clouds).pairwise(clouds) - exact).max()
        for epsilon in (0.3, 0.02, 0.002)
    ]
    assert errors[0] > 2 * errors[1] > 2 * errors[2]
    assert errors[2] < 0.05 * exact.max()


def test_the_reference_is_as_heavy_as_the_points_around_it():
    rng = np.random.default_rng(0)
    kinds = np.array([0.0, 10.0, 30.0])
    clouds = wh.PointClouds.from_list([kinds[rng.choice(3, 200, p=[0.5, 0.3, 0.2])][:, None] for _ in range(10)])
    model = LinearOT(n_points=7).fit(clouds)  # more than there are different points
    order = model.reference_[:, 0].argsort()
    np.testing.assert_allclose(model.reference_[order, 0], kinds, atol=1e-9)
    np.testing.assert_allclose(model.weights_[order], [0.5, 0.3, 0.2], atol=0.05)
