"""Held-out clouds: none is a copy, or shares a point with one, of those trained on."""

import dask.array
import numpy as np
import pytest
from scipy import sparse

import scwormhole as wh
from scwormhole.train import _held_out
from scwormhole.train._held_out import learned_from, look, split_clouds


def apart(n):
    return wh.PointClouds.from_list([np.full((2, 2), float(i)) for i in range(n)])


def grid(side, reach=1):
    """Niches on a square grid: every place with its neighbours."""
    places = np.stack(np.meshgrid(np.arange(side), np.arange(side)), -1).reshape(-1, 2).astype(float)
    near = np.abs(places[:, None] - places).max(-1) <= reach
    return wh.PointClouds.from_graph(places, sparse.csr_matrix(near.astype(float)))


def points_of(clouds, positions):
    return np.unique(np.concatenate([clouds.indices[clouds.indptr[i] : clouds.indptr[i + 1]] for i in positions]))


@pytest.mark.parametrize("rng", [0, 1, 2])
@pytest.mark.parametrize("wanted", [8, 20, 40])
def test_no_training_cloud_shares_a_point_with_a_held_out_one(wanted, rng):
    clouds = grid(30)
    split = split_clouds(clouds, wanted, rng)
    assert len(split.held_out) == wanted
    assert len(split.train) >= len(clouds) // 2
    assert len(np.intersect1d(points_of(clouds, split.train), points_of(clouds, split.held_out))) == 0


def test_patches_cost_fewer_clouds_than_scattered_ones():
    clouds = grid(30)
    split = split_clouds(clouds, 40, 0)
    assert len(clouds) - len(split.train) - len(split.held_out) < 25 * 40 / 2


@pytest.mark.parametrize(("n", "wanted", "expected"), [(100, 12, 12), (100, 50, 20), (7, 3, 0), (8, 3, 1), (40, 0, 0)])
def test_at_most_a_fifth_and_none_of_very_few(n, wanted, expected):
    split = split_clouds(apart(n), wanted, 0)
    assert len(split.held_out) == expected
    np.testing.assert_array_equal(np.sort(np.concatenate(split)), np.arange(n))


def test_where_all_hangs_together_clouds_are_held_out_one_by_one():
    clouds = grid(6, reach=3)
    split = split_clouds(clouds, 5, 0)
    assert len(split.held_out) == 5
    np.testing.assert_array_equal(np.sort(np.concatenate(split)), np.arange(36))


def test_seeds_hold_out_other_clouds():
    one, same, other = (split_clouds(apart(100), 10, rng).held_out for rng in (0, 0, 1))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


def test_a_look_measures_correlation_and_error():
    true = np.array([1.0, 2.0, 4.0, 7.0])
    assert look(true, true) == pytest.approx((1.0, 0.0))
    assert look(true + 1, true) == pytest.approx((1.0, 1 / true.std()))
    assert look(-true, true).correlation == pytest.approx(-1)
    assert look(np.ones(4), true).correlation == 0
    flat = look(true, np.ones(4))
    assert np.isnan(flat.correlation)
    assert flat.error == pytest.approx(np.sqrt(((true - 1) ** 2).mean()))


def niches_on_a_line(points):
    n = len(POSITIONS)
    near = sparse.diags_array([np.ones(n)] * 3, offsets=[-1, 0, 1], shape=(n, n), format="csr")
    return wh.PointClouds.from_graph(points, near)


POSITIONS = np.random.default_rng(0).normal(size=(5000, 3)).astype(np.float32)


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(_held_out, "MOST_LEARNED", 400)
    monkeypatch.setattr(_held_out, "FEWEST_LEARNED", 20)


def test_what_is_learned_from_does_not_grow_with_the_cohort(few):
    for n in (300, 1000, 5000):
        clouds = niches_on_a_line(POSITIONS)[:n]
        split = split_clouds(clouds, 32, 0)
        some, positions = learned_from(clouds, split, max_bytes=1 << 30, rng=0)
        assert len(some) == min(400, len(split.train)) + len(split.held_out)
        assert np.isin(split.held_out, positions).all()
        assert some == clouds[positions]
        assert some.points is clouds.points


def test_the_same_is_learned_from_wherever_points_are(few):
    clouds, lazy = (niches_on_a_line(x) for x in (POSITIONS, dask.array.from_array(POSITIONS, chunks=(700, 3))))
    split = split_clouds(clouds, 32, 0)
    (some, here), (read, there) = (learned_from(c, split, max_bytes=1 << 30, rng=0) for c in (clouds, lazy))
    np.testing.assert_array_equal(here, there)
    assert read == some
    assert isinstance(read.points, np.ndarray)
    assert read.n_points < 3 * len(read) + 1  # no point that is in no cloud


def test_less_is_learned_from_where_memory_is_short(few):
    lazy = niches_on_a_line(dask.array.from_array(POSITIONS, chunks=(700, 3)))
    split = split_clouds(lazy, 32, 0)
    counts = [len(learned_from(lazy, split, max_bytes=size, rng=0)[0]) for size in (20_000, 5_000, 2_000, 1)]
    assert counts[0] > counts[1] > counts[2] >= counts[3] > len(split.held_out)
    whole = learned_from(lazy, split, max_bytes=5_000, rng=0)[0]
    assert whole.n_points * 12 <= 5_000
