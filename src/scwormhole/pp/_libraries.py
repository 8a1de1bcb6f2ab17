"""Which cells belong to one library, and what hints that several were taken for one. Reads AnnData, writes nothing."""

import re
import warnings

import numpy as np
from anndata import AnnData
from numpy.typing import NDArray

from scwormhole._adata import categorical, need
from scwormhole.clouds._wording import count, listed

from ._graphs import Edges, Index

# words in the name of a column that holds libraries; tiles and fields of view of one slide are no libraries
WORDS = (
    *("animal", "array", "batch", "bregma", "core", "donor", "individual", "library", "mouse", "patient", "puck"),
    *("replicate", "sample", "section", "slice", "slide", "specimen", "subject"),
)
LIBRARY = re.compile(rf"(?:^|[^a-z])(?:{'|'.join(WORDS)})s?(?:$|[^a-z])")
COINCIDE = 0.01  # share of cells in the place of another above which they are of several libraries


def cells_of_libraries(adata: AnnData, library_key: str | None) -> list[Index]:
    """Return the cells of each library; all of them where there is one."""
    if library_key is None:
        return [np.arange(adata.n_obs)]
    codes = _codes(adata, library_key)
    missing = np.flatnonzero(codes < 0)
    if len(missing):
        raise ValueError(
            f"adata.obs[{library_key!r}] has no value for {count(len(missing), 'cell')}: "
            f"{listed(adata.obs_names[missing[:5]], len(missing))}. Every cell belongs to a library: fill them in, or "
            "leave these cells out."
        )
    order = np.argsort(codes, kind="stable")
    return [cells for cells in np.split(order, np.cumsum(np.bincount(codes))[:-1]) if len(cells)]


def check_within_libraries(adata: AnnData, library_key: str, edges: Edges) -> None:
    """Refuse a graph of the user's with edges from one library to another."""
    crossing = int(_crossing(_codes(adata, library_key), edges).sum())
    if crossing:
        raise ValueError(
            f"{crossing:,} of {count(len(edges.rows), 'edge')} join cells of different libraries by "
            f"adata.obs[{library_key!r}]. Build the graph within libraries, or leave library_key out."
        )


def warn_of_libraries(adata: AnnData, positions: NDArray[np.float64] | None, edges: Edges) -> None:
    """Warn where cells of several libraries seem to have been taken for neighbours.

    Parameters
    ----------
    adata
        Cells, for which no library was given.
    positions
        Their positions, where neighbours were found by them.
    edges
        Their neighbours.
    """
    found = []
    for name in adata.obs:
        if LIBRARY.search(str(name).lower()) and _labels(adata, name):
            crossing = _crossing(_codes(adata, name), edges)
            if crossing.any():
                found.append(f"{crossing.mean():.0%} of neighbours differ in adata.obs[{name!r}]")
    pictures = adata.uns.get("spatial")
    if not found and isinstance(pictures, dict) and len(pictures) > 1:
        found.append(f"adata.uns['spatial'] has {len(pictures)} libraries")
    if not found and positions is not None:
        alone = len(np.unique(positions, axis=0))
        if len(positions) - alone > COINCIDE * len(positions):
            found.append(f"{len(positions) - alone:,} of {len(positions):,} cells are in the place of another")
    if found:
        warnings.warn(
            f"niches may join cells of several libraries that overlap in space: {'; '.join(found)}. If so, give "
            "library_key, the column of adata.obs that tells libraries apart.",
            stacklevel=4,
        )


def _crossing(codes: Index, edges: Edges) -> NDArray[np.bool_]:
    return np.asarray(codes[edges.rows] != codes[edges.columns])


def _labels(adata: AnnData, name: str) -> bool:
    """Return whether a column holds labels, some of them more than once."""
    column = adata.obs[name]
    return column.dtype.kind not in "fcmM" and 1 < column.nunique() <= adata.n_obs // 2


def _codes(adata: AnnData, name: str) -> Index:
    codes: Index = categorical(need(adata, "obs", name)).cat.codes.to_numpy().astype(np.int64)
    return codes
