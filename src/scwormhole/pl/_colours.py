"""What points are coloured by: a column, a gene or a component of an AnnData, read and turned into colours."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from anndata import AnnData
from numpy.typing import NDArray

from scwormhole._adata import known_keys, need

from ._axes import DOTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize

MISSING = "#d9d9d9"
TRIMMED = 100  # values from which on the most extreme percent is left out of the scale
ROWS = 14  # entries of a legend in one column

Colour = str | int | None


class Colouring(NamedTuple):
    """One value a row: numbers with their scale, or codes with the names and colours of levels."""

    title: str
    values: NDArray[Any]
    levels: list[str]
    palette: list[Any]

    @property
    def categorical(self) -> bool:
        """Whether rows belong to levels."""
        return bool(self.levels)

    @property
    def known(self) -> NDArray[np.bool_]:
        """Rows that have a value."""
        return np.asarray(self.values >= 0 if self.categorical else np.isfinite(self.values))

    @property
    def room(self) -> float:
        """Inches that the legend or scale takes, about."""
        if not self.title:
            return 0.0
        longest = max((len(level) for level in self.levels), default=0)
        return (0.4 + 0.09 * longest) * -(-len(self.levels) // ROWS) if self.categorical else 0.8


def read_colours(adata: AnnData, color: Colour, *, key: str) -> Colouring:
    """Return what rows are coloured by.

    Parameters
    ----------
    adata
        Where from.
    color
        A column of ``obs``, a gene, the number of a diffusion component counted from one, or None for one colour.
    key
        Name of the embedding whose diffusion map is meant.
    """
    if color is None:
        return Colouring("", np.zeros(adata.n_obs, np.int64), [""], [DOTS])
    if isinstance(color, int | np.integer):
        return Colouring(f"diffusion component {color}", component(adata, int(color), key=key), [], [])
    if color in adata.obs:
        return _of_column(color, adata.obs[color], adata.uns.get(f"{color}_colors"))
    if color in adata.var_names:
        held: Any = adata[:, color].X
        return Colouring(str(color), np.asarray(held.todense() if hasattr(held, "todense") else held).ravel(), [], [])
    raise KeyError(
        f"{color!r} is neither a column of adata.obs nor a gene of adata.var_names; of columns "
        f"{known_keys(adata.obs, color)}."
    )


def component(adata: AnnData, number: int, *, key: str) -> NDArray[np.float64]:
    """Return a diffusion component, counted from one.

    Parameters
    ----------
    adata
        Where from.
    number
        Which.
    key
        Name of the embedding.
    """
    held = need(adata, "obsm", f"X_{key}_diffmap", hint="Run wh.tl.diffmap(adata) first.")
    if not 1 <= number <= held.shape[1]:
        raise ValueError(
            f"component {number} is asked for; there are 1 to {held.shape[1]}. wh.tl.diffmap makes n_comps of them."
        )
    return np.asarray(held[:, number - 1], np.float64)


def limits(values: NDArray[Any]) -> tuple[float, float, str]:
    """Return the ends of a scale of colours, and on which sides values go beyond it."""
    values = values[np.isfinite(values)]
    if not len(values):
        return 0.0, 1.0, "neither"
    low, high = float(values.min()), float(values.max())
    if len(values) >= TRIMMED and np.quantile(values, 0.99) > np.quantile(values, 0.01):
        low, high = (float(np.quantile(values, q)) for q in (0.01, 0.99))
    if low == high:
        low, high = low - 0.5, high + 0.5
    beyond = {(False, False): "neither", (True, False): "min", (False, True): "max", (True, True): "both"}
    return low, high, beyond[bool(values.min() < low), bool(values.max() > high)]


def legend(axis: "Axes", colouring: Colouring, codes: NDArray[np.int64]) -> None:
    """Put a legend to the right of Axes.

    Parameters
    ----------
    axis
        The Axes.
    colouring
        Names and colours.
    codes
        Levels of what is drawn; those to list.
    """
    from matplotlib.lines import Line2D

    look: dict[str, Any] = {"marker": "o", "linestyle": "", "markersize": 6, "markeredgewidth": 0}
    shown = np.unique(codes[codes >= 0])
    dots = [Line2D([], [], color=colouring.palette[code], label=colouring.levels[code], **look) for code in shown]
    if (codes < 0).any():
        dots.append(Line2D([], [], color=MISSING, label="none", **look))
    axis.legend(
        handles=dots,
        loc="center left",
        bbox_to_anchor=(1.01, 0.5),
        ncols=-(-len(dots) // ROWS),
        frameon=False,
        handletextpad=0.2,
        columnspacing=1.0,
        title=colouring.title or None,
        alignment="left",
    )


def colour_bar(axes: "Sequence[Axes]", colouring: Colouring, norm: "Normalize", cmap: str, beyond: str) -> None:
    """Put a scale of colours to the right of Axes.

    Parameters
    ----------
    axes
        Axes that have it in common.
    colouring
        What it is of.
    norm
        Its ends.
    cmap
        Its colours.
    beyond
        Sides on which values go beyond.
    """
    from matplotlib.cm import ScalarMappable

    axes[0].figure.colorbar(
        ScalarMappable(norm, cmap), ax=list(axes), label=colouring.title, extend=beyond, shrink=0.7, aspect=25, pad=0.02
    )


def _of_column(name: str, column: "pd.Series[Any]", stored: Any) -> Colouring:
    if not isinstance(column.dtype, pd.CategoricalDtype):
        if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
            return Colouring(name, column.to_numpy(np.float64, na_value=np.nan), [], [])
        column = column.astype("category")
    levels = [str(level) for level in column.cat.categories] or ["none"]  # which no row has, where all are missing
    palette = list(stored) if stored is not None and len(stored) >= len(levels) else _palette(len(levels))
    return Colouring(name, column.cat.codes.to_numpy().astype(np.int64), levels, palette)


def _palette(n: int) -> list[Any]:
    """Return colours that can be told apart, as far as so many can."""
    import matplotlib

    if n <= 10:
        return list(matplotlib.colormaps["tab10"].colors)[:n]  # type: ignore[attr-defined]
    if n <= 20:
        strong_first = matplotlib.colormaps["tab20"].colors  # type: ignore[attr-defined]
        return [*strong_first[::2], *strong_first[1::2]][:n]
    return [matplotlib.colormaps["turbo"](share) for share in np.linspace(0.02, 0.98, n)]
