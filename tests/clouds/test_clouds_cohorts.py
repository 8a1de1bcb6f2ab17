"""Cohorts put together, compared and described."""

import copy
import subprocess
import sys

import h5py
import numpy as np
import pytest
from scipy import sparse

from scwormhole.clouds import PointClouds


def cohort(n=3, names=None, dim=2, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 6, n)
    weights = [rng.random(size) + 0.1 for size in sizes]
    return PointClouds.from_list([rng.normal(size=(size, dim)).astype(dtype) for size in sizes], weights, names)


def test_concatenate():
    a, b = cohort(names=["a", "b", "c"]), cohort(2, names=["d", "e"], seed=1)
    both = PointClouds.concatenate([a, b])
    assert both == a + b
    assert both.names.tolist() == list("abcde")
    assert both[:3] == a
    assert both[3:] == b
    assert PointClouds.concatenate([a]) == a


def test_concatenate_shares_points():
    a, b = cohort(5), cohort(2, seed=1)
    halves = PointClouds.concatenate([a[3:], a[:3]])
    assert halves.points is a.points
    assert halves.names.tolist() == ["3", "4", "0", "1", "2"]
    assert halves[["0", "1", "2", "3", "4"]] == a
    mixed = PointClouds.concatenate([a[:2], b, a[2:]])
    assert mixed.n_points == a.n_points + b.n_points
    assert [len(cloud.points) for cloud in mixed] == [*a.sizes[:2], *b.sizes, *a.sizes[2:]]
    np.testing.assert_array_equal(mixed[2].points, b[0].points)
    np.testing.assert_array_equal(mixed[6].points, a[4].points)


def test_default_numbers_are_counted_anew():
    assert (cohort(3) + cohort(2, seed=1)).names.tolist() == ["0", "1", "2", "3", "4"]


def test_given_names_must_differ():
    a, b = cohort(names=["a", "b", "c"]), cohort(2, names=["b", "d"])
    with pytest.raises(ValueError, match="these occur more than once: 'b'"):
        a + b
    assert PointClouds.concatenate([a, b], names=list("vwxyz")).names.tolist() == list("vwxyz")
    assert (a + cohort(2)).names.tolist() == ["a", "b", "c", "0", "1"]


def test_concatenate_types():
    assert (cohort(dtype=np.float32) + cohort(dtype=np.float64)).dtype == np.float64
    assert (cohort(dtype=np.float32) + cohort(dtype=np.float32)).dtype == np.float32
    thin = PointClouds.from_list([sparse.csr_array(np.eye(2))])
    assert sparse.issparse((thin + copy.deepcopy(thin)).points)
    with pytest.warns(UserWarning, match="1 of 2 parts are sparse and are made dense"):
        assert isinstance((thin + cohort()).points, np.ndarray)


def test_concatenate_on_disk(tmp_path):
    a = cohort()
    with h5py.File(tmp_path / "points.h5", "w") as file:
        stored = PointClouds(file.create_dataset("X", data=a.points), a.indptr, a.indices, a.weights)
        assert (stored[:1] + stored[1:]).points is stored.points
        with pytest.warns(UserWarning, match="put together in memory, points on disk too"):
            both = stored + cohort(2, seed=1)
    assert both[:3] == a


def test_concatenate_refuses():
    with pytest.raises(ValueError, match="nothing to concatenate"):
        PointClouds.concatenate([])
    with pytest.raises(TypeError, match=r"cohorts\[1\] is a ndarray; only PointClouds"):
        PointClouds.concatenate([cohort(), np.eye(2)])
    with pytest.raises(ValueError, match=r"2 dimensions in 3 clouds \(first cloud 0\), 3 dimensions in 2 clouds"):
        cohort() + cohort(2, dim=3)
    with pytest.raises(TypeError, match="unsupported operand"):
        cohort() + 1


def test_equality_is_of_contents():
    a = cohort(5)
    assert a == cohort(5)
    assert a == PointClouds(sparse.csr_array(a.points), a.indptr, a.indices, a.weights)
    shuffled = np.random.default_rng(0).permutation(a.n_points)
    assert a == PointClouds(a.points[shuffled], a.indptr, np.argsort(shuffled)[a.indices], a.weights)
    assert a == PointClouds(a.points, a.indptr, a.indices, a.weights, names=list("01234"))


def test_inequality():
    a = cohort(5)
    moved = a.points.copy()
    moved[-1, -1] += 1e-9
    assert a != PointClouds(moved, a.indptr, a.indices, a.weights)
    assert a != PointClouds(a.points, a.indptr, a.indices, np.ones(len(a.weights)))
    assert a != PointClouds(a.points, a.indptr, a.indices, a.weights, names=list("abcde"))
    assert a != a[:4]
    assert a != a[::-1]
    assert a != cohort(5, dim=3)
    assert a != "clouds"
    assert (a == 1) is False


def test_cohorts_are_not_hashable():
    with pytest.raises(TypeError, match="unhashable"):
        hash(cohort())


def test_copies_are_equal():
    a = cohort()
    assert copy.deepcopy(a) == a
    assert copy.copy(a).points is a.points


def test_repr():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1300, 2))
    labels = np.repeat(np.arange(4), [22, 203, 98, 977])
    assert repr(PointClouds.from_groups(X, labels)) == (
        "PointClouds: 4 clouds of 22 to 977 points (median 150.5) in 2 dimensions, over 1,300 shared points (float64), "
        "uniform weights"
    )
    one = PointClouds.from_groups(sparse.csr_array(X[:1, :1].astype(np.float32)), [0])
    assert repr(one) == (
        "PointClouds: 1 cloud of 1 point in 1 dimension, over 1 shared point (float32, sparse), uniform weights"
    )
    weighted = PointClouds.from_groups(X, np.arange(1300) // 13, weights=rng.random(1300))
    assert repr(weighted).startswith("PointClouds: 100 clouds of 13 points in 2 dimensions, over 1,300 shared")
    assert repr(weighted).endswith("(float64), non-uniform weights")


def test_repr_says_where_points_are(stored):
    said = repr(PointClouds.from_groups(stored, np.arange(40) % 4))
    kind = f"{type(stored).__module__} {type(stored).__name__}"
    assert ("on disk" in said) == any(word in kind for word in ("memmap", "h5py", "zarr", "CSRDataset"))
    assert ("lazy" in said) == ("dask" in kind)


def test_import_is_light():
    code = (
        "import sys, scwormhole.clouds; print({'jax', 'pandas', 'anndata', 'h5py', 'zarr', 'dask'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_the_callers_arrays_stay_the_callers():
    indptr, indices, weights = np.array([0, 2, 3]), np.array([0, 1, 2]), np.array([0.5, 0.5, 1.0])
    clouds = PointClouds(np.eye(3), indptr, indices, weights)
    before = PointClouds(np.eye(3), indptr.copy(), indices.copy(), weights.copy())
    indptr[1], indices[0], weights[0] = 1, 2, 0.9
    assert clouds == before
