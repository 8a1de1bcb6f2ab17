"""Decoded clouds as a biologist reads them: the mean of each gene, cloud by cloud. Touches matplotlib only."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from anndata import AnnData
from numpy.typing import NDArray

from scwormhole._adata import known_keys
from scwormhole.clouds import PointClouds

from ._axes import finish, panels
from ._clouds import FLAT, as_clouds, clouds

if TYPE_CHECKING:
    from ._axes import Drawn


def barycenters(
    source: AnnData,
    var_names: Sequence[str] | None = None,
    *,
    n_genes: int = 24,
    cmap: str = "viridis",
    ax: Any = None,
    show: bool = False,
) -> "Drawn":
    """Draw the mean of genes in the middle cloud of each group, every gene scaled from its lowest to its highest.

    Parameters
    ----------
    source
        What :func:`scwormhole.tl.barycenters` returned.
    var_names
        Genes to draw; by default those that differ most, ordered by the group they are highest in.
    n_genes
        How many, if ``var_names`` does not say.
    cmap
        Colours.
    ax
        Axes to draw on; a new figure by default.
    show
        Whether to call ``plt.show()``.

    Returns
    -------
    The Axes.

    Examples
    --------
    >>> import anndata, numpy as np, pandas as pd, scwormhole as wh
    >>> obs = pd.DataFrame({"cloud": pd.Categorical(["L1", "L1", "L4"])}, index=["a", "b", "c"])
    >>> found = anndata.AnnData(np.array([[0.0, 4.0], [1.0, 2.0], [3.0, 0.0]]), obs=obs)
    >>> found.var_names = ["Cux2", "Rorb"]
    >>> [label.get_text() for label in wh.pl.barycenters(found).get_yticklabels()]
    ['L1', 'L4']
    """
    held, means = _means(source)
    genes = _chosen(source, means, var_names, n_genes)
    size = (1.8 + 0.25 * len(genes), 1.4 + 0.3 * len(held))
    (axis,) = panels(1, ax, size=(max(size[0], 4.0), max(size[1], 2.2)))
    _heat(axis, means[:, genes], cmap)
    axis.set_xticks(range(len(genes)), [source.var_names[gene] for gene in genes], rotation=90, style="italic")
    axis.set_yticks(range(len(held)), list(held.names))
    return finish([axis], show=show)


def interpolation(
    source: AnnData | PointClouds,
    var_names: Sequence[str] | None = None,
    *,
    n_genes: int = 24,
    cmap: str = "viridis",
    ax: Any = None,
    show: bool = False,
) -> "Drawn":
    """Draw the way from one cloud to another: clouds of up to three dimensions in a row, else the means of genes.

    Parameters
    ----------
    source
        What :func:`scwormhole.tl.interpolate` or :meth:`scwormhole.Wormhole.interpolate` returned.
    var_names
        Genes to draw; by default those that change most, ordered by where on the way they are highest.
    n_genes
        How many, if ``var_names`` does not say.
    cmap
        Colours.
    ax
        Axes to draw on, one a cloud for clouds in a row; a new figure by default.
    show
        Whether to call ``plt.show()``.

    Returns
    -------
    The Axes, or an array of them.

    Examples
    --------
    >>> import numpy as np, scwormhole as wh
    >>> square = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> way = wh.PointClouds.from_list([square * share for share in (1.0, 1.5, 2.0)])
    >>> [axis.get_title() for axis in wh.pl.interpolation(way)]
    ['0', '0.5', '1']
    """
    held = as_clouds(source)
    steps = [f"{share:.2g}" for share in np.linspace(0, 1, len(held))]
    if held.dim <= FLAT:
        return clouds(held, index=range(len(held)), titles=steps, columns=max(len(held), 1), ax=ax, show=show)
    held, means = _means(source)
    genes = _chosen(source, means, var_names, n_genes)
    (axis,) = panels(1, ax, size=(max(1.8 + 0.45 * len(held), 4.0), max(1.2 + 0.2 * len(genes), 2.5)))
    _heat(axis, means[:, genes].T, cmap, across=True)
    names = source.var_names if isinstance(source, AnnData) else np.arange(held.dim).astype(str)
    axis.set_yticks(range(len(genes)), [names[gene] for gene in genes], style="italic")
    axis.set_xticks(range(len(held)), steps)
    axis.set_xlabel("share of the way")
    return finish([axis], show=show)


def _means(source: AnnData | PointClouds) -> tuple[PointClouds, NDArray[np.float64]]:
    """Return clouds, and the mean of each of their coordinates, clouds by coordinates."""
    held = as_clouds(source)
    return held, np.stack([cloud.weights @ cloud.points for cloud in held]).astype(np.float64)


def _chosen(
    source: AnnData | PointClouds, means: NDArray[np.float64], var_names: Sequence[str] | None, n_genes: int
) -> NDArray[np.int64]:
    """Return the columns to draw."""
    if var_names is None:
        some = np.argsort(-np.ptp(means, axis=0), kind="stable")[: max(n_genes, 1)]
        return np.asarray(some[np.lexsort((-means[:, some].max(0), means[:, some].argmax(0)))])
    if not isinstance(source, AnnData):
        raise TypeError("var_names are given with PointClouds, whose coordinates have no names; give an AnnData.")
    var_names = [var_names] if isinstance(var_names, str) else list(var_names)
    places = source.var_names.get_indexer(var_names)
    missing = [name for name, place in zip(var_names, places, strict=True) if place < 0]
    if missing:
        raise KeyError(f"{missing} are not in var_names; {known_keys(source.var_names, missing[0])}.")
    return np.asarray(places)


def _heat(axis: Any, values: NDArray[np.float64], cmap: str, *, across: bool = False) -> None:
    """Draw a table of colours, each gene from its lowest to its highest; genes are columns, or rows if ``across``."""
    along = int(across)
    low = values.min(along, keepdims=True)
    span = np.ptp(values, axis=along, keepdims=True)
    drawn = axis.imshow((values - low) / np.where(span > 0, span, 1.0), cmap=cmap, vmin=0, vmax=1, aspect="auto")
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    bar = axis.figure.colorbar(drawn, ax=axis, ticks=[0, 1], shrink=0.7, aspect=12, pad=0.02, label="mean in cloud")
    bar.ax.set_yticklabels(["lowest", "highest"])
