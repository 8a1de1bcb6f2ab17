"""Clouds as they lie: flat, seen from the side, or by their principal axes. Touches matplotlib only."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from anndata import AnnData
from numpy.typing import NDArray

from scwormhole._adata import need
from scwormhole.clouds import PointClouds

from ._axes import DOTS, finish, no_ticks, panels

if TYPE_CHECKING:
    from ._axes import Drawn

MOST = 24  # clouds that are drawn without being asked for
FLAT = 3  # dimensions that can be drawn as they are
VIEW = (np.deg2rad(-55.0), np.deg2rad(25.0))  # where three dimensions are seen from: around, and from above


class Seen(NamedTuple):
    """Points on paper: two coordinates, how near each is (None if all are), and the names of the axes."""

    places: NDArray[np.float64]
    nearness: NDArray[np.float64] | None
    names: tuple[str, str]


def clouds(
    source: PointClouds | AnnData,
    *,
    index: int | str | Sequence[int] | Sequence[str] | NDArray[Any] | None = None,
    titles: Sequence[Any] | None = None,
    columns: int = 6,
    size: float | None = None,
    ax: Any = None,
    show: bool = False,
) -> "Drawn":
    """Draw clouds side by side, all to one scale, the area of a dot by the weight of its point.

    Two dimensions are drawn as they are, three are seen from the side with near points dark, and more are brought to
    the two principal axes of the clouds that are drawn.

    Parameters
    ----------
    source
        Clouds; or decoded ones as an AnnData, of :func:`scwormhole.tl.barycenters`, for example.
    index
        Which clouds, by position or name; the first 24 by default.
    titles
        One a cloud; their names by default.
    columns
        Most clouds side by side.
    size
        Mean area of a dot in square points; by number of points by default.
    ax
        Axes to draw on, one a cloud; a new figure by default.
    show
        Whether to call ``plt.show()``.

    Returns
    -------
    The Axes, or an array of them.

    Examples
    --------
    >>> import scwormhole as wh
    >>> digits, labels = wh.datasets.digits()
    >>> len(wh.pl.clouds(digits[:8], titles=labels[:8]))
    8
    """
    held = as_clouds(source)
    if index is None:
        held = held[: min(MOST, len(held))]
    else:
        chosen: list[Any] = [index] if isinstance(index, str | int | np.integer) else list(index)
        held = held[chosen]
    titles = list(held.names) if titles is None else [str(title) for title in titles]
    if len(titles) != len(held):
        raise ValueError(f"titles has {len(titles)} entries for {len(held)} clouds; give one a cloud.")
    parts = list(held)
    seen = _seen(np.concatenate([part.points for part in parts]))
    centre, reach = _frame(seen.places)
    axes = panels(len(parts), ax, size=(1.6, 1.8), columns=columns)
    ends = np.cumsum([len(part.points) for part in parts])
    if size is None:
        size = float(np.clip(2000 / np.median(held.sizes), 1.0, 50.0))
    for axis, part, title, end in zip(axes, parts, titles, ends, strict=True):
        here = slice(end - len(part.points), end)
        depth = None if seen.nearness is None else seen.nearness[here]
        order = np.arange(len(part.points)) if depth is None else np.argsort(depth)
        look: dict[str, Any] = {"color": DOTS}
        if depth is not None:
            look = {"c": depth[order], "cmap": "Blues", "vmin": -1.5, "vmax": 1}
        right, up = seen.places[here][order].T
        axis.scatter(right, up, s=size * part.weights[order] * len(order), linewidths=0, **look)
        axis.set(xlim=centre[0] + reach, ylim=centre[1] + reach, aspect="equal")
        axis.set_title(title, fontsize="medium")
        no_ticks(axis, frame=False)
    if seen.names[0]:
        axes[0].set(xlabel=seen.names[0], ylabel=seen.names[1])
    return finish(axes, show=show)


def as_clouds(source: PointClouds | AnnData) -> PointClouds:
    """Return clouds as they are, or those of an AnnData with one row a point.

    Parameters
    ----------
    source
        Clouds, or an AnnData with ``obs["cloud"]`` and perhaps ``obs["weight"]``.
    """
    if isinstance(source, PointClouds):
        return source
    if not isinstance(source, AnnData):
        raise TypeError(
            f"a {type(source).__name__} is given; give PointClouds, or an AnnData of decoded clouds, as wh.tl.decode "
            "and wh.tl.barycenters return it."
        )
    labels = need(source, "obs", "cloud", hint="Give what wh.tl.barycenters, interpolate or decode returned.")
    weights = source.obs["weight"].to_numpy() if "weight" in source.obs else None
    return PointClouds.from_groups(source.X, labels, weights)


def _seen(points: NDArray[Any]) -> Seen:
    points = np.asarray(points, np.float64)
    if points.shape[1] == 1:
        return Seen(np.column_stack([points, np.zeros(len(points))]), None, ("", ""))
    if points.shape[1] < FLAT:
        return Seen(points, None, ("", ""))
    centred = points - points.mean(0)
    if points.shape[1] > FLAT:
        axes = np.linalg.svd(centred, full_matrices=False)[2][:2]
        axes = axes * np.sign(axes[np.arange(2), np.abs(axes).argmax(1)])[:, None]
        return Seen(centred @ axes.T, None, ("PC1", "PC2"))
    around, above = VIEW
    right = np.array([-np.sin(around), np.cos(around), 0])
    towards = np.array([np.cos(around) * np.cos(above), np.sin(around) * np.cos(above), np.sin(above)])
    up = np.cross(towards, right)
    nearness = centred @ towards
    return Seen(centred @ np.stack([right, up], axis=1), nearness / (np.abs(nearness).max() or 1.0), ("", ""))


def _frame(places: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the centre of all places, and how far Axes reach to both sides of it."""
    low, high = places.min(0), places.max(0)
    reach = 0.55 * float((high - low).max() or 1.0)
    return (low + high) / 2, np.array([-reach, reach])
