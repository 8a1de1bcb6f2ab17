"""How well clouds can be embedded, in pictures: spectrum, error by width, and a ladder of epsilons."""

from typing import TYPE_CHECKING, Any

import numpy as np
from anndata import AnnData
from numpy.typing import ArrayLike, NDArray

from scwormhole import mds
from scwormhole._adata import EMBEDDABILITY, read_record
from scwormhole.mds import Embeddability
from scwormhole.mds._criterion import lost

from ._axes import DOTS, finish, open_frame, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ._axes import Drawn

LOST = "#d62728"
LINEAR = 1e-3  # share of the largest eigenvalue below which the axis of a spectrum is linear
LEAST_ERROR = 1e-4  # relative errors below it are nothing to choose by, and may be rounding
LEGEND = 0.5  # room below the curves of the ladder for their legend, as a share of their range
LADDER = {
    "exact": ("with exact transport", "#31688e", "o"),
    "halves": ("between halves of clouds", "#35b779", "s"),
    "means": ("with distance of means", "#9e9e9e", "^"),
}


def spectrum(
    source: "AnnData | Embeddability | ArrayLike", *, key: str = EMBEDDABILITY, ax: Any = None, show: bool = False
) -> "Drawn":
    """Draw the eigenvalues of the criterion matrix: negative ones are what no Euclidean space can hold.

    Parameters
    ----------
    source
        AnnData after :func:`scwormhole.tl.embeddability`, what that returned, or a table of divergences.
    key
        Name in ``uns`` of an AnnData.
    ax
        Axes to draw on; a new figure by default.
    show
        Whether to call ``plt.show()``.

    Returns
    -------
    The Axes.

    Examples
    --------
    >>> import scwormhole as wh
    >>> wh.pl.spectrum([[0, 1, 9], [1, 0, 1], [9, 1, 0]]).get_ylabel()
    'eigenvalue'
    """
    if isinstance(source, AnnData):
        source = _record(source, key)
    values = source.eigenvalues if isinstance(source, Embeddability) else mds.spectrum(source)
    (axis,) = panels(1, ax, size=(4.5, 3.5))
    _draw_spectrum(axis, values)
    return finish([axis], show=show)


def embeddability(
    source: "AnnData | Embeddability", *, key: str = EMBEDDABILITY, ax: Any = None, show: bool = False
) -> "Drawn":
    """Draw what :func:`scwormhole.tl.embeddability` found: spectrum, error by width, and the ladder of epsilons.

    Parameters
    ----------
    source
        AnnData that has it, or what was returned.
    key
        Name in ``uns`` of an AnnData.
    ax
        Three Axes to draw on; a new figure by default.
    show
        Whether to call ``plt.show()``.

    Returns
    -------
    An array of three Axes.

    Examples
    --------
    >>> import numpy as np, scwormhole as wh
    >>> rng = np.random.default_rng(0)
    >>> clouds = wh.PointClouds.from_list([rng.normal(size=(30, 2)) + 3 * rng.normal(size=2) for _ in range(20)])
    >>> found = wh.tl.embeddability(clouds, epsilons=[0.1], progress=False)
    >>> len(wh.pl.embeddability(found))
    3
    """
    found = _record(source, key)
    axes = panels(3, ax, size=(4.0, 3.5))
    _draw_spectrum(axes[0], found.eigenvalues)
    _draw_widths(axes[1], found)
    _draw_ladder(axes[2], found)
    return finish(axes, show=show)


def _record(source: "AnnData | Embeddability", key: str) -> Embeddability:
    if isinstance(source, Embeddability):
        return source
    if not isinstance(source, AnnData):
        raise TypeError(
            f"source is a {type(source).__name__}; give an AnnData after wh.tl.embeddability, or what that returned."
        )
    return Embeddability.from_dict(read_record(source, key, kind=EMBEDDABILITY))


def _draw_spectrum(axis: "Axes", values: NDArray[np.float64]) -> None:
    place = np.arange(1, len(values) + 1)
    below = lost(values)
    axis.axhline(0, color="black", linewidth=0.8)
    axis.bar(place[~below], values[~below], width=1.0, color=DOTS, label="held by a Euclidean space")
    if below.any():
        axis.bar(place[below], values[below], width=1.0, color=LOST, label="not held by any")
    size = np.abs(values)
    share = size[below].sum() / (size.sum() or 1.0)
    linear = LINEAR * (size.max() or 1.0)
    axis.set_yscale("symlog", linthresh=linear)
    axis.set_yticks([tick for tick in axis.get_yticks() if tick == 0 or abs(tick) > 2 * linear])  # apart from zero's
    axis.set(xlabel="eigenvalue, by size", ylabel="eigenvalue", title=f"{share:.1%} of the spectrum negative")
    axis.legend(frameon=False, fontsize="small")
    open_frame(axis)


def _draw_widths(axis: "Axes", found: Embeddability) -> None:
    axis.axhspan(found.lower, found.upper, color=DOTS, alpha=0.12, linewidth=0, label="bounds")
    axis.axhline(found.least, color="black", linewidth=0.8, linestyle="--", label="nearest Euclidean")
    axis.plot(found.widths, found.errors, color=DOTS, marker="o", markersize=4, label="its first components")
    axis.axvline(found.width, color=LOST, linewidth=0.8, linestyle=":")
    axis.set(xscale="log", yscale="log", xlabel="n_components", ylabel="relative error")
    axis.set_ylim(bottom=max(LEAST_ERROR, axis.get_ylim()[0]))
    axis.set_xticks(found.widths, [str(width) for width in found.widths], minor=False)
    axis.minorticks_off()
    axis.set_title(f"{found.width} components are enough")
    axis.legend(frameon=False, fontsize="small")
    open_frame(axis)


def _draw_ladder(axis: "Axes", found: Embeddability) -> None:
    for name, (label, colour, marker) in LADDER.items():
        values = getattr(found, name)
        if not np.isnan(values).all():
            axis.plot(found.epsilons, values, color=colour, marker=marker, markersize=4, label=label)
    axis.axvline(found.epsilon, color="black", linewidth=0.8, linestyle=":")
    axis.set(xscale="log", xlabel="epsilon", ylabel="correlation")
    axis.set_xticks(found.epsilons, [f"{step:g}" for step in found.epsilons], minor=False)
    axis.minorticks_off()
    axis.set_title("noise unknown" if np.isnan(found.noise) else f"{found.noise:.1%} of a divergence is noise")
    if axis.get_lines()[:-1]:
        low, high = axis.get_ylim()
        axis.set_ylim(low - LEGEND * (high - low), high)
        axis.legend(frameon=False, fontsize="small", loc="lower left")
    open_frame(axis)
