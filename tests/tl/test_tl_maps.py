"""Maps of an embedding through scanpy, and a user's own pipeline around it, of which nothing changes."""

import warnings

import anndata
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.stats import spearmanr

import scwormhole as wh


@pytest.fixture(scope="module", autouse=True)
def _scanpy():
    with warnings.catch_warnings(action="ignore"):  # what its own imports warn of
        import scanpy  # noqa: F401
        import squidpy  # noqa: F401


@pytest.fixture
def line(embedded):
    """Vectors along a bent line, as an embedding."""
    adata = embedded[np.arange(60)].copy()
    share = np.random.default_rng(0).permutation(np.linspace(0, 3, 60))
    adata.obsm["X_wormhole"] = np.stack([np.cos(share), np.sin(share), *np.zeros((6, 60))], 1).astype(np.float32)
    adata.obs["share"] = share
    return adata


def content(adata):
    """Everything in an AnnData, by place."""
    held = {"X": adata.X.copy()}
    for slot in ("obs", "var", "obsm", "varm", "obsp", "varp", "layers", "uns"):
        for key in getattr(adata, slot):
            value = getattr(adata, slot)[key]
            held[f"{slot}.{key}"] = value.copy() if hasattr(value, "copy") else value
    return held


def equal(first, second):
    if sparse.issparse(first):
        return (first != second).nnz == 0
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(equal(first[name], second[name]) for name in first)
    if isinstance(first, pd.Series):
        return first.equals(second)
    if isinstance(first, np.ndarray) and first.dtype.names:
        return all(np.array_equal(first[name], second[name]) for name in first.dtype.names)
    first, second = np.asarray(first), np.asarray(second)
    return np.array_equal(first, second, equal_nan=first.dtype.kind == "f")


def test_the_first_component_goes_along_a_line(line):
    wh.tl.diffmap(line, n_comps=4, n_neighbors=8)
    found = line.obsm["X_wormhole_diffmap"]
    assert found.shape == (60, 4)
    assert found.dtype == np.float32
    assert abs(spearmanr(found[:, 0], line.obs["share"]).statistic) > 0.999
    values = line.uns["wormhole_diffmap"]["eigenvalues"]
    assert len(values) == 4
    assert (np.diff(values) <= 0).all()
    assert values[0] < 1  # the constant component is left out
    assert (found[np.abs(found).argmax(0), np.arange(4)] > 0).all()


def test_components_are_scanpys(line):
    import scanpy as sc

    wh.tl.diffmap(line, n_comps=4, n_neighbors=8)
    theirs = anndata.AnnData(line.obsm["X_wormhole"].copy())
    sc.pp.neighbors(theirs, n_neighbors=8, use_rep="X")
    sc.tl.diffmap(theirs, n_comps=5)
    ours = np.abs(line.obsm["X_wormhole_diffmap"])
    np.testing.assert_allclose(ours, np.abs(theirs.obsm["X_diffmap"][:, 1:]), atol=1e-4)


@pytest.mark.parametrize("subset", ["mask", "column", "values", "names"])
def test_a_subset_is_mapped_alone(line, subset):
    chosen = (line.obs["side"] == "left").to_numpy()
    given = {
        "mask": chosen,
        "column": ("side", "left"),
        "values": ("side", ["left", "nowhere"]),
        "names": line.obs_names[chosen].tolist(),
    }[subset]
    wh.tl.diffmap(line, n_comps=2, n_neighbors=8, subset=given)
    wh.tl.umap(line, n_neighbors=8, subset=given)
    alone = line[chosen].copy()
    wh.tl.diffmap(alone, n_comps=2, n_neighbors=8)
    found = line.obsm["X_wormhole_diffmap"]
    assert np.isnan(found[~chosen]).all()
    np.testing.assert_allclose(found[chosen], alone.obsm["X_wormhole_diffmap"], atol=1e-5)
    assert np.array_equal(np.isnan(line.obsm["X_wormhole_umap"]).all(1), ~chosen)
    assert line.uns["wormhole_diffmap"]["params"]["n_rows"] == chosen.sum()


def test_rows_named_twice_count_once_and_values_may_be_an_array(line):
    wh.tl.diffmap(line, n_comps=2, n_neighbors=8, subset=[*range(30), *range(30)])
    assert line.uns["wormhole_diffmap"]["params"]["n_rows"] == 30
    wh.tl.diffmap(line, n_comps=2, n_neighbors=8, subset=("side", np.array(["left", "right"])))
    assert line.uns["wormhole_diffmap"]["params"]["n_rows"] == 60


