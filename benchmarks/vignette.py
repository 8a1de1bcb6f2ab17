"""Tissue and patients: does the embedding of niches follow depth, and what do niches and patients tell?

    python benchmarks/vignette.py --data FOLDER [--rows cortex starmap ...] [--out docs/benchmarks]

Depth: all niches of a tissue are embedded; the first diffusion component of the niches of one interneuron type, and of
all cells whose layer is known, is compared with depth and layer, which nothing before has seen. Beside it the plain
baseline: mean and standard deviation of the same 20 principal components over the same niches, and a diffusion map of
these. Labels: a classifier is trained on vectors of one region, or some patients, and tested on another. Each row of
the command makes a table of its own.
"""

import argparse
import os
import time
import warnings
from pathlib import Path

import anndata
import matplotlib
import numpy as np
import scanpy as sc
from scipy.spatial import cKDTree
from scipy.stats import spearmanr

import scwormhole as wh

N_PCS = 20
FIT = {"coeff_dec": 0, "max_steps": 300, "progress": False}  # steps and not seconds, so that any machine finds the same
DEPTH_HEAD = (
    "| niche | cells a niche | fidelity | cells compared | depth | layer | depth, mean and sd | layer, mean and sd |",
    "|---|---|---|---|---|---|---|---|",
)
LABEL_HEAD = (
    "| cohort | label | clouds | held out | fidelity | accuracy | mean and sd | most common label |",
    "|---|---|---|---|---|---|---|---|",
)


def principal_components(adata: anndata.AnnData) -> None:
    """Normalise counts as usual, and find principal components."""
    sc.pp.normalize_total(adata)
    sc.pp.log1p(adata)
    sc.pp.pca(adata, n_comps=N_PCS, random_state=0)


def plain(points: np.ndarray, graph) -> np.ndarray:
    """Return the mean and standard deviation of each coordinate over each niche."""
    weights = graph.astype(np.float64)
    weights = weights.multiply(1 / np.asarray(weights.sum(1)).reshape(-1, 1)).tocsr()
    points = np.asarray(points, np.float64)
    mean = weights @ points
    return np.hstack([mean, np.sqrt(np.maximum(weights @ points**2 - mean**2, 0))])


