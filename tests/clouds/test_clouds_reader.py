"""Points that are not in memory are read a run at a time, kept while they fit, and known again."""

import pickle

import dask.array
import h5py
import numpy as np
import pytest
import zarr
from scipy import sparse

from scwormhole.clouds import PointClouds
from scwormhole.clouds import _rows as rows
from scwormhole.clouds._reader import Reader, source_of

POINTS = np.random.default_rng(0).normal(size=(1000, 4)).astype(np.float32)
RUN = 50  # rows


class Store:
    """An array on disk that counts what it is asked for, and can be spoiled."""

    def __init__(self, values=POINTS):
        self.values, self.shape, self.dtype, self.asked = values.copy(), values.shape, values.dtype, []

    def __getitem__(self, key):
        self.asked.append(key)
        return self.values[key]


@pytest.fixture(autouse=True)
def short_runs(monkeypatch):
    monkeypatch.setattr(rows, "CHUNK_BYTES", RUN * 4 * 4)


def niches(points, n=1000, size=7):
    return PointClouds(
        points, np.arange(0, n * size + 1, size), (np.arange(n * size) // size * 3) % n, np.ones(n * size)
    )


def test_runs_are_read_once_while_they_fit():
    store = Store()
    clouds = niches(store)  # a first look for what is not finite
    assert len(store.asked) == 20
    assert all(isinstance(key, slice) and key.stop - key.start == RUN for key in store.asked)
    for start in range(0, 1000, 100):
        clouds.padded(np.arange(start, start + 100))
    assert len(store.asked) == 20
    np.testing.assert_array_equal(clouds.padded([3, 900]).points[1, 0], POINTS[900 * 3 % 1000])


def test_no_more_is_kept_than_was_allowed():
    store = Store()
    clouds = niches(store)
    with clouds.reading(3 * RUN * 16):
        store.asked.clear()
        clouds.padded(np.arange(10))
        assert len(store.asked) == 1  # all but the last three runs were forgotten
        assert sum(block.nbytes for block in clouds._layout.points._kept.values()) <= 3 * RUN * 16
    clouds.padded(np.arange(200))
    assert len(clouds._layout.points._kept) > 3


@pytest.mark.parametrize("key", [slice(3, 140), slice(None), slice(40, 60), np.array([0, 49, 50, 999]), slice(5, 5)])
def test_rows_are_those_of_the_source(key):
    np.testing.assert_array_equal(Reader(Store())[key], POINTS[key])


def test_sparse_rows_stay_sparse():
    held = sparse.random_array((300, 20), density=0.1, format="csr", rng=np.random.default_rng(0), dtype=np.float32)
    lazy = dask.array.from_array(held, chunks=(70, 20))
    reader = Reader(lazy)
    found = reader[np.array([3, 80, 299])]
    assert sparse.issparse(found)
    np.testing.assert_array_equal(found.toarray(), held.toarray()[[3, 80, 299]])


@pytest.mark.parametrize(("length", "expected"), [(7, 49), (25, 50), (50, 50), (120, 120), (500, 50)])
def test_runs_end_where_those_of_the_store_do(length, expected, tmp_path):
    with h5py.File(tmp_path / "points.h5", "w") as file:
        stored = file.create_dataset("points", data=POINTS, chunks=(length, 4))
        assert Reader(stored).rows_at_once == expected
    assert Reader(dask.array.from_array(POINTS, chunks=(length, 4))).rows_at_once == expected


def test_a_store_that_changes_is_noticed():
    store = Store()
    clouds = niches(store)
    store.values[120] += 1
    with clouds.reading(0):
        clouds.padded([0])
        with pytest.raises(OSError, match=r"rows 100 to 149 of the points are not what they were .* was changed"):
            clouds.padded([40])


def test_a_store_that_is_cut_is_noticed():
    store = Store()
    clouds = niches(store)
    store.values = store.values[:970]
    clouds.padded([0])
    with clouds.reading(0), pytest.raises(OSError, match=r"rows 950 to 999 .* shape \(20, 4\).* was cut"):
        clouds.padded([330])


def test_a_store_that_is_gone_is_noticed(tmp_path):
    stored = zarr.open(str(tmp_path / "points.zarr"), mode="w", shape=POINTS.shape, dtype="f4", chunks=(50, 4))
    stored[:] = POINTS
    clouds = niches(stored)
    for chunk in (tmp_path / "points.zarr").rglob("*"):
        if chunk.is_file() and "json" not in chunk.name:
            chunk.write_bytes(chunk.read_bytes()[:20])
    with clouds.reading(0), pytest.raises(OSError, match=r"rows 0 to 49 of the points cannot be read \("):
        clouds.padded([0])


def test_in_memory_are_the_points_of_clouds_alone():
    store = Store()
    some = niches(store)[[5, 300, 301]]
    loaded = some.to_memory()
    assert loaded == some
    assert loaded.n_points == 3
    assert isinstance(loaded.points, np.ndarray)
    np.testing.assert_array_equal(loaded.shared_mass(), some.shared_mass())


@pytest.mark.parametrize(
    "make", [sparse.csr_matrix, lambda x: dask.array.from_array(sparse.csr_matrix(x), chunks=(60, 4))]
)
def test_in_memory_sparse_points_stay_sparse(make):
    some = niches(make(POINTS))[::7]
    loaded = some.to_memory()
    assert sparse.issparse(loaded.points)
    assert loaded == some


def test_cohorts_over_one_store_share_their_points():
    store = Store()
    one, other = niches(store), niches(store)
    assert source_of(one._layout.points) is store
    np.testing.assert_allclose(one.shared_mass_with(other), 1)
    assert PointClouds.concatenate([one, other], names=[str(i) for i in range(2000)]).points is store


def test_a_copy_reads_for_itself_and_notices_changes():
    values = np.random.default_rng(0).normal(size=(30, 3))
    clouds = PointClouds.from_groups(dask.array.from_array(values, chunks=(10, 3)), np.repeat(np.arange(6), 5))
    copied = pickle.loads(pickle.dumps(clouds))
    np.testing.assert_array_equal(copied.padded(np.arange(6)).points, clouds.padded(np.arange(6)).points)


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
def test_what_loading_takes_is_told_in_what_is_loaded(dtype):
    values = np.arange(40, dtype=dtype).reshape(20, 2)
    clouds = PointClouds.from_groups(dask.array.from_array(values, chunks=(10, 2)), np.repeat(np.arange(4), 5))
    assert clouds.unread_bytes == clouds.to_memory().points.nbytes
