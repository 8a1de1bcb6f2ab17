"""Means and roots of covariances: between once and twice the Fréchet distance."""

import numpy as np
import pytest

import scwormhole as wh
from scwormhole.baselines import Frechet, Moments


@pytest.mark.parametrize("dim", [1, 2, 6, 30])
def test_is_between_once_and_twice_the_frechet_distance(make_clouds, dim):
    clouds = make_clouds(10, dim, weighted=True)
    found, wanted = (model.fit(clouds).pairwise(clouds) for model in (Moments(), Frechet()))
    means = np.stack([cloud.weights @ cloud.points for cloud in clouds])
    means = ((means[:, None] - means) ** 2).sum(-1)
    rounding = 1e-4 * wanted.max()
    assert (found >= wanted - rounding).all()
    assert (found - means <= 2 * (wanted - means) + rounding).all()
    if dim == 1:
        np.testing.assert_allclose(found, wanted, atol=rounding)
    else:
        assert (found > wanted + rounding).any()


def test_the_root_is_that_of_scipy(make_clouds):
    from scipy.linalg import sqrtm

    clouds = make_clouds(3, 4, weighted=True)
    z = Moments().fit(clouds).transform(clouds)
    for (points, weights), vector in zip(clouds, z, strict=True):
        root = sqrtm(np.cov(points.T, aweights=weights, bias=True)).real
        rows, columns = np.triu_indices(4)
        np.testing.assert_allclose(vector[4:], root[rows, columns] * np.where(rows == columns, 1, 2**0.5), atol=1e-5)
        assert (vector[4:] ** 2).sum() == pytest.approx((root**2).sum(), rel=1e-5)


def test_in_high_dimension_covariances_are_on_the_leading_axes():
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(40, 40)))[0]
    deviations = np.r_[np.full(3, 5.0), np.full(37, 1e-3)]
    arrays = [
        rng.normal(size=(60, 40)) * deviations * rng.uniform(0.5, 2) @ basis + rng.normal(size=40) for _ in range(8)
    ]
    clouds = wh.PointClouds.from_list(arrays)
    small, full = Moments(n_components=3).fit(clouds), Moments(n_components=40).fit(clouds)
    assert small.axes_.shape == (3, 40)
    np.testing.assert_allclose(np.abs(np.linalg.det(small.axes_ @ basis[:3].T)), 1, atol=1e-4)
    assert small.transform(clouds).shape == (8, 40 + 6)
    np.testing.assert_allclose(small.pairwise(clouds), full.pairwise(clouds), rtol=1e-3, atol=1e-3)


def test_factors_are_those_of_least_squares(make_clouds):
    clouds = make_clouds(16, 2)
    rival = Moments(scaled=True, solver="exact", n_pairs=1000).fit(clouds)
    one, other = np.triu_indices(16, 1)
    z = Moments().fit(clouds).transform(clouds).astype(np.float64)
    squares = (z[one] - z[other]) ** 2
    columns = np.stack([squares[:, :2].sum(1), squares[:, 2:].sum(1)], axis=1)
    exact = wh.ot.pairwise(clouds, solver="exact", progress=False)[one, other]
    np.testing.assert_allclose(rival.scales_, np.linalg.lstsq(columns, exact, rcond=None)[0], rtol=1e-4)
    np.testing.assert_allclose(rival.pairwise(clouds)[one, other], columns @ rival.scales_, rtol=1e-3, atol=1e-4)
