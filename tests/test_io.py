"""Folders of plain data: exact, refused if damaged, never half written."""

import json

import numpy as np
import pytest

from scwormhole import io
from scwormhole.io import ARRAYS, HEADER, read_folder, write_folder

HEAD = {"kind": "thing", "format": 2, "name": "a", "numbers": [1, 2.5, None], "nan": float("nan")}
DATA = {"x": np.arange(6.0).reshape(2, 3), "y": np.array(3, np.int64), "z": np.zeros((0, 4), np.float32)}


@pytest.fixture
def folder(tmp_path):
    write_folder(tmp_path / "thing", HEAD, DATA)
    return tmp_path / "thing"


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def fail(*args):
    raise OSError("disk full")


def test_what_is_read_is_what_was_written(folder):
    header, arrays = read_folder(folder, "thing", 2)
    assert json.dumps(header) == json.dumps(HEAD)
    assert arrays.keys() == DATA.keys()
    for name, array in DATA.items():
        assert arrays[name].dtype == array.dtype
        assert arrays[name].shape == array.shape
        np.testing.assert_array_equal(arrays[name], array)


@pytest.mark.parametrize("array", [np.arange(12.0).reshape(3, 4).T, np.arange(10)[::3], np.asfortranarray(np.eye(3))])
def test_arrays_of_any_order(tmp_path, array):
    write_folder(tmp_path / "thing", HEAD, {"x": array})
    np.testing.assert_array_equal(read_folder(tmp_path / "thing", "thing", 2).arrays["x"], array)


def test_folders_are_made_where_they_are_wanted(tmp_path):
    write_folder(tmp_path / "deep" / "down" / "thing", HEAD, DATA)
    assert names(tmp_path / "deep" / "down") == ["thing"]


def test_nothing_is_overwritten_unasked(folder):
    with pytest.raises(FileExistsError, match="overwrite=True"):
        write_folder(folder, HEAD, {})
    assert read_folder(folder, "thing", 2).arrays.keys() == DATA.keys()


def test_the_same_kind_is_replaced_when_asked(folder):
    write_folder(folder, {**HEAD, "name": "b"}, {"w": np.ones(2)}, overwrite=True)
    header, arrays = read_folder(folder, "thing", 2)
    assert header["name"] == "b"
    assert list(arrays) == ["w"]
    assert names(folder.parent) == ["thing"]


@pytest.mark.parametrize("content", [None, "", "[]", '{"kind": "other"}'])
def test_a_foreign_folder_is_never_replaced(tmp_path, content):
    target = tmp_path / "mine"
    target.mkdir()
    (target / "precious").write_text("data")
    if content is not None:
        (target / HEADER).write_text(content)
    with pytest.raises(FileExistsError, match="not a thing"):
        write_folder(target, HEAD, DATA, overwrite=True)
    assert (target / "precious").read_text() == "data"
    assert not (target / ARRAYS).exists()


def test_a_file_is_never_replaced(tmp_path):
    (tmp_path / "file").write_text("data")
    with pytest.raises(FileExistsError):
        write_folder(tmp_path / "file", HEAD, DATA, overwrite=True)
    assert (tmp_path / "file").read_text() == "data"


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(io, "save_file", fail)
    with pytest.raises(OSError, match="disk full"):
        write_folder(tmp_path / "thing", HEAD, DATA)
    assert names(tmp_path) == []


def test_a_failed_overwrite_leaves_what_was_there(folder, monkeypatch):
    monkeypatch.setattr(io, "save_file", fail)
    with pytest.raises(OSError, match="disk full"):
        write_folder(folder, {**HEAD, "name": "b"}, {}, overwrite=True)
    assert read_folder(folder, "thing", 2).header["name"] == "a"
    assert names(folder.parent) == ["thing"]


def test_a_header_that_json_cannot_hold_leaves_nothing(tmp_path):
    with pytest.raises(TypeError):
        write_folder(tmp_path / "thing", {**HEAD, "bad": object()}, DATA)
    assert names(tmp_path) == []


def test_missing(folder, tmp_path):
    with pytest.raises(FileNotFoundError, match="is not there"):
        read_folder(tmp_path / "nowhere", "thing", 2)
    (folder / ARRAYS).unlink()
    with pytest.raises(FileNotFoundError, match=f"has no {ARRAYS}"):
        read_folder(folder, "thing", 2)


@pytest.mark.parametrize("name", [HEADER, ARRAYS])
@pytest.mark.parametrize("left", [0, 0.5, 0.95])
def test_truncated(folder, name, left):
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[: int(left * len(whole))])
    with pytest.raises(ValueError, match="is damaged"):
        read_folder(folder, "thing", 2)


@pytest.mark.parametrize("header", [{"format": 2}, {"kind": "other", "format": 2}, [], 3, None])
def test_foreign(folder, header):
    (folder / HEADER).write_text(json.dumps(header))
    with pytest.raises(ValueError, match="not a thing"):
        read_folder(folder, "thing", 2)


def test_newer_and_without_format(folder):
    with pytest.raises(ValueError, match=r"format 2.*up to 1.*newer scwormhole"):
        read_folder(folder, "thing", 1)
    (folder / HEADER).write_text(json.dumps({"kind": "thing"}))
    with pytest.raises(ValueError, match="has no format"):
        read_folder(folder, "thing", 2)
