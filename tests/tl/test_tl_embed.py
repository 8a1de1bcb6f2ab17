"""Embeddings of AnnData: what is written where, on disk and sparse, for new data, and kept in files."""

import logging
import warnings

import anndata
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import scwormhole as wh
from scwormhole._adata import read_cohort

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::scwormhole.ot.TransportWarning"),
]
GENES = ["Gad1", "Pvalb", "Sst"]
ALONE = {"n_components": 8, "max_steps": 10, "progress": False, "coeff_dec": 0, "n_blocks": 1}


def same(first, second):
    """Whether two records hold the same, whatever kind of file they come from."""
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[name], second[name]) for name in first)
    first, second = np.asarray(first), np.asarray(second)
    if first.dtype.kind == "f":
        return np.array_equal(first, second, equal_nan=True)
    return first.tolist() == second.tolist()


def files(adata, folder):
    """An AnnData after h5ad, and after zarr."""
    with warnings.catch_warnings(action="ignore"):  # about how later versions will write
        adata.write_h5ad(folder / "adata.h5ad")
        adata.write_zarr(folder / "adata.zarr")
        return anndata.read_h5ad(folder / "adata.h5ad"), anndata.read_zarr(folder / "adata.zarr")


def test_vectors_and_nuggets_are_the_models(embedded):
    clouds = read_cohort(embedded).clouds
    model = wh.tl.model(embedded)
    z, nugget = model.embed(clouds)
    assert embedded.obsm["X_wormhole"].dtype == np.float32
    np.testing.assert_allclose(embedded.obsm["X_wormhole"], z, atol=1e-6)
    assert ("wormhole_nugget" in embedded.obs) is bool((nugget > 0).any())
    if "wormhole_nugget" in embedded.obs:
        np.testing.assert_allclose(embedded.obs["wormhole_nugget"], nugget, atol=1e-6)


def test_squared_distances_follow_transport(embedded):
    clouds = read_cohort(embedded).clouds
    solved = wh.ot.pairwise(clouds, epsilon=embedded.uns["wormhole"]["epsilon"], relative_epsilon=None, progress=False)
    z = embedded.obsm["X_wormhole"]
    pairs = np.triu_indices(len(z), 1)
    found = ((z[:, None] - z) ** 2).sum(-1)[pairs]
    assert np.corrcoef(found, solved[pairs])[0, 1] > 0.9


def test_the_record_says_how_it_was_made(embedded):
    record = embedded.uns["wormhole"]
    assert record["kind"] == "wormhole"
    assert record["rng"] == 0
    assert record["params"]["n_components"] == 8
    assert "max_seconds" not in record["params"]  # None
    made = embedded.uns["niches"]["params"]
    assert record["source"] == {"clouds": "niches", "kind": "niches", "n_clouds": 60, "made": made}
    assert record["names"].tolist() == GENES
    assert record["versions"]["scwormhole"] == wh.__version__
    assert record["epsilon"] > 0
    assert not record["converged"]
    assert {"phase", "step", "seconds", "correlation", "error"} <= record["history"].keys()
    model = wh.tl.model(embedded)
    assert model.feature_names_in_ == GENES


def test_fidelity_is_that_of_the_held_out_pairs(embedded):
    record, model = embedded.uns["wormhole"], wh.tl.model(embedded)
    pairs, clouds = record["held_out"], read_cohort(embedded).clouds
    assert np.array_equal(pairs["clouds"], model.held_out_)
    n = len(model.held_out_)
    assert len(pairs["solved"]) == n * (n - 1) / 2
    correlation = np.corrcoef(pairs["embedded"], pairs["solved"])[0, 1]
    assert record["fidelity"]["correlation"] == pytest.approx(correlation, 1e-4)
    expected = wh.metrics.fidelity(model, clouds[model.held_out_], n_repeats=1, n_exact=0)
    for name in ("correlation", "correlation_euclidean", "mse", "relative_error", "neighbour_recall", "n_clouds"):
        assert record["fidelity"][name] == pytest.approx(getattr(expected, name), rel=0.01)
    for pair in (0, 7, 23):
        first, second = (clouds[[pairs[name][pair]]] for name in ("first", "second"))
        solved = wh.ot.distances(first, second, epsilon=record["epsilon"], relative_epsilon=None, progress=False)
        assert pairs["solved"][pair] == pytest.approx(solved[0], rel=0.02, abs=1e-3)


