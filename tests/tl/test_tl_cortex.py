"""The whole way on a simulated cortex, trained on one slice and asked about another."""

import warnings

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.neighbors import KNeighborsRegressor

import scwormhole as wh
from scwormhole._adata import read_cohort


@pytest.mark.slow
def test_another_slice_is_mapped_by_depth():
    with warnings.catch_warnings(action="ignore"):  # of scanpy's imports, and that 200 steps are few
        import scanpy as sc

        tissue = wh.datasets.cortex(1600, 40, rng=0)
        sc.pp.normalize_total(tissue)
        sc.pp.log1p(tissue)
        old, new = (tissue[tissue.obs["library"] == f"slice {i}"].copy() for i in (1, 2))
        new = new[:, ::-1].copy()
        for adata in (old, new):
            wh.pp.niches(adata, radius=75)
        wh.tl.wormhole(old, max_steps=200, progress=False)
        wh.tl.embed(new, old)
        wh.tl.diffmap(old, subset=("cell_type", "Pvalb"), n_comps=3, n_neighbors=10)
    assert old.uns["wormhole"]["fidelity"]["correlation"] > 0.9
    depth = KNeighborsRegressor(10).fit(old.obsm["X_wormhole"], old.obs["depth"]).predict(new.obsm["X_wormhole"])
    assert spearmanr(depth, new.obs["depth"]).statistic > 0.95
    pvalb = old.obs["cell_type"] == "Pvalb"
    assert abs(spearmanr(old.obsm["X_wormhole_diffmap"][pvalb, 0], old.obs["depth"][pvalb]).statistic) > 0.9

    middles = wh.tl.barycenters(old, "layer")
    real = old.to_df().groupby(old.obs["layer"], observed=True).mean()
    decoded = middles.to_df().groupby(middles.obs["cloud"], observed=True).mean().loc[real.index]
    ours, theirs = ((table - table.mean()).to_numpy().ravel() for table in (decoded, real))
    assert np.corrcoef(ours, theirs)[0, 1] > 0.8  # what tells layers apart is in the decoded niches
    pairs = np.triu_indices(len(real), 1)
    found = wh.tl.distances(old, groupby="layer").loc[real.index, real.index].to_numpy()[pairs]
    assert np.corrcoef(found, between_layers(old, real.index)[pairs])[0, 1] > 0.9


def between_layers(adata, layers, each=20):
    """What solved transport says of the squared distance of the middles: between groups, less what is within each."""
    rng = np.random.default_rng(0)
    rows = [rng.choice(np.flatnonzero(adata.obs["layer"] == layer), each, replace=False) for layer in layers]
    clouds, epsilon = read_cohort(adata).clouds[np.concatenate(rows)], adata.uns["wormhole"]["epsilon"]
    solved = wh.ot.pairwise(clouds, epsilon=epsilon, relative_epsilon=None, progress=False)
    blocks = solved.reshape(len(layers), each, len(layers), each).sum(axis=(1, 3))
    within = np.diag(blocks) / (each * (each - 1))
    return blocks / each**2 - (within[:, None] + within) / 2
