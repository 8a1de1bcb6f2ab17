"""Divergences between clouds, by their vectors. Reads AnnData, writes nothing."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from anndata import AnnData
from numpy.typing import NDArray

from scwormhole._adata import EMBEDDING, cohort_over, cohorts, cut_niches, find_rows, read_embedding, read_record
from scwormhole.ot import Embedded

from ._middles import group_middles


def distances(adata: AnnData, which: Any = None, *, groupby: str | None = None, key: str = EMBEDDING) -> pd.DataFrame:
    """Return the divergences of some clouds from one another, or of the barycenters of groups.

    Divergences are about what :func:`scwormhole.ot.pairwise` would find, in squared units of the coordinates. Between
    clouds the nuggets are included, as far as two clouds have no cells in common; barycenters have none.

    Parameters
    ----------
    adata
        What has an embedding.
    which
        Rows: names, positions, or a mask. The table has one row and one column for each.
    groupby
        Column of ``obs``, instead: the table is of the barycenters of its groups.
    key
        Name of the embedding.

    Examples
    --------
    >>> import anndata, numpy as np, scwormhole as wh
    >>> rng = np.random.default_rng(0)
    >>> adata = anndata.AnnData(rng.gamma(2.0, size=(60, 3)), obsm={"spatial": rng.uniform(size=(60, 2))})
    >>> wh.pp.niches(adata, n_neighbors=5)
    >>> wh.tl.wormhole(adata, n_components=8, max_steps=0, progress=False)  # no training, to be quick
    >>> wh.tl.distances(adata, ["0", "7", "9"]).shape
    (3, 3)
    """
    if (which is None) == (groupby is None):
        raise ValueError("give either which, the rows to compare, or groupby, a column of groups.")
    if groupby is not None:
        middles = group_middles(adata, groupby, None, key)
        names, vectors = middles.names, middles.vectors
        nugget, shared = np.zeros(len(names), np.float32), np.zeros((len(names), len(names)))
    else:
        rows = find_rows(adata, which)
        vectors, nugget = (part[rows] for part in read_embedding(adata, key))
        names, shared = adata.obs_names[rows].tolist(), _shared(adata, rows, key)
    table = Embedded(vectors, nugget).table(shared)
    np.fill_diagonal(table, 0.0)
    return pd.DataFrame(table, index=names, columns=names)


def _shared(adata: AnnData, rows: NDArray[np.int64], key: str) -> NDArray[np.float64]:
    """Return the mass that clouds have in common, clouds by clouds; only niches have any."""
    source = read_record(adata, key)["source"]
    if source["kind"] != "niches":
        return np.eye(len(rows))
    name = source["clouds"]
    if name not in cohorts(adata) or name not in adata.obsp or _remade(adata, source) or len(cut_niches(adata, name)):
        warnings.warn(
            f"the niches {name!r} are no longer whole in adata, or no longer those that were embedded, so it "
            "is not known which cells they have in common; "
            "distances between neighbouring niches come out too large. Make the niches again and embed them.",
            stacklevel=3,
        )
        return np.eye(len(rows))
    return cohort_over(adata, name, np.zeros((adata.n_obs, 1))).shared_mass(rows)


def _remade(adata: AnnData, source: Mapping[str, Any]) -> bool:
    """Return whether niches were made again in another way since they were embedded."""
    now = adata.uns[source["clouds"]]["params"]
    then = source.get("made", now)
    return {name: str(value) for name, value in now.items()} != {name: str(value) for name, value in then.items()}