def test_nothing_else_is_touched(tissue, a_tissue):
    before = a_tissue()
    assert {*tissue.obsm} == {"spatial", "X_wormhole"}
    assert {*tissue.uns} == {"niches", "side_colors", "wormhole"}
    assert (tissue.X != before.X).nnz == 0
    assert {*tissue.obs} - {*before.obs} <= {"wormhole_nugget"}


def test_patients_come_back_one_row_each(cohort_and_patients):
    cohort, patients = cohort_and_patients
    clouds = read_cohort(cohort).clouds
    assert patients.obs_names.tolist() == clouds.names.tolist()
    assert patients.obsm["X_wormhole"].shape == (12, 8)
    assert {*patients.obs} - {"wormhole_nugget"} == {"patient", "status", "age", "n_points"}  # not batch
    assert (patients.obs["patient"] == patients.obs_names).all()
    assert (patients.obs["n_points"] == 6).all()
    means = cohort.to_df().groupby(cohort.obs["patient"].to_numpy()).mean().loc[patients.obs_names]
    np.testing.assert_allclose(patients.X, means, rtol=1e-5)
    assert patients.var_names.tolist() == GENES
    assert patients.uns["status_colors"].tolist() == ["#00ff00", "#ff00ff"]
    z, _ = wh.tl.model(patients).embed(clouds)
    np.testing.assert_allclose(patients.obsm["X_wormhole"], z, atol=1e-6)


def test_a_cohort_of_cells_stays_as_it_was(cohort_and_patients, a_cohort):
    cohort, fresh = cohort_and_patients[0], a_cohort()
    assert {*cohort.uns} == {*fresh.uns}
    assert cohort.obs.equals(fresh.obs)
    assert not cohort.obsm


def test_the_same_seed_gives_the_same_numbers(cohort_and_patients, a_cohort):
    again, model = wh.tl.wormhole(a_cohort(), return_model=True, key_added="again", **ALONE)
    assert np.array_equal(again.obsm["X_again"], cohort_and_patients[1].obsm["X_wormhole"])
    assert isinstance(model, wh.Wormhole)
    other = wh.tl.wormhole(a_cohort(), rng=1, **ALONE)
    assert not np.array_equal(other.obsm["X_wormhole"], again.obsm["X_again"])
    assert other.uns["wormhole"]["rng"] == 1


def test_sparse_backed_and_layers_give_the_same_embedding(tmp_path, cohort_and_patients, monkeypatch):
    cohort, patients = cohort_and_patients
    cohort = cohort.copy()
    cohort.X = sparse.csr_matrix(cohort.X)
    cohort.layers["lognorm"] = cohort.X.copy()
    cohort.write_h5ad(tmp_path / "cohort.h5ad")
    model = wh.tl.model(patients)
    expected = patients.obsm["X_wormhole"]

    def refuse(*_):
        raise AssertionError("X was read whole")

    backed = anndata.read_h5ad(tmp_path / "cohort.h5ad", backed="r")
    monkeypatch.setattr(type(backed.X), "to_memory", refuse)
    for found in (
        wh.tl.embed(cohort, model),
        wh.tl.embed(cohort, model, layer="lognorm"),
        wh.tl.embed(backed, model),
        wh.tl.embed(backed, patients),
    ):
        np.testing.assert_allclose(found.obsm["X_wormhole"], expected, atol=1e-5)
        np.testing.assert_allclose(found.to_df(), patients.to_df(), rtol=1e-5)
        assert "fidelity" not in found.uns["wormhole"]
    assert sparse.issparse(wh.tl.embed(cohort, model).X)
    assert wh.tl.embed(cohort, model, layer="lognorm").uns["wormhole"]["source"]["layer"] == "lognorm"
    backed.file.close()


def test_a_backed_tissue_is_trained_on_and_written_to(tmp_path, a_cohort):
    cohort = a_cohort()
    cohort.X = sparse.csr_matrix(cohort.X.astype(np.float32))
    cohort.write_h5ad(tmp_path / "cohort.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cohort.h5ad", backed="r")
    found = wh.tl.wormhole(backed, **ALONE)
    cohort.X = cohort.X.toarray()
    in_memory = wh.tl.wormhole(cohort, **ALONE)
    np.testing.assert_allclose(found.obsm["X_wormhole"], in_memory.obsm["X_wormhole"], atol=1e-5)
    assert backed.isbacked
    backed.file.close()


