"""Maps of an embedding by scanpy, which is handed the vectors alone: nothing that is the user's is touched."""

import warnings
from typing import Any

import numpy as np
from anndata import AnnData
from numpy.typing import NDArray
from pandas.api.types import is_list_like
from scipy.sparse.csgraph import connected_components

from scwormhole._adata import EMBEDDING, find_rows, known_keys, log_written, need, plain, read_embedding, to_write


def diffmap(
    adata: AnnData,
    *,
    key: str = EMBEDDING,
    n_comps: int = 15,
    n_neighbors: int = 30,
    subset: Any = None,
    rng: int = 0,
    copy: bool = False,
) -> AnnData | None:
    """Find the diffusion components of an embedding: the slow directions, such as depth in a cortex.

    Through scanpy's neighbours and diffusion map, of the vectors without their nuggets. The constant component that
    scanpy has first is left out, so column 0 is the slowest direction; of each component the entry that is largest in
    size is positive.

    Parameters
    ----------
    adata
        What has an embedding.
    key
        Name of the embedding.
    n_comps
        Components.
    n_neighbors
        Neighbours of a cloud in the graph. For a map of all niches take more than a niche has cells, see
        :func:`neighbors`.
    subset
        Rows to use, all by default: a mask, names, positions, or a column of ``obs`` with a value or several, such as
        ``("celltype", "Pvalb")``. Others get NaN.
    rng
        Seed.
    copy
        Whether to return a copy with the map instead of adding it.

    Returns
    -------
    None, or the copy. Adds

    ``obsm["X_" + key + "_diffmap"]``
        Components, float32.
    ``uns[key + "_diffmap"]``
        ``eigenvalues`` and ``params``.

    Examples
    --------
    >>> import anndata, numpy as np, scwormhole as wh
    >>> rng = np.random.default_rng(0)
    >>> adata = anndata.AnnData(rng.gamma(2.0, size=(60, 3)), obsm={"spatial": rng.uniform(size=(60, 2))})
    >>> wh.pp.niches(adata, n_neighbors=5)
    >>> wh.tl.wormhole(adata, n_components=8, max_steps=0, progress=False)  # no training, to be quick
    >>> wh.tl.diffmap(adata, n_comps=3)
    >>> adata.obsm["X_wormhole_diffmap"].shape
    (60, 3)
    """
    import scanpy as sc

    target = to_write(adata, copy=copy)
    rows = _rows(target, subset)
    if not 1 <= n_comps < len(rows) - 1:
        raise ValueError(f"n_comps is {n_comps} for {len(rows):,} rows; give at least 1, and fewer than rows less one.")
    some = _neighbours(target, rows, key, n_neighbors, rng)
    sc.tl.diffmap(some, n_comps=max(n_comps + 1, 3), random_state=rng)  # scanpy takes no fewer than three
    found = np.asarray(some.obsm["X_diffmap"])[:, 1 : n_comps + 1]
    largest = found[np.abs(found).argmax(0), np.arange(n_comps)]
    values = np.asarray(some.uns["diffmap_evals"], np.float32)[1 : n_comps + 1]
    params = {"n_comps": n_comps, "n_neighbors": n_neighbors, "n_rows": len(rows), "rng": rng}
    return _write(target, f"{key}_diffmap", rows, found * np.sign(largest), {"eigenvalues": values}, params, copy=copy)


