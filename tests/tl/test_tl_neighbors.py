"""Neighbours of clouds: against brute force and solved transport, with duplicates, and as scanpy takes them."""

import logging
import warnings

import anndata
import numpy as np
import pytest
from scipy.spatial.distance import cdist

import scwormhole as wh
from scwormhole.tl import _nearest, _neighbors, _rescore

NAME = "wormhole_neighbors"


@pytest.fixture(scope="module", autouse=True)
def _scanpy():
    with warnings.catch_warnings(action="ignore"):  # what its own imports warn of
        import pynndescent  # noqa: F401
        import scanpy  # noqa: F401


@pytest.fixture(autouse=True)
def _unconverged():
    with warnings.catch_warnings():  # a pair or two of tiny niches are beyond the tolerance
        warnings.simplefilter("ignore", wh.ot.TransportWarning)
        yield


def neighbours(adata, name=NAME):
    """Positions and distances of each row's neighbours, nearest first."""
    graph = adata.obsp[f"{name}_distances"]
    assert (np.diff(graph.indptr) == graph.indptr[1]).all()
    near, apart = graph.indices.reshape(adata.n_obs, -1), graph.data.reshape(adata.n_obs, -1)
    order = np.argsort(apart, axis=1, kind="stable")
    return np.take_along_axis(near, order, axis=1), np.take_along_axis(apart, order, axis=1)


def brute(table, k):
    """The same of a table of distances."""
    table = np.array(table, np.float64)
    np.fill_diagonal(table, np.inf)
    near = np.argsort(table, axis=1, kind="stable")[:, :k]
    return near, np.take_along_axis(table, near, axis=1)


def vectors_of(n, dim=12, rng=0):
    return np.random.default_rng(rng).normal(size=(n, dim)).astype(np.float32)


def solved(adata):
    record = adata.uns["wormhole"]
    clouds = wh.PointClouds.from_graph(adata.X.toarray(), adata.obsp["niches"])
    return wh.ot.pairwise(clouds, epsilon=record["epsilon"], relative_epsilon=None, progress=False)


def test_neighbours_are_those_of_brute_force(tissue):
    tissue.obsm["X_wormhole"] = vectors_of(60)  # the tissue has niches of the same cells
    assert wh.tl.neighbors(tissue, 7, n_sample=0) is None
    z = tissue.obsm["X_wormhole"]
    near, apart = neighbours(tissue)
    wanted, distances = brute(cdist(z, z), 7)
    assert np.array_equal(near, wanted)
    np.testing.assert_allclose(apart, distances, rtol=1e-4)
    record = tissue.uns[NAME]
    assert tissue.obsp[f"{NAME}_distances"].dtype == np.float32
    assert record["connectivities_key"] == f"{NAME}_connectivities"
    assert record["distances_key"] == f"{NAME}_distances"
    assert record["params"]["search"] == "exact"
    assert "recall" not in record
    assert "solved" not in record


def test_connectivities_are_scanpys(tissue):
    import scanpy as sc

    tissue.obsm["X_wormhole"] = vectors_of(60)
    wh.tl.neighbors(tissue, 7, n_sample=0)
    theirs = anndata.AnnData(tissue.obsm["X_wormhole"].copy())
    sc.pp.neighbors(theirs, n_neighbors=8, use_rep="X")  # it counts a cell among its neighbours
    ours = tissue.obsp[f"{NAME}_connectivities"].toarray()
    np.testing.assert_allclose(ours, theirs.obsp["connectivities"].toarray(), atol=1e-4)
    np.testing.assert_allclose(
        tissue.obsp[f"{NAME}_distances"].toarray(), theirs.obsp["distances"].toarray(), atol=1e-4
    )
    assert tissue.uns[NAME]["params"]["n_neighbors"] == theirs.uns["neighbors"]["params"]["n_neighbors"]


