"""The encoder: a function of a weighted cloud, and of its features alone before it is trained."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from scwormhole.nn import Encoder

DIM, K, CLOUDS, POINTS = 2, 6, 3, 5
KINDS = {
    "base": {"base": True, "nugget": True, "n_fixed": 2, "post": False},
    "base without nugget": {"base": True, "nugget": False, "n_fixed": 0, "post": False},
    "alone": {"base": False, "nugget": True, "n_fixed": 0, "post": False},
    "paper": {"base": False, "nugget": False, "n_fixed": 0, "post": True},
}


def encoder(kind, *, width=8, n_components=K, n_blocks=2, n_induced=0):
    sizes = {"width": width, "hidden": 16, "n_blocks": n_blocks, "n_heads": 2, "n_induced": n_induced}
    return Encoder(DIM, n_components, **sizes, **KINDS[kind], rngs=nnx.Rngs(0))


def stirred(network, size=0.3):
    """The network with all its weights moved at random, as if it had been trained."""
    graph, params = nnx.split(network)
    leaves, structure = jax.tree.flatten(params)
    generator = np.random.default_rng(1)
    moved = [leaf + size * jnp.asarray(generator.normal(size=leaf.shape), leaf.dtype) for leaf in leaves]
    return jax.jit(nnx.merge(graph, jax.tree.unflatten(structure, moved)))


def clouds():
    generator = np.random.default_rng(0)
    points = generator.normal(size=(CLOUDS, POINTS, DIM)).astype(np.float32)
    weights = generator.dirichlet(np.full(POINTS, 2.0), CLOUDS).astype(np.float32)
    features = generator.normal(size=(CLOUDS, K)).astype(np.float32)
    noise = generator.gamma(2.0, size=CLOUDS).astype(np.float32)
    return points, weights, features, noise


def permuted(points, weights):
    order = np.random.default_rng(2).permutation(POINTS)
    return points[:, order], weights[:, order]


def padded(points, weights):
    return np.pad(points, ((0, 0), (0, 3), (0, 0))), np.pad(weights, ((0, 0), (0, 3)))


def padded_elsewhere(points, weights):
    return np.pad(points, ((0, 0), (2, 1), (0, 0)), constant_values=7), np.pad(weights, ((0, 0), (2, 1)))


def split(points, weights):
    """The second point becomes two of half its weight."""
    weights = np.concatenate([weights, weights[:, 1:2] / 2], 1)
    weights[:, 1] /= 2
    return np.concatenate([points, points[:, 1:2]], 1), weights


@pytest.mark.parametrize("change", [permuted, padded, padded_elsewhere, split])
@pytest.mark.parametrize("n_induced", [0, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_the_cloud_is_what_counts(kind, n_induced, change):
    network = stirred(encoder(kind, n_induced=n_induced))
    points, weights, *rest = clouds()
    for found, expected in zip(network(*change(points, weights), *rest), network(points, weights, *rest), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-5 * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize("kind", KINDS)
def test_points_and_weights_are_seen(kind):
    network = stirred(encoder(kind))
    points, weights, *rest = clouds()
    z = network(points, weights, *rest)[0]
    assert np.abs(network(points * 1.5, weights, *rest)[0] - z).max() > 1e-2
    assert np.abs(network(points, weights[:, ::-1], *rest)[0] - z).max() > 1e-2


@pytest.mark.parametrize("kind", ["base", "base without nugget"])
def test_untrained_it_returns_the_features(kind):
    points, weights, features, noise = clouds()
    z, nugget = encoder(kind)(points, weights, features, noise)
    np.testing.assert_array_equal(z, features)
    np.testing.assert_array_equal(nugget, noise if KINDS[kind]["nugget"] else 0 * noise)


def test_fixed_components_stay_the_features_whatever_is_learned():
    points, weights, features, noise = clouds()
    network = stirred(encoder("base"))
    z = network(points, weights, features, noise)[0]
    np.testing.assert_array_equal(z[:, :DIM], features[:, :DIM])
    assert np.abs(z[:, DIM:] - features[:, DIM:]).max() > 1e-2
    moved = features + np.float32([5.0] * DIM + [0.0] * (K - DIM))
    np.testing.assert_array_equal(network(points, weights, moved, noise)[0][:, DIM:], z[:, DIM:])


@pytest.mark.parametrize("kind", ["base", "alone"])
def test_a_nugget_stays_positive_and_within_bounds(kind):
    points, weights, features, noise = clouds()
    nugget = np.asarray(stirred(encoder(kind), size=30.0)(points, weights, features, noise)[1])
    assert (np.abs(np.log(nugget / noise)) <= 3.0 + 1e-5).all()


def test_the_paper_encoder_is_a_mean_over_points():
    network = encoder("paper", width=8, n_components=8)
    assert network.out is None
    points, weights, _, noise = clouds()
    z, nugget = network(points, weights, np.zeros((CLOUDS, 8), np.float32), noise)
    assert z.shape == (CLOUDS, 8)
    np.testing.assert_array_equal(nugget, 0)


def test_without_blocks_points_are_embedded_one_by_one():
    """The mean over a cloud of two halves is then the mean of their means."""
    network = stirred(encoder("paper", n_blocks=0))
    points, weights, *rest = clouds()
    first, second = weights.copy(), weights.copy()
    first[:, 2:], second[:, :2] = 0, 0
    share = first.sum(1, keepdims=True)
    parts = [network(points, part / part.sum(1, keepdims=True), *rest)[0] for part in (first, second)]
    whole = network(points, weights, *rest)[0]
    np.testing.assert_allclose(whole, share * parts[0] + (1 - share) * parts[1], atol=1e-5)
