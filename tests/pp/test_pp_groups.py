"""Groups and metacells: every cell where it belongs, none dropped without a word."""

import logging
import sys
import types

import anndata
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import scwormhole as wh
from scwormhole._adata import read_cohort


def cells(n=240, *, genes=5, rng=0, **obs):
    generator = np.random.default_rng(rng)
    index = [f"cell{i}" for i in range(n)]
    return anndata.AnnData(generator.normal(size=(n, genes)), obs=pd.DataFrame(obs, index=index))


def test_each_level_is_a_cloud():
    adata = cells(6, patient=pd.Categorical(list("bbaacb"), categories=["c", "b", "a", "z"]))
    wh.pp.groups(adata, "patient")
    clouds = read_cohort(adata).clouds
    assert clouds.names.tolist() == ["c", "b", "a"]
    assert np.array_equal(clouds["b"].points, adata.X[[0, 1, 5]])
    assert adata.uns["groups"]["kind"] == "groups"


def test_numbers_and_booleans_can_be_groups():
    adata = cells(6, number=[3, 3, 10, 10, 10, 3], flag=[True, False] * 3)
    for groupby, names in (("number", ["3", "10"]), ("flag", ["False", "True"])):
        wh.pp.groups(adata, groupby)
        assert read_cohort(adata).clouds.names.tolist() == names


def test_cells_without_a_group_are_left_out_with_a_warning():
    adata = cells(6, patient=["a", "a", None, "b", "b", "b"])
    with pytest.warns(UserWarning, match=r"1 cell of 6 have no value in adata.obs\['patient'\]"):
        wh.pp.groups(adata, "patient")
    clouds = read_cohort(adata).clouds
    assert clouds.sizes.tolist() == [2, 3]
    assert 2 not in clouds.indices


def test_small_groups_are_left_out_with_a_warning(caplog):
    adata = cells(6, patient=list("aaabbc"))
    with pytest.warns(UserWarning, match="2 of 3 levels .* fewer than 3 cells"), caplog.at_level(logging.INFO):
        wh.pp.groups(adata, "patient", min_cells=3)
    assert read_cohort(adata).clouds.names.tolist() == ["a"]
    assert "groups: 1 group of 3 to 3 cells, median 3" in caplog.text


def test_groups_that_cannot_be_are_errors():
    adata = cells(6, patient=list("aaabbc"))
    with pytest.raises(KeyError, match="no 'patients'; there are 'patient'"):
        wh.pp.groups(adata, "patients")
    with pytest.raises(ValueError, match="3 levels, none of at least 9 cells"):
        wh.pp.groups(adata, "patient", min_cells=9)
    with pytest.raises(ValueError, match="min_cells is 0"):
        wh.pp.groups(adata, "patient", min_cells=0)
    assert not adata.uns
    assert "groups" in wh.pp.groups(adata, "patient", copy=True).uns
    assert not adata.uns


def test_metacells_are_near_cells_of_about_the_size_asked_for(caplog):
    centres = np.repeat(np.random.default_rng(1).normal(size=(8, 5)) * 50, 30, 0)
    adata = cells()
    adata.X = adata.X + centres
    with caplog.at_level(logging.INFO):
        wh.pp.metacells(adata, n_cells=30)
    found = adata.obs["metacells"]
    assert found.dtype == "category"
    assert found.nunique() == 8
    assert (pd.crosstab(found, np.repeat(np.arange(8), 30)).max(axis=1) == 30).all()  # told apart
    assert "metacells: 8 metacells of 30 to 30 cells" in caplog.text
    assert adata.uns["metacells"]["params"]["method"] == "kmeans"
    assert read_cohort(adata).kind == "metacells"


def test_metacells_are_seeded_and_alike_in_size():
    adata = cells(1000)
    again = cells(1000)
    wh.pp.metacells(adata, n_cells=25, rng=3)
    wh.pp.metacells(again, n_cells=25, rng=3)
    assert adata.obs["metacells"].equals(again.obs["metacells"])
    sizes = adata.obs["metacells"].value_counts()
    assert len(sizes) == 40
    assert sizes.max() < 3 * 25


def test_metacells_stay_within_samples():
    adata = cells(sample=["s1", "s2", "s3"] * 80)
    wh.pp.metacells(adata, n_cells=20, sample_key="sample")
    table = pd.crosstab(adata.obs["metacells"], adata.obs["sample"])
    assert ((table > 0).sum(axis=1) == 1).all()
    assert len(table) == 12
    assert all(
        name.startswith(f"{table.columns[row.argmax()]}-")
        for name, row in zip(table.index, table.to_numpy(), strict=True)
    )


def test_a_sample_of_few_cells_is_one_metacell():
    adata = cells(40, sample=["a"] * 37 + ["b"] * 3)
    wh.pp.metacells(adata, n_cells=10, sample_key="sample")
    assert (adata.obs["metacells"] == "b-0").sum() == 3


def test_labels_of_the_users_are_kept():
    adata = cells(12, SEACell=list("ppqqrrppqqrr"))
    wh.pp.metacells(adata, labels="SEACell")
    assert adata.obs["metacells"].tolist() == adata.obs["SEACell"].tolist()
    adata.obs["sample"] = ["x"] * 6 + ["y"] * 6
    wh.pp.metacells(adata, labels="SEACell", sample_key="sample")
    assert adata.obs["metacells"].cat.categories.tolist() == ["x-p", "x-q", "x-r", "y-p", "y-q", "y-r"]


