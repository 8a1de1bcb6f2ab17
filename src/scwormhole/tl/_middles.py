"""Means of vectors over groups of rows, which stand for the barycenters of their clouds. Reads AnnData only."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from anndata import AnnData
from numpy.typing import NDArray

from scwormhole._adata import categorical, known_keys, memberships, need, read_embedding


class Middles(NamedTuple):
    """One vector a group."""

    names: list[str]
    vectors: NDArray[np.float32]
    sizes: NDArray[np.int64]
    colors: NDArray[Any] | None  # as ``uns`` has them for the column


def group_middles(adata: AnnData, groupby: str, groups: Sequence[str] | None, key: str) -> Middles:
    """Return the mean vector of each group.

    Parameters
    ----------
    adata
        What has an embedding.
    groupby
        Column of ``obs``; rows without a value are left out.
    groups
        Levels to use, in this order; all by default.
    key
        Name of the embedding.
    """
    vectors = read_embedding(adata, key)[0]
    labels = need(adata, "obs", groupby, hint="Give a column of groups.")
    graph, names = memberships(labels)
    levels = {level: str(level) for level in categorical(labels).cat.categories}  # 1 finds 1.0
    given = [groups] if isinstance(groups, str) else groups
    chosen = names if given is None else [levels.get(group, str(group)) for group in given]
    unknown = [name for name in chosen if name not in names]
    if not chosen:
        raise ValueError(f"groups is empty; of adata.obs[{groupby!r}] {known_keys(names)}.")
    if unknown:
        raise KeyError(f"adata.obs[{groupby!r}] has no group {', '.join(map(repr, unknown))}; {known_keys(names)}.")
    rows = [names.index(name) for name in chosen]
    sizes = np.diff(graph.indptr)[rows].astype(np.int64)
    means = (graph[rows] @ vectors.astype(np.float64)) / sizes[:, None]
    return Middles(chosen, means.astype(np.float32), sizes, _colors(adata, groupby, chosen))


def _colors(adata: AnnData, groupby: str, chosen: list[str]) -> NDArray[Any] | None:
    """Return the colours of groups, where scanpy has set them."""
    held, column = adata.uns.get(f"{groupby}_colors"), adata.obs[groupby]
    if held is None or not hasattr(column, "cat") or len(held) != len(column.cat.categories):
        return None
    places = [str(level) for level in column.cat.categories]
    return np.array([str(held[places.index(name)]) for name in chosen], dtype=object)
