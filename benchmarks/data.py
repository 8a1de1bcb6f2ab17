"""Real clouds for the benchmarks, from a folder of public data that is not part of the project."""

import gzip
from pathlib import Path

import numpy as np

from scwormhole import PointClouds


def mnist(folder: Path, n_clouds: int, rng: int = 0) -> PointClouds:
    """Return the bright pixels of training digits, in [-1, 1]."""
    raw = gzip.decompress((folder / "mnist" / "train-images-idx3-ubyte.gz").read_bytes())
    images = np.frombuffer(raw, np.uint8, offset=16).reshape(-1, 28, 28)
    chosen = np.random.default_rng(rng).choice(len(images), n_clouds, replace=False)
    return PointClouds.from_list([np.argwhere(images[i] > 127) * 2 / 27 - 1 for i in chosen])


def merfish(folder: Path, n_clouds: int, rng: int = 0) -> PointClouds:
    """Return niches of radius 50 of the MERFISH hypothalamus: log1p, in the paper's box."""
    import anndata
    from sklearn.neighbors import radius_neighbors_graph

    adata = anndata.read_h5ad(next((folder / "merfish_mpoa").glob("*.h5ad")))
    x = np.log1p(np.asarray(adata.X.todense() if hasattr(adata.X, "todense") else adata.X, np.float64))
    x = (2 * (x - x.min()) / (x.max() - x.min()) - 1) / np.sqrt(x.shape[1])
    graph = radius_neighbors_graph(adata.obsm["spatial"], 50, include_self=True)
    chosen = np.random.default_rng(rng).choice(len(x), n_clouds, replace=False)
    return PointClouds.from_graph(x, graph[chosen])


def modelnet(folder: Path, n_clouds: int, rng: int = 0) -> PointClouds:
    """Return shapes of ModelNet10, each centred and scaled to [-1, 1]."""
    points = np.load(folder / "modelnet10" / "modelnet10_1024.npz")["points"].astype(np.float64)
    chosen = points[np.random.default_rng(rng).choice(len(points), n_clouds, replace=False)]
    chosen -= chosen.mean(1, keepdims=True)
    return PointClouds.from_list(list(chosen / np.abs(chosen).max((1, 2), keepdims=True)))
