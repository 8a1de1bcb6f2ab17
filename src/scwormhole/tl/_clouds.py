"""The clouds of an AnnData as a cohort by themselves. Reads AnnData, writes nothing."""

from typing import Any

from anndata import AnnData

from scwormhole._adata import as_adata, read_cohort
from scwormhole.clouds import PointClouds


def clouds(
    adata: AnnData | Any,
    key: str | None = None,
    *,
    use_rep: str | None = None,
    layer: str | None = None,
    table_key: str | None = None,
) -> PointClouds:
    """Return the niches, groups or metacells of an AnnData as clouds, for functions that take clouds.

    Such as :func:`scwormhole.metrics.fidelity` on a library that was kept away, or :func:`scwormhole.ot.pairwise`.
    Points are not copied, and stay sparse or on disk. Niches go by the rows of their cells, groups by their names.

    Parameters
    ----------
    adata
        Cells with clouds, or a SpatialData with them (see ``table_key``).
    key
        Name of the clouds; the only ones there are by default.
    use_rep
        Key of ``obsm`` that gives cells their coordinates.
    layer
        Key of ``layers`` that does; X by default.
    table_key
        Table to use if a SpatialData is given; its only one by default.

    Examples
    --------
    >>> import anndata, numpy as np, scwormhole as wh
    >>> rng = np.random.default_rng(0)
    >>> adata = anndata.AnnData(rng.gamma(2.0, size=(60, 3)), obsm={"spatial": rng.uniform(size=(60, 2))})
    >>> wh.pp.niches(adata, n_neighbors=5)
    >>> wh.tl.clouds(adata)
    PointClouds: 60 clouds of 6 points in 3 dimensions, over 60 shared points (float64), uniform weights
    """
    return read_cohort(as_adata(adata, table_key), key, use_rep=use_rep, layer=layer).clouds
