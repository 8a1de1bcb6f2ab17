"""Ways to solve beside plain Sinkhorn, samples of large clouds, and memory."""

import json
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import scwormhole as wh


def groups(n, shift, rng):
    """A cloud of four tight groups: its coupling with another such cloud has a rank of few."""
    centres = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0], [10.0, 10.0]])
    return centres[np.arange(n) % 4] + shift + 0.1 * rng.normal(size=(n, 2))


@pytest.fixture(scope="module")
def large(make):
    return make(200, 150, 24, 20, rng=21)


def test_a_sample_is_seeded_and_told(large):
    found, info = wh.ot.pairwise(large, max_points=24, return_info=True)
    expected = np.array([[True, True, True, True], [True, True, True, True], [True, True, False, False]])
    assert np.array_equal(info.sampled[:3], expected)
    assert np.array_equal(info.sampled, info.sampled.T)
    assert set(info.solver[info.sampled]) == {"sinkhorn on 24 points"}
    assert set(info.solver[~info.sampled]) == {"sinkhorn"}
    assert "24 points" in repr(info)
    assert np.array_equal(found, wh.ot.pairwise(large, max_points=24))
    other = wh.ot.pairwise(large, max_points=24, rng=1)
    assert not np.allclose(other[0, 1], found[0, 1], rtol=1e-3)
    np.testing.assert_allclose(other[2, 3], found[2, 3], rtol=1e-5)


def test_what_is_small_enough_is_not_sampled(large):
    small = large[[2, 3]]
    found, info = wh.ot.pairwise(small, max_points=24, return_info=True)
    assert not info.sampled.any()
    assert np.array_equal(found, wh.ot.pairwise(small))


def test_samples_one_to_one(large):
    found, info = wh.ot.distances(large[[0, 2]], large[[1, 3]], max_points=24, return_info=True)
    assert info.sampled.tolist() == [True, False]
    assert info.solver.tolist() == ["sinkhorn on 24 points", "sinkhorn"]
    assert np.isfinite(found).all()


@pytest.mark.parametrize("metric", ["S2", "S1"])
def test_a_sample_is_near_the_whole(large, metric):
    whole = wh.ot.pairwise(large, metric, epsilon=1.0, relative_epsilon=None)
    samples = [
        wh.ot.pairwise(large, metric, epsilon=1.0, relative_epsilon=None, max_points=24, rng=k) for k in range(4)
    ]
    np.testing.assert_allclose(np.mean(samples, 0)[0, 1:], whole[0, 1:], rtol=0.5)


def test_a_sample_respects_weights():
    """Nearly all of the weight is on two places: the many points elsewhere hardly count."""
    places = np.r_[np.zeros((50, 1)), np.ones((50, 1)), np.full((100, 1), 1000.0)]
    weights = np.r_[np.full(50, 0.3 / 50), np.full(50, 0.7 / 50), np.full(100, 1e-9)]
    clouds = wh.PointClouds.from_list([places, np.zeros((1, 1))], [weights, [1.0]])
    found = [wh.ot.pairwise(clouds, "W1", solver="exact", max_points=20, rng=seed)[0, 1] for seed in range(50)]
    assert np.mean(found) == pytest.approx(0.7, abs=0.05)
    assert max(found) <= 1  # a single one of the others would add fifty


def test_a_sample_of_a_heavy_point_repeats_it():
    rng = np.random.default_rng(0)
    weights = np.r_[0.5, np.full(99, 0.5 / 99)]
    points = np.r_[[[5.0]], rng.normal(size=(99, 1))]
    clouds = wh.PointClouds.from_list([points, np.zeros((1, 1))], [weights, [1.0]])
    found = [wh.ot.pairwise(clouds, "W1", solver="exact", max_points=20, rng=k)[0, 1] for k in range(10)]
    assert np.mean(found) == pytest.approx(2.5 + 0.5 * np.abs(points[1:]).mean(), rel=0.1)


def test_low_rank_is_near_the_exact_cost_of_a_low_rank_problem():
    rng = np.random.default_rng(1)
    clouds = wh.PointClouds.from_list([groups(24, 0.0, rng), groups(24, [2.0, 1.0], rng)])
    exact = wh.ot.pairwise(clouds, solver="exact")[0, 1]
    found, info = wh.ot.pairwise(clouds, "W2", solver="low_rank", rank=8, return_info=True)
    assert set(info.solver.ravel()) == {"low_rank"}
    assert info.epsilon == 0
    # a coupling of low rank is a coupling, so its cost is an upper bound
    assert found[0, 1] >= exact * (1 - 1e-3)
    assert found[0, 1] <= exact * 1.1
    assert np.diag(found).max() <= 0.1 * exact