@pytest.mark.parametrize("places", [1, 3, 20])
def test_no_cloud_is_its_own_neighbour_where_many_are_in_one_place(tissue, places):
    here = vectors_of(places, 8)[np.arange(60) % places]
    tissue.obsm["X_wormhole"] = here
    wh.tl.neighbors(tissue, 4, n_sample=20)
    near, apart = neighbours(tissue)
    assert not (near == np.arange(60)[:, None]).any()
    assert all(len(set(row)) == 4 for row in near.tolist())
    wanted = brute(cdist(here, here), 4)[1]
    np.testing.assert_allclose(apart, wanted, atol=1e-4)
    assert (apart[wanted == 0] == 0).all()
    assert tissue.uns[NAME]["recall"]["search"] == 1
    assert np.isfinite(tissue.obsp[f"{NAME}_connectivities"].data).all()


def test_vectors_far_from_the_origin_lose_nothing():
    vectors = vectors_of(300)
    far, _ = _nearest.nearest(vectors.round(2) + np.float32(64), 5, search="exact", rng=0)
    near, _ = _nearest.nearest((vectors.round(2) + np.float32(64)) - np.float32(64), 5, search="exact", rng=0)
    assert np.mean(far == near) > 0.999


def test_chunks_change_nothing(monkeypatch, tissue):
    wh.tl.neighbors(tissue, 5, rescore=True, n_sample=0)
    whole = neighbours(tissue)
    monkeypatch.setattr(_nearest, "MEASURED", 500)
    monkeypatch.setattr(_rescore, "LOOKED_UP", 50)
    monkeypatch.setattr(_rescore, "PAIRS", 128)
    wh.tl.neighbors(tissue, 5, rescore=True, n_sample=0)
    assert np.array_equal(neighbours(tissue)[0], whole[0])
    np.testing.assert_allclose(neighbours(tissue)[1], whole[1], rtol=1e-3)


def test_rescoring_keeps_the_nearest_by_solved_transport(tissue, caplog):
    with caplog.at_level(logging.INFO):
        wh.tl.neighbors(tissue, 5, rescore=True, n_candidates=59, progress=False)
    table = solved(tissue)
    near, apart = neighbours(tissue)
    divergences = brute(table, 5)[1]
    np.testing.assert_allclose(apart**2, divergences, rtol=5e-3, atol=1e-3)
    np.testing.assert_allclose(np.take_along_axis(table, near, axis=1), divergences, rtol=5e-3, atol=1e-3)
    record = tissue.uns[NAME]
    assert record["solved"]["n_pairs"] == 60 * 59 // 2  # each once
    assert record["solved"]["epsilon"] == tissue.uns["wormhole"]["epsilon"]
    assert record["recall"]["rescored"] == 1
    assert "1,770 pairs of clouds will be solved" in caplog.text


def test_rescoring_looks_at_candidates_alone(tissue):
    z = tissue.obsm["X_wormhole"]
    candidates = brute(cdist(z, z), 6)[0]
    wh.tl.neighbors(tissue, 2, rescore=True, n_sample=0)
    near, apart = neighbours(tissue)
    assert all(set(row) <= set(some) for row, some in zip(near.tolist(), candidates.tolist(), strict=True))
    table = solved(tissue)
    wanted = np.sort(np.take_along_axis(table, candidates, axis=1), axis=1)[:, :2]
    np.testing.assert_allclose(apart**2, wanted, rtol=5e-3, atol=1e-3)
    rows = np.arange(60)[:, None]
    pairs = np.stack([np.minimum(rows, candidates).ravel(), np.maximum(rows, candidates).ravel()])
    assert tissue.uns[NAME]["solved"]["n_pairs"] == len(np.unique(pairs, axis=1).T)
    assert tissue.uns[NAME]["params"]["n_candidates"] == 6


