"""The AnnData boundary: keys that are there are found, the others named, and all that is written can be kept."""

import warnings
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from scwormhole import PointClouds, _adata


@pytest.fixture
def cells():
    rng = np.random.default_rng(0)
    return anndata.AnnData(
        sparse.csr_matrix(rng.poisson(1.0, size=(12, 4)).astype(np.float32)),
        obs=pd.DataFrame(
            {
                "patient": pd.Categorical(list("bbbaaacccbbb"), categories=["c", "b", "a"]),
                "status": list("yyynnnyyyyyy"),
                "batch": list("xyxyxyxyxyxy"),
                "score": [1.5, 1.5, 1.5, np.nan, np.nan, np.nan, 2, 2, 2, 1.5, 1.5, 1.5],
                "half": [1.5, np.nan, 1.5, 0, 0, 0, 2, 2, 2, 1.5, 1.5, 1.5],
            },
            index=[f"cell{i}" for i in range(12)],
        ),
        var=pd.DataFrame({"chromosome": list("1234")}, index=["g1", "g2", "g3", "g4"]),
        obsm={
            "X_pca": rng.normal(size=(12, 2)),
            "frame": pd.DataFrame({"u": range(12)}, [f"cell{i}" for i in range(12)]),
        },
    )


@pytest.mark.parametrize("slot", ["obs", "var", "obsm", "obsp", "layers", "uns"])
def test_a_missing_key_is_an_error_that_lists_the_keys(cells, slot):
    cells.obsp["graph"] = sparse.eye_array(12).tocsr()
    cells.layers["counts"], cells.uns["notes"] = cells.X.copy(), "text"
    keys = [key for key in getattr(cells, slot) if key is not None]
    for key in keys:
        assert _adata.need(cells, slot, key) is not None
    with pytest.raises(KeyError) as caught:
        _adata.need(cells, slot, "nothing", hint="Do this.")
    assert f"adata.{slot} has no 'nothing'" in str(caught.value)
    assert all(repr(key) in str(caught.value) for key in keys)
    assert "Do this." in str(caught.value)


def test_close_keys_come_first_and_many_are_counted():
    keys = [f"column{number}" for number in range(50)] + ["patient"]
    told = _adata.known_keys(keys, "patients")
    assert told.startswith("there are 'patient', 'column0'")
    assert told.endswith("and 31 more")
    assert _adata.known_keys([]) == "it is empty"


def test_what_is_written_is_plain():
    made = _adata.plain(
        {
            "none": None,
            "list": [1, None, 2.5],
            "text": ["a", "b"],
            "path": Path("folder"),
            "number": np.float32(2),
            "function": np.median,
            "nested": {"flag": np.bool_(True), 3: "key"},
        }
    )
    assert "none" not in made
    np.testing.assert_array_equal(made["list"], [1, np.nan, 2.5])
    assert made["text"].tolist() == ["a", "b"]
    assert made["path"] == "folder"
    assert type(made["number"]) is float
    assert made["function"] == "median"
    assert made["nested"] == {"flag": True, "3": "key"}


def test_the_representation_is_the_one_asked_for(cells):
    cells.layers["counts"] = cells.X.toarray()
    points, names, genes = _adata.read_representation(cells, None, None)
    assert points is cells.X
    assert names == ["g1", "g2", "g3", "g4"]
    assert genes
    assert _adata.read_representation(cells, "X", None).genes
    assert isinstance(_adata.read_representation(cells, None, "counts").points, np.ndarray)
    assert _adata.read_representation(cells, "X_pca", None).names == ["X_pca-0", "X_pca-1"]
    assert _adata.read_representation(cells, "frame", None).names == ["u"]
    with pytest.raises(ValueError, match="adata has no X; give use_rep"):
        _adata.read_representation(anndata.AnnData(obs=cells.obs), None, None)


