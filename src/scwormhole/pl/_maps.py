"""Maps of an embedding, UMAP and diffusion map, and the tissue it is of. Reads AnnData by ``_adata``'s names."""

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from anndata import AnnData
from numpy.typing import NDArray

from scwormhole._adata import need

from ._axes import finish, no_ticks, panels
from ._colours import Colour, component, read_colours
from ._scatter import scatter

if TYPE_CHECKING:
    from ._axes import Drawn

LEGEND = 2.0  # inches that a map of the usual width has for its legend


def umap(
    adata: AnnData,
    color: Colour | Sequence[Colour] = None,
    *,
    key: str = "wormhole",
    cmap: str = "viridis",
    size: float | None = None,
    ax: Any = None,
    show: bool = False,
) -> "Drawn":
    """Draw the UMAP of an embedding.

    Parameters
    ----------
    adata
        AnnData after :func:`scwormhole.tl.umap`.
    color
        A column of ``obs``, a gene, or the number of a diffusion component, counted from one; of several each has its
        panel. Rows without a value are grey.
    key
        Name of the embedding.
    cmap
        Colours for numbers.
    size
        Area of a dot in square points; by number of dots by default.
    ax
        Axes to draw on, one a panel; a new figure by default.
    show
        Whether to call ``plt.show()``.

    Returns
    -------
    The Axes, or an array of them where there are several panels.

    Examples
    --------
    >>> import numpy as np, scwormhole as wh
    >>> adata = wh.datasets.cortex(n_cells=200)
    >>> adata.obsm["X_wormhole_umap"] = np.random.default_rng(0).normal(size=(200, 2))  # or wh.tl.umap(adata)
    >>> wh.pl.umap(adata, color="layer").get_xlabel()
    'UMAP1'
    """
    places = np.asarray(need(adata, "obsm", f"X_{key}_umap", hint="Run wh.tl.umap(adata) first."))
    return _map(adata, places[:, :2], ("UMAP1", "UMAP2"), color, key=key, cmap=cmap, size=size, ax=ax, show=show)


def diffmap(
    adata: AnnData,
    color: Colour | Sequence[Colour] = None,
    *,
    components: tuple[int, int] = (1, 2),
    key: str = "wormhole",
    cmap: str = "viridis",
    size: float | None = None,
    ax: Any = None,
    show: bool = False,
) -> "Drawn":
    """Draw two components of the diffusion map of an embedding; rows that are not part of it are left out.

    Parameters
    ----------
    adata
        AnnData after :func:`scwormhole.tl.diffmap`.
    color
        See :func:`umap`.
    components
        Components for the two axes, counted from one.
    key
        Name of the embedding.
    cmap
        Colours for numbers.
    size
        Area of a dot in square points; by number of dots by default.
    ax
        Axes to draw on, one a panel; a new figure by default.
    show
        Whether to call ``plt.show()``.

    Returns
    -------
    The Axes, or an array of them where there are several panels.

    Examples
    --------
    >>> import numpy as np, scwormhole as wh
    >>> adata = wh.datasets.cortex(n_cells=200)
    >>> adata.obsm["X_wormhole_diffmap"] = np.random.default_rng(0).normal(size=(200, 3))  # or wh.tl.diffmap(adata)
    >>> wh.pl.diffmap(adata, color="depth").get_ylabel()
    'diffusion component 2'
    """
    places = np.stack([component(adata, number, key=key) for number in components], axis=1)
    names = tuple(f"diffusion component {number}" for number in components)
    return _map(adata, places, names, color, key=key, cmap=cmap, size=size, ax=ax, show=show)