def test_recall_is_told_of_search_and_of_embedding(tissue, caplog):
    with caplog.at_level(logging.INFO):
        wh.tl.neighbors(tissue, 5, rescore=True, n_candidates=8)
    recall = tissue.uns[NAME]["recall"]
    table, z = solved(tissue), tissue.obsm["X_wormhole"]
    by_vectors, farthest = brute(cdist(z, z), 8)[0], brute(table, 5)[1][:, -1:]
    for found, name in ((by_vectors[:, :5], "embedding"), (by_vectors, "rescored")):
        near = np.take_along_axis(table, found, axis=1) <= farthest + 1e-6
        assert recall[name] == pytest.approx(np.minimum(near.sum(axis=1), 5).mean() / 5, abs=0.02)
    assert recall["embedding"] < recall["rescored"] < 1
    assert recall["search"] == 1
    assert (recall["n_rows"], recall["n_pool"], recall["k_pool"], recall["n_candidates_pool"]) == (60, 60, 5, 8)
    assert "of the 5 nearest among 60 solved clouds" in caplog.text

    wh.tl.neighbors(tissue, 10, n_sample=11)
    recall = tissue.uns[NAME]["recall"]
    assert (recall["n_rows"], recall["n_pool"], recall["k_pool"]) == (11, 11, 5)  # of ten others half
    assert "rescored" not in recall


def test_recall_of_a_search_counts_what_it_missed():
    vectors = vectors_of(200)
    found, _ = _nearest.nearest(vectors, 10, search="exact", rng=0)
    rows = np.arange(0, 200, 3)
    assert _rescore.search_recall(vectors, found, rows) == 1
    found[:, :4] = _nearest.nearest(vectors, 190, search="exact", rng=0)[0][:, -4:]
    assert _rescore.search_recall(vectors, found, rows) == pytest.approx(0.6)


def test_the_same_seed_gives_the_same(tissue):
    first, second, other = (wh.tl.neighbors(tissue, 5, n_sample=25, rng=rng, copy=True) for rng in (3, 3, 4))
    for name in (f"{NAME}_distances", f"{NAME}_connectivities"):
        assert (first.obsp[name] != second.obsp[name]).nnz == 0
    assert first.uns[NAME] == second.uns[NAME]
    assert first.uns[NAME]["recall"] != other.uns[NAME]["recall"]
    assert NAME not in tissue.uns


def test_scanpy_clusters_and_maps(tissue):
    import scanpy as sc

    wh.tl.neighbors(tissue, 8, n_sample=0)
    sc.tl.leiden(tissue, neighbors_key=NAME, flavor="igraph", n_iterations=2, directed=False)
    sc.tl.umap(tissue, neighbors_key=NAME)
    assert tissue.obs["leiden"].nunique() > 1
    assert np.isfinite(tissue.obsm["X_umap"]).all()


def test_a_map_of_a_graph_in_parts(tissue):
    import scanpy as sc

    tissue.obsm["X_wormhole"][30:] += 1000
    wh.tl.neighbors(tissue, 5, n_sample=0)
    sc.tl.umap(tissue, neighbors_key=NAME)  # here scanpy reads the representation and the metric
    assert np.isfinite(tissue.obsm["X_umap"]).all()


def test_patients_are_solved_with_the_cells(cohort_and_patients, caplog):
    cells, patients = cohort_and_patients
    with caplog.at_level(logging.INFO):
        found = wh.tl.neighbors(patients, 3, copy=True)
    assert found.uns[NAME]["recall"].keys() == {"search", "n_rows"}
    assert "recall of the embedding is not measured: the clouds are groups of cells" in caplog.text
    wanted = r"groups of cells, which adata.* lacks; give the AnnData of the cells as clouds="
    with pytest.raises(ValueError, match=wanted):
        wh.tl.neighbors(patients, 3, rescore=True)

    some = patients[::-2].copy()  # other rows in another order
    wh.tl.neighbors(some, 2, rescore=True, n_candidates=5, clouds=cells)
    whole = wh.PointClouds.from_groups(cells.X, cells.obs["patient"])
    table = wh.ot.pairwise(
        whole[some.obs_names.tolist()], epsilon=some.uns["wormhole"]["epsilon"], relative_epsilon=None, progress=False
    )
    np.testing.assert_allclose(neighbours(some)[1] ** 2, brute(table, 2)[1], rtol=5e-3)
    renamed = patients.copy()
    renamed.obs_names = [f"p{i}x" for i in range(12)]
    with pytest.raises(ValueError, match=r"12 rows of adata, first 'p0x'.*there are"):
        wh.tl.neighbors(renamed, 2, clouds=cells)