def test_text_is_ordered_as_anndata_orders_it(tmp_path):
    labels = pd.Series([f"p{number}" for number in (10, 2, 1, 2, 33)], index=list("abcde"))
    adata = anndata.AnnData(np.zeros((5, 1)), obs=labels.to_frame("patient"))
    with warnings.catch_warnings(action="ignore"):
        adata.write_h5ad(tmp_path / "adata.h5ad")
    written = anndata.read_h5ad(tmp_path / "adata.h5ad").obs["patient"].cat.categories.tolist()
    assert _adata.categorical(labels).cat.categories.tolist() == written == ["p1", "p2", "p10", "p33"]
    assert _adata.categorical(pd.Series([10, 9, 10])).cat.categories.tolist() == [9, 10]
    assert _adata.categorical(pd.Series(["b", None, "a"])).isna().tolist() == [False, True, False]


def test_memberships_are_one_hot(cells):
    graph, names = _adata.memberships(cells.obs["patient"])
    assert names == ["c", "b", "a"]
    assert np.array_equal(graph.toarray(), pd.get_dummies(cells.obs["patient"]).to_numpy().T)
    graph, names = _adata.memberships(cells.obs["patient"], min_cells=4)
    assert names == ["b"]
    assert graph.shape == (1, 12)


@pytest.mark.parametrize("kind", ["sparse", "dense", "backed"])
def test_one_row_a_cloud_carries_over_what_is_constant(cells, kind, tmp_path):
    cells.uns |= {"patient_colors": ["r", "g", "b"], "batch_colors": ["c", "m"]}
    _adata.write_cohort(cells, "groups", "groups", {"groupby": "patient"})
    if kind == "dense":
        cells.X = cells.X.toarray()
    if kind == "backed":
        with warnings.catch_warnings(action="ignore"):
            cells.write_h5ad(tmp_path / "cells.h5ad")
        cells = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    made = _adata.cloud_adata(cells, _adata.read_cohort(cells))
    assert made.obs_names.tolist() == ["c", "b", "a"]
    assert made.obs.columns.tolist() == ["patient", "status", "score", "n_points"]
    assert made.obs["status"].tolist() == ["y", "y", "n"]
    assert made.obs["n_points"].tolist() == [3, 6, 3]
    assert np.isnan(made.obs.loc["a", "score"])
    assert list(made.uns["patient_colors"]) == ["r", "g", "b"]
    assert "batch_colors" not in made.uns
    means = cells.to_memory().to_df().groupby(np.array(list("bbbaaacccbbb"))).mean().loc[["c", "b", "a"]]
    np.testing.assert_allclose(made.to_df(), means, rtol=1e-6)
    assert sparse.issparse(made.X) is (kind != "dense")
    assert made.var["chromosome"].tolist() == list("1234")
    assert made.to_df().equals(_adata.cloud_adata(cells, _adata.read_cohort(cells, use_rep="X_pca")).to_df())
    if kind == "backed":
        cells.file.close()


def test_means_are_of_the_layer_or_of_what_there_is(cells):
    _adata.write_cohort(cells, "groups", "groups", {"groupby": "patient"})
    cells.layers["double"] = 2 * cells.X
    one, two = (_adata.cloud_adata(cells, _adata.read_cohort(cells), layer=layer).to_df() for layer in (None, "double"))
    np.testing.assert_allclose(2 * one, two)
    bare = anndata.AnnData(obs=cells.obs, obsm=dict(cells.obsm), uns=dict(cells.uns))
    made = _adata.cloud_adata(bare, _adata.read_cohort(bare, use_rep="X_pca"))
    assert made.var_names.tolist() == ["X_pca-0", "X_pca-1"]
    np.testing.assert_allclose(made["a"].X[0], cells.obsm["X_pca"][3:6].mean(0), rtol=1e-5)


