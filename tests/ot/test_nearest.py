"""Distances to the nearest point of the same cloud, against the definition."""

import numpy as np
import pytest

from scwormhole.ot._nearest import MOST_NEAR, nearest


def padded(points, size):
    weights = np.zeros(size)
    weights[: len(points)] = 1 / len(points)
    return np.concatenate([points, np.zeros((size - len(points), points.shape[1]))])[None], weights[None]


@pytest.fixture
def points():
    return np.random.default_rng(0).normal(size=(9, 5))


def direct(points):
    apart = ((points[:, None] - points) ** 2).sum(2)
    np.fill_diagonal(apart, np.inf)
    return apart.min(1)


def test_it_is_the_least_distance_whatever_the_padding(points):
    for size in (9, 12, 16):
        np.testing.assert_allclose(nearest(*padded(points, size))[0, :9], direct(points), rtol=1e-4)


def test_a_point_in_two_pieces_is_one_point(points):
    whole, _ = padded(points, 9)
    split = np.concatenate([whole, whole[:, :1]], axis=1)
    found = nearest(split, np.full((1, 10), 0.1))
    np.testing.assert_allclose(found[0], [*direct(points), direct(points)[0]], rtol=1e-4)


def test_a_lonely_point_has_no_neighbour():
    assert np.isinf(nearest(np.ones((1, 4, 3)), np.array([[1.0, 0, 0, 0]]))).all()


def test_in_a_large_cloud_the_heavy_points_are_the_ones_to_be_near():
    generator = np.random.default_rng(1)
    points, weights = generator.normal(size=(1, MOST_NEAR + 50, 4)), np.ones((1, MOST_NEAR + 50))
    weights[:, MOST_NEAR:] = 0.1
    apart = ((points[0][:, None] - points[0][:MOST_NEAR]) ** 2).sum(2)
    apart[np.arange(MOST_NEAR), np.arange(MOST_NEAR)] = np.inf
    np.testing.assert_allclose(nearest(points, weights / weights.sum())[0], apart.min(1), rtol=1e-3, atol=1e-4)
