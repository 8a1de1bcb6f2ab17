"""The demonstration, ``python -m scwormhole demo``: the niches of a simulated cortex, embedded, checked and drawn.

The one place of the package that prints.
"""

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from anndata import AnnData
from sklearn.exceptions import ConvergenceWarning

import scwormhole as wh

RADIUS = 75.0  # um
CELL_TYPE = "Pvalb"  # in all layers, and the same in all of them
FEWEST = 1000  # cells that can be asked for
STEPS = 500  # of encoder and decoder each, in place of what would take several minutes


def main(arguments: list[str] | None = None) -> None:
    """Read the command line and run what it asks for."""
    parser = argparse.ArgumentParser(prog="python -m scwormhole", description="Optimal transport between many clouds.")
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("demo", help="embed the niches of a simulated cortex, and draw what comes out")
    command.add_argument("--out", type=Path, default=Path("demo"), help="folder for what is made (default: demo)")
    command.add_argument("--cells", type=int, default=4000, help="cells of the tissue (default: 4000)")
    command.add_argument("--rng", type=int, default=0, help="seed (default: 0)")
    options = parser.parse_args(arguments)
    if options.cells < FEWEST:
        parser.error(
            f"--cells is {options.cells}; give at least {FEWEST}, of which enough are {CELL_TYPE} cells to map"
        )
    demo(options.out, n_cells=options.cells, rng=options.rng)


def demo(out: Path, *, n_cells: int, rng: int, **params: Any) -> None:
    """Simulate a cortex, embed its niches, look at those of Pvalb cells, draw, keep all of it, and sum up."""
    out.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    adata = tissue(n_cells, rng)
    wh.pp.niches(adata, radius=RADIUS, library_key="library")
    sizes = np.diff(adata.obsp["niches"].indptr)
    print(f"{adata.n_obs:,} niches of radius {RADIUS:g} um: {int(np.median(sizes))} cells each, {adata.n_vars} genes")
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):  # the limit is the demonstration's own
        wh.tl.wormhole(adata, rng=rng, **{"max_steps": STEPS, **params})
    wh.tl.diffmap(adata, subset=("cell_type", CELL_TYPE), rng=rng)
    wh.tl.umap(adata, rng=rng)
    middles = wh.tl.barycenters(adata, "layer")
    draw(adata, middles, out)
    adata.write_h5ad(out / "cortex.h5ad")
    wh.tl.model(adata).save(out / "model", overwrite=True)
    report(adata, out, time.perf_counter() - began)


def tissue(n_cells: int, rng: int) -> AnnData:
    """Return a simulated cortex, normalised as usual; its counts are in a layer."""
    import scanpy as sc

    adata = wh.datasets.cortex(n_cells, rng=rng)
    adata.layers["counts"] = adata.X.copy()
    sc.pp.normalize_total(adata)
    sc.pp.log1p(adata)
    return adata


def draw(adata: AnnData, middles: AnnData, out: Path) -> None:
    """Draw everything a biologist would show, a file each."""
    import matplotlib.pyplot as plt

    plt.switch_backend("Agg")
    of_place: dict[str, Any] = {"library_key": "library", "scale_bar": 200}
    figures = {
        "tissue": lambda: wh.pl.spatial(adata, "cell_type", **of_place),
        "depth": lambda: wh.pl.spatial(adata, 1, **of_place),
        "diffmap": lambda: wh.pl.diffmap(adata, ["depth", "layer", "library"]),
        "umap": lambda: wh.pl.umap(adata, ["layer", "depth", "library"]),
        "barycenters": lambda: wh.pl.barycenters(middles),
        "fidelity": lambda: wh.pl.fidelity(adata),
        "history": lambda: wh.pl.history(adata),
    }
    for name, figure in figures.items():
        first = np.ravel(np.asarray(figure(), dtype=object))[0]
        first.figure.savefig(out / f"{name}.png", dpi=150, bbox_inches="tight")
        plt.close(first.figure)


def report(adata: AnnData, out: Path, seconds: float) -> None:
    """Print what was found."""
    from scipy.stats import spearmanr

    record, rows = adata.uns["wormhole"], adata.obs["cell_type"] == CELL_TYPE
    depth = spearmanr(adata.obsm["X_wormhole_diffmap"][rows, 0], adata.obs["depth"][rows]).statistic
    print(f"cells: {adata.n_obs:,}, genes: {adata.n_vars}, libraries: {adata.obs['library'].nunique()}")
    if "fidelity" in record:
        print(f"embedded with solved divergences, held-out niches: correlation {record['fidelity']['correlation']:.3f}")
    print(
        f"first diffusion component of the {rows.sum()} {CELL_TYPE} niches with depth: |Spearman| {abs(depth):.3f} "
        "(the cells themselves do not tell it)"
    )
    print(f"{seconds:.0f} s; in {out}: {', '.join(sorted(path.name for path in out.iterdir()))}")


if __name__ == "__main__":
    main()