def first_component(vectors: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the first diffusion component of some rows, by scanpy."""
    some = anndata.AnnData(np.asarray(vectors[rows], np.float32))
    sc.pp.neighbors(some, n_neighbors=min(30, len(some) // 2), use_rep="X", random_state=0)
    sc.tl.diffmap(some, random_state=0)
    return some.obsm["X_diffmap"][:, 1]


def agreement(found: np.ndarray, known: np.ndarray) -> float:
    return abs(float(spearmanr(found, known).statistic))


def depth_lines(adata: anndata.AnnData, niches: list[dict], groups: dict, library_key=None) -> list[str]:
    """Return a line for each kind of niche and each group of cells; the last embedding stays in ``adata``.

    A group is some rows of a diffusion map that is made of some rows, perhaps more.
    """
    lines = []
    for options in niches:
        wh.pp.niches(adata, library_key=library_key, **options)
        graph = adata.obsp["niches"]
        wh.tl.wormhole(adata, use_rep="X_pca", **FIT)
        vectors = {"ours": adata.obsm["X_wormhole"], "plain": plain(adata.obsm["X_pca"], graph)}
        for group, (rows, mapped) in groups.items():
            found = {kind: first_component(held, mapped)[np.isin(mapped, rows)] for kind, held in vectors.items()}
            cells = [
                " ".join(f"{key} {value:g}" for key, value in options.items()).replace("_", " "),
                f"{np.median(np.diff(graph.indptr)):.0f}",
                f"{adata.uns['wormhole']['fidelity']['correlation']:.3f}",
                f"{len(rows):,} {group}",
                *(
                    f"{agreement(found[kind], adata.obs[truth].to_numpy(float)[rows]):.3f}"
                    for kind in ("ours", "plain")
                    for truth in ("depth", "layer_order")
                ),
            ]
            lines.append("| " + " | ".join(cells) + " |")
            print(lines[-1], flush=True)
    return lines


def cortex(folder: Path, out: Path | None) -> list[str]:
    """The simulated cortex."""
    adata = wh.datasets.cortex()
    principal_components(adata)
    adata.obs["layer_order"] = adata.obs["layer"].cat.codes
    pvalb, everything = np.flatnonzero(adata.obs["cell_type"] == "Pvalb"), np.arange(adata.n_obs)
    groups = {"Pvalb": (pvalb, pvalb), "Pvalb on the map of all": (pvalb, everything), "all": (everything, everything)}
    niches = [{"n_neighbors": 30}, {"radius": 50}, {"radius": 75}, {"radius": 100}]
    return depth_lines(adata, niches, groups, "library")


def starmap(folder: Path, out: Path | None) -> list[str]:
    """STARmap visual cortex, one section; depth is the place along the direction in which layers follow one another."""
    adata = anndata.read_h5ad(next((folder / "starmap_visp").glob("*.h5ad")))
    principal_components(adata)
    place, order = np.asarray(adata.obsm["spatial"], float), adata.obs["layer_order"].to_numpy(float)
    known = np.flatnonzero(np.isfinite(order))
    design = np.column_stack([place, np.ones(len(place))])
    adata.obs["depth"] = design @ np.linalg.lstsq(design[known], order[known], rcond=None)[0]
    pvalb = known[(adata.obs["cluster_name"] == "PVALB").to_numpy()[known]]
    print(f"<!-- depth with layer: PVALB {agreement(adata.obs['depth'].to_numpy()[pvalb], order[pvalb]):.3f} -->")
    groups = {"PVALB": (pvalb, pvalb), "PVALB on the map of all": (pvalb, known), "all": (known, known)}
    lines = depth_lines(adata, [{"n_neighbors": n} for n in (15, 30, 75, 50)], groups)
    if out is not None:
        adata.obs["layer"] = adata.obs["layer"].where(np.isfinite(order))
        wh.tl.diffmap(adata, subset=known)
        save(wh.pl.spatial(adata, 1), out / "vignette_starmap.png")
        save(wh.pl.diffmap(adata, ["layer", "depth"]), out / "vignette_starmap_map.png")
    return lines


def label_line(name: str, label: str, clouds: str, held_out: str, fidelity: str, scores: list[float]) -> str:
    line = f"| {name} | {label} | {clouds} | {held_out} | {fidelity} | " + " | ".join(f"{s:.3f}" for s in scores)
    print(line + " |", flush=True)
    return line + " |"


def by_region(adata: anndata.AnnData, name: str, label: str, gap: float, niches: dict) -> tuple[list[str], tuple]:
    """Embed niches by a model of the left three quarters, and tell labels in the right quarter."""
    place = np.asarray(adata.obsm["spatial"], float)[:, 0]
    edge = np.quantile(place, 0.75)
    train, test = adata[place < edge - gap].copy(), adata[place > edge + gap].copy()
    for part in (train, test):
        wh.pp.niches(part, **niches)
    model = wh.tl.wormhole(train, use_rep="X_pca", return_model=True, **FIT)
    wh.tl.embed(test, model, use_rep="X_pca")
    clouds = wh.PointClouds.from_graph(test.obsm["X_pca"], test.obsp["niches"])
    fidelity = wh.metrics.fidelity(model, clouds, n_repeats=5, n_exact=0).correlation
    known = [(part.obs[label].notna() & (part.obs[label].astype(str) != "nan")).to_numpy() for part in (train, test)]
    told = [part.obs[label].astype(str).to_numpy()[rows] for part, rows in zip((train, test), known, strict=True)]
    scores = []
    for vectors in (
        [part.obsm["X_wormhole"] for part in (train, test)],
        [plain(part.obsm["X_pca"], part.obsp["niches"]) for part in (train, test)],
    ):
        first, second = (held[rows] for held, rows in zip(vectors, known, strict=True))
        scores.append(wh.metrics.label_accuracy(first, told[0], test_z=second, test_labels=told[1]))
    names, counts = np.unique(told[0], return_counts=True)
    scores.append(float((told[1] == names[counts.argmax()]).mean()))
    size = f"{train.n_obs:,} + {test.n_obs:,} niches"
    return [label_line(name, label, size, "right quarter of the tissue", f"{fidelity:.3f}", scores)], (train, test)


def merfish(folder: Path, out: Path | None) -> list[str]:
    """MERFISH hypothalamus, volume-normalised."""
    adata = anndata.read_h5ad(next((folder / "merfish_mpoa").glob("*.h5ad")))
    sc.pp.log1p(adata)
    sc.pp.pca(adata, n_comps=N_PCS, random_state=0)
    lines, (train, _) = by_region(adata, "MERFISH hypothalamus", "celltype", 50, {"radius": 50})
    if out is not None:
        regions(train, out / "vignette_merfish.png", "celltype")
    return lines


def codex(folder: Path, out: Path | None) -> list[str]:
    """CODEX spleen, the healthy sample: arcsinh of intensities, each protein to unit variance."""
    adata = anndata.read_h5ad(next((folder / "codex_spleen").glob("*.h5ad")))
    adata = adata[adata.obs["sample"] == "BALBc-1"].copy()
    scale = np.quantile(np.abs(adata.X), 0.5, axis=0)
    adata.X = np.arcsinh(adata.X / np.maximum(scale, 1.0))
    sc.pp.scale(adata, max_value=6)
    sc.pp.pca(adata, n_comps=N_PCS, random_state=0)
    place = np.asarray(adata.obsm["spatial"], float)
    reach = float(np.quantile(cKDTree(place).query(place, 20)[0][:, -1], 0.95))
    lines, (train, _) = by_region(adata, "CODEX spleen", "i-niche", reach, {"n_neighbors": 20})
    if out is not None:
        regions(train, out / "vignette_codex.png", "cell_type")
    return lines


def covid(folder: Path, out: Path | None) -> list[str]:
    """COVID patients: each a cloud, and each in metacells."""
    from sklearn.model_selection import StratifiedGroupKFold

    adata = anndata.read_h5ad(next((folder / "covid_pbmc_gloscope").glob("*.h5ad")))
    lines = []
    wh.pp.groups(adata, groupby="sample_id")
    wh.pp.metacells(adata, n_cells=50, sample_key="sample_id", use_rep="X_pca")
    for key, name, folds in (("groups", "COVID patients", 20), ("metacells", "COVID metacells", 4)):
        made, model = wh.tl.wormhole(adata, clouds=key, use_rep="X_pca", return_model=True, **FIT)
        of = adata.obs["sample_id" if key == "groups" else "metacells"].astype(str)
        told = made.obs["phenotype"].astype(str).to_numpy()
        patients = made.obs["sample_id"].astype(str).to_numpy()
        pcs = np.asarray(adata.obsm["X_pca"], float)
        clouds = wh.PointClouds.from_groups(pcs, of)[made.obs_names.tolist()]
        rows = [np.flatnonzero(of == cloud) for cloud in made.obs_names]
        baseline = np.stack([np.hstack([pcs[r].mean(0), pcs[r].std(0)]) for r in rows])
        if folds == len(made):
            apart = wh.ot.pairwise(clouds, progress=False) + np.diag([np.inf] * folds)
            print(f"<!-- nearest patient, solved: {(told[apart.argmin(1)] == told).sum()} of {folds} agree -->")
            parts = [(np.delete(np.arange(len(made)), i), np.array([i])) for i in range(len(made))]
        else:
            splitter = StratifiedGroupKFold(folds, shuffle=True, random_state=0)
            parts = list(splitter.split(baseline, told, patients))
        scores = []
        for vectors in (made.obsm["X_wormhole"], baseline):
            right = [
                wh.metrics.label_accuracy(vectors[a], told[a], test_z=vectors[b], test_labels=told[b]) * len(b)
                for a, b in parts
            ]
            scores.append(sum(right) / len(made))
        scores.append(float(np.unique(told, return_counts=True)[1].max() / len(told)))
        seen = wh.metrics.fidelity(model, clouds, n_exact=0).correlation
        unseen = made.uns["wormhole"]["fidelity"]
        fidelity = f"{unseen['correlation']:.3f} of {unseen['n_clouds']} held out, {seen:.3f} of all"
        held_out = "each patient in turn" if key == "groups" else "a quarter of the patients, four times"
        lines.append(label_line(name, "phenotype", f"{len(made)} clouds", held_out, fidelity, scores))
        if out is not None and key == "metacells":
            wh.tl.umap(made)
            save(wh.pl.umap(made, ["phenotype", "sample_id"]), out / "vignette_covid.png")
    return lines


def regions(adata: anndata.AnnData, path: Path, label: str) -> None:
    """Draw cells in place, coloured by their most common labels, beside clusters of the vectors of their niches."""
    import matplotlib.pyplot as plt
    from sklearn.cluster import KMeans

    common = adata.obs[label].value_counts().index[:9]
    adata.obs["drawn"] = adata.obs[label].astype(str).where(adata.obs[label].isin(common), "others")
    found = KMeans(8, n_init=4, random_state=0).fit_predict(adata.obsm["X_wormhole"])
    adata.obs["region"] = [f"region {i + 1}" for i in found]
    axes = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")[1]
    for axis, color, title in zip(axes, ("drawn", "region"), ("cells", "niches"), strict=True):
        wh.pl.spatial(adata, color, ax=axis)
        axis.set_title(title)
        axis.get_legend().set_title("")
    save(axes, path)


def save(drawn, path: Path) -> None:
    import matplotlib.pyplot as plt

    figure = np.ravel(np.asarray(drawn, dtype=object))[0].figure
    figure.savefig(path, dpi=80, bbox_inches="tight")
    plt.close(figure)


DEPTH, LABELS = {"cortex": cortex, "starmap": starmap}, {"merfish": merfish, "codex": codex, "covid": covid}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("SCWORMHOLE_DATA"), help="folder of public data")
    parser.add_argument("--rows", nargs="+", default=[*DEPTH, *LABELS], choices=[*DEPTH, *LABELS])
    parser.add_argument("--out", type=Path, help="folder for the tables and figures")
    arguments = parser.parse_args()
    if arguments.data is None:
        parser.error("give --data FOLDER, or set SCWORMHOLE_DATA")
    matplotlib.use("Agg")
    warnings.simplefilter("ignore")
    for row in arguments.rows:
        head = DEPTH_HEAD if row in DEPTH else LABEL_HEAD
        print("\n".join(head), flush=True)
        start = time.perf_counter()
        lines = [*head, *{**DEPTH, **LABELS}[row](arguments.data, arguments.out)]
        print(f"<!-- {row}: {time.perf_counter() - start:.0f} s -->", flush=True)
        if arguments.out is not None:
            (arguments.out / f"vignette_{row}.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
