"""Dots with colours on one or several Axes, and one legend or scale for all of them. Touches matplotlib only."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ._colours import MISSING, Colouring, colour_bar, legend, limits

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LARGEST, SMALLEST = 40.0, 0.5  # areas of dots, in square points
COVERED = 0.45  # share of a panel that its dots cover, were they evenly spread
RARE = 3.0  # how much larger dots with a value are where most have none
MANY = 20_000  # dots from which on they are stored as pixels


def scatter(
    axes: "Sequence[Axes]",
    places: NDArray[Any],
    rows: Sequence[NDArray[np.int64]],
    colouring: Colouring,
    *,
    cmap: str,
    size: float | None,
) -> None:
    """Draw rows as dots, some on each Axes; those without a value lie below the others, in grey.

    Parameters
    ----------
    axes
        The Axes.
    places
        Two numbers a row.
    rows
        Which rows each Axes shows.
    colouring
        What they are coloured by.
    cmap
        Name of the colours for numbers.
    size
        Area of a dot in square points; by default as many dots as there are leave it.
    """
    import matplotlib

    norm, beyond = None, "neither"
    if not colouring.categorical:
        low, high, beyond = limits(np.concatenate([colouring.values[here] for here in rows]))
        norm = matplotlib.colors.Normalize(low, high)
    most = max(len(here) for here in rows)
    area = _area(axes[0], most) if size is None else size
    for axis, here in zip(axes, rows, strict=True):
        look: dict[str, Any] = {"linewidths": 0, "rasterized": most > MANY, "zorder": 2}
        known = colouring.known[here]
        without, having = here[~known], here[known]
        dot = area * (RARE if size is None and 0 < 2 * len(having) < len(here) else 1)
        if len(without):
            right, up = places[without].T
            axis.scatter(right, up, s=0.6 * area, color=MISSING, **look | {"zorder": 1})
        # in an order of its own, so that no level hides the ones before it
        having = having[np.random.default_rng(0).permutation(len(having))]
        values, (right, up) = colouring.values[having], places[having].T
        if colouring.categorical:
            axis.scatter(right, up, s=dot, c=[colouring.palette[code] for code in values], **look)
        else:
            axis.scatter(right, up, s=dot, c=values, norm=norm, cmap=cmap, **look)
    if norm is not None:
        colour_bar(axes, colouring, norm, cmap, beyond)
    elif colouring.title:
        legend(axes[-1], colouring, np.concatenate([colouring.values[here] for here in rows]))


def _area(axis: "Axes", n: int) -> float:
    box = axis.get_window_extent()
    width, height = (length * 72 / axis.figure.dpi for length in (box.width, box.height))
    return float(np.clip(COVERED * width * height / max(n, 1), SMALLEST, LARGEST))
