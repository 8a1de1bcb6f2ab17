"""Metacells: small groups of cells in one state. Writes labels to AnnData; clusters by scikit-learn or SEACells."""

import logging
from typing import Any, Literal

import numpy as np
import pandas as pd
from anndata import AnnData
from numpy.typing import NDArray

from scwormhole._adata import (
    Slot,
    as_adata,
    categorical,
    check_free,
    log_written,
    memberships,
    need,
    read_representation,
    to_write,
    write_cohort,
)
from scwormhole.clouds._rows import dense_block, read_block
from scwormhole.clouds._wording import count

FEW_GENES = 50  # up to so many, cells are clustered by X itself

logger = logging.getLogger(__name__)


def metacells(
    adata: AnnData,
    *,
    labels: str | None = None,
    n_cells: int = 75,
    sample_key: str | None = None,
    use_rep: str | None = None,
    method: Literal["kmeans", "seacells"] = "kmeans",
    rng: int = 0,
    key_added: str = "metacells",
    table_key: str | None = None,
    copy: bool = False,
) -> AnnData | None:
    """Take metacells as clouds of their cells: your own, or made here, within samples.

    Parameters
    ----------
    adata
        Cells; or a SpatialData, see ``table_key``.
    labels
        Column of ``obs`` with metacells that exist, by SEACells, metacells, SuperCell or others. A label that occurs
        in several samples is one metacell in each.
    n_cells
        Cells of a metacell, on average, if they are made here.
    sample_key
        Column of ``obs`` with samples, across which no metacell reaches.
    use_rep
        Key of ``obsm`` to cluster by; ``"X_pca"`` by default, or X where there are up to 50 genes.
    method
        ``"kmeans"``: the largest cluster is halved until there are enough, by scikit-learn's bisecting k-means;
        ``"seacells"``: SEACells, which must be installed.
    rng
        Seed.
    key_added
        Name of the metacells.
    table_key
        Table to use if a SpatialData is given; its only one by default.
    copy
        Whether to return a copy with the metacells instead of adding them.

    Returns
    -------
    None, or the copy. Adds

    ``obs[key_added]``
        Metacell of each cell, categorical.
    ``uns[key_added]``
        ``kind`` and ``params``.

    Examples
    --------
    >>> import anndata, numpy as np, scwormhole as wh
    >>> adata = anndata.AnnData(np.random.default_rng(0).normal(size=(300, 5)))
    >>> wh.pp.metacells(adata, n_cells=30)
    >>> adata.obs["metacells"].nunique()
    10
    """
    target = to_write(as_adata(adata, table_key), copy=copy)
    same = labels == key_added and sample_key is None  # the user's own column, whose labels stay
    slots: list[tuple[Slot, str]] = [] if same else [("obs", key_added)]
    check_free(target, key_added, "metacells", *slots)
    samples = _samples(target, sample_key)
    params: dict[str, Any] = {"groupby": key_added, "sample_key": sample_key}
    if labels is not None:
        found = need(target, "obs", labels, hint="Give a column of metacells, or leave labels out to have them made.")
        names = _within(found, samples, labels)
        params |= {"labels": labels}
    else:
        if method not in CLUSTERED_BY:
            raise ValueError(f"method is {method!r}; {' and '.join(map(repr, CLUSTERED_BY))} are allowed.")
        if int(n_cells) != n_cells or n_cells < 2:
            raise ValueError(f"n_cells is {n_cells}; give a whole number of at least 2.")
        use_rep = _rep(target, use_rep)
        points = dense_block(read_block(read_representation(target, use_rep, None).points[:]))
        names = _made(points, samples, method, int(n_cells), rng)
        params |= {"n_cells": int(n_cells), "use_rep": use_rep, "method": method, "rng": rng}
    target.obs[key_added] = names
    sizes = np.diff(memberships(names)[0].indptr)
    spread = f"{sizes.min():,} to {sizes.max():,} cells, median {np.median(sizes):,g}"
    logger.info("%s: %s of %s", key_added, count(len(sizes), "metacell"), spread)
    write_cohort(target, key_added, "metacells", params)
    log_written(target, "metacells", [f"obs[{key_added!r}]", f"uns[{key_added!r}]"])
    return target if copy else None