def test_backed_niches_get_their_vectors_and_refuse_copies(tmp_path, embedded, a_tissue):
    tissue = a_tissue()
    tissue.write_h5ad(tmp_path / "tissue.h5ad")
    backed = anndata.read_h5ad(tmp_path / "tissue.h5ad", backed="r")
    wh.tl.embed(backed, embedded)
    np.testing.assert_allclose(backed.obsm["X_wormhole"], embedded.obsm["X_wormhole"], atol=1e-5)
    assert backed.isbacked
    with pytest.raises(ValueError, match=r"backed by a file and copy=True.*adata.copy\(filename\)"):
        wh.tl.embed(backed, embedded, copy=True)
    with pytest.raises(ValueError, match="backed by a file and a view was given"):
        wh.pp.niches(backed[:30], n_neighbors=3)
    backed.file.close()


def test_new_genes_are_matched_by_name(embedded, tmp_path, a_tissue):
    new = a_tissue()
    names = ["Sst", "other1", "Gad1", "Pvalb", "other0"]
    X = sparse.csr_matrix(
        np.stack([np.ones(60) if "o" in name[:1] else new[:, name].X.toarray()[:, 0] for name in names], 1)
    )
    shuffled = anndata.AnnData(X, obs=new.obs, var=pd.DataFrame(index=names), obsm={"spatial": new.obsm["spatial"]})
    wh.pp.niches(shuffled, n_neighbors=5)
    shuffled.write_h5ad(tmp_path / "shuffled.h5ad")
    backed = anndata.read_h5ad(tmp_path / "shuffled.h5ad", backed="r")
    dense = shuffled.copy()
    dense.X = dense.X.toarray()
    for kind in (shuffled, dense, backed):
        wh.tl.embed(kind, embedded)
        np.testing.assert_allclose(kind.obsm["X_wormhole"], embedded.obsm["X_wormhole"], atol=1e-5)
        assert kind.uns["wormhole"]["names"].tolist() == GENES
    backed.file.close()


def test_new_patients_may_have_more_genes(cohort_and_patients):
    cohort, patients = cohort_and_patients
    values = cohort.to_df().assign(other=2.0)[["other", *GENES[::-1]]]
    new = anndata.AnnData(values, obs=cohort.obs.copy())
    wh.pp.groups(new, "patient")
    found = wh.tl.embed(new, patients)
    np.testing.assert_allclose(found.obsm["X_wormhole"], patients.obsm["X_wormhole"], atol=1e-5)
    assert found.var_names.tolist() == ["other", *GENES[::-1]]
    np.testing.assert_allclose(found.to_df()[GENES], patients.to_df(), rtol=1e-5)


def test_missing_genes_are_named(embedded, a_tissue):
    new = a_tissue()
    new.var_names = ["Gad1", "PVALB", "Sst"]
    with pytest.raises(ValueError, match=r"lacks 1 of the 3 genes .*: Pvalb. In adata.var_names there are .*'PVALB'"):
        wh.tl.embed(new, embedded)
    new.var_names = ["Gad1", "Gad1", "Sst"]
    with pytest.raises(ValueError, match="var_names_make_unique"):
        wh.tl.embed(new, embedded)
    assert "X_wormhole" not in new.obsm


def test_query_niches_of_another_tissue(embedded, a_tissue):
    new = a_tissue(rng=7, n=40)
    made = wh.tl.embed(new, wh.tl.model(embedded), copy=True, key_added="mapped")
    assert "X_mapped" not in new.obsm
    expected = wh.tl.model(embedded).transform(read_cohort(new).clouds)
    np.testing.assert_allclose(made.obsm["X_mapped"], expected, atol=1e-6)
    assert made.uns["mapped"]["source"]["n_clouds"] == 40
    assert wh.tl.decode(made, [0], key="mapped").var_names.tolist() == GENES
    with pytest.raises(ValueError, match="trained on 3 genes; leave out use_rep"):
        wh.tl.embed(new, embedded, use_rep="spatial")
    with pytest.raises(TypeError, match="model is a str"):
        wh.tl.embed(new, "model")


