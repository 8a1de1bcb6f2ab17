"""What steps are fed with: a function of the step alone, in the network's units; samples by weight."""

from types import SimpleNamespace

import numpy as np
import pytest

import scwormhole as wh
from scwormhole.train import _blocks
from scwormhole.train._blocks import Blocks, Feed, prefetched, sampled, turned
from scwormhole.train._frame import Frame
from scwormhole.train._strata import stratify


def cohort(n=30, dim=2, rng=0, most=20):
    generator = np.random.default_rng(rng)
    sizes = generator.integers(3, most + 1, n)
    return wh.PointClouds.from_list(
        [generator.normal(size=(size, dim)) for size in sizes], [generator.dirichlet(np.ones(size)) for size in sizes]
    )


def frame(dim=2, unit=2.0):
    return Frame(np.full(dim, 0.5), 3.0, unit, False, np.full(dim, -9.0), np.full(dim, 9.0))


def blocks(turns=3, *, rotate=False, max_points=12, unit=2.0, rng=0):
    clouds = cohort()
    strata = stratify(np.minimum(clouds.rungs, max_points), 6, rng)
    targets = SimpleNamespace(blocks=lambda members: (members[:, :, None] - members[:, None]) ** 2.0)
    return Blocks(clouds, strata, targets, None, frame(unit=unit), n_components=4, turns=turns, rotate=rotate)


def equal(one, other):
    leaves = [np.array_equal(a, b) for a, b in zip(one.points + one.weights, other.points + other.weights, strict=True)]
    return all(leaves) and all(np.array_equal(getattr(one, name), getattr(other, name)) for name in Feed._fields[2:])


def steps_of(feed, some):
    return Feed(*(tuple(part[some] for part in parts) for parts in feed[:2]), *(part[some] for part in feed[2:]))


@pytest.mark.parametrize("rotate", [False, True])
@pytest.mark.parametrize("turns", [1, 3, 16])
def test_a_feed_is_a_function_of_its_step(turns, rotate):
    whole = blocks(turns, rotate=rotate).feed(range(40))
    assert equal(blocks(turns, rotate=rotate).feed(range(30, 40)), steps_of(whole, slice(30, 40)))
    going_on = blocks(turns, rotate=rotate)
    for first in range(0, 40, 8):
        assert equal(going_on.feed(range(first, first + 8)), steps_of(whole, slice(first, first + 8)))


def test_seeds_make_other_feeds():
    assert not equal(blocks(rng=0).feed(range(4)), blocks(rng=1).feed(range(4)))


def test_turns_use_a_block_again_with_other_samples():
    made = blocks(turns=4)
    numbers = [made.block_of(step) for step in range(400)]
    assert numbers[:5] == [0, 0, 0, 0, 1]
    assert [number for step, number in enumerate(numbers) if step % 4 == 0] == list(range(100))
    assert all(0 < number <= step // 4 for step, number in enumerate(numbers) if step >= 4)
    feed = made.feed(range(2))
    np.testing.assert_array_equal(feed.target[0], feed.target[1])
    assert any((part[0] != part[1]).any() for part in feed.points)


def test_divergences_are_those_of_the_clouds_fed_in_the_network_units():
    made = blocks(turns=1, unit=5.0)
    feed = made.feed(range(3, 5))
    for row, number in enumerate((3, 4)):
        members = made.strata.batch(number).astype(float)
        expected = (members[:, None] - members) ** 2 / 25
        np.testing.assert_allclose(feed.target[row], expected, rtol=1e-6)


def test_weights_of_every_cloud_sum_to_one():
    feed = blocks().feed(range(5))
    for points, weights in zip(feed.points, feed.weights, strict=True):
        np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-5)
        assert points.dtype == weights.dtype == np.float32
        assert (points[weights == 0] == 0).all()


def test_without_targets_nothing_is_solved():
    made = blocks(turns=5).without_targets()
    feed = made.feed(range(3))
    np.testing.assert_array_equal(feed.target, 0)
    assert [made.block_of(step) for step in range(6)] == list(range(6))


@pytest.mark.parametrize("kept", [1, 2, 5])
@pytest.mark.parametrize("turns", [1, 3])
def test_blocks_that_were_not_kept_are_made_again(monkeypatch, kept, turns):
    each = 4 * 6 * (4 + 1 + 6)
    monkeypatch.setattr(_blocks, "MOST_KEPT", kept * each)
    made, fresh = blocks(turns), blocks(turns)
    made.feed(range(10))
    assert equal(made.feed(range(10, 20)), fresh.feed(range(10, 20)))


def test_prefetched_spans_come_in_order():
    made = blocks()
    spans = [range(0, 4), range(4, 8), range(8, 9)]
    found = list(prefetched(made, iter(spans)))
    assert [span for span, _ in found] == spans
    assert all(equal(feed, blocks().feed(span)) for span, feed in found)
    assert list(prefetched(made, iter([]))) == []


def test_samples_respect_weights_in_expectation():
    generator = np.random.default_rng(0)
    weights = generator.dirichlet(np.ones(40))
    clouds = wh.PointClouds.from_list([np.eye(40), np.eye(40)[:5]], [weights, np.full(5, 0.2)])
    draws = []
    for _ in range(2000):
        batch = sampled(clouds, np.array([0, 1]), 8, generator)
        draws.append(batch.weights[0] @ batch.points[0])
        assert batch.points.shape == (2, 8, 40)
    np.testing.assert_allclose(np.mean(draws, axis=0), weights, atol=4 * np.sqrt(weights.max() / 8 / 2000))
    assert np.abs(np.array(draws) * 8 - weights * 8).max() <= 1 + 1e-9
    np.testing.assert_array_equal(batch.points[1, :5], np.eye(40)[:5])
    np.testing.assert_allclose(batch.weights, [[1 / 8] * 8, [0.2] * 5 + [0] * 3])


def test_clouds_that_fit_are_not_sampled():
    clouds = cohort(5, most=8)
    batch = sampled(clouds, np.arange(5), 8, np.random.default_rng(0))
    expected = clouds.padded(np.arange(5), 8)
    np.testing.assert_array_equal(batch.points, expected.points)
    np.testing.assert_array_equal(batch.weights, expected.weights)


@pytest.mark.parametrize("dim", [2, 3])
def test_turned_clouds_keep_their_distances(dim):
    generator = np.random.default_rng(0)
    points = generator.normal(size=(6, 5, dim)).astype(np.float32)
    moved = turned(points, generator)
    inner = np.einsum("bnd,bmd->bnm", points, points)
    np.testing.assert_allclose(np.einsum("bnd,bmd->bnm", moved, moved), inner, atol=1e-5)
    assert np.abs(moved - points).max() > 0.1


@pytest.mark.parametrize("dim", [2, 3])
def test_turns_favour_no_direction_and_no_side(dim):
    """The mean of a random turn is zero, and half of them mirror."""
    turns = turned(np.tile(np.eye(dim, dtype=np.float32), (4000, 1, 1)), np.random.default_rng(0))
    np.testing.assert_allclose(turns.mean(0), 0, atol=0.05)
    assert (np.linalg.det(turns) > 0).mean() == pytest.approx(0.5, abs=0.05)
