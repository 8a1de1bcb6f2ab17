"""Batches: of one shape, of the cohort's mix of sizes, each cloud in its turn."""

import numpy as np
import pytest

from scwormhole.train._blocks import MOST_TURNS, step_flops, turns_for
from scwormhole.train._settings import Network
from scwormhole.train._strata import MOST_STRATA, Strata, stratify

COHORTS = {
    "one size": np.full(20, 8),
    "two sizes": np.repeat([8, 64], [30, 10]),
    "many sizes": np.repeat([4, 8, 12, 16, 24, 32, 48], [3, 9, 20, 31, 14, 5, 2]),
    "one giant": np.repeat([8, 512], [50, 1]),
    "two clouds": np.array([8, 16]),
    "skewed": np.repeat([8, 16, 512], [1000, 1, 1]),
}
cohorts = pytest.mark.parametrize("rungs", COHORTS.values(), ids=COHORTS.keys())


@cohorts
@pytest.mark.parametrize("batch_size", [2, 7, 32])
def test_every_batch_has_one_shape_and_no_repeats(rungs, batch_size):
    rungs = np.random.default_rng(0).permutation(rungs)
    strata = stratify(rungs, batch_size, 0)
    assert len(strata.sizes) <= MOST_STRATA
    assert strata.batch_size == sum(strata.counts) == min(batch_size, len(rungs))
    np.testing.assert_array_equal(np.sort(np.concatenate(strata.members)), np.arange(len(rungs)))
    room = np.repeat(strata.sizes, strata.counts)
    for number in range(40):
        batch = strata.batch(number)
        assert len(batch) == len(np.unique(batch)) == strata.batch_size
        assert (rungs[batch] <= room).all()


@cohorts
def test_each_cloud_has_its_turn(rungs):
    strata = stratify(rungs, 7, 0)
    most = max(len(members) // count for members, count in zip(strata.members, strata.counts, strict=True))
    seen = np.concatenate([strata.batch(number) for number in range(10 * most)])
    assert len(np.unique(seen)) == len(rungs)
    for members, count in zip(strata.members, strata.counts, strict=True):
        epoch = len(members) // count
        once = np.concatenate([strata.batch(number) for number in range(epoch)])
        assert np.bincount(once, minlength=len(rungs))[members].max() == 1


def test_batches_follow_from_number_and_seed():
    one, same, other = (stratify(COHORTS["many sizes"], 16, seed) for seed in (0, 0, 1))
    for number in (0, 5, 41):
        np.testing.assert_array_equal(one.batch(number), same.batch(number))
        assert (one.batch(number) != other.batch(number)).any()


def test_strata_save_padding():
    rungs = COHORTS["one giant"]
    strata = stratify(rungs, 16, 0)
    assert strata.sizes == (8, 512)
    assert strata.counts == (15, 1)


def test_pairs_of_a_batch():
    assert stratify(np.full(20, 8), 6, 0).n_pairs == 15


@pytest.mark.parametrize("gromov", [False, True])
@pytest.mark.parametrize("size", [1, 8, 64, 512, 4096])
@pytest.mark.parametrize("batch_size", [2, 32, 256])
@pytest.mark.parametrize("network", [Network(), Network(width=8, hidden=8, n_blocks=1)], ids=["default", "tiny"])
def test_turns_are_within_bounds(network, batch_size, size, gromov):
    strata = Strata((np.arange(batch_size),), (size,), (batch_size,), 0)
    turns = turns_for(float(size**2), strata, network, gromov=gromov)
    assert isinstance(turns, int)
    assert 1 <= turns <= MOST_TURNS
    assert turns_for(float(size**2), strata, network, gromov=True) >= turns


def test_a_step_costs_more_with_larger_clouds():
    small, large = (Strata((np.arange(4),), (size,), (4,), 0) for size in (8, 64))
    assert step_flops(large, Network()) >= 8 * step_flops(small, Network()) > 0


def test_without_blocks_a_step_still_has_turns():
    assert 1 <= turns_for(64.0, stratify(np.full(20, 8), 6, 0), Network(n_blocks=0), gromov=False) <= MOST_TURNS


def test_a_batch_does_not_shuffle_the_cohort_again(monkeypatch):
    strata = stratify(np.full(1000, 8), 10, 5)
    shuffled, original = [], np.random.default_rng

    def counted(seed):
        shuffled.append(seed)
        return original(seed)

    monkeypatch.setattr(np.random, "default_rng", counted)
    batches = [strata.batch(number) for number in range(300)]
    assert len(shuffled) == 3  # once an epoch
    assert len({tuple(np.sort(np.concatenate(batches[e : e + 100]))) for e in (0, 100, 200)}) == 1
