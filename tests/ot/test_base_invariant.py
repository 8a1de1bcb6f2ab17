"""What is measured for Gromov-Wasserstein: no isometry, order, padding or splitting changes it."""

import numpy as np
import pytest
from scipy.stats import ortho_group

from scwormhole.ot._invariant import MOST_POINTS, InvariantParts, thinned


def measure(points, weights):
    return InvariantParts(points.shape[2], np.ones(())).measure(points, weights)


def cloud(n, dim=3, rng=0):
    generator = np.random.default_rng(rng)
    points = generator.normal(size=(1, n, dim)) * np.arange(1, dim + 1)
    return points, generator.dirichlet(np.full(n, 5.0), size=1)


@pytest.mark.parametrize("n", [1, 9, 40, 3 * MOST_POINTS])
def test_isometries_change_nothing(n):
    points, weights = cloud(n)
    turned = points @ ortho_group(3, seed=1).rvs() + 100.0
    for one, other in zip(measure(points, weights), measure(turned, weights), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n", [9, 3 * MOST_POINTS])
def test_order_padding_and_splitting_change_nothing(n):
    points, weights = cloud(n)
    plain = measure(points, weights).values
    order = np.random.default_rng(1).permutation(n)
    np.testing.assert_allclose(measure(points[:, order], weights[:, order]).values, plain, rtol=1e-5, atol=1e-5)
    padded = np.pad(points, ((0, 0), (4, 7), (0, 0)), constant_values=30.0)
    np.testing.assert_allclose(measure(padded, np.pad(weights, ((0, 0), (4, 7)))).values, plain, rtol=1e-5, atol=1e-5)
    split = np.concatenate([weights[:, :1] / 4, weights[:, 1:], 3 * weights[:, :1] / 4], axis=1)
    twice = np.concatenate([points, points[:, :1]], axis=1)
    np.testing.assert_allclose(measure(twice, split).values, plain, rtol=1e-5, atol=1e-5)


def test_a_small_cloud_beside_a_large_one_is_not_thinned():
    points, weights = cloud(50)
    padded = np.pad(points, ((0, 0), (0, 500), (0, 0)))
    few, mass = thinned(padded, np.pad(weights, ((0, 0), (0, 500))), (padded**2).sum(2))
    assert few.shape == (1, MOST_POINTS, 3)
    np.testing.assert_allclose(np.sort(mass[mass > 0]), np.sort(weights[0]))
    np.testing.assert_allclose(
        measure(padded, np.pad(weights, ((0, 0), (0, 500)))).values, measure(points, weights).values
    )


def test_a_large_cloud_is_thinned_by_distance_from_its_mean():
    points, _ = cloud(8 * MOST_POINTS)
    root = (points**2).sum(2)
    few, mass = thinned(points, np.full((1, 8 * MOST_POINTS), 1 / (8 * MOST_POINTS)), root)
    np.testing.assert_allclose(mass, 1 / MOST_POINTS)
    np.testing.assert_allclose((few**2).sum(2).mean(), root.mean(), rtol=0.02)


def test_mean_distances_are_those_of_the_points():
    points, weights = cloud(32)
    weights[:] = 1 / 32
    within = ((points[0][:, None] - points[0]) ** 2).sum(-1)
    roots = measure(points, weights).values[0, :32] * np.sqrt(32)
    np.testing.assert_allclose(roots, np.sort(within.mean(1)), rtol=1e-6)


def test_parts_tell_their_lengths():
    parts = InvariantParts(30, np.ones(()))
    points, weights = cloud(5, dim=30)
    assert measure(points, weights).values.shape[1] == len(parts.groups) == len(parts.families) == len(parts.trust)