def test_a_representation_gives_components_as_columns(a_cohort):
    cohort = a_cohort()
    cohort.obsm["X_pca"] = cohort.X[:, ::-1].astype(np.float32)
    patients = wh.tl.wormhole(cohort, use_rep="X_pca", **ALONE)
    assert patients.uns["wormhole"]["names"].tolist() == ["X_pca-0", "X_pca-1", "X_pca-2"]
    assert patients.uns["wormhole"]["source"]["use_rep"] == "X_pca"
    assert wh.tl.model(patients).feature_names_in_ is None
    assert patients.var_names.tolist() == GENES  # means are over genes all the same
    means = cohort.to_df().groupby(cohort.obs["patient"].to_numpy()).mean().loc[patients.obs_names]
    np.testing.assert_allclose(patients.X, means, rtol=1e-5)
    assert np.array_equal(wh.tl.embed(cohort, patients).obsm["X_wormhole"], patients.obsm["X_wormhole"])
    cohort.obsm["X_pca"] = cohort.obsm["X_pca"][:, :2]
    with pytest.raises(ValueError, match="2 dimensions, and the model was fitted in 3"):
        wh.tl.embed(cohort, patients)


def test_a_query_without_nuggets_leaves_none_of_an_earlier_one(embedded, a_tissue):
    new = a_tissue()
    new.obs["wormhole_nugget"] = 1.0
    wh.tl.embed(new, embedded)
    assert ("wormhole_nugget" in new.obs) is ("wormhole_nugget" in embedded.obs)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda X: np.round(X * 5), "looks like raw counts, up to"),
        (lambda X: X - X.mean(0), "has negative values, down to"),
        (lambda X: np.exp(4 * X), "without a logarithm"),
    ],
)
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_unusual_values_are_warned_of(change, match, kind, a_cohort):
    from scwormhole.tl._values import warn_of_values

    X = a_cohort().X
    with pytest.warns(UserWarning, match=match):
        warn_of_values(kind(change(X)), "adata.X", 0)
    warn_of_values(kind(X), "adata.X", 0)
    warn_of_values(kind(X > 1).astype(float), "adata.X", 0)  # one-hot kinds of cells


def test_raw_counts_are_warned_of_in_training(monkeypatch, a_cohort):
    cohort = a_cohort()
    cohort.layers["counts"] = np.round(cohort.X * 5)
    monkeypatch.setattr(wh.Wormhole, "fit", lambda self, clouds, **_options: (_ for _ in ()).throw(InterruptedError))
    with (
        pytest.warns(UserWarning, match=r"adata.layers\['counts'\] looks like raw counts"),
        pytest.raises(InterruptedError),
    ):
        wh.tl.wormhole(cohort, layer="counts")


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"clouds": "niche"}, KeyError, "no clouds are named 'niche'; there are 'groups' \\(groups\\)"),
        ({"use_rep": "X_pca"}, KeyError, "adata.obsm has no 'X_pca'; it is empty"),
        ({"layer": "counts"}, KeyError, "adata.layers has no 'counts'; it is empty"),
        ({"use_rep": "X_pca", "layer": "counts"}, ValueError, "give one of them only"),
        ({"key_added": "a/b"}, ValueError, "key_added is 'a/b'; give a name, without '/'"),
        ({"n_component": 4}, TypeError, "no parameter n_component; those of scwormhole.Wormhole are metric, epsilon"),
    ],
)
def test_what_is_wrong_is_said_before_training(options, error, match, a_cohort):
    with pytest.raises(error, match=match):
        wh.tl.wormhole(a_cohort(), **options)


def test_which_clouds_must_be_said_where_there_are_several(a_cohort):
    cohort = a_cohort()
    wh.pp.groups(cohort, "status", key_added="status")
    with pytest.raises(ValueError, match=r"several clouds: 'groups' \(groups\), 'status' \(groups\)"):
        wh.tl.wormhole(cohort)
    del cohort.uns["groups"], cohort.uns["status"]
    with pytest.raises(KeyError, match=r"no clouds yet; make them with one of wh.pp.niches"):
        wh.tl.wormhole(cohort)
    with pytest.raises(KeyError, match=r"no embedding 'wormhole'. Run wh.tl.wormhole"):
        wh.tl.model(cohort)