def test_one_component_is_the_first_of_several(line):
    wh.tl.diffmap(line, n_comps=3, n_neighbors=8)
    several = line.obsm["X_wormhole_diffmap"]
    wh.tl.diffmap(line, n_comps=1, n_neighbors=8)
    np.testing.assert_allclose(line.obsm["X_wormhole_diffmap"], several[:, :1], atol=1e-4)
    assert len(line.uns["wormhole_diffmap"]["eigenvalues"]) == 1


def test_maps_are_seeded_and_keep_neighbours(line):
    wh.tl.umap(line, n_neighbors=8)
    first = line.obsm["X_wormhole_umap"].copy()
    assert np.array_equal(wh.tl.umap(line, n_neighbors=8, copy=True).obsm["X_wormhole_umap"], first)
    order = np.argsort(line.obs["share"].to_numpy())
    steps = np.linalg.norm(np.diff(first[order], axis=0), axis=1)
    others = np.linalg.norm(first[order][:30] - first[order][30:], axis=1)
    assert np.median(steps) < np.median(others) / 3
    assert line.uns["wormhole_umap"]["params"]["min_dist"] == 0.5


def test_a_graph_in_parts_is_warned_of(line):
    line.obsm["X_wormhole"][30:] += 1000
    with pytest.warns(UserWarning, match="falls into 2 parts"):
        wh.tl.umap(line, n_neighbors=5)


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"n_comps": 0}, ValueError, "n_comps is 0"),
        ({"n_comps": 59}, ValueError, "n_comps is 59 for 60 rows"),
        ({"n_neighbors": 60}, ValueError, "n_neighbors is 60 for 60 rows"),
        (
            {"subset": ("side", "top")},
            ValueError,
            "no row has 'top' in .*there are '",
        ),
        ({"subset": ("sides", "left")}, KeyError, "no 'sides'; there are 'side'"),
        ({"subset": ("side",)}, ValueError, "a column of adata.obs and a value"),
        ({"subset": np.zeros(60, bool)}, IndexError, "holds no"),
        ({"key": "other"}, KeyError, "no embedding 'other'"),
    ],
)
def test_what_is_wrong_is_said(options, error, match, line):
    with pytest.raises(error, match=match):
        wh.tl.diffmap(line, **options)
    assert "X_wormhole_diffmap" not in line.obsm


def test_a_users_pipeline_stays_as_it_is(a_tissue, embedded):
    import scanpy as sc
    import squidpy as sq

    adata = a_tissue()
    del adata.obsp["niches"], adata.uns["niches"], adata.obs["niches_size"]
    with warnings.catch_warnings(action="ignore"):  # of scanpy's and squidpy's own
        sc.pp.pca(adata, n_comps=2)
        sc.pp.neighbors(adata, n_neighbors=8)
        sc.tl.umap(adata)
        sc.tl.diffmap(adata, n_comps=3)
        sc.tl.leiden(adata, flavor="igraph", n_iterations=2)
        neighbours = getattr(sq.gr, "spatial_neighbors_knn", None) or sq.gr.spatial_neighbors
        neighbours(adata)
        sq.gr.nhood_enrichment(adata, cluster_key="side", show_progress_bar=False, n_perms=10, seed=0)
    before = content(adata)

    wh.pp.niches(adata, n_neighbors=5)
    wh.tl.embed(adata, embedded)
    wh.tl.diffmap(adata, n_comps=3)
    wh.tl.umap(adata)
    wh.tl.barycenters(adata, "leiden")
    wh.tl.distances(adata, groupby="leiden")
    after = content(adata)
    assert all(equal(before[place], after[place]) for place in before)
    ours = {"obsp.niches", "uns.niches", "obs.niches_size", "obsm.X_wormhole", "obs.wormhole_nugget", "uns.wormhole"}
    ours |= {f"{slot}wormhole_{name}" for slot in ("obsm.X_", "uns.") for name in ("diffmap", "umap")}
    assert after.keys() - before.keys() <= ours

    with warnings.catch_warnings(action="ignore"):
        sc.pp.neighbors(adata, use_rep="X_wormhole", key_added="by_niche", n_neighbors=8)
        sc.tl.leiden(adata, flavor="igraph", n_iterations=2, neighbors_key="by_niche", key_added="niche")
        sq.gr.nhood_enrichment(adata, cluster_key="niche", show_progress_bar=False, n_perms=10, seed=0)
    assert adata.obs["niche"].nunique() > 1
    assert "niche_nhood_enrichment" in adata.uns
