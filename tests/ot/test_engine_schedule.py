"""How pairs are cut into tiles and run: every pair once, few shapes, few compilations, order kept, errors passed on."""

import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import scwormhole as wh
from scwormhole.clouds import ladder
from scwormhole.ot import _entropic, _schedule
from scwormhole.ot._drive import _once

sizes_of = st.lists(st.sampled_from([1, 2, 8, 12, 24, 96, 128, 384]), min_size=1, max_size=60).map(np.array)
quick = settings(deadline=None, derandomize=True)


@quick
@given(padded=sizes_of, pairs=st.integers(1, 300))
def test_tiles_cover_every_pair_once(padded, pairs):
    n = len(padded)
    seen = np.zeros((n, n), int)
    for tile in _schedule.tiles(padded, lambda *_: pairs):
        assert (padded[tile.rows] == tile.row_size).all()
        assert (padded[tile.columns] == tile.column_size).all()
        rows, columns, (i, j) = _once(tile)
        assert np.array_equal(tile.rows[i], rows)
        assert np.array_equal(tile.columns[j], columns)
        np.add.at(seen, (rows, columns), 1)
    both = seen + seen.T
    assert (both[~np.eye(n, dtype=bool)] == 1).all()
    assert not np.diag(seen).any()


@quick
@given(padded=sizes_of, pairs=st.integers(1, 300))
def test_tiles_of_two_sizes_have_one_shape(padded, pairs):
    shapes = {}
    for tile in _schedule.tiles(padded, lambda *_: pairs):
        shape = shapes.setdefault((tile.row_size, tile.column_size), (len(tile.rows), len(tile.columns)))
        assert (len(tile.rows), len(tile.columns)) == shape
        assert tile.row_size <= tile.column_size


@quick
@given(
    rungs=st.lists(st.integers(1, 500).map(ladder), min_size=1, max_size=60).map(np.array),
    partners=st.floats(0.5, 1e6),
)
def test_padded_sizes_hold_their_clouds(rungs, partners):
    padded = _schedule.padded_sizes(rungs, partners)
    assert padded.shape == rungs.shape
    assert (padded >= rungs).all()
    assert set(padded) <= set(rungs)
    assert len(set(padded)) <= _schedule.MOST_SIZES
    # a larger cloud is never padded to less, nor the largest to more than it needs
    assert (np.diff(padded[np.argsort(rungs, kind="stable")]) >= 0).all()
    assert padded.max() == rungs.max()


def test_a_compilation_is_worth_it_only_for_many_pairs():
    rungs = np.array([8] * 50 + [128] * 50)
    assert set(_schedule.padded_sizes(rungs, 1)) == {128}
    assert set(_schedule.padded_sizes(rungs, 1e9)) == {8, 128}


@quick
@given(available=st.integers(1, 100), width=st.integers(1, 300), data=st.data())
def test_fit_repeats_the_last(available, width, data):
    count = data.draw(st.integers(1, min(width, available)))
    positions = np.arange(10, 10 + count)
    found = _schedule.fit(positions, width, available)
    assert np.array_equal(found[:count], positions)
    assert (found[count:] == positions[-1]).all()
    assert len(found) <= width
    assert len(found) <= 2 * available
    # the length is the same for every part of the same whole
    assert len(found) == max(count, len(_schedule.fit(positions[:1], width, available)))


def test_run_keeps_the_order_and_does_not_run_ahead():
    started = []

    def work(task):
        started.append(task)
        time.sleep(0.01 if task % 2 else 0.0)
        return task * task

    results = _schedule.run(work, iter(range(50)), 2)
    first = [next(results) for _ in range(3)]
    assert first == [0, 1, 4]
    assert len(started) < 50
    assert list(results) == [task * task for task in range(3, 50)]
    assert sorted(started) == list(range(50))


def test_run_uses_several_threads():
    meeting = threading.Barrier(3, timeout=10)

    def work(_):
        meeting.wait()
        return threading.get_ident()

    assert len(set(_schedule.run(work, range(3), 3))) == 3
    assert _schedule.workers() >= 1


def test_run_stops_at_an_error():
    started = []

    def work(task):
        started.append(task)
        if task == 5:
            raise RuntimeError("the fifth")
        return task

    got = []
    with pytest.raises(RuntimeError, match="the fifth"):
        got.extend(_schedule.run(work, iter(range(10_000)), 2))
    assert got == [] or got == list(range(len(got)))
    assert len(started) < 100


def test_run_passes_on_an_error_of_the_tasks():
    def tasks():
        yield 1
        raise MemoryError("no room")

    with pytest.raises(MemoryError, match="no room"):
        list(_schedule.run(lambda task: task, tasks(), 2))


def test_run_of_nothing():
    assert list(_schedule.run(lambda task: task, [], 2)) == []


def test_giving_up_half_way_leaves_no_work_behind():
    done = []
    results = _schedule.run(done.append, iter(range(10_000)), 2)
    next(results)
    results.close()
    assert len(done) < 100
    before = threading.active_count()
    time.sleep(0.05)
    assert threading.active_count() <= before


@pytest.mark.parametrize("counts", [(9, 7), pytest.param((40, 40, 23), marks=pytest.mark.slow)])
def test_a_pair_of_sizes_is_compiled_once(counts, make, monkeypatch):
    """With compilation priced at nothing every rung is a size of its own."""
    monkeypatch.setattr(_schedule, "COMPILE", 0.0)
    dim = 6 + len(counts)  # no other test has this shape
    rungs = (4, 8, 16)[: len(counts)]
    first, second = (make(*np.repeat(rungs, counts), dim=dim, rng=seed, spread=0.1) for seed in (0, 1))
    before = _entropic._crossed._cache_size()
    wh.ot.pairwise(first, epsilon=0.5)
    compiled = _entropic._crossed._cache_size() - before
    assert compiled <= len(counts) * (len(counts) + 1) // 2
    assert compiled > 0
    before = [function._cache_size() for function in (_entropic._crossed, _entropic._alone)]
    wh.ot.pairwise(second, epsilon=0.5)
    wh.ot.pairwise(second, "W2", epsilon=0.2, tol=1e-2, max_iterations=500)
    assert [function._cache_size() for function in (_entropic._crossed, _entropic._alone)] == before


def test_cohorts_of_nearly_the_same_size_share_their_shapes(make):
    wh.ot.pairwise(make(*[8] * 14, dim=11), epsilon=0.5)
    before = _entropic._crossed._cache_size()
    for count in (9, 11, 16):
        wh.ot.pairwise(make(*[7] * count, dim=11), epsilon=0.5)
    assert _entropic._crossed._cache_size() == before
