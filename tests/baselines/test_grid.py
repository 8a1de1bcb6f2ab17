"""Histograms on a grid: mass is kept, voxels are where they should be, and what a grid cannot hold is refused."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import scwormhole as wh
from scwormhole.baselines import Grid


def random_clouds(n=12, dim=2, seed=0):
    rng = np.random.default_rng(seed)
    points = [rng.normal(size=(rng.integers(5, 40), dim)) for _ in range(n)]
    return wh.PointClouds.from_list(points, [rng.uniform(0.1, 1, len(p)) for p in points])


@pytest.mark.parametrize("dim", [2, 3])
def test_mass_is_one_and_the_mean_moves_by_less_than_half_a_voxel(dim):
    clouds = random_clouds(dim=dim)
    grid = Grid(side=9).fit(clouds)
    masses = grid.transform(clouds)
    assert masses.shape == (12, 9**dim)
    assert (masses >= 0).all()
    np.testing.assert_allclose(masses.sum(1), 1, rtol=1e-6)
    means = np.stack([cloud.weights @ cloud.points / cloud.weights.sum() for cloud in clouds])
    assert np.abs(masses @ grid.centres_ - means).max() <= grid.spacing_ / 2


def test_defaults_are_the_papers():
    assert Grid().fit(random_clouds(dim=2)).shape_ == (28, 28)
    assert Grid().fit(random_clouds(dim=3)).shape_ == (16, 16, 16)


@pytest.mark.parametrize("box", [(-1, 1), None])
@pytest.mark.parametrize("part", [slice(None), slice(3, 24)])
def test_each_pixel_has_a_voxel_of_its_own(box, part):
    axis = np.linspace(-1, 1, 28, dtype=np.float32)[part]
    pixels = np.stack(np.meshgrid(axis, axis[:18]), axis=-1).reshape(-1, 2)
    masses = Grid(side=28, box=box).fit_transform(wh.PointClouds.from_list([pixels, pixels[:5]]))
    assert ((masses > 0).sum(1) == [len(pixels), 5]).all()


def test_pixels_that_fill_the_box_are_the_grid():
    image = np.random.default_rng(0).gamma(0.3, size=(28, 28))
    places = np.argwhere(image > 0.2)
    clouds = wh.PointClouds.from_list([places / 13.5 - 1], [image[image > 0.2]])
    ink = np.where(image > 0.2, image, 0)
    np.testing.assert_allclose(Grid(box=(-1, 1)).fit_transform(clouds)[0], ink.ravel() / ink.sum(), rtol=1e-5)


def test_voxels_are_cubes_around_the_clouds():
    grid = Grid(side=5).fit(wh.PointClouds.from_list([np.array([[0.0, 1.0], [8.0, 3.0]])]))
    assert grid.spacing_ == 2
    np.testing.assert_array_equal(grid.low_, [0, -2])
    np.testing.assert_array_equal(grid.centres_[[0, 1, 5]], [[0, -2], [0, 0], [2, -2]])


def test_points_outside_go_to_the_nearest_voxel():
    grid = Grid(side=3).fit(wh.PointClouds.from_list([np.array([[0.0, 0.0], [2.0, 2.0]])]))
    far = wh.PointClouds.from_list([np.array([[-50.0, 1.0]]), np.array([[1.2, 90.0]])])
    assert grid.transform(far).argmax(1).tolist() == [1, 5]


def test_points_half_way_all_go_the_same_way():
    places = np.stack([np.arange(6) + 0.5, np.zeros(6)], axis=1)
    masses = Grid(side=8, box=(0, 7)).fit_transform(wh.PointClouds.from_list(list(places[:, None])))
    assert (masses.argmax(1) // 8).tolist() == [1, 2, 3, 4, 5, 6]


def test_padding_order_and_splitting_are_not_seen():
    clouds = random_clouds()
    grid = Grid(side=9).fit(clouds)
    masses = grid.transform(clouds)
    halves = [(np.repeat(c.points, 2, 0)[::-1], np.repeat(c.weights, 2)[::-1]) for c in clouds]
    split = wh.PointClouds.from_list([p for p, _ in halves], [w for _, w in halves])
    np.testing.assert_allclose(grid.transform(split), masses, atol=1e-7)
    np.testing.assert_array_equal(grid.transform(clouds[[5, 2]]), masses[[5, 2]])
    assert Grid(side=9).fit(split).low_.tolist() == grid.low_.tolist()


def test_one_point_is_a_grid_too():
    assert Grid(side=3).fit_transform(wh.PointClouds.from_list([np.ones((2, 2))])).tolist()[0][4] == 1


def test_bad_input_is_refused():
    clouds = random_clouds()
    with pytest.raises(ValueError, match="7 dimensions; grids are for 2 and 3"):
        Grid().fit(random_clouds(dim=7))
    with pytest.raises(ValueError, match="1 dimension"):
        Grid().fit(random_clouds(dim=1))
    with pytest.raises(ValueError, match="side is 1"):
        Grid(side=1).fit(clouds)
    with pytest.raises(ValueError, match="lowest"):
        Grid(box=(1, -1)).fit(clouds)
    with pytest.raises(TypeError, match="PointClouds"):
        Grid().fit([np.eye(2)])
    with pytest.raises(NotFittedError, match="call"):
        Grid().transform(clouds)
    with pytest.raises(ValueError, match="3 dimensions, and this Grid was fitted in 2"):
        Grid().fit(clouds).transform(random_clouds(dim=3))
