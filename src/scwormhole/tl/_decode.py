"""Clouds decoded from vectors: of rows, of the middle of groups, on the way between two. Changes no AnnData."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from anndata import AnnData
from numpy.typing import ArrayLike, NDArray

from scwormhole._adata import EMBEDDING, find_rows, point_adata, read_embedding, read_record

from ._embed import model
from ._middles import group_middles


def decode(adata: AnnData, which: Any, *, key: str = EMBEDDING) -> AnnData:
    """Turn vectors back into clouds.

    Parameters
    ----------
    adata
        What has an embedding.
    which
        Rows to decode: a name or several, positions, or a mask. Or vectors of your own, a matrix with one row a cloud.
    key
        Name of the embedding.

    Returns
    -------
    A new AnnData with one row a point and the coordinates, genes for example, as ``var``; ``obs["cloud"]`` is the cloud
    that a point belongs to, ``obs["weight"]`` what it weighs there, and ``uns["decoded"]`` says where it comes from.

    Examples
    --------
    >>> import anndata, numpy as np, scwormhole as wh
    >>> rng = np.random.default_rng(0)
    >>> adata = anndata.AnnData(rng.gamma(2.0, size=(60, 3)), obsm={"spatial": rng.uniform(size=(60, 2))})
    >>> wh.pp.niches(adata, n_neighbors=5)
    >>> wh.tl.wormhole(adata, n_components=8, max_steps=0, progress=False)  # no training, to be quick
    >>> wh.tl.decode(adata, ["0", "7"]).shape
    (12, 3)
    """
    if np.ndim(which) == 2:
        vectors = np.asarray(which, np.float32)
        return _decoded(adata, key, vectors, [str(row) for row in range(len(vectors))], {"by": "vectors"})
    rows = find_rows(adata, which)
    return _decoded(adata, key, read_embedding(adata, key)[0][rows], adata.obs_names[rows].tolist(), {"by": "rows"})


def barycenters(adata: AnnData, groupby: str, *, groups: Sequence[str] | None = None, key: str = EMBEDDING) -> AnnData:
    """Decode the cloud in the middle of each group of clouds: the typical niche of a layer, the typical patient.

    The barycenter of clouds is what the mean of their vectors stands for.

    Parameters
    ----------
    adata
        What has an embedding.
    groupby
        Column of ``obs``. Rows without a value are left out.
    groups
        Levels to use, in this order; all by default.
    key
        Name of the embedding.

    Returns
    -------
    A new AnnData with one row a point, as :func:`decode` makes it, ``obs["cloud"]`` being the group. ``uns["decoded"]``
    has ``groupby``, ``n_clouds`` of each group and the ``vectors`` that were decoded.

    Examples
    --------
    >>> import anndata, numpy as np, scwormhole as wh
    >>> rng = np.random.default_rng(0)
    >>> adata = anndata.AnnData(rng.gamma(2.0, size=(60, 3)), obsm={"spatial": rng.uniform(size=(60, 2))})
    >>> adata.obs["side"] = np.where(adata.obsm["spatial"][:, 0] < 0.5, "left", "right")
    >>> wh.pp.niches(adata, n_neighbors=5)
    >>> wh.tl.wormhole(adata, n_components=8, max_steps=0, progress=False)  # no training, to be quick
    >>> wh.tl.barycenters(adata, "side").obs["cloud"].cat.categories.tolist()
    ['left', 'right']
    """
    middles = group_middles(adata, groupby, groups, key)
    origin = {"by": "barycenters", "groupby": groupby, "n_clouds": middles.sizes, "vectors": middles.vectors}
    made = _decoded(adata, key, middles.vectors, middles.names, origin)
    if middles.colors is not None:
        made.uns["cloud_colors"] = middles.colors
    return made


def interpolate(
    adata: AnnData, start: Any, end: Any, *, n: int = 8, groupby: str | None = None, key: str = EMBEDDING
) -> AnnData:
    """Decode clouds along the way from one cloud, or the middle of a group, to another.

    Parameters
    ----------
    adata
        What has an embedding.
    start
        Where the way begins: name or position of a row; with ``groupby`` a group; or a vector.
    end
        Where it ends, likewise.
    n
        Clouds, both ends included.
    groupby
        Column of ``obs`` whose levels ``start`` and ``end`` are.
    key
        Name of the embedding.

    Returns
    -------
    A new AnnData with one row a point, as :func:`decode` makes it, ``obs["cloud"]`` being the step and ``obs["share"]``
    how far on the way it is, from 0 to 1.

    Examples
    --------
    >>> import anndata, numpy as np, scwormhole as wh
    >>> rng = np.random.default_rng(0)
    >>> adata = anndata.AnnData(rng.gamma(2.0, size=(60, 3)), obsm={"spatial": rng.uniform(size=(60, 2))})
    >>> wh.pp.niches(adata, n_neighbors=5)
    >>> wh.tl.wormhole(adata, n_components=8, max_steps=0, progress=False)  # no training, to be quick
    >>> wh.tl.interpolate(adata, "0", "7", n=3).obs["share"].unique().tolist()
    [0.0, 0.5, 1.0]
    """
    if int(n) != n or n < 2:
        raise ValueError(f"n is {n}; give a whole number of at least 2, for both ends are included.")
    first, last = (_vector(adata, end_of, groupby, key) for end_of in (start, end))
    if first.shape != last.shape:
        raise ValueError(f"start has {len(first)} numbers and end {len(last)}; give vectors of this embedding.")
    share = np.linspace(0, 1, int(n))
    vectors = (1 - share)[:, None] * first + share[:, None] * last
    origin = {"by": "interpolate", "groupby": groupby, "vectors": vectors.astype(np.float32)}
    origin |= {name: str(given) for name, given in (("start", start), ("end", end)) if np.ndim(given) == 0}
    made = _decoded(adata, key, vectors, [str(step) for step in range(int(n))], origin)
    made.obs["share"] = share[made.obs["cloud"].cat.codes]
    return made


def _vector(adata: AnnData, given: Any, groupby: str | None, key: str) -> NDArray[Any]:
    """Return the vector of a row, of a group, or as it was given."""
    if np.ndim(given) == 1:
        return np.asarray(given, np.float64)
    if groupby is not None:
        return np.asarray(group_middles(adata, groupby, [given], key).vectors[0])
    return np.asarray(read_embedding(adata, key)[0][find_rows(adata, given)[0]])


def _decoded(adata: AnnData, key: str, vectors: ArrayLike, names: Sequence[str], origin: Mapping[str, Any]) -> AnnData:
    """Return decoded clouds as an AnnData that says where they come from."""
    record = read_record(adata, key)
    clouds = model(adata, key=key).inverse_transform(vectors)
    columns = [str(name) for name in record["names"]]
    return point_adata(clouds, names, columns, {"decoded": {"key": key, "source": record["source"], **origin}})