def test_genes_are_matched_by_name_and_read_row_by_row(cells):
    points = _adata.read_representation(cells, None, None)
    same = _adata.match_genes(points, ["g1", "g2", "g3", "g4"])
    assert same.points is points.points
    other = _adata.match_genes(points, ["g4", "g2"])
    assert np.array_equal(other.points.toarray(), cells.X.toarray()[:, [3, 1]])
    lazy = _adata.Columns(cells.X, np.array([3, 1]))
    assert lazy.shape == (12, 2)
    clouds = PointClouds.from_groups(lazy, list("ab") * 6)
    expected = PointClouds.from_groups(cells.X.toarray()[:, [3, 1]], list("ab") * 6)
    assert np.array_equal(clouds["a"].points, expected["a"].points)


def test_decoded_points_are_labelled():
    clouds = PointClouds.from_list([np.zeros((2, 3)), np.ones((1, 3))], weights=[[1, 3], [1]])
    made = _adata.point_adata(clouds, ["one", "two"], ["x", "y", "z"], {"from": {"key": None, "n": 2}})
    assert made.obs["cloud"].tolist() == ["one", "one", "two"]
    assert made.obs["weight"].tolist() == [0.25, 0.75, 1]
    assert made.obs_names.tolist() == ["one-0", "one-1", "two-0"]
    assert made.uns["from"] == {"n": 2}


def test_a_model_is_packed_exactly(cells):
    arrays = {"params['a'][0].value": np.float32([[1, 2]]), "one": np.array(3), "none": np.empty((0, 4))}
    _adata.write_embedding(
        cells, "w", np.zeros((12, 2)), np.zeros(12), {"model": _adata.pack_model(arrays, {"params": {"a": None}})}
    )
    back, header = _adata.unpack_model(cells, "w")
    assert header == {"params": {"a": None}}
    assert back.keys() == arrays.keys()
    for name, array in arrays.items():
        assert back[name].dtype == array.dtype
        assert np.array_equal(back[name], array)
        assert back[name].shape == array.shape


def test_rows_are_found_by_name_position_and_mask(cells):
    for which in (["cell3", "cell1"], [3, 1], np.array([-9, 1])):
        assert _adata.find_rows(cells, which).tolist() == [3, 1]
    assert _adata.find_rows(cells, cells.obs["patient"] == "a").tolist() == [3, 4, 5]
    assert _adata.find_rows(cells, "cell3").tolist() == [3]
    assert len(_adata.find_rows(cells, None)) == 12
    with pytest.raises(KeyError, match="close names are"):
        _adata.find_rows(cells, ["cel3"])


def test_a_list_in_place_of_a_key_is_told_the_keys(cells):
    with pytest.raises(KeyError, match=r"adata.obs has no \['patient'\]; there are 'patient'"):
        _adata.need(cells, "obs", ["patient"])


@pytest.mark.parametrize("key", ["", "L2/3", None])
def test_names_that_files_cannot_hold_are_refused(key):
    with pytest.raises(ValueError, match=r"key_added is .*; give a name, without '/'"):
        _adata.check_key(key)


def test_only_results_of_the_same_kind_are_overwritten(cells):
    cells.uns["mine"] = {"spatial": 1}
    _adata.write_cohort(cells, "niches", "niches", {})
    _adata.check_free(cells, "niches", "niches", ("obsm", "X_pca"))
    _adata.check_free(cells, "new", "groups", ("obsm", "X_new"))
    for key, kind, slots in (("mine", "niches", ()), ("niches", "groups", ()), ("pca", "niches", [("obsm", "X_pca")])):
        with pytest.raises(ValueError, match=f"key_added is '{key}', and adata.* would be overwritten"):
            _adata.check_free(cells, key, kind, *slots)


def test_a_name_of_several_rows_finds_none_of_them(cells):
    cells.obs_names = ["twin", "twin", *cells.obs_names[2:]]
    for which in ("twin", ["cell5", "twin"]):
        with pytest.raises(ValueError, match="several rows are named 'twin'"):
            _adata.find_rows(cells, which)
    assert _adata.find_rows(cells, [0, 1]).tolist() == [0, 1]
    assert _adata.find_rows(cells, ["cell5"]).tolist() == [5]
