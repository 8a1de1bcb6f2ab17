"""Vectors in a store: written block by block, gone on with after an end of any kind, and never mixed up."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import anndata
import dask.array
import numpy as np
import pytest
import zarr

import scwormhole as wh
from scwormhole.tl import _store

SCRIPT, BLOCK, N = Path(__file__).with_name("interrupted.py"), 64, 600


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(_store, "BLOCK", BLOCK)


@pytest.fixture(scope="module")
def model(embedded):
    return wh.tl.model(embedded)


@pytest.fixture
def cells(a_tissue):
    return a_tissue(rng=1, n=N)


@pytest.fixture
def expected(cells, model):
    return wh.tl.embed(cells, model, copy=True)


@pytest.fixture
def made(monkeypatch):
    """Blocks that were embedded, in all."""
    made, original = [], wh.Wormhole.embed_blocks

    def counted(self, clouds, blocks=None, **options):
        for block, found in original(self, clouds, blocks, **options):
            made.append(block)
            yield block, found

    monkeypatch.setattr(wh.Wormhole, "embed_blocks", counted)
    return made


def check_same(adata, expected):
    np.testing.assert_allclose(np.asarray(adata.obsm["X_wormhole"]), expected.obsm["X_wormhole"], rtol=1e-5, atol=1e-5)
    for name in ("wormhole_nugget",):
        assert (name in adata.obs) == (name in expected.obs)
        if name in adata.obs:
            np.testing.assert_allclose(adata.obs[name], expected.obs[name], rtol=1e-4)


def test_a_store_has_what_memory_would(cells, model, expected, made, tmp_path):
    wh.tl.embed(cells, model, store=tmp_path / "z.zarr")
    assert len(made) == -(-N // BLOCK)
    assert isinstance(cells.obsm["X_wormhole"], dask.array.Array)
    check_same(cells, expected)
    assert cells.uns["wormhole"]["source"] == expected.uns["wormhole"]["source"]
    cells.write_h5ad(tmp_path / "cells.h5ad")
    check_same(anndata.read_h5ad(tmp_path / "cells.h5ad"), expected)
    assert wh.tl.distances(cells, which=[0, 1, 5]).shape == (3, 3)
    wh.tl.embed(cells, model, store=tmp_path / "z.zarr")  # nothing is left to do
    assert len(made) == -(-N // BLOCK)


def test_training_can_end_in_a_store(a_tissue, tmp_path):
    one, other = a_tissue(), a_tissue()
    wh.tl.wormhole(one, n_components=8, max_steps=0, progress=False)
    wh.tl.wormhole(other, n_components=8, max_steps=0, progress=False, store=tmp_path / "z.zarr")
    check_same(other, one)


def test_groups_can_go_to_a_store(cohort_and_patients, tmp_path):
    cells, patients = cohort_and_patients
    found = wh.tl.embed(cells, patients, store=str(tmp_path / "z.zarr"))
    np.testing.assert_allclose(np.asarray(found.obsm["X_wormhole"]), patients.obsm["X_wormhole"], rtol=1e-5, atol=1e-6)


def run(how, cells, model, tmp_path):
    cells.write_h5ad(tmp_path / "cells.h5ad")
    model.save(tmp_path / "model")
    paths = [str(tmp_path / name) for name in ("cells.h5ad", "model", "z.zarr")]
    command = [sys.executable, str(SCRIPT), how, *paths]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def n_finished(path):
    return int((zarr.open_array(str(path / "finished"), mode="r")[:] >= 0).sum())


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_was_ended_goes_on_where_it_was(how, cells, model, expected, made, tmp_path):
    process = run("slowly", cells, model, tmp_path)
    until = time.monotonic() + 120
    while not (tmp_path / "z.zarr").exists() or n_finished(tmp_path / "z.zarr") < 2:
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < until
        time.sleep(0.05)
    process.send_signal(how)
    said = process.communicate(timeout=60)[0]
    assert process.returncode != 0
    if how == signal.SIGINT:
        assert "blocks are in" in said
        assert "the same call goes on from there" in said
    done = n_finished(tmp_path / "z.zarr")
    assert 2 <= done < len(range(0, N, BLOCK))
    wh.tl.embed(cells, model, store=tmp_path / "z.zarr")
    assert len(made) == len(range(0, N, BLOCK)) - done
    check_same(cells, expected)


def test_a_full_disk_leaves_what_was_finished(cells, model, expected, made, tmp_path):
    process = run("full", cells, model, tmp_path)
    said = process.communicate(timeout=120)[0]
    assert process.returncode != 0
    assert "clouds 128 to 191 could not be written to" in said
    assert "Make room and call again" in said
    assert n_finished(tmp_path / "z.zarr") == 2
    wh.tl.embed(cells, model, store=tmp_path / "z.zarr")
    assert [block.start for block in made] == list(range(2 * BLOCK, N, BLOCK))
    check_same(cells, expected)


@pytest.mark.parametrize("how", ["cut", "gone", "other"])
def test_a_damaged_block_is_made_again(how, cells, model, expected, made, tmp_path, caplog):
    wh.tl.embed(cells, model, store=tmp_path / "z.zarr")
    made.clear()
    stored = zarr.open_array(str(tmp_path / "z.zarr" / "z"), mode="r+")
    chunk = sorted(
        path for path in (tmp_path / "z.zarr" / "z").rglob("*") if path.is_file() and "json" not in path.name
    )
    if how == "cut":
        chunk[0].write_bytes(chunk[0].read_bytes()[:30])
    elif how == "gone":
        chunk[0].unlink()
    else:
        stored[3] = 7
    wh.tl.embed(cells, model, store=tmp_path / "z.zarr")
    assert len(made) == 1
    assert "1 finished blocks" in caplog.text
    check_same(cells, expected)


def test_a_store_of_something_else_is_left_alone(cells, a_tissue, model, tmp_path):
    wh.tl.embed(cells, model, store=tmp_path / "z.zarr")
    before = np.asarray(cells.obsm["X_wormhole"]).copy()
    other = a_tissue(rng=2, n=N)
    with pytest.raises(FileExistsError, match=r"holds vectors of something else: clouds differ"):
        wh.tl.embed(other, model, store=tmp_path / "z.zarr")
    assert "X_wormhole" not in other.obsm
    with pytest.raises(FileExistsError, match="holds vectors of 600 clouds, not of 599"):
        wh.tl.embed(a_tissue(rng=1, n=N - 1), model, store=tmp_path / "z.zarr")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("all of it")
    with pytest.raises(FileExistsError, match="mine exists and is no store of vectors"):
        wh.tl.embed(other, model, store=tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "all of it"
    np.testing.assert_array_equal(np.asarray(cells.obsm["X_wormhole"]), before)


def test_an_array_of_the_users_can_be_filled(cells, model, expected, tmp_path):
    clouds = wh.PointClouds.from_graph(cells.X, cells.obsp["niches"])
    out = np.memmap(tmp_path / "z.bin", np.float32, "w+", shape=(N, 8))
    assert model.transform(clouds, out=out) is out
    np.testing.assert_allclose(out, expected.obsm["X_wormhole"], rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match=r"out has shape \(600, 7\); give an array for 600 vectors of 8 numbers"):
        model.transform(clouds, out=np.empty((N, 7)))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("file", "exists and is no store of vectors"),
        ("file/z.zarr", "is no folder that can be written to"),
        ("few.zarr", "holds vectors of 5 clouds, not of 600"),
        ("s3://bucket/z.zarr", "give a folder on a disk, not an address"),
    ],
)
def test_a_store_of_no_use_is_told_before_training(name, message, cells, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("of the user's")
    _store.Store(tmp_path / "few.zarr", 5, 2, {})
    monkeypatch.setattr(wh.Wormhole, "fit", lambda *args, **options: pytest.fail("it was trained"))
    with pytest.raises((OSError, ValueError), match=message):
        wh.tl.wormhole(cells, store=name if "://" in name else tmp_path / name)
    assert (tmp_path / "file").read_text() == "of the user's"


def test_a_model_is_known_by_more_than_its_arrays(model):
    other = wh.Wormhole.from_arrays(*model.to_arrays())
    assert _store.mark_of(other, "") == _store.mark_of(model, "")
    arrays, header = model.to_arrays()
    header["trained"]["network"]["n_heads"] //= 2
    assert _store.mark_of(wh.Wormhole.from_arrays(arrays, header), "") != _store.mark_of(model, "")
