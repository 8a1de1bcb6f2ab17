"""The demonstration: runs from the command line, keeps what it says, and finds the depth that was simulated."""

import re

import anndata
import numpy as np
import pytest

import scwormhole as wh
from scwormhole.__main__ import FEWEST, draw, main, report, tissue

FIGURES = {"barycenters", "depth", "diffmap", "fidelity", "history", "tissue", "umap"}


def test_the_tissue_is_normalised_and_keeps_its_counts():
    adata = tissue(300, rng=0)
    counts = adata.layers["counts"].toarray()
    np.testing.assert_allclose(np.expm1(adata.X.toarray()).sum(1), np.median(counts.sum(1)), rtol=1e-4)
    np.testing.assert_array_equal(counts, counts.round())


def test_a_command_is_asked_for(capsys):
    with pytest.raises(SystemExit):
        main([])
    assert "demo" in capsys.readouterr().err


def test_too_few_cells_are_refused_before_anything_is_made(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["demo", "--out", str(tmp_path / "demo"), "--cells", "300"])
    assert "--cells is 300; give at least 1000" in capsys.readouterr().err
    assert not (tmp_path / "demo").exists()


@pytest.mark.parametrize("rng", range(5))
def test_the_fewest_cells_are_enough_to_map(rng):
    assert (tissue(FEWEST, rng).obs["cell_type"] == "Pvalb").sum() > 30  # neighbours in the diffusion map


@pytest.fixture
def embedded():
    """A tissue with every slot that is drawn and told, written by hand: the first component is depth."""
    adata = tissue(300, rng=0)
    rng, depth = np.random.default_rng(0), adata.obs["depth"].to_numpy()
    components = np.stack([depth**3, rng.random(300)], axis=1)
    components[adata.obs["cell_type"] != "Pvalb"] = np.nan
    adata.obsm["X_wormhole_diffmap"] = components
    adata.obsm["X_wormhole_umap"] = rng.normal(size=(300, 2))
    pairs = {"solved": np.arange(1.0, 7.0), "embedded": np.arange(1.0, 7.0), "clouds": np.arange(4)}
    looks = {"phase": ["encoder"] * 2, "step": [0, 9], "correlation": [0.9, 0.95], "error": [0.4, 0.3]}
    adata.uns["wormhole"] = {"kind": "wormhole", "fidelity": {"correlation": 0.95}, "held_out": pairs, "history": looks}
    return adata


def test_every_figure_is_drawn(embedded, tmp_path):
    middles = embedded[:60].copy()
    middles.obs["cloud"] = middles.obs["layer"]
    draw(embedded, middles, tmp_path)
    assert {path.stem for path in tmp_path.iterdir()} == FIGURES


def test_the_summary_tells_what_was_found(embedded, tmp_path, capsys):
    report(embedded, tmp_path, 12.3)
    said = capsys.readouterr().out
    assert "cells: 300, genes: 100, libraries: 2" in said
    assert "correlation 0.950" in said
    assert "|Spearman| 1.000" in said


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ImportWarning")  # of UMAP, which looks for Tensorflow
def test_demo_finds_depth_is_true_to_transport_and_can_be_read_again(tmp_path, capsys):
    out = tmp_path / "demo"
    main(["demo", "--out", str(out)])
    said = capsys.readouterr().out
    assert {path.name for path in out.iterdir()} == {"cortex.h5ad", "model", *(f"{name}.png" for name in FIGURES)}
    assert float(re.search(r"correlation ([0-9.]+)", said)[1]) > 0.98
    assert float(re.search(r"Spearman\| ([0-9.]+)", said)[1]) > 0.95
    adata, model = anndata.read_h5ad(out / "cortex.h5ad"), wh.Wormhole.load(out / "model")
    clouds = wh.PointClouds.from_graph(adata.X, adata.obsp["niches"])[:50]
    np.testing.assert_allclose(model.transform(clouds), adata.obsm["X_wormhole"][:50], atol=1e-4)