def test_cells_are_clustered_by_the_representation_asked_for():
    adata = cells(genes=60)
    with pytest.raises(ValueError, match="60 genes and no obsm"):
        wh.pp.metacells(adata)
    adata.obsm["X_pca"] = np.repeat(np.eye(3) * 100, 80, 0)
    wh.pp.metacells(adata, n_cells=80)
    assert adata.uns["metacells"]["params"]["use_rep"] == "X_pca"
    assert (pd.crosstab(adata.obs["metacells"], np.repeat(np.arange(3), 80)).max(axis=1) == 80).all()
    adata.obsm["other"] = np.tile(np.eye(3) * 100, (80, 1))
    wh.pp.metacells(adata, n_cells=80, use_rep="other")
    assert (pd.crosstab(adata.obs["metacells"], np.tile(np.arange(3), 80)).max(axis=1) == 80).all()


def test_sparse_and_backed_cells_make_the_same_metacells(tmp_path):
    adata = cells()
    adata.X = sparse.csr_matrix(np.maximum(adata.X, 0))
    adata.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    dense = adata.copy()
    dense.X = dense.X.toarray()
    for kind in (adata, dense, backed):
        wh.pp.metacells(kind, n_cells=20)
    assert adata.obs["metacells"].equals(dense.obs["metacells"])
    assert adata.obs["metacells"].equals(backed.obs["metacells"])
    backed.file.close()


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"labels": "seacell"}, KeyError, "no 'seacell'"),
        ({"labels": "holes"}, ValueError, "no metacell for 1 cell"),
        ({"sample_key": "holes"}, ValueError, "no value for 1 cell"),
        ({"n_cells": 1}, ValueError, "n_cells is 1"),
        ({"method": "leiden"}, ValueError, "method is 'leiden'; 'kmeans' and 'seacells'"),
        ({"use_rep": "X_umap"}, KeyError, "adata.obsm has no 'X_umap'; it is empty"),
    ],
)
def test_metacells_that_cannot_be_are_errors(options, error, match):
    adata = cells(12, holes=["a"] * 11 + [None])
    with pytest.raises(error, match=match):
        wh.pp.metacells(adata, **options)
    assert "metacells" not in adata.obs


def test_seacells_is_asked_as_it_wants_and_leaves_the_seed_alone(monkeypatch):
    calls = []

    class Fake:
        def __init__(self, ad, build_kernel_on, n_SEACells, verbose):
            calls.append((ad.n_obs, ad.obsm[build_kernel_on].shape, n_SEACells))
            self.drawn = np.random.random(ad.n_obs)  # noqa: NPY002
            self.names = ad.obs_names

        def construct_kernel_matrix(self): ...

        def initialize_archetypes(self): ...

        def fit(self, min_iter, max_iter): ...

        def get_hard_assignments(self):
            return pd.DataFrame({"SEACell": np.where(self.drawn < 0.5, "SEACell-1", "SEACell-0")}, index=self.names)

    core = types.ModuleType("SEACells.core")
    core.SEACells = Fake
    package = types.ModuleType("SEACells")
    package.core = core
    monkeypatch.setitem(sys.modules, "SEACells", package)
    monkeypatch.setitem(sys.modules, "SEACells.core", core)
    adata, again = cells(40), cells(40)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    wh.pp.metacells(adata, n_cells=20, method="seacells", rng=5)
    wh.pp.metacells(again, n_cells=20, method="seacells", rng=5)
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002
    assert calls == [(40, (40, 5), 2)] * 2
    assert adata.obs["metacells"].equals(again.obs["metacells"])
    assert adata.obs["metacells"].nunique() == 2


def test_without_seacells_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "SEACells", None)
    monkeypatch.setitem(sys.modules, "SEACells.core", None)
    with pytest.raises(ImportError, match="pip install SEACells"):
        wh.pp.metacells(cells(40), n_cells=20, method="seacells")


def test_samples_are_not_joined_by_names_that_meet():
    adata = cells(40, patient=["a-b", "a"] * 20, found=["c", "b-c"] * 10 + ["c", "c"] * 10)
    with pytest.raises(ValueError, match="several samples would be named 'a-b-c' alike"):
        wh.pp.metacells(adata, labels="found", sample_key="patient")


def test_columns_of_the_users_are_not_overwritten():
    adata = cells(40, metacells=["a", "b"] * 20, patient=["p"] * 20 + ["q"] * 20)
    for options in ({"n_cells": 10}, {"labels": "patient"}, {"labels": "metacells", "sample_key": "patient"}):
        with pytest.raises(ValueError, match=r"adata.obs\['metacells'\] would be overwritten"):
            wh.pp.metacells(adata, **options)
    assert adata.obs["metacells"].tolist() == ["a", "b"] * 20
    for _ in range(2):
        wh.pp.metacells(adata, labels="metacells")
        wh.pp.metacells(adata, n_cells=10, key_added="ours")
    assert adata.obs["metacells"].tolist() == ["a", "b"] * 20
    with pytest.raises(ValueError, match=r"adata.uns\['ours'\] would be overwritten"):
        wh.pp.groups(adata, "patient", key_added="ours")
