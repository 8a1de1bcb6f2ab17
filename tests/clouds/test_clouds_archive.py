"""Files hold a cohort exactly, appear whole or not at all, and say why when they cannot be read."""

import json
import os
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from scwormhole.clouds import PointClouds
from scwormhole.clouds import _archive as archive
from scwormhole.clouds import _rows as rows


@pytest.fixture
def clouds(dense, graph):
    return PointClouds.from_graph(dense, graph, names=[f"größe {i}" for i in range(12)])


@pytest.fixture
def saved(clouds, tmp_path):
    clouds.save(tmp_path / "clouds.npz")
    return tmp_path / "clouds.npz"


def rewrite(path, **changes):
    """Change entries of the header of a file."""
    with np.load(path) as file:
        arrays = dict(file)
    arrays["header"] = np.array(json.dumps({**json.loads(str(arrays["header"])), **changes}))
    np.savez(path, **arrays)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("container", [np.array, np.asfortranarray, sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("names", [None, "given"])
def test_round_trip(container, dtype, names, dense, graph, tmp_path):
    names = names and [f"niche {i}" for i in range(12)]
    clouds = PointClouds.from_graph(container(dense.astype(dtype)), graph, names)
    for number, cohort in enumerate((clouds, clouds[3:7], clouds[[9, 2]])):
        cohort.save(tmp_path / f"{number}.npz")
        loaded = PointClouds.load(tmp_path / f"{number}.npz")
        assert loaded == cohort
        assert loaded.points.dtype == dtype
        assert sparse.issparse(loaded.points) == sparse.issparse(cohort.points)
        assert loaded.n_points == cohort.n_points
        np.testing.assert_array_equal(loaded.weights, cohort.weights)
        np.testing.assert_array_equal(loaded.names, cohort.names)
        assert loaded.indices.dtype == loaded.indptr.dtype == np.int64


def test_round_trip_of_containers(stored, graph, tmp_path):
    clouds = PointClouds.from_graph(stored, graph)
    clouds.save(tmp_path / "clouds.npz")
    assert PointClouds.load(tmp_path / "clouds.npz") == clouds


def test_numpy_reads_the_file_without_pickle(saved, clouds):
    with np.load(saved, allow_pickle=False) as file:
        np.testing.assert_array_equal(file["points"], clouds.points)
        np.testing.assert_array_equal(file["names"], clouds.names)
        assert json.loads(str(file["header"]))["format"] == "scwormhole.PointClouds"


def test_same_clouds_same_bytes(saved, clouds, tmp_path):
    clouds.save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == saved.read_bytes()


def test_points_on_disk_are_streamed(tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "CHUNK_BYTES", 2**18)
    monkeypatch.setattr(archive, "CHUNK_BYTES", 2**18)
    shape = (200_000, 16)
    points = np.lib.format.open_memmap(tmp_path / "points.npy", mode="w+", dtype=np.float64, shape=shape)
    points[:, 0] = np.arange(len(points))
    clouds = PointClouds(points, [0, 2], [1, len(points) - 1], [1, 1])
    tracemalloc.start()
    try:
        clouds.save(tmp_path / "clouds.npz")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < points.nbytes / 10
    assert PointClouds.load(tmp_path / "clouds.npz") == clouds


def test_never_overwrites_unasked(saved, clouds):
    with pytest.raises(FileExistsError, match=r"clouds.npz' exists; pass overwrite=True to replace it"):
        clouds[:2].save(saved)
    assert PointClouds.load(saved) == clouds
    clouds[:2].save(str(saved), overwrite=True)
    assert PointClouds.load(str(saved)) == clouds[:2]
    assert os.listdir(saved.parent) == ["clouds.npz"]


def test_a_failure_leaves_the_old_file(saved, clouds, monkeypatch):
    def fail(*arguments):
        raise RuntimeError("the disk is full")

    monkeypatch.setattr(archive, "row_chunks", fail)
    with pytest.raises(RuntimeError, match="the disk is full"):
        clouds[:2].save(saved, overwrite=True)
    monkeypatch.undo()
    assert os.listdir(saved.parent) == ["clouds.npz"]
    assert PointClouds.load(saved) == clouds


def test_a_file_that_appears_meanwhile_is_kept(clouds, tmp_path, monkeypatch):
    write = archive._write_members

    def write_slowly(*arguments):
        write(*arguments)
        (tmp_path / "clouds.npz").write_text("somebody else's")

    monkeypatch.setattr(archive, "_write_members", write_slowly)
    with pytest.raises(FileExistsError, match="exists"):
        clouds.save(tmp_path / "clouds.npz")
    assert (tmp_path / "clouds.npz").read_text() == "somebody else's"


def test_places_that_cannot_be_written(clouds, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*missing'; create it first"):
        clouds.save(tmp_path / "missing" / "clouds.npz")
    with pytest.raises(IsADirectoryError, match="is a folder; give the name of a file"):
        clouds.save(tmp_path, overwrite=True)


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        PointClouds.load(tmp_path / "clouds.npz")


def test_newer_version(saved):
    rewrite(saved, version=2)
    with pytest.raises(
        ValueError, match="version 2 of the format, and this scwormhole reads up to 1; update scwormhole"
    ):
        PointClouds.load(saved)


def test_other_format(saved):
    rewrite(saved, format="somebody.Else")
    with pytest.raises(ValueError, match=r"has the format 'somebody.Else', and 'scwormhole.PointClouds' is read here"):
        PointClouds.load(saved)


def test_foreign_npz(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.eye(2))
    with pytest.raises(ValueError, match=r"is no file of PointClouds, it holds x.npy; give one that .save\(\) wrote"):
        PointClouds.load(tmp_path / "a.npz")


@pytest.mark.parametrize("content", [b"", b"hello", b"\x93NUMPY", b"PK\x05\x06" + bytes(18)], ids=repr)
def test_foreign_bytes(content, tmp_path):
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(ValueError, match="no file of PointClouds"):
        PointClouds.load(tmp_path / "a.npz")


def test_pickled_arrays_are_refused(saved):
    with np.load(saved) as file:
        arrays = dict(file)
    arrays["names"] = arrays["names"].astype(object)
    np.savez(saved, **arrays)
    with pytest.raises(ValueError, match=r"damaged or no file of PointClouds .*allow_pickle"):
        PointClouds.load(saved)


@pytest.mark.parametrize(
    ("member", "change"),
    [
        ("indices", lambda a: a + 1000),
        ("indices", lambda a: a[:-1]),
        ("indptr", lambda a: a[::-1]),
        ("weights", lambda a: -a),
        ("weights", lambda a: a[:-1]),
        ("names", lambda a: a[:-1]),
        ("points", lambda a: a[0]),
        ("points", None),
    ],
)
def test_inconsistent_members(saved, member, change):
    with np.load(saved) as file:
        arrays = dict(file)
    if change is None:
        del arrays[member]
    else:
        arrays[member] = change(arrays[member])
    np.savez(saved, **arrays)
    with pytest.raises(ValueError, match="is damaged or no file of PointClouds"):
        PointClouds.load(saved)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_damage_is_refused_or_harmless(saved, clouds, data):
    content = bytearray(saved.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        content = content[:place]
    else:
        content[place] ^= data.draw(st.integers(1, 255))
    damaged = saved.with_name("damaged.npz")
    damaged.write_bytes(content)
    try:
        loaded = PointClouds.load(damaged)
    except ValueError:
        return
    assert loaded == clouds  # a time stamp was hit, or another field that carries nothing


def test_members_are_stored_plain(saved):
    with zipfile.ZipFile(saved) as file:
        assert {info.compress_type for info in file.infolist()} == {zipfile.ZIP_STORED}