def test_a_part_of_a_tissue_is_solved_with_the_whole(tissue, caplog):
    part = tissue[20:50].copy()
    with caplog.at_level(logging.INFO):
        wh.tl.neighbors(part, 3)
    assert "embedding" not in part.uns[NAME]["recall"]
    assert "miss cells that were there" in caplog.text
    wh.tl.neighbors(part, 3, rescore=True, n_candidates=29, clouds=tissue)
    wanted = brute(solved(tissue)[20:50, 20:50], 3)[1]
    np.testing.assert_allclose(neighbours(part)[1] ** 2, wanted, rtol=5e-3, atol=1e-3)


def test_everything_goes_to_a_file_and_back(tissue, tmp_path):
    wh.tl.neighbors(tissue, 5, rescore=True, key_added="near")
    tissue.write_h5ad(tmp_path / "a.h5ad")
    back = anndata.read_h5ad(tmp_path / "a.h5ad")
    for name in ("near_distances", "near_connectivities"):
        assert (back.obsp[name] != tissue.obsp[name]).nnz == 0
    assert back.uns["near"]["recall"] == tissue.uns["near"]["recall"]
    assert back.uns["near"]["params"].keys() == tissue.uns["near"]["params"].keys()
    wh.tl.neighbors(back, 5, rescore=True, key_added="near")  # its own are replaced
    assert np.array_equal(neighbours(back, "near")[0], neighbours(tissue, "near")[0])


def test_a_backed_file_is_enough(tissue, tmp_path):
    tissue.write_h5ad(tmp_path / "a.h5ad")
    backed = anndata.read_h5ad(tmp_path / "a.h5ad", backed="r")
    with pytest.raises(ValueError, match="copy=True was given"):
        wh.tl.neighbors(backed, 5, n_sample=0, copy=True)
    wh.tl.neighbors(backed, 5, rescore=True, n_sample=20)
    wh.tl.neighbors(tissue, 5, rescore=True, n_sample=20)
    assert (backed.obsp[f"{NAME}_distances"] != tissue.obsp[f"{NAME}_distances"]).nnz == 0
    backed.file.close()


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"k": 0}, ValueError, "k is 0 for 60 clouds; give a whole number from 1 to 59"),
        ({"k": 60}, ValueError, "k is 60"),
        ({"k": 2.5}, ValueError, "k is 2.5"),
        ({"k": True}, ValueError, "k is True"),
        ({"n_candidates": 20}, ValueError, "n_candidates is 20, and nothing is rescored"),
        ({"rescore": True, "n_candidates": 4, "k": 5}, ValueError, "n_candidates is 4 for k = 5"),
        ({"rescore": True, "n_candidates": 60}, ValueError, "n_candidates is 60"),
        ({"n_sample": 2}, ValueError, "n_sample is 2; give a whole number of at least 3, or 0"),
        ({"rng": -1}, ValueError, "rng is -1"),
        ({"search": "fast"}, ValueError, "search is 'fast'; give one of 'auto', 'exact'"),
        ({"key": "other"}, KeyError, "no embedding 'other'; there are 'wormhole'"),
        ({"key_added": "niches"}, ValueError, r"adata.uns\['niches'\] would be overwritten"),
        ({"key_added": "mine"}, ValueError, r"adata.obsp\['mine_distances'\] would be overwritten"),
        ({"key_added": "a/b"}, ValueError, "without '/'"),
        ({"clouds": "niches"}, TypeError, "clouds is a str; give the AnnData of the cells"),
    ],
)
def test_what_is_wrong_is_said_before_any_work(options, error, match, tissue, monkeypatch):
    monkeypatch.setattr(_neighbors, "nearest", None)
    tissue.obsp["mine_distances"] = tissue.obsp["niches"].copy()
    before = {*tissue.obsp, *tissue.uns}
    with pytest.raises(error, match=match):
        wh.tl.neighbors(tissue, **options)
    assert {*tissue.obsp, *tissue.uns} == before


