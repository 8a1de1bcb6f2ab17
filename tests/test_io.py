"""Folders of plain data: exact, refused if damaged, never half written."""

import json

import numpy as np
import pytest

from scwormhole import io
from scwormhole.io import ARRAYS, HEADER, as_plain, read_folder, remove_folder, write_folder

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
    header.pop("digest")
    assert header == {**HEAD, "nan": None}
    assert arrays.keys() == DATA.keys()
    for name, array in DATA.items():
        assert arrays[name].dtype == array.dtype
        assert arrays[name].shape == array.shape
        np.testing.assert_array_equal(arrays[name], array)


def test_the_header_is_json_for_any_reader(folder, tmp_path):
    def refuse(constant):
        pytest.fail(f"{constant} is no JSON")

    json.loads((folder / HEADER).read_text(), parse_constant=refuse)
    numbers = {"a": np.float32(0.5), "b": [np.int64(3), np.nan, (np.inf, -np.inf)], "c": {"d": np.bool_(True)}}
    assert as_plain(numbers) == {"a": 0.5, "b": [3, None, [None, None]], "c": {"d": True}}
    (folder / HEADER).write_text('{"kind": "thing", "format": NaN}')
    with pytest.raises(ValueError, match="NaN is no JSON"):
        read_folder(folder, "thing", 2)


def test_arrays_of_another_folder_are_refused(folder, tmp_path):
    write_folder(tmp_path / "other", HEAD, {**DATA, "x": DATA["x"] + 1})
    (folder / ARRAYS).write_bytes((tmp_path / "other" / ARRAYS).read_bytes())
    with pytest.raises(ValueError, match=r"is damaged: arrays.safetensors is not the one"):
        read_folder(folder, "thing", 2)


def test_one_bit_is_enough(folder):
    whole = bytearray((folder / ARRAYS).read_bytes())
    whole[-3] ^= 1
    (folder / ARRAYS).write_bytes(whole)
    with pytest.raises(ValueError, match="is damaged"):
        read_folder(folder, "thing", 2)


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


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_file_is_never_replaced(tmp_path, overwrite):
    (tmp_path / "file").write_text("data")
    with pytest.raises(FileExistsError, match="is a file; give a folder"):
        write_folder(tmp_path / "file", HEAD, DATA, overwrite=overwrite)
    with pytest.raises(OSError, match="could not be written"):
        write_folder(tmp_path / "file" / "thing", HEAD, DATA)
    assert (tmp_path / "file").read_text() == "data"
    with pytest.raises(FileNotFoundError, match="is a file; a thing is a folder"):
        read_folder(tmp_path / "file", "thing", 2)


def test_files_of_others_stay_when_a_folder_is_replaced(folder):
    (folder / "notes.txt").write_text("precious")
    (folder / "figures").mkdir()
    (folder / "figures" / "one.png").write_text("picture")
    write_folder(folder, {**HEAD, "name": "b"}, {}, overwrite=True)
    assert read_folder(folder, "thing", 2).header["name"] == "b"
    assert (folder / "notes.txt").read_text() == "precious"
    assert (folder / "figures" / "one.png").read_text() == "picture"
    assert names(folder.parent) == ["thing"]
    remove_folder(folder)
    assert names(folder) == ["figures", "notes.txt"]


def test_a_link_stays_a_link(folder, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(folder)
    with pytest.raises(FileExistsError, match="overwrite=True"):
        write_folder(link, HEAD, {})
    write_folder(link, {**HEAD, "name": "b"}, {}, overwrite=True)
    assert link.is_symlink()
    assert read_folder(link, "thing", 2).header["name"] == read_folder(folder, "thing", 2).header["name"] == "b"
    assert names(tmp_path) == ["link", "thing"]
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    with pytest.raises(FileExistsError, match="broken link"):
        write_folder(tmp_path / "nowhere", HEAD, DATA, overwrite=True)


def test_where_nothing_can_be_written_it_says_so(tmp_path, monkeypatch):
    def refuse(*args, **options):
        raise PermissionError("permission denied")

    monkeypatch.setattr("pathlib.Path.mkdir", refuse)
    with pytest.raises(OSError, match=r"thing could not be written \(permission denied\); is there room"):
        write_folder(tmp_path / "thing", HEAD, DATA)


def test_a_folder_is_removed_and_no_other(folder, tmp_path):
    remove_folder(tmp_path / "nowhere")
    remove_folder(folder)
    assert names(tmp_path) == []


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


def test_a_failed_swap_leaves_what_was_there(folder, monkeypatch):
    """The old folder is aside when the new one cannot take its place."""
    rename = io.Path.rename

    def fail_once(path, target):
        if target == folder and ".old" not in path.name:
            raise OSError("no such luck")
        return rename(path, target)

    monkeypatch.setattr(io.Path, "rename", fail_once)
    with pytest.raises(OSError, match="no such luck"):
        write_folder(folder, {**HEAD, "name": "b"}, {}, overwrite=True)
    assert read_folder(folder, "thing", 2).header["name"] == "a"
    assert names(folder.parent) == ["thing"]


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