@pytest.mark.slow
def test_low_rank_divergence_of_larger_clouds():
    rng = np.random.default_rng(2)
    clouds = wh.PointClouds.from_list(
        [groups(n, shift, rng) for n, shift in ((400, 0.0), (300, 1.0), (350, [3.0, 0.0]))]
    )
    exact = wh.ot.pairwise(clouds, solver="exact")
    for metric in ("S2", "W2"):
        found = wh.ot.pairwise(clouds, metric, solver="low_rank", rank=16)
        np.testing.assert_allclose(found, exact, rtol=0.1, atol=0.05 * exact.max())


def raised(x, y):
    return ((x - y) ** 2).sum() + 1.0


def test_exact_takes_out_what_a_cloud_costs_against_itself(make):
    clouds = make(5, 8)
    plain = wh.ot.pairwise(clouds, solver="exact")
    np.testing.assert_allclose(wh.ot.pairwise(clouds, raised, solver="exact"), plain, atol=1e-9)


def test_exact_needs_pot(monkeypatch, make):
    monkeypatch.setitem(sys.modules, "ot", None)
    with pytest.raises(ImportError, match=r"pip install 'scwormhole\[exact\]'"):
        wh.ot.pairwise(make(5, 5), solver="exact")
    with pytest.raises(ImportError, match="POT"):
        wh.ot.coupling(np.eye(2), np.eye(2), solver="exact")
    assert wh.ot.pairwise(make(20, 24)).shape == (2, 2)


@pytest.mark.parametrize("metric", ["S2", "GW"])
@pytest.mark.parametrize("memory", ["3 kB", 3000, "0.003MB"])
def test_a_pair_that_does_not_fit_is_refused(metric, memory, make):
    with pytest.raises(
        MemoryError, match=r"24 and 24 points takes 0\.0.* MiB, and max_memory is 0\.00286 MiB.*max_points"
    ):
        wh.ot.pairwise(make(20, 24), metric, max_memory=memory)
    with pytest.raises(MemoryError, match="max_memory"):
        wh.ot.distances(make(20), make(24), metric, max_memory=memory)


@pytest.mark.parametrize(
    "memory",
    ["", "much", "2 potatoes", "-1 GiB", "1.2.3 GiB", ".", 0, -5, "0 GiB", None, float("nan"), float("inf"), [1]],
)
def test_memory_that_says_nothing(memory, make):
    with pytest.raises((ValueError, TypeError), match="max_memory"):
        wh.ot.pairwise(make(5, 5), max_memory=memory)


@pytest.mark.parametrize(
    "memory", [10**9, 1e9, "1 GB", "1GiB", " 0.5 gib ", "500 MB", "800000 kB", "1000000000", "900000000 bytes"]
)
def test_memory_in_many_words(memory, make):
    assert wh.ot.pairwise(make(5, 5), max_memory=memory).shape == (2, 2)


PEAK = """
import json, resource, sys
import numpy as np
import scwormhole as wh

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

options = json.loads(sys.argv[1])
size = options.pop("size")
clouds = wh.PointClouds.from_list(list(np.random.default_rng(0).normal(size=(4, size, 3))))
small = wh.PointClouds.from_list(list(np.random.default_rng(0).normal(size=(4, 8, 3))))
wh.ot.pairwise(small, max_iterations=50, **{**options, "max_memory": "1 GiB"})
before = peak()
wh.ot.pairwise(clouds, max_iterations=50, **options)
sys.stdout.write(str(peak() - before))
"""


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["S2", "S1", "GW"])
@pytest.mark.parametrize("per_core", ["least", "2 GiB"])
def test_memory_is_respected(metric, per_core):
    """Also where it is hardly enough for one pair on each core."""
    size, cores = 2048, os.cpu_count()
    least = {"S2": 16, "S1": 16, "GW": 24}[metric] * size**2 * cores
    allowed = least if per_core == "least" else 2 * 2**30
    options = json.dumps({"size": size, "metric": metric, "epsilon": 0.5, "progress": False, "max_memory": allowed})
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(PEAK), options],
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(run.stdout) <= 1.1 * allowed