def umap(
    adata: AnnData,
    *,
    key: str = EMBEDDING,
    n_components: int = 2,
    n_neighbors: int = 15,
    min_dist: float = 0.5,
    subset: Any = None,
    rng: int = 0,
    copy: bool = False,
) -> AnnData | None:
    """Draw an embedding flat, by scanpy's neighbours and UMAP of the vectors without their nuggets.

    Parameters
    ----------
    adata
        What has an embedding.
    key
        Name of the embedding.
    n_components
        Dimensions of the map.
    n_neighbors
        Neighbours of a cloud in the graph. For a map of all niches take more than a niche has cells, see
        :func:`neighbors`.
    min_dist
        How close points of the map may be.
    subset
        Rows to use, as for :func:`diffmap`.
    rng
        Seed.
    copy
        Whether to return a copy with the map instead of adding it.

    Returns
    -------
    None, or the copy. Adds

    ``obsm["X_" + key + "_umap"]``
        The map, float32.
    ``uns[key + "_umap"]``
        ``params``.

    Examples
    --------
    >>> import anndata, numpy as np, scwormhole as wh
    >>> rng = np.random.default_rng(0)
    >>> adata = anndata.AnnData(rng.gamma(2.0, size=(60, 3)), obsm={"spatial": rng.uniform(size=(60, 2))})
    >>> wh.pp.niches(adata, n_neighbors=5)
    >>> wh.tl.wormhole(adata, n_components=8, max_steps=0, progress=False)  # no training, to be quick
    >>> wh.tl.umap(adata)
    >>> adata.obsm["X_wormhole_umap"].shape
    (60, 2)
    """
    import scanpy as sc

    target = to_write(adata, copy=copy)
    rows = _rows(target, subset)
    some = _neighbours(target, rows, key, n_neighbors, rng)
    sc.tl.umap(some, n_components=n_components, min_dist=min_dist, random_state=rng)
    params = {"n_components": n_components, "n_neighbors": n_neighbors, "min_dist": min_dist}
    params |= {"n_rows": len(rows), "rng": rng}
    return _write(target, f"{key}_umap", rows, some.obsm["X_umap"], {}, params, copy=copy)


def _rows(adata: AnnData, subset: Any) -> NDArray[np.int64]:
    """Return the rows of a subset, in their order."""
    if not isinstance(subset, tuple):
        return np.unique(find_rows(adata, subset))
    if len(subset) != 2:
        raise ValueError(f"subset is {subset!r}; give a column of adata.obs and a value, a mask, names or positions.")
    column, wanted = need(adata, "obs", subset[0]), subset[1]
    rows = np.flatnonzero(column.isin(wanted if is_list_like(wanted) else [wanted]))
    if not len(rows):
        raise ValueError(f"no row has {wanted!r} in adata.obs[{subset[0]!r}]; {known_keys(column.dropna().unique())}.")
    return rows


def _neighbours(adata: AnnData, rows: NDArray[np.int64], key: str, n_neighbors: int, rng: int) -> AnnData:
    """Return an AnnData of its own with the vectors of some rows and their graph."""
    import scanpy as sc

    vectors = read_embedding(adata, key)[0][rows]
    if not 2 <= n_neighbors < len(rows):
        raise ValueError(f"n_neighbors is {n_neighbors} for {len(rows):,} rows; give at least 2, and fewer than rows.")
    some = AnnData(np.ascontiguousarray(vectors))
    sc.pp.neighbors(some, n_neighbors=n_neighbors, use_rep="X", random_state=rng)
    parts = connected_components(some.obsp["connectivities"], directed=False)[0]
    if parts > 1:
        warnings.warn(
            f"the graph of neighbours falls into {parts:,} parts, whose places on a map say nothing of one another; "
            "try more n_neighbors, or take one part with subset.",
            stacklevel=3,
        )
    return some


def _write(
    adata: AnnData,
    name: str,
    rows: NDArray[np.int64],
    found: NDArray[Any],
    extra: dict[str, Any],
    params: dict[str, Any],
    *,
    copy: bool,
) -> AnnData | None:
    whole = np.full((adata.n_obs, found.shape[1]), np.nan, np.float32)
    whole[rows] = found
    adata.obsm[f"X_{name}"] = whole
    adata.uns[name] = plain({**extra, "params": params})
    log_written(adata, name, [f"obsm[{'X_' + name!r}]", f"uns[{name!r}]"])
    return adata if copy else None