def test_vectors_and_clouds_must_be_whole(tissue):
    spoilt = tissue.copy()
    spoilt.obsm["X_wormhole"][[7, 9], 2] = np.nan
    with pytest.raises(ValueError, match=r"2 rows of 60 in adata.obsm\['X_wormhole'\], first 'cell7', have values"):
        wh.tl.neighbors(spoilt)
    spoilt = tissue.copy()
    spoilt.uns["wormhole"]["params"]["metric"] = "my_cost"
    with pytest.raises(ValueError, match="'my_cost', a ground cost that is not kept"):
        wh.tl.neighbors(spoilt, rescore=True)
    spoilt = tissue.copy()
    wh.pp.niches(spoilt, n_neighbors=4)
    with pytest.raises(ValueError, match="made again in another way"):
        wh.tl.neighbors(spoilt, rescore=True)
    spoilt = tissue.copy()
    del spoilt.uns["niches"]
    with pytest.raises(KeyError, match="no clouds yet"):
        wh.tl.neighbors(spoilt, rescore=True)


def test_the_search_follows_from_the_number_of_rows(monkeypatch):
    for there, large in ((None, "pynndescent"), (object(), "faiss")):
        monkeypatch.setattr(_nearest, "find_spec", lambda name, there=there: there)
        assert _nearest.choose_search("auto", _nearest.EXACT) == "exact"
        assert _nearest.choose_search("auto", _nearest.EXACT + 1) == large
    monkeypatch.setattr(_nearest, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match="pip install faiss-cpu"):
        _nearest.choose_search("faiss", 10)


def test_rows_that_an_index_lost_are_searched_exactly(monkeypatch):
    vectors = vectors_of(100)
    wanted = _nearest.nearest(vectors, 6, search="exact", rng=0)

    def lost(vectors, count, rng):
        found = np.argsort(cdist(vectors, vectors), axis=1)[:, :count]
        found[::7, 3:] = -1
        return found

    monkeypatch.setattr(_nearest, "_by_pynndescent", lost)
    found = _nearest.nearest(vectors, 6, search="pynndescent", rng=0)
    assert np.array_equal(found[0], wanted[0])
    assert np.array_equal(found[1], wanted[1])


def check_index(search, n):
    vectors = vectors_of(n) @ vectors_of(12, 24, 1)
    vectors[: n // 10] = vectors[0]  # many in one place
    found, apart = _nearest.nearest(vectors, 8, search=search, rng=5)
    again, _ = _nearest.nearest(vectors, 8, search=search, rng=5)
    assert np.array_equal(found, again)
    assert not (found == np.arange(n)[:, None]).any()
    assert (np.diff(np.sort(found, axis=1), axis=1) > 0).all()
    assert (np.diff(apart, axis=1) >= 0).all()
    assert (apart[: n // 10] == 0).all()
    rows = np.random.default_rng(0).permutation(n)[:100]
    assert _rescore.search_recall(vectors, found, rows) > 0.95


@pytest.mark.slow  # it takes half a minute to compile
def test_pynndescent_finds_neighbours(tissue):
    check_index("pynndescent", 5000)
    wh.tl.neighbors(tissue, 5, search="pynndescent", n_sample=0)
    wanted = wh.tl.neighbors(tissue, 5, n_sample=0, copy=True)
    assert np.array_equal(neighbours(tissue)[1], neighbours(wanted)[1])


def test_faiss_finds_neighbours(monkeypatch):
    pytest.importorskip("faiss")
    check_index("faiss", 5000)  # flat
    monkeypatch.setattr(_nearest, "EXACT", 4000)
    check_index("faiss", 25_000)  # in cells