def _samples(adata: AnnData, key: str | None) -> "pd.Series[Any]":
    """Return the sample of each cell; an empty name where there is only one."""
    if key is None:
        return pd.Series("", index=adata.obs_names)
    samples = need(adata, "obs", key, hint="It should tell samples apart.")
    if samples.isna().any():
        missing = count(int(samples.isna().sum()), "cell")
        raise ValueError(f"adata.obs[{key!r}] has no value for {missing}; fill them in, or leave these cells out.")
    return samples.astype(str)


def _within(labels: "pd.Series[Any]", samples: "pd.Series[Any]", key: str) -> "pd.Series[Any]":
    """Return the user's labels as categories; with the sample in their name where one occurs in several."""
    if labels.isna().any():
        missing = count(int(labels.isna().sum()), "cell")
        raise ValueError(f"adata.obs[{key!r}] has no metacell for {missing}; leave these cells out first.")
    names = labels.astype(str)
    if (samples.groupby(names).nunique() > 1).any():
        names = samples + "-" + names
        joined = samples.groupby(names).nunique() > 1
        if joined.any():
            raise ValueError(
                f"metacells of several samples would be named {joined.idxmax()!r} alike; rename samples or metacells."
            )
    return categorical(names)


def _rep(adata: AnnData, use_rep: str | None) -> str:
    """Return what to cluster by."""
    if use_rep is not None or "X_pca" in adata.obsm:
        return use_rep or "X_pca"
    if adata.n_vars > FEW_GENES:
        raise ValueError(
            f"adata has {adata.n_vars:,} genes and no obsm['X_pca']; run scanpy's pp.pca first, or give use_rep."
        )
    return "X"


def _made(points: NDArray[Any], samples: "pd.Series[Any]", method: str, n_cells: int, rng: int) -> "pd.Series[Any]":
    """Return a metacell for each cell, numbered within samples."""
    cluster = CLUSTERED_BY[method]
    names = np.empty(len(points), dtype=object)
    for sample, cells in samples.groupby(samples).indices.items():
        n_clusters = max(1, round(len(cells) / n_cells))
        codes = cluster(points[cells], n_clusters, rng) if n_clusters > 1 else np.zeros(len(cells), np.int64)
        stem = f"{sample}-" if sample else ""
        names[cells] = [f"{stem}{code}" for code in codes]
    return categorical(pd.Series(names, index=samples.index))


def _bisected(points: NDArray[Any], n_clusters: int, rng: int) -> NDArray[Any]:
    """Cluster by halving the largest until there are enough, so that sizes stay alike."""
    from sklearn.cluster import BisectingKMeans

    clustering = BisectingKMeans(n_clusters, bisecting_strategy="largest_cluster", random_state=rng)
    codes: NDArray[Any] = clustering.fit_predict(points)
    return codes


def _seacells(points: NDArray[Any], n_clusters: int, rng: int) -> NDArray[Any]:
    """Cluster by archetypes of a kernel."""
    try:
        from SEACells.core import SEACells
    except ImportError as error:
        raise ImportError(
            "method='seacells' needs the package SEACells; run pip install SEACells ipywidgets, or use method='kmeans'."
        ) from error
    cells = AnnData(points, obsm={"X_rep": points})
    before = np.random.get_state()  # noqa: NPY002  # it draws from NumPy's global state, which is the user's
    try:
        np.random.seed(rng)  # noqa: NPY002
        model = SEACells(cells, build_kernel_on="X_rep", n_SEACells=n_clusters, verbose=False)
        model.construct_kernel_matrix()
        model.initialize_archetypes()
        model.fit(min_iter=10, max_iter=50)
    finally:
        np.random.set_state(before)  # noqa: NPY002
    return np.asarray(pd.factorize(model.get_hard_assignments()["SEACell"], sort=True)[0])


CLUSTERED_BY = {"kmeans": _bisected, "seacells": _seacells}
