"""Groups: the cells of each patient, sample or cluster. Notes in AnnData which column holds them."""

import logging
import warnings

import numpy as np
from anndata import AnnData

from scwormhole._adata import as_adata, check_free, log_written, memberships, need, to_write, write_cohort
from scwormhole.clouds._wording import count

logger = logging.getLogger(__name__)


def groups(
    adata: AnnData,
    groupby: str,
    *,
    min_cells: int = 1,
    key_added: str = "groups",
    table_key: str | None = None,
    copy: bool = False,
) -> AnnData | None:
    """Take the cells of each level of a column as a cloud: patients, samples, clusters.

    Cells without a level are in no cloud; a warning says how many.

    Parameters
    ----------
    adata
        Cells; or a SpatialData, see ``table_key``.
    groupby
        Column of ``obs``.
    min_cells
        Levels of fewer cells are left out, with a warning.
    key_added
        Name of the groups.
    table_key
        Table to use if a SpatialData is given; its only one by default.
    copy
        Whether to return a copy with the groups instead of adding them.

    Returns
    -------
    None, or the copy. Adds

    ``uns[key_added]``
        ``kind`` and ``params``.

    Examples
    --------
    >>> import anndata, numpy as np, scwormhole as wh
    >>> adata = anndata.AnnData(np.ones((6, 2)))
    >>> adata.obs["patient"] = list("aabbbb")
    >>> wh.pp.groups(adata, "patient")
    >>> adata.uns["groups"]["params"]["groupby"]
    'patient'
    """
    target = to_write(as_adata(adata, table_key), copy=copy)
    labels = need(target, "obs", groupby, hint="Give a column of patients, samples or clusters.")
    if int(min_cells) != min_cells or min_cells < 1:
        raise ValueError(f"min_cells is {min_cells}; give a whole number of at least 1.")
    check_free(target, key_added, "groups")
    graph, names = memberships(labels, min_cells=int(min_cells))
    n_levels, n_missing = int(labels.nunique()), int(labels.isna().sum())
    if not names:
        found = f"{count(n_levels, 'level')}, none of at least {count(int(min_cells), 'cell')}"
        raise ValueError(f"adata.obs[{groupby!r}] has {found}; lower min_cells, or give another column.")
    if n_missing:
        warnings.warn(
            f"{count(n_missing, 'cell')} of {target.n_obs:,} have no value in adata.obs[{groupby!r}] and are in no "
            "cloud; fill in those that should be.",
            stacklevel=2,
        )
    if len(names) < n_levels:
        warnings.warn(
            f"{n_levels - len(names):,} of {count(n_levels, 'level')} of adata.obs[{groupby!r}] have fewer than "
            f"{int(min_cells):,} cells and are left out; lower min_cells to keep them.",
            stacklevel=2,
        )
    sizes = np.diff(graph.indptr)
    spread = f"{sizes.min():,} to {sizes.max():,} cells, median {np.median(sizes):,g}"
    logger.info("%s: %s of %s", key_added, count(len(names), "group"), spread)
    write_cohort(target, key_added, "groups", {"groupby": groupby, "min_cells": int(min_cells)})
    log_written(target, "groups", [f"uns[{key_added!r}]"])
    return target if copy else None
