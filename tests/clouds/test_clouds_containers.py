"""Points in memory, sparse, mapped and on disk make the same clouds, and are neither copied nor read whole."""

import numpy as np
import pytest
from scipy import sparse

from scwormhole.clouds import PointClouds
from scwormhole.clouds import _rows as rows


class Recorder:
    """An array on disk that remembers the most rows it was asked for at once."""

    def __init__(self, values):
        self.values = values
        self.most = 0

    @property
    def shape(self):
        return self.values.shape

    @property
    def dtype(self):
        return self.values.dtype

    def __getitem__(self, key):
        block = self.values[key]
        self.most = max(self.most, len(block))
        return block


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(rows, "CHUNK_BYTES", 64)


def test_clouds_agree(stored, dense, graph):
    expected, clouds = PointClouds.from_graph(dense, graph), PointClouds.from_graph(stored, graph)
    assert clouds == expected
    assert expected == clouds
    assert clouds.dtype == np.float32
    assert clouds[0].points.dtype == np.float32
    for one, other in zip(clouds, expected, strict=True):
        assert type(one.points) is np.ndarray
        np.testing.assert_array_equal(one.points, other.points)
        np.testing.assert_array_equal(one.weights, other.weights)


def test_padded_agree(stored, dense, graph):
    index = [3, 0, 11, 3]
    expected, batch = (PointClouds.from_graph(X, graph).padded(index, size=9) for X in (dense, stored))
    for one, other in zip(batch, expected, strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype


def test_groups_agree(stored, dense):
    labels = np.arange(40) % 7
    assert PointClouds.from_groups(stored, labels) == PointClouds.from_groups(dense, labels)


def test_one_chunk_at_a_time(stored, dense, graph, small_chunks, tmp_path):
    clouds = PointClouds.from_graph(stored, graph)
    assert clouds == PointClouds.from_graph(dense, graph)
    clouds.save(tmp_path / "clouds.npz")
    loaded = PointClouds.load(tmp_path / "clouds.npz")
    assert loaded == clouds
    assert sparse.issparse(loaded.points) == ("sparse" in repr(clouds))


def test_nan_is_found_wherever_it_is(put, dense, graph, small_chunks):
    dense[17, 1], dense[30, 2], dense[30, 0] = np.nan, np.inf, -np.inf
    message = r"points hold 1 NaN and 2 infinite values in 2 rows: 17, 30 \(in cloud"
    with put(dense) as points, pytest.raises(ValueError, match=message):
        PointClouds.from_graph(points, graph)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_memory_is_shared(dtype):
    X = np.ones((30, 2), dtype)
    graph = sparse.random_array((10, 30), density=0.3, rng=np.random.default_rng(0)) + sparse.eye_array(10, 30)
    for clouds in (PointClouds.from_graph(X, graph), PointClouds.from_groups(X, np.arange(30) % 3)):
        assert clouds.points is X
        assert clouds[:2].points is X
        assert (clouds[[0]] + clouds[[2]]).points is X


def test_large_graph_does_not_copy_points():
    n_points, k = 20_000, 10
    X = np.zeros((n_points, 50), np.float32)
    neighbours = np.random.default_rng(0).integers(0, n_points, n_points * k)
    graph = sparse.csr_matrix((np.ones(n_points * k), neighbours, np.arange(0, n_points * k + 1, k)))
    graph.resize(n_points, n_points)
    clouds = PointClouds.from_graph(X, graph)
    assert np.shares_memory(clouds.points, X)
    assert np.shares_memory(clouds[100:200].points, X)
    assert np.shares_memory(clouds[100:200].indices, clouds.indices)


def test_sparse_memory_is_shared(graph, dense):
    X = sparse.csr_matrix(dense)
    clouds = PointClouds.from_graph(X, graph)
    assert np.shares_memory(clouds.points.data, X.data)
    assert clouds.points is X


def test_spare_room_of_a_sparse_matrix_is_ignored(dense, graph, tmp_path):
    X = sparse.csr_array(dense)
    X.data, X.indices = np.append(X.data, np.float32("nan")), np.append(X.indices, X.indices[:1])
    clouds = PointClouds.from_graph(X, graph)
    clouds.save(tmp_path / "clouds.npz")
    assert PointClouds.load(tmp_path / "clouds.npz") == clouds == PointClouds.from_graph(dense, graph)


def test_scan_reads_chunks(monkeypatch):
    monkeypatch.setattr(rows, "CHUNK_BYTES", 1000)
    X = Recorder(np.ones((5000, 5)))
    clouds = PointClouds.from_groups(X, np.arange(5000) // 10)
    assert X.most == 25
    for batch in clouds.batches(3):
        assert batch.points.shape == (3, 12, 5)
    assert X.most == 25  # runs of rows, however many clouds a batch has


def test_default_chunk_is_bounded():
    X = Recorder(np.broadcast_to(np.float32(1), (3_000_000, 50)))
    PointClouds(X, [0, 2], [0, 1], [1, 1])
    assert X.most * 50 * 4 <= 2**25


def test_rows_on_disk_are_read_once():
    X = Recorder(np.arange(20.0).reshape(10, 2))
    clouds = PointClouds(X, [0, 3, 6], [1, 4, 4, 4, 1, 9], np.ones(6))
    X.most = 0
    np.testing.assert_array_equal(clouds.padded([1, 0]).points[0, :3], X.values[[4, 1, 9]])
    assert X.most == 0  # kept since they were looked at


@pytest.mark.parametrize(
    ("stored_as", "read_as"),
    [
        (bool, np.float64),
        (np.int8, np.float64),
        (np.uint64, np.float64),
        (np.float16, np.float32),
        (np.float32, np.float32),
        (np.float64, np.float64),
        (np.longdouble, np.float64),
    ],
)
def test_types(stored_as, read_as):
    X = np.array([[1, 0], [0, 1], [1, 1]]).astype(stored_as)
    for points in (X, Recorder(X), [X], [X[:1], X[1:]]):
        build = PointClouds.from_list if isinstance(points, list) else lambda p: PointClouds.from_groups(p, [0, 0, 1])
        clouds = build(points)
        assert clouds.dtype == clouds[0].points.dtype == clouds.padded([0]).points.dtype == read_as
        np.testing.assert_array_equal(clouds[-1].points[-1], [1, 1])


def test_mapped_integers_stay_on_disk(tmp_path):
    np.save(tmp_path / "counts.npy", np.arange(12).reshape(6, 2))
    X = np.load(tmp_path / "counts.npy", mmap_mode="r")
    clouds = PointClouds.from_groups(X, [0, 1, 0, 1, 0, 1])
    assert clouds.points is X
    assert clouds[1].points.dtype == np.float64


def test_arrays_of_other_libraries_are_taken_to_numpy():
    class InMemory(Recorder):
        def __dlpack__(self):
            raise NotImplementedError

        def __array__(self, dtype=None, copy=None):
            return self.values

    X = np.ones((4, 2))
    assert PointClouds.from_groups(InMemory(X), [0, 0, 1, 1]).points is X
