"""Real clouds for the benchmarks, from a folder of public data that is not part of the project."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from scwormhole import PointClouds, datasets

IMAGES = {"mnist": datasets.mnist, "fashion_mnist": datasets.fashion_mnist}


class Halves(NamedTuple):
    """A cohort to train on and one to test on, with labels."""

    train: PointClouds
    train_labels: np.ndarray
    test: PointClouds
    test_labels: np.ndarray


def mnist(folder: Path, n_clouds: int, rng: int = 0) -> PointClouds:
    """Return the bright pixels of some training digits, in [-1, 1]."""
    pixels = _pixels(datasets.mnist(folder / "mnist").clouds)
    return _apart(pixels[np.random.default_rng(rng).choice(len(pixels), n_clouds, replace=False)])


def images(folder: Path, name: str, n_train: int | None = None) -> Halves:
    """Return the bright pixels of ``"mnist"`` or ``"fashion_mnist"``, in [-1, 1], by the official split."""
    halves = []
    for part in ("train", "test"):
        found = IMAGES[name](folder / name, part=part)
        halves += [_pixels(found.clouds), found.labels]
    if n_train is not None:
        halves[:2] = [_apart(halves[0][:n_train]), halves[1][:n_train]]
    return Halves(*halves)


def digits(n_train: int) -> Halves:
    """Return scikit-learn's digits as clouds of their bright pixels, a random split."""
    from sklearn.datasets import load_digits

    pictures, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(pictures))
    clouds = PointClouds.from_list([np.argwhere(pictures[i].reshape(8, 8) > 7).astype(float) for i in order])
    labels = labels[order]
    return Halves(clouds[:n_train], labels[:n_train], clouds[n_train:], labels[n_train:])


def merfish(folder: Path, n_clouds: int, rng: int = 0) -> PointClouds:
    """Return some niches of radius 50 of the MERFISH hypothalamus: log1p, in the paper's box."""
    x, spatial, _ = _merfish(folder)
    x = (2 * (x - x.min()) / (x.max() - x.min()) - 1) / np.sqrt(x.shape[1])
    chosen = np.random.default_rng(rng).choice(len(x), n_clouds, replace=False)
    return PointClouds.from_graph(x, _niches(spatial)[chosen])


def merfish_halves(folder: Path, n_components: int | None = None) -> Halves:
    """Return the niches left and right of a gap twice as wide as their radius: no cell is in both halves.

    With a number of components, cells are given by principal components of the training half's genes.
    """
    x, spatial, labels = _merfish(folder)
    graph = _niches(spatial)
    edge = np.quantile(spatial[:, 0], 0.75)
    left, right = np.flatnonzero(spatial[:, 0] < edge - 50), np.flatnonzero(spatial[:, 0] > edge + 50)
    if n_components is not None:
        from sklearn.decomposition import PCA

        x = PCA(n_components, random_state=0).fit(x[left]).transform(x)
    x = x.astype(np.float32)
    return Halves(
        PointClouds.from_graph(x, graph[left]), labels[left], PointClouds.from_graph(x, graph[right]), labels[right]
    )


def codex_halves(folder: Path) -> Halves:
    """Return niches of 20 cells of the healthy CODEX spleen, left and right of a gap, labelled by kind of niche.

    Intensities are arcsinh over their median size, each protein to unit variance.
    """
    import anndata
    from sklearn.neighbors import kneighbors_graph

    adata = anndata.read_h5ad(next((folder / "codex_spleen").glob("*.h5ad")))
    adata = adata[adata.obs["sample"] == "BALBc-1"]
    labels, spatial = adata.obs["i-niche"].astype(str).to_numpy(), np.asarray(adata.obsm["spatial"], float)
    x = np.asarray(adata.X, np.float64)
    x = np.arcsinh(x / np.maximum(np.median(np.abs(x), axis=0), 1.0))
    graph = kneighbors_graph(spatial, 20, mode="distance", include_self=False)
    gap = np.quantile(graph.data, 0.999)  # a niche reaches as far, all but a few
    edge = np.quantile(spatial[:, 0], 0.75)
    left, right = spatial[:, 0] < edge - gap, spatial[:, 0] > edge + gap
    x = np.clip((x - x[left].mean(0)) / x[left].std(0), -6, 6).astype(np.float32)
    halves = []
    for part in (left, right):  # niches are made within a half, so that no cell can be in both
        rows = np.flatnonzero(part)
        known = np.flatnonzero(labels[rows] != "nan")
        niches = kneighbors_graph(spatial[rows], 20, include_self=True)
        order = np.random.default_rng(0).permutation(known)
        halves += [PointClouds.from_graph(x[rows], niches[order]), labels[rows][order]]
    return Halves(*halves)


