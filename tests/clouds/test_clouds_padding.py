"""Batches hold the clouds, no more memory than a batch, and one shape a rung."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scwormhole.clouds import PaddedBatch, PointClouds, ladder

RUNGS = [1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256]


def cohort(sizes, dim=2, dtype=np.float64):
    rng = np.random.default_rng(0)
    weights = [rng.random(size) + 0.1 for size in sizes]
    return PointClouds.from_list([rng.normal(size=(size, dim)).astype(dtype) for size in sizes], weights)


def test_ladder_rungs():
    assert sorted({ladder(size) for size in range(1, 257)}) == RUNGS
    assert all(ladder(rung) == rung for rung in RUNGS)
    assert ladder(np.int64(100)) == 128


@given(st.integers(1, 10**12))
def test_ladder_is_tight_and_rising(size):
    rung = ladder(size)
    assert size <= rung == ladder(rung)
    assert rung <= ladder(size + 1)
    assert rung < 1.5 * size if size > 8 else rung < 2 * size


@pytest.mark.parametrize("size", [0, -3])
def test_ladder_refuses(size):
    with pytest.raises(ValueError, match=f"size is {size}; a cloud has at least one point"):
        ladder(size)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=10), st.data())
def test_padded_holds_the_clouds(sizes, data):
    clouds = cohort(sizes)
    index = data.draw(st.lists(st.integers(0, len(sizes) - 1), min_size=1, max_size=12))
    batch = clouds.padded(index)
    assert isinstance(batch, PaddedBatch)
    assert batch.points.shape == (len(index), ladder(max(sizes[i] for i in index)), 2)
    assert batch.weights.shape == batch.points.shape[:2]
    assert batch.index.tolist() == index
    for row, position in enumerate(index):
        cloud, size = clouds[position], sizes[position]
        np.testing.assert_array_equal(batch.points[row, :size], cloud.points)
        np.testing.assert_array_equal(batch.weights[row, :size], cloud.weights)
        assert not batch.points[row, size:].any()
        assert not batch.weights[row, size:].any()


def test_padded_size_and_type():
    clouds = cohort([3, 5], dtype=np.float32)
    batch = clouds.padded(slice(None), size=20)
    assert batch.points.shape == (2, 20, 2)
    assert batch.points.dtype == batch.weights.dtype == np.float32
    assert clouds.padded("1", size=5).points.shape == (1, 5, 2)
    with pytest.raises(ValueError, match=r"size is 4, but cloud 1 has 5 points; give at least that.* 8"):
        clouds.padded([0, 1], size=4)
    with pytest.raises(IndexError, match="no cloud at position 2"):
        clouds.padded([2])
    with pytest.raises(IndexError, match="the selection holds no cloud"):
        clouds.padded([])


@given(st.lists(st.integers(1, 40), min_size=1, max_size=30), st.integers(1, 7), st.randoms(use_true_random=False))
def test_batches_cover_each_cloud_once(sizes, batch_size, random):
    clouds = cohort(sizes)
    order = list(range(len(sizes)))
    random.shuffle(order)
    batches = list(clouds.batches(batch_size, order))
    seen = np.concatenate([batch.index for batch in batches])
    assert sorted(seen) == sorted(order)
    shapes = {batch.points.shape for batch in batches}
    assert shapes == {(batch_size, ladder(size), 2) for size in sizes}
    for rung in {ladder(size) for size in sizes}:
        within = [position for position in seen if ladder(sizes[position]) == rung]
        assert within == [position for position in order if ladder(sizes[position]) == rung]
    for batch in batches:
        assert 1 <= len(batch.index) <= batch_size
        filled = np.concatenate([batch.index, np.repeat(batch.index[-1:], batch_size - len(batch.index))])
        whole = clouds.padded(filled, size=batch.points.shape[1])
        np.testing.assert_array_equal(batch.points, whole.points)
        np.testing.assert_array_equal(batch.weights, whole.weights)


def test_batches_of_some_clouds():
    clouds = cohort([3, 9, 4, 10])
    assert [batch.index.tolist() for batch in clouds.batches(5)] == [[0, 2], [1, 3]]
    assert [batch.index.tolist() for batch in clouds.batches(5, order=["3", "1", "0"])] == [[0], [3, 1]]
    assert [batch.index.tolist() for batch in clouds.batches(5, order=[2, 2])] == [[2, 2]]


def test_batches_refuse_at_once():
    clouds = cohort([3, 9])
    with pytest.raises(ValueError, match="batch_size is 0; at least one cloud a batch"):
        clouds.batches(0)
    with pytest.raises(TypeError, match="integer"):
        clouds.batches(2.5)
    with pytest.raises(IndexError, match="no cloud at position 2"):
        clouds.batches(2, order=[2])


def test_memory_is_bounded_by_the_batch():
    n_clouds, largest, dim = 100_001, 5_000, 4
    sizes = np.append(np.random.default_rng(0).integers(2, 5, n_clouds - 1), largest)
    X = np.ones((sizes.sum(), dim))
    clouds = PointClouds.from_groups(X, np.repeat(np.arange(n_clouds), sizes))
    batch_size = 64
    tracemalloc.start()
    try:
        n_seen = sum(len(batch.index) for batch in clouds.batches(batch_size))
        clouds.padded(np.arange(1000))
        clouds.padded([n_clouds - 1])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert n_seen == n_clouds
    one_batch = batch_size * ladder(largest) * dim * 8
    assert peak < 4 * one_batch
    assert peak < n_clouds * largest * dim * 8 / 200


def test_building_pads_nothing():
    n_clouds, largest = 20_000, 5_000
    arrays = [np.ones((3, 2))] * n_clouds + [np.ones((largest, 2))]
    tracemalloc.start()
    try:
        clouds = PointClouds.from_list(arrays)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert clouds.n_points == 3 * n_clouds + largest
    assert peak < n_clouds * largest * 2 * 8 / 50


def test_a_compiled_consumer_compiles_once_a_rung():
    jax = pytest.importorskip("jax")
    traced = []

    @jax.jit
    def mean(points, weights):
        traced.append(points.shape)
        return (points * weights[..., None]).sum(axis=1)

    sizes = np.random.default_rng(0).integers(1, 100, 200)
    clouds = cohort(sizes, dtype=np.float32)
    means = np.empty((len(clouds), 2))
    for batch in clouds.batches(16, order=np.random.default_rng(1).permutation(200)):
        means[batch.index] = mean(batch.points, batch.weights)[: len(batch.index)]
    assert len(traced) <= len({ladder(size) for size in sizes})
    expected = [cloud.weights @ cloud.points for cloud in clouds]
    np.testing.assert_allclose(means, expected, rtol=1e-4, atol=1e-5)
