"""Units: to the network's and back."""

import numpy as np
import pytest

import scwormhole as wh
from scwormhole.train._frame import frame_of


def cohort(scale=1.0, dim=2):
    generator = np.random.default_rng(0)
    sizes = generator.integers(3, 9, 20)
    arrays = [scale * (generator.normal(size=(n, dim)) * [1.0, 4.0][:dim] + generator.normal(size=dim)) for n in sizes]
    return wh.PointClouds.from_list(arrays, [generator.dirichlet(np.ones(n)) for n in sizes])


def framed(clouds, *, degree=2, origin=None, mean=1.0, box=None):
    return frame_of(clouds, degree=degree, mean_divergence=mean, origin=origin, box=box, rng=0)


@pytest.mark.parametrize("dim", [1, 2])
@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_there_and_back(scale, dim):
    clouds = cohort(scale, dim)
    frame = framed(clouds)
    batch = clouds.padded(np.arange(20))
    points, weights = frame.points(batch)
    real = batch.weights > 0
    assert points.dtype == np.float32
    np.testing.assert_allclose(frame.clouds(points, 0.0)[real], batch.points[real], atol=1e-5 * scale)
    np.testing.assert_array_equal(points[~real], 0)
    np.testing.assert_allclose(weights.sum(1), 1, rtol=1e-5)


def test_the_network_sees_points_of_unit_size_around_zero():
    clouds = cohort(50.0)
    points, weights = framed(clouds).points(clouds.padded(np.arange(20)))
    np.testing.assert_allclose(np.einsum("bn,bnd->d", weights, points) / 20, 0, atol=1e-5)
    assert np.einsum("bn,bnd->", weights, points**2) / 20 == pytest.approx(1, rel=1e-4)


def test_centred_clouds_are_seen_from_their_own_means():
    clouds = cohort()
    frame = framed(clouds, origin=np.array([1.0, 2.0]))
    assert frame.centred
    batch = clouds.padded(np.arange(20))
    points, weights = frame.points(batch)
    np.testing.assert_allclose(np.einsum("bn,bnd->bd", weights, points), 0, atol=1e-5)
    means = np.array([cloud.weights @ cloud.points for cloud in clouds])
    back = frame.clouds(points + ((means - frame.origin) / frame.length)[:, None], 0.0)
    np.testing.assert_allclose(back[batch.weights > 0], batch.points[batch.weights > 0], atol=1e-5)


@pytest.mark.parametrize("degree", [1, 2, 4])
def test_the_unit_grows_with_the_divergence(degree):
    near, far = (framed(cohort(scale), degree=degree) for scale in (1.0, 1000.0))
    assert far.length == pytest.approx(1000 * near.length)
    assert far.unit**2 == pytest.approx(1000**degree * near.unit**2)


def test_the_unit_of_an_own_cost_is_its_mean_divergence():
    assert framed(cohort(), degree=None, mean=9.0).unit == pytest.approx(3)


def test_decoded_points_stay_within_the_margin():
    frame = framed(cohort())
    wild = np.array([[[1e6, -1e6], [0.0, 0.0]]])
    inside = frame.clouds(wild, 0.1)
    reach = 0.1 * (frame.high - frame.low)
    np.testing.assert_allclose(inside[0, 0], [frame.high[0] + reach[0], frame.low[1] - reach[1]])
    np.testing.assert_allclose(inside[0, 1], frame.origin)


@pytest.mark.parametrize("origin", [None, np.array([5.0, 5.0])])
def test_clouds_of_one_point_have_a_length(origin):
    frame = framed(wh.PointClouds.from_list([np.full((1, 2), 5.0)] * 3), origin=origin, degree=None, mean=0.0)
    assert frame.length == frame.unit == 1.0