def pancreas_halves(folder: Path) -> Halves:
    """Return metacells of about 15 cells of the pancreas, log1p of all 2,000 genes; a quarter to test.

    No cell is in two metacells. Labels are the commonest cluster.
    """
    import anndata
    import scanpy as sc

    adata = anndata.read_h5ad(next((folder / "pancreas_endocrinogenesis").glob("*.h5ad")))
    sc.pp.normalize_total(adata)
    sc.pp.log1p(adata)
    sc.pp.pca(adata, random_state=0)
    x = np.asarray(adata.X.todense() if hasattr(adata.X, "todense") else adata.X, np.float32)
    held_out = np.random.default_rng(0).random(1_000) < 0.25
    return _metacells(adata, x, 15, None, adata.obs["clusters"], lambda number, _: held_out[number])


def covid_halves(folder: Path) -> Halves:
    """Return metacells of about 25 cells of 20 patients in 50 components; five patients to test.

    Labels are the commonest cluster.
    """
    import anndata

    adata = anndata.read_h5ad(next((folder / "covid_pbmc_gloscope").glob("*.h5ad")))
    patients = np.unique(adata.obs["sample_id"].astype(str))
    held_out = np.random.default_rng(0).choice(patients, 5, replace=False)
    x = np.asarray(adata.obsm["X_pca"], np.float32)
    return _metacells(adata, x, 25, "sample_id", adata.obs["cluster_id"], lambda _, patient: patient in held_out)


def _metacells(adata, x: np.ndarray, n_cells: int, sample_key: str | None, types, held_out) -> Halves:
    """Return metacells in a random order, by whether their number and patient are held out."""
    import scwormhole as wh

    wh.pp.metacells(adata, n_cells=n_cells, sample_key=sample_key, use_rep="X_pca")
    found = adata.obs["metacells"].astype(str).to_numpy()
    patients = adata.obs[sample_key].astype(str).to_numpy() if sample_key else np.full(len(x), "")
    names = np.random.default_rng(0).permutation(np.unique(found))
    parts: list[tuple[list, list]] = [([], []), ([], [])]
    for number, name in enumerate(names):
        rows = np.flatnonzero(found == name)
        clouds, labels = parts[int(held_out(number, patients[rows[0]]))]
        clouds.append(x[rows])
        labels.append(types.iloc[rows].astype(str).mode()[0])
    (train, train_labels), (test, test_labels) = parts
    return Halves(
        PointClouds.from_list(train), np.array(train_labels), PointClouds.from_list(test), np.array(test_labels)
    )


def modelnet(folder: Path, n_clouds: int, rng: int = 0) -> PointClouds:
    """Return some shapes of ModelNet10, each centred and scaled to [-1, 1]."""
    points = np.load(folder / "modelnet10" / "modelnet10_1024.npz")["points"].astype(np.float64)
    chosen = points[np.random.default_rng(rng).choice(len(points), n_clouds, replace=False)]
    chosen = chosen - chosen.mean(1, keepdims=True)
    return PointClouds.from_list(list(chosen / np.abs(chosen).max((1, 2), keepdims=True)))


def modelnet_halves(folder: Path, n_points: tuple[int, int] | None = None, *, turned: bool = False) -> Halves:
    """Return ModelNet10 by the official split, each shape centred and scaled; sampled and turned at random if asked."""
    generator = np.random.default_rng(0)
    halves = []
    for part in ("train", "test"):
        clouds, labels = datasets.modelnet10(folder / "modelnet10", part=part)
        shapes = [cloud.points for cloud in clouds]
        if n_points is not None:
            shapes = [s[generator.choice(len(s), generator.integers(*n_points), replace=False)] for s in shapes]
        if turned:
            dim = shapes[0].shape[1]
            shapes = [s @ np.linalg.qr(generator.normal(size=(dim, dim)))[0].astype(np.float32) for s in shapes]
        halves += [PointClouds.from_list(shapes), labels]
    return Halves(*halves)


def _pixels(clouds: PointClouds) -> PointClouds:
    """Return images by row and column."""
    points = np.stack([-clouds.points[:, 1], clouds.points[:, 0]], axis=1)
    return PointClouds(points, clouds.indptr, clouds.indices, clouds.weights)


def _apart(clouds: PointClouds) -> PointClouds:
    """Return some clouds of a cohort over points of their own."""
    return PointClouds.from_list([cloud.points for cloud in clouds])


def _merfish(folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    import anndata

    adata = anndata.read_h5ad(next((folder / "merfish_mpoa").glob("*.h5ad")))
    x = np.log1p(np.asarray(adata.X.todense() if hasattr(adata.X, "todense") else adata.X, np.float64))
    return x, np.asarray(adata.obsm["spatial"]), adata.obs["celltype"].to_numpy().astype(str)


def _niches(spatial: np.ndarray):
    from sklearn.neighbors import radius_neighbors_graph

    return radius_neighbors_graph(spatial, 50, include_self=True)
