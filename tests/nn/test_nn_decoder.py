"""The decoder: as many points as asked for, weights of one, around the mean that the vector holds."""

import numpy as np
import pytest
from flax import nnx

from scwormhole.nn import Decoder

DIM, K, POINTS = 3, 8, 5


def decoder(*, n_fixed=DIM, weighted=False, post=False, n_induced=0):
    sizes = {"width": 8, "hidden": 16, "n_blocks": 1, "n_heads": 2, "n_points": POINTS, "n_induced": n_induced}
    return Decoder(DIM, K, **sizes, n_fixed=n_fixed, weighted=weighted, post=post, rngs=nnx.Rngs(0))


def vectors(n=4):
    return np.random.default_rng(0).normal(size=(n, K)).astype(np.float32)


@pytest.mark.parametrize("post", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n_fixed", "n_induced"), [(0, 0), (DIM, 3)])
def test_clouds_of_weight_one(n_fixed, n_induced, weighted, post):
    points, weights = decoder(n_fixed=n_fixed, n_induced=n_induced, weighted=weighted, post=post)(vectors())
    assert points.shape == (4, POINTS, DIM)
    assert weights.shape == (4, POINTS)
    assert np.isfinite(points).all()
    np.testing.assert_allclose(weights.sum(1), 1, rtol=1e-5)
    assert (np.ptp(weights, axis=1) > 1e-4).all() if weighted else np.ptp(weights) < 1e-6


@pytest.mark.parametrize("weighted", [False, True])
def test_the_mean_is_the_first_components(weighted):
    z = vectors()
    points, weights = decoder(weighted=weighted)(z)
    np.testing.assert_allclose(np.einsum("bm,bmd->bd", weights, points), z[:, :DIM], atol=1e-5)


def test_moving_the_first_components_moves_the_cloud():
    network, z = decoder(), vectors()
    shift = np.float32([1.0, -2.0, 0.5])
    moved = z + np.pad(shift, (0, K - DIM))
    np.testing.assert_allclose(network(moved)[0], network(z)[0] + shift, atol=1e-5)


def test_vectors_are_decoded_one_by_one():
    network, z = decoder(), vectors()
    np.testing.assert_allclose(network(z[1:2])[0][0], network(z)[0][1], atol=1e-5)
    assert np.abs(network(z)[0][0] - network(z)[0][1]).max() > 0.1