def spatial(
    adata: AnnData,
    color: Colour = 1,
    *,
    library_key: str | None = None,
    spatial_key: str = "spatial",
    scale_bar: float | None = None,
    unit: str = "µm",
    key: str = "wormhole",
    cmap: str = "viridis",
    size: float | None = None,
    ax: Any = None,
    show: bool = False,
) -> "Drawn":
    """Draw the cells where they lie, one panel a library, all with the same colours.

    Parameters
    ----------
    adata
        Cells with positions in ``obsm[spatial_key]``.
    color
        A diffusion component of the embedding, counted from one; or a column of ``obs``, a gene, or None. Cells without
        a value are grey and lie below the others.
    library_key
        Column of ``obs`` that tells libraries apart; without it all cells are in one panel.
    spatial_key
        Key of ``obsm`` with positions.
    scale_bar
        Length of a bar to draw, in units of the positions.
    unit
        Name of these units.
    key
        Name of the embedding.
    cmap
        Colours for numbers.
    size
        Area of a dot in square points; by number of dots by default.
    ax
        Axes to draw on, one a library; a new figure by default.
    show
        Whether to call ``plt.show()``.

    Returns
    -------
    The Axes, or an array of them where there are several libraries.

    Examples
    --------
    >>> import scwormhole as wh
    >>> adata = wh.datasets.cortex(n_cells=400)
    >>> axes = wh.pl.spatial(adata, color="layer", library_key="library", scale_bar=100)
    >>> [axis.get_title() for axis in axes]
    ['slice 1', 'slice 2']
    """
    places = np.asarray(need(adata, "obsm", spatial_key), np.float64)[:, :2]
    if places.shape[1] < 2:
        raise ValueError(f"adata.obsm[{spatial_key!r}] has one column; positions have two, or three.")
    colouring = read_colours(adata, color, key=key)
    libraries = _libraries(adata, library_key, np.asarray(np.isfinite(places).all(1)))
    shape = np.median([_extent(places[rows]) for rows in libraries.values()], axis=0)
    width, height = np.clip(4.0 * np.sqrt(shape / shape[::-1]), 2.5, 7.0)
    axes = panels(len(libraries), ax, size=(width, height + 0.3), beside=colouring.room)
    for axis, (name, rows) in zip(axes, libraries.items(), strict=True):
        axis.set(aspect="equal", title=name)
        no_ticks(axis, frame=False)
        if scale_bar is not None:
            _bar(axis, places[rows], scale_bar, unit)
    scatter(axes, places, list(libraries.values()), colouring, cmap=cmap, size=size)
    return finish(axes, show=show)


def _map(
    adata: AnnData,
    places: NDArray[Any],
    names: Sequence[str],
    color: Colour | Sequence[Colour],
    *,
    key: str,
    cmap: str,
    size: float | None,
    ax: Any,
    show: bool,
) -> "Drawn":
    if places.shape[1] != 2:
        raise ValueError(f"{places.shape[1]} components are given; a map has two.")
    colors = [color] if color is None or isinstance(color, str | int | np.integer) else list(color)
    if not colors:
        raise ValueError("color is empty; give a column of adata.obs, a gene, several of them, or None.")
    colourings = [read_colours(adata, one, key=key) for one in colors]
    rows = np.flatnonzero(np.isfinite(places).all(1))
    if not len(rows):
        raise ValueError(
            "no row has a place on this map, all are NaN; make the map again, with a subset of these rows."
        )
    wide = 5.0 + max(0.0, *(colouring.room - LEGEND for colouring in colourings))
    axes = panels(len(colors), ax, size=(wide, 4.0), columns=3)
    for axis, colouring in zip(axes, colourings, strict=True):
        axis.set(xlabel=names[0], ylabel=names[1])
        no_ticks(axis)
        scatter([axis], places, [rows], colouring, cmap=cmap, size=size)
    return finish(axes, show=show)


def _libraries(adata: AnnData, library_key: str | None, placed: NDArray[np.bool_]) -> dict[str, NDArray[np.int64]]:
    """Return the rows of each library by name, and tell those that have no place or no library."""
    codes, names = np.zeros(adata.n_obs, np.int64), [""]
    if library_key is not None:
        levels = need(adata, "obs", library_key).astype("category").cat
        codes, names = levels.codes.to_numpy(), [str(name) for name in levels.categories]
    codes = np.where(placed, codes, -1)
    found = {name: np.flatnonzero(codes == code) for code, name in enumerate(names)}
    libraries = {name: rows for name, rows in found.items() if len(rows)}
    if not libraries:
        raise ValueError("no cell has a position and a library; nothing is left to draw.")
    lost = int((codes < 0).sum())
    if lost:
        warnings.warn(
            f"{lost:,} of {adata.n_obs:,} cells have no position or no library and are not drawn.", stacklevel=3
        )
    return libraries


def _extent(places: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.maximum(np.ptp(places, axis=0), 1e-12))


def _bar(axis: Any, places: NDArray[np.float64], length: float, unit: str) -> None:
    """Draw a bar below the cells, at the right."""
    right, low = places[:, 0].max(), places[:, 1].min()
    gap = 0.04 * _extent(places)[1]
    axis.plot([right - length, right], [low - gap] * 2, color="black", linewidth=2, solid_capstyle="butt")
    axis.text(right - length / 2, low - 1.5 * gap, f"{length:g} {unit}", ha="center", va="top", fontsize="small")
