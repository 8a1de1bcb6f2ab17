"""How good an embedding is and how it came to be: divergences against solved ones, and the course of a training."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from anndata import AnnData
from numpy.typing import NDArray

from scwormhole._adata import read_record
from scwormhole.clouds import PointClouds
from scwormhole.metrics import solve_pairs
from scwormhole.model import Wormhole
from scwormhole.ot import BaseFeatures

from ._axes import DOTS, finish, open_frame, panels

if TYPE_CHECKING:
    from ._axes import Drawn

Pairs = tuple[NDArray[Any], NDArray[Any], int]  # solved, embedded, and of how many clouds


def fidelity(
    source: "AnnData | Wormhole | BaseFeatures",
    clouds: PointClouds | None = None,
    *,
    n_clouds: int = 128,
    key: str = "wormhole",
    rng: int = 0,
    ax: Any = None,
    show: bool = False,
) -> "Drawn":
    """Draw embedded against solved divergences, with the line on which they agree and their correlation.

    Nuggets are included.

    Parameters
    ----------
    source
        AnnData after :func:`scwormhole.tl.wormhole`, which has the pairs of clouds that were held out; or a fitted
        model.
    clouds
        Clouds that a model was not trained on, whose pairs are solved; not for AnnData.
    n_clouds
        Most clouds to take of these.
    key
        Name of the embedding in an AnnData.
    rng
        Seed of the choice.
    ax
        Axes to draw on; a new figure by default.
    show
        Whether to call ``plt.show()``.

    Returns
    -------
    The Axes.

    Examples
    --------
    >>> import numpy as np, scwormhole as wh
    >>> rng = np.random.default_rng(0)
    >>> clouds = wh.PointClouds.from_list([rng.normal(size=(20, 2)) * rng.gamma(5.0) for _ in range(60)])
    >>> base = wh.ot.BaseFeatures(n_components=16).fit(clouds[:40])
    >>> wh.pl.fidelity(base, clouds[40:]).get_xlabel()
    'solved divergence'
    """
    if isinstance(source, AnnData):
        true, found, count = _kept_pairs(source, clouds, key)
    else:
        true, found, count = _solved_pairs(source, clouds, n_clouds, rng)
    (axis,) = panels(1, ax, size=(4.5, 4.5))
    low, high = min(true.min(), found.min()), max(true.max(), found.max())
    room = 0.03 * (high - low or 1.0)
    ends = (low - room, high + room)
    light = float(np.clip(2000 / len(true), 0.25, 0.8))
    axis.scatter(true, found, s=16 * light, color=DOTS, alpha=light, linewidths=0, rasterized=True)
    axis.plot(ends, ends, color="black", linewidth=0.8, linestyle="--")
    axis.set(xlim=ends, ylim=ends, aspect="equal", xlabel="solved divergence", ylabel="embedded divergence")
    share = float(np.corrcoef(true, found)[0, 1])
    error = float(np.abs(found - true).mean() / true.mean())
    said = f"r = {share:.3f}\nerror {error:.1%}\n{count} clouds, {len(true):,} pairs"
    axis.text(0.04, 0.96, said, transform=axis.transAxes, va="top", fontsize="small")
    open_frame(axis)
    return finish([axis], show=show)


def history(
    source: "AnnData | Wormhole",
    *,
    x: str = "step",
    key: str = "wormhole",
    ax: Any = None,
    show: bool = False,
) -> "Drawn":
    """Draw how held-out clouds fared while a model was trained: their correlation, and how well they were decoded.

    Parameters
    ----------
    source
        AnnData after :func:`scwormhole.tl.wormhole`, or a fitted model.
    x
        ``"step"`` or ``"seconds"``.
    key
        Name of the embedding in an AnnData.
    ax
        Axes to draw on, two if there is a decoder and one if not; a new figure by default.
    show
        Whether to call ``plt.show()``.

    Returns
    -------
    The Axes, or an array of two.

    Examples
    --------
    >>> import numpy as np, scwormhole as wh
    >>> rng = np.random.default_rng(0)
    >>> clouds = wh.PointClouds.from_list([rng.normal(size=(20, 2)) * rng.gamma(5.0) for _ in range(40)])
    >>> model = wh.Wormhole(n_components=16, max_steps=30, coeff_dec=0, progress=False).fit(clouds)
    >>> wh.pl.history(model).get_ylabel()
    'held-out correlation'
    """
    if x not in ("step", "seconds"):
        raise ValueError(f'x is {x!r}; it may be "step" or "seconds".')
    held: Mapping[str, Any] = read_record(source, key)["history"] if isinstance(source, AnnData) else source.history_
    phases = np.asarray(held["phase"])
    looks = {
        "encoder": ("held-out correlation", np.asarray(held["correlation"], np.float64), np.nanargmax),
        "decoder": ("held-out error of decoded clouds", np.asarray(held["error"], np.float64), np.nanargmin),
    }
    drawn = [name for name in looks if (phases == name).any()]
    axes = panels(len(drawn), ax, size=(4.5, 3.5))
    for axis, name in zip(axes, drawn, strict=True):
        label, values, best = looks[name]
        here = phases == name
        where, values = np.asarray(held[x], np.float64)[here], values[here]
        axis.plot(where, values, color=DOTS, marker="o", markersize=3, linewidth=1.2)
        axis.set(xlabel=x, ylabel=label, title=name)
        if np.isfinite(values).any():
            at = int(best(values))
            axis.plot(where[at], values[at], "o", color="#d62728", markersize=6, label=f"best: {values[at]:.4g}")
            axis.legend(frameon=False)
        open_frame(axis)
    return finish(axes, show=show)


def _kept_pairs(adata: AnnData, clouds: PointClouds | None, key: str) -> Pairs:
    """Return the pairs of held-out clouds that an AnnData keeps."""
    if clouds is not None:
        raise ValueError("clouds are given beside an AnnData, which has its own; give a model with them.")
    held = read_record(adata, key).get("held_out")
    if held is None:
        raise ValueError(
            f"adata.uns[{key!r}] has no held-out pairs: it is of wh.tl.embed, or of too few clouds. "
            "Give a model, and clouds to compare it on."
        )
    return np.asarray(held["solved"]), np.asarray(held["embedded"]), len(held["clouds"])


def _solved_pairs(model: "Wormhole | BaseFeatures", clouds: PointClouds | None, n_clouds: int, rng: int) -> Pairs:
    """Solve the pairs of some clouds."""
    if clouds is None:
        raise ValueError("clouds is None; give clouds that the model was not trained on.")
    if min(len(clouds), n_clouds) < 3:
        raise ValueError(f"there are {len(clouds)} clouds, and n_clouds is {n_clouds}; pairs need at least three.")
    some = clouds[np.random.default_rng(rng).permutation(len(clouds))[:n_clouds]]
    tables = solve_pairs(model, some)
    pairs = np.triu_indices(len(some), 1)
    return tables.true[pairs], tables.predicted[pairs], len(some)
