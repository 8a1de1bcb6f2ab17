"""Niches over an array of dask: streamed without a client, embedded by the workers of one with."""

import os
import signal
from contextlib import contextmanager

import dask
import dask.array
import numpy as np
import pytest
from scipy import sparse

import scwormhole as wh
from scwormhole.tl import _embed, _lazy, _store, _vectors

distributed = pytest.importorskip("distributed")
N, BLOCK = 600, 50


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(_store, "BLOCK", BLOCK)
    monkeypatch.setattr(_vectors, "BLOCK", BLOCK)


@pytest.fixture(scope="module")
def model(embedded):
    return wh.tl.model(embedded)


@pytest.fixture
def whole(a_tissue):
    return a_tissue(rng=1, n=N)


@pytest.fixture
def cells(whole):
    lazy = whole.copy()
    lazy.X = dask.array.from_array(whole.X, chunks=(37, 3))  # borders of blocks and of chunks do not meet
    return lazy


@pytest.fixture
def expected(whole, model):
    wh.tl.embed(whole, model)
    return whole.obsm["X_wormhole"]


@contextmanager
def a_cluster(n_workers):
    with (
        dask.config.set({"distributed.worker.daemon": False}),
        distributed.LocalCluster(
            n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.wait_for_workers(n_workers, timeout=60)
        yield client


@pytest.fixture(scope="module")
def client():
    with a_cluster(2) as client:
        yield client


def check_same(adata, expected):
    np.testing.assert_allclose(np.asarray(adata.obsm["X_wormhole"]), expected, rtol=1e-5, atol=1e-5)


def test_without_a_client_it_is_streamed(cells, model, expected):
    assert _lazy.running_client() is None
    wh.tl.embed(cells, model)
    check_same(cells, expected)
    assert isinstance(cells.X, dask.array.Array)


def test_workers_give_the_unsplit_result(cells, model, expected, client, monkeypatch):
    def never(*args, **options):
        raise AssertionError("the workers are to do it")

    monkeypatch.setattr(wh.Wormhole, "embed_blocks", never)
    crossing = sum(
        len({*(niche // BLOCK)}) > 1
        for niche in np.split(cells.obsp["niches"].indices, cells.obsp["niches"].indptr[1:-1])
    )
    assert crossing > N // 2  # most niches reach beyond their block
    wh.tl.embed(cells, model)
    check_same(cells, expected)


def test_a_model_is_made_once_a_worker(cells, model, client):
    wh.tl.embed(cells, model)
    held = client.run(
        lambda: {mark: id(model) for mark, model in __import__("scwormhole.tl._lazy").tl._lazy._models.items()}
    )
    wh.tl.embed(cells, model)
    again = client.run(
        lambda: {mark: id(model) for mark, model in __import__("scwormhole.tl._lazy").tl._lazy._models.items()}
    )
    assert held == again
    assert all(len(models) == 1 for models in held.values())


def test_columns_may_be_split_and_dense(whole, model, expected, client):
    whole.X = dask.array.from_array(whole.X.toarray(), chunks=(100, 2))
    wh.tl.embed(whole, model)
    check_same(whole, expected)


def test_genes_may_be_in_another_order(cells, model, expected, client):
    turned = cells[:, ::-1].copy()
    wh.tl.embed(turned, model)
    check_same(turned, expected)


@pytest.mark.filterwarnings("ignore:.*did not reach the tolerance")
def test_training_hands_over_to_the_workers(cells, client, monkeypatch):
    asked, original = [], _vectors.embed_lazily
    monkeypatch.setattr(
        _vectors, "embed_lazily", lambda *args, **options: asked.append(1) or original(*args, **options)
    )
    wh.tl.wormhole(cells, n_components=8, max_steps=0, progress=False)
    assert asked
    streamed = wh.tl.model(cells).transform(wh.PointClouds.from_graph(cells.X, cells.obsp["niches"]))
    check_same(cells, streamed)


def test_what_is_not_finite_is_found_where_it_is(whole, model, client):
    values = whole.X.toarray()
    values[123, 1] = np.nan
    whole.X = dask.array.from_array(sparse.csr_matrix(values), chunks=(100, 3))
    with pytest.raises(ValueError, match="not finite in 1 rows: 123"):
        wh.tl.embed(whole, model, key_added="other")
    assert "X_other" not in whole.obsm


def test_a_worker_that_is_killed_loses_nothing(cells, model, expected, client, tmp_path, monkeypatch):
    written, original = [], _store.Store._write

    def watched(self, block, z, nugget):
        original(self, block, z, nugget)
        written.append(block.start)
        if len(written) == 3:
            os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)

    monkeypatch.setattr(_store.Store, "_write", watched)
    wh.tl.embed(cells, model, store=tmp_path / "z.zarr")
    assert sorted(written) == list(range(0, N, BLOCK))  # each once
    check_same(cells, expected)


def test_a_model_that_is_lost_with_its_only_worker_is_sent_again(cells, model, expected, tmp_path, monkeypatch):
    written, original = [], _store.Store._write
    with a_cluster(1) as client:
        scatter, sent = client.scatter, []

        def watched(self, block, z, nugget):
            original(self, block, z, nugget)
            written.append(block.start)
            if len(written) == 3:
                os.kill(*client.run(os.getpid).values(), signal.SIGKILL)

        monkeypatch.setattr(_store.Store, "_write", watched)
        monkeypatch.setattr(
            client, "scatter", lambda *args, **options: sent.append(scatter(*args, **options)) or sent[-1]
        )
        wh.tl.embed(cells, model, store=tmp_path / "z.zarr")
    assert len(sent) == 2
    assert sorted(written) == list(range(0, N, BLOCK))  # each once
    check_same(cells, expected)


def test_a_client_that_dies_is_told_and_gone_on_without(cells, model, expected, client, tmp_path, monkeypatch):
    written, original = [], _store.Store._write
    with distributed.Client(client.cluster, set_as_default=True) as dying:

        def watched(self, block, z, nugget):
            original(self, block, z, nugget)
            written.append(block.start)
            if len(written) == 2:
                dying.close()

        monkeypatch.setattr(_store.Store, "_write", watched)
        with pytest.raises(RuntimeError, match="With a store, what was finished is kept"):
            wh.tl.embed(cells, model, store=tmp_path / "z.zarr")
    assert "X_wormhole" not in cells.obsm
    monkeypatch.setattr(_embed, "running_client", lambda: None)
    wh.tl.embed(cells, model, store=tmp_path / "z.zarr")
    assert sorted(written) == list(range(0, N, BLOCK))
    check_same(cells, expected)
