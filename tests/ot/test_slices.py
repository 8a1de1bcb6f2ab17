"""Slices: on a line transport is sorting, so there is a right answer to everything."""

import numpy as np
import ot as pot
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scwormhole.ot._slices import quantile_cells, sliced, spread_directions


def clouds(n_clouds, n, dim, rng=0):
    generator = np.random.default_rng(rng)
    return generator.normal(size=(n_clouds, n, dim)), generator.dirichlet(np.ones(n), size=n_clouds)


def apart(features):
    return ((features[0] - features[1]) ** 2).sum()


def quantiles_by_hand(values, weights, n_cells, fine=20_000):
    """Averages of a quantile function over cells, from very many samples of it."""
    order = np.argsort(values)
    reached = np.cumsum(weights[order]) / weights.sum()
    places = np.searchsorted(reached, (np.arange(fine * n_cells) + 0.5) / (fine * n_cells))
    return values[order][np.minimum(places, len(values) - 1)].reshape(n_cells, fine).mean(1)


@pytest.mark.parametrize(
    ("dim", "n", "tol"), [(1, 5, 1e-15), (2, 2, 1e-12), (2, 7, 1e-12), (3, 32, 0.05), (3, 200, 0.01)]
)
def test_directions_are_unit_vectors_spread_evenly(dim, n, tol):
    directions = spread_directions(dim, n)
    assert directions.shape == (1 if dim == 1 else n, dim)
    np.testing.assert_allclose(np.linalg.norm(directions, axis=1), 1)
    np.testing.assert_allclose(dim * directions.T @ directions / len(directions), np.eye(dim), atol=tol)


@pytest.mark.parametrize(
    ("dim", "n", "fault"), [(4, 8, "principal axes above"), (0, 8, "dim is 0"), (2, 0, "at least one")]
)
def test_directions_refuse(dim, n, fault):
    with pytest.raises(ValueError, match=fault):
        spread_directions(dim, n)


@pytest.mark.parametrize("dim", [1, 2])
@pytest.mark.parametrize("weighted", [True, False])
def test_a_translate_is_at_the_square_of_the_shift(dim, weighted):
    points, weights = clouds(1, 23, dim)
    weights = weights if weighted else np.ones_like(weights)
    shift = np.array([3.0, -4.0])[:dim]
    both = np.concatenate([points, points + shift])
    features = sliced(both, np.concatenate([weights, weights]), spread_directions(dim, 9), n_cells=16)
    np.testing.assert_allclose(apart(features), (shift**2).sum())


def test_on_a_line_it_is_w2():
    points, _ = clouds(2, 12, 1)
    features = sliced(points, np.ones((2, 12)), np.ones((1, 1)), n_cells=12)
    expected = ((np.sort(points[0, :, 0]) - np.sort(points[1, :, 0])) ** 2).mean()
    np.testing.assert_allclose(apart(features), expected)
    np.testing.assert_allclose(expected, pot.emd2_1d(points[0, :, 0], points[1, :, 0]))


@pytest.mark.parametrize("dim", [2, 3])
def test_agrees_with_pot_along_the_same_directions(dim):
    points, _ = clouds(2, 20, dim)
    directions = spread_directions(dim, 30)
    peer = pot.sliced_wasserstein_distance(*points, projections=directions.T) ** 2
    features = sliced(points, np.ones((2, 20)), directions, n_cells=20)
    np.testing.assert_allclose(apart(features), dim * peer)


def test_tends_to_pot_from_below_for_other_sizes_and_weights():
    points, weights = clouds(2, 17, 2)
    directions = spread_directions(2, 16)
    peer = 2 * pot.sliced_wasserstein_distance(*points, *weights, projections=directions.T) ** 2
    found = [apart(sliced(points, weights, directions, n_cells=cells)) for cells in (4, 16, 64, 1024)]
    assert np.all(np.diff(found) > 0)
    assert found[-1] <= peer * (1 + 1e-12)
    np.testing.assert_allclose(found[-1], peer, rtol=2e-3)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 12), st.integers(1, 9), st.integers(0, 1000))
def test_cells_are_averages_of_the_quantile_function(n, n_cells, rng):
    generator = np.random.default_rng(rng)
    values, weights = generator.normal(size=n), generator.random(n) + 0.01
    found = quantile_cells(values[None, None], weights[None], n_cells)[0, 0]
    np.testing.assert_allclose(found, quantiles_by_hand(values, weights, n_cells), atol=2e-3)
    np.testing.assert_allclose(found.mean(), weights @ values / weights.sum())
    assert np.all(np.diff(found) >= -1e-12)


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nothing_depends_on_order_padding_splitting_or_company(weighted, dtype):
    points, weights = clouds(5, 11, 2)
    weights = weights if weighted else np.full_like(weights, 1 / 11)
    points, weights = points.astype(dtype), weights.astype(dtype)
    directions = spread_directions(2, 8)
    plain = sliced(points, weights, directions, n_cells=7)
    assert plain.dtype == dtype
    tol = {"rtol": 1e-4, "atol": 1e-5} if dtype == np.float32 else {"rtol": 1e-9, "atol": 1e-9}

    order = np.random.default_rng(1).permutation(11)
    np.testing.assert_allclose(sliced(points[:, order], weights[:, order], directions, n_cells=7), plain, **tol)
    blank = np.full((5, 6, 2), 99.0, dtype)
    padded = np.concatenate([blank, points, blank], axis=1)
    shares = np.pad(weights, ((0, 0), (6, 6)))
    np.testing.assert_allclose(sliced(padded, shares, directions, n_cells=7), plain, **tol)
    split = np.concatenate([weights[:, :1] / 4, weights[:, 1:], 3 * weights[:, :1] / 4], axis=1)
    twice = np.concatenate([points, points[:, :1]], axis=1)
    np.testing.assert_allclose(sliced(twice, split, directions, n_cells=7), plain, **tol)
    np.testing.assert_allclose(sliced(points[2:3], 8 * weights[2:3], directions, n_cells=7), plain[2:3], **tol)


def test_weights_act_smoothly():
    points, weights = clouds(1, 9, 2)
    directions = spread_directions(2, 8)
    steps = np.linspace(0, 1, 101)[:, None] * np.eye(9)[0] + weights
    features = sliced(np.repeat(points, 101, axis=0), steps, directions, n_cells=16)
    jumps = np.linalg.norm(np.diff(features, axis=0), axis=1)
    assert jumps.max() < 0.1


def test_clouds_of_equal_and_of_other_weights_share_a_batch():
    points, weights = clouds(4, 10, 2)
    weights[[0, 2]] = 0.1
    weights[2, 7:] = 0
    directions = spread_directions(2, 8)
    together = sliced(points, weights, directions, n_cells=5)
    alone = [sliced(points[[i]], weights[[i]], directions, n_cells=5)[0] for i in range(4)]
    np.testing.assert_allclose(together, alone)
