"""Axes to draw on, the user's or new ones, and what is returned in the end. Touches matplotlib only."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    Drawn = Axes | NDArray[Any]

DOTS = "#31688e"  # the one colour of dots and lines that need no other


def panels(n: int, ax: Any, *, size: tuple[float, float], columns: int = 4, beside: float = 0.0) -> "list[Axes]":
    """Return as many Axes as there are panels.

    Parameters
    ----------
    n
        Number of panels.
    ax
        Axes to use, one or a sequence of them; new ones in a new figure if None.
    size
        Width and height of a new panel in inches.
    columns
        Most panels side by side.
    beside
        Inches at the right of a new figure, for what all panels have in common.
    """
    if ax is not None:
        given = list(np.ravel(np.asarray(ax, dtype=object)))
        if len(given) != n:
            raise ValueError(f"ax holds {len(given)} Axes, and {n} are needed, one a panel; give {n}, or None.")
        return given
    import matplotlib.pyplot as plt

    high = -(-n // columns)
    wide = -(-n // high)
    figsize = (wide * size[0] + beside, high * size[1])
    grid = plt.subplots(high, wide, figsize=figsize, squeeze=False, layout="constrained")[1].ravel()
    for unused in grid[n:]:
        unused.set_axis_off()
    return list(grid[:n])


def finish(axes: "Sequence[Axes]", *, show: bool) -> "Drawn":
    """Show the figure if asked to, and return its Axes: one by itself, several as an array."""
    if show:
        import matplotlib.pyplot as plt

        plt.show()
    return axes[0] if len(axes) == 1 else np.array(axes, dtype=object)


def open_frame(axis: "Axes") -> None:
    """Leave only the left and the lower line of a frame."""
    axis.spines[["top", "right"]].set_visible(False)


def no_ticks(axis: "Axes", *, frame: bool = True) -> None:
    """Take the ticks away, and the frame too if asked to."""
    axis.set(xticks=[], yticks=[])
    if frame:
        open_frame(axis)
    else:
        axis.spines[:].set_visible(False)
