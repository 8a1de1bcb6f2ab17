"""The simulated cortex: layers mix their own cells, densities are those of tissue, and only niches tell depth."""

import numpy as np
import pytest
from scipy.sparse import issparse
from scipy.spatial import cKDTree

import scwormhole as wh

LAYERS = ["L1", "L2/3", "L4", "L5", "L6", "WM"]


@pytest.fixture(scope="module")
def adata():
    return wh.datasets.cortex(n_cells=6000, n_genes=60, n_libraries=2, rng=0)


def normalised(adata):
    counts = adata.X.toarray()
    return np.log1p(counts / counts.sum(1, keepdims=True) * 100)


def test_what_is_there(adata):
    assert adata.shape == (6000, 60)
    assert {"Pvalb", "Slc17a7"} <= {*adata.var_names}
    assert adata.var_names.is_unique
    assert adata.obs_names.is_unique
    assert list(adata.obs["layer"].cat.categories) == LAYERS
    assert adata.obs["library"].value_counts().tolist() == [3000, 3000]
    assert adata.obs["depth"].between(0, 1).all()
    order = adata.obs.groupby("layer", observed=True)["depth"].agg(["min", "max"])
    assert (order["min"].to_numpy()[1:] >= order["max"].to_numpy()[:-1]).all()


def test_counts_are_whole_sparse_and_more_scattered_than_poisson(adata):
    assert issparse(adata.X)
    assert adata.X.dtype == np.float32
    np.testing.assert_array_equal(adata.X.data, adata.X.data.round())
    pvalb = adata[adata.obs["cell_type"] == "Pvalb", "Gad1"].X.toarray().ravel()
    assert pvalb.var() > 2 * pvalb.mean()


def test_about_twenty_cells_lie_within_50_um(adata):
    for _, rows in adata.obs.groupby("library", observed=True).indices.items():
        place = adata.obsm["spatial"][rows]
        sizes = cKDTree(place).query_ball_point(place, 50, return_length=True)
        assert 16 <= np.median(sizes) <= 30
        assert np.quantile(sizes, 0.95) < 40
        np.testing.assert_allclose(place.min(0), 0, atol=1e-9)  # each in coordinates of its own


def test_layers_have_their_own_cells_and_pvalb_cells_lie_in_all(adata):
    share = adata.obs.groupby("layer", observed=True)["cell_type"].value_counts(normalize=True).unstack()
    assert share.loc["L4", "L4 IT"] > 0.4 > share.loc["L5", "L4 IT"]
    assert share.loc["WM", "Oligo"] > 0.5 > share.loc["L4", "Oligo"]
    assert (share.loc[LAYERS[1:5], "Pvalb"].between(0.02, 0.12)).all()


def predicted_depth(x, depth, train):
    """Least squares on half of the cells, told on the others."""
    x = np.column_stack([x, np.ones(len(x))])
    found = np.linalg.lstsq(x[train], depth[train], rcond=None)[0]
    return np.corrcoef(x[~train] @ found, depth[~train])[0, 1]


def test_a_pvalb_cell_does_not_know_its_depth_but_its_niche_does(adata):
    x, depth = normalised(adata), adata.obs["depth"].to_numpy()
    niche = np.empty_like(x)
    for _, rows in adata.obs.groupby("library", observed=True).indices.items():
        place = adata.obsm["spatial"][rows]
        niche[rows] = x[rows][cKDTree(place).query(place, 20)[1]].mean(1)
    pvalb = np.flatnonzero(adata.obs["cell_type"] == "Pvalb")
    train = np.arange(len(pvalb)) % 2 == 0
    assert abs(predicted_depth(x[pvalb], depth[pvalb], train)) < 0.3
    assert predicted_depth(niche[pvalb], depth[pvalb], train) > 0.8


def test_the_seed_decides():
    one, same, other = (wh.datasets.cortex(200, n_libraries=1, rng=seed) for seed in (1, 1, 2))
    assert (one.X != same.X).nnz == 0
    np.testing.assert_array_equal(one.obsm["spatial"], same.obsm["spatial"])
    assert (one.X != other.X).nnz > 0


def test_it_can_be_written(adata, tmp_path):
    import anndata

    adata.write_h5ad(tmp_path / "cortex.h5ad")
    back = anndata.read_h5ad(tmp_path / "cortex.h5ad")
    assert list(back.obs["layer"].cat.categories) == LAYERS
    np.testing.assert_array_equal(back.obsm["spatial"], adata.obsm["spatial"])


@pytest.mark.parametrize(
    ("options", "said"), [({"n_genes": 5}, "at least 28"), ({"n_libraries": 0}, "at least 1"), ({"n_cells": 1}, "cell")]
)
def test_too_little_is_refused(options, said):
    with pytest.raises(ValueError, match=said):
        wh.datasets.cortex(**options)


@pytest.mark.parametrize("name", ["n_cells", "n_genes", "n_libraries"])
def test_numbers_must_be_whole(name):
    with pytest.raises(TypeError, match=f"{name} is 1000.0; give a whole number"):
        wh.datasets.cortex(**{name: 1e3})