def test_an_embedding_is_found_by_its_name(embedded):
    with pytest.raises(KeyError, match="no embedding 'wormhol'; there are 'wormhole'"):
        wh.tl.model(embedded, key="wormhol")


def test_results_survive_files(embedded, patients, tmp_path):
    tissue = embedded.copy()
    wh.tl.diffmap(tissue, n_comps=3, subset=("side", "left"), n_neighbors=10)
    wh.tl.umap(tissue)
    for number, adata in enumerate((tissue, patients)):
        folder = tmp_path / str(number)
        folder.mkdir()
        for back in files(adata, folder):
            assert same(dict(adata.uns), dict(back.uns))
            for name in adata.obsm:
                assert np.array_equal(adata.obsm[name], back.obsm[name], equal_nan=True)
            one, other = wh.tl.model(adata), wh.tl.model(back)
            assert one.get_params() == other.get_params()
            assert one.feature_names_in_ == other.feature_names_in_
    back = files(tissue, tmp_path)[0]
    assert np.array_equal(wh.tl.decode(back, [3]).X, wh.tl.decode(tissue, [3]).X)


def test_a_copy_is_a_copy_of_all(tissue, embedded):
    made = tissue.copy()
    made.uns["wormhole"]["model"]["header"] = ""
    made.uns["wormhole"]["source"]["clouds"] = "gone"
    assert tissue.uns["wormhole"]["source"]["clouds"] == "niches"
    assert wh.tl.model(tissue).dim_ == 3


def test_a_view_becomes_actual_with_anndatas_own_warning(embedded, a_tissue):
    whole = a_tissue()
    view = whole[np.arange(60)]
    with pytest.warns(anndata.ImplicitModificationWarning):
        wh.tl.embed(view, embedded)
    assert not view.is_view
    assert "X_wormhole" not in whole.obsm


def test_the_log_says_what_was_added_where(embedded, caplog, a_tissue):
    new = a_tissue()
    with caplog.at_level(logging.INFO, logger="scwormhole"):
        wh.tl.embed(new, embedded)
    assert "60 clouds embedded: added\n    adata.obsm['X_wormhole']" in caplog.text
    assert "adata.uns['wormhole']" in caplog.text


def test_a_spatialdata_is_taken_by_its_table(embedded, a_tissue):
    spatialdata = pytest.importorskip("spatialdata")
    with warnings.catch_warnings(action="ignore"):
        data = spatialdata.SpatialData(tables={"cells": a_tissue()})
    wh.tl.embed(data, embedded, table_key="cells")
    np.testing.assert_allclose(data["cells"].obsm["X_wormhole"], embedded.obsm["X_wormhole"], atol=1e-5)


@pytest.mark.parametrize("key", ["niches", "pca", "leiden"])
def test_what_is_there_is_not_overwritten(key, embedded, a_tissue):
    new = a_tissue()
    new.obsm["X_pca"], new.uns["leiden"] = np.ones((new.n_obs, 2)), {"params": 1}
    for embed in (lambda: wh.tl.embed(new, embedded, key_added=key), lambda: wh.tl.wormhole(new, key_added=key)):
        with pytest.raises(ValueError, match=f"key_added is '{key}', and .* would be overwritten"):
            embed()
    assert new.uns["niches"]["kind"] == "niches"
    for _ in range(2):  # its own may be made again
        wh.tl.embed(new, embedded)


def test_clouds_by_themselves_are_those_that_are_embedded(embedded):
    clouds = wh.tl.clouds(embedded)
    assert len(clouds) == embedded.n_obs
    np.testing.assert_allclose(
        wh.tl.model(embedded).transform(clouds), embedded.obsm["X_wormhole"], rtol=1e-4, atol=1e-5
    )
    with pytest.raises(KeyError, match="rooms"):
        wh.tl.clouds(embedded, "rooms")


def test_new_data_that_are_raw_counts_are_told(embedded):
    new = embedded.copy()
    new.X = np.random.default_rng(0).poisson(5.0, new.shape).astype(np.float32)
    with pytest.warns(UserWarning, match=r"adata\.X looks like raw counts"):
        wh.tl.embed(new, wh.tl.model(embedded), key_added="raw")
