"""Shows a cohort in a notebook, as HTML: touches the arrays of a cohort, and of its points the shape and type only.

Colours are inherited, so that light and dark themes both suit it; there is no script and nothing to be fetched.
"""

from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from ._layout import Layout
from ._reader import source_of
from ._rows import float_dtype, whereabouts
from ._wording import SHOWN, count

WIDTH, HEIGHT = 320, 56  # of a drawing, in pixels
MOST_BARS = 30
TINY = 1e-300  # instead of a range that is none
LONGEST = 60  # characters of a name or a value
CELL = "text-align:left;padding:1px 1em 1px 0;border:none"


def clouds_html(layout: Layout) -> str:
    """Return a cohort as HTML: how much of what there is and where, how clouds differ in size, and the first few."""
    points, sizes = source_of(layout.points), layout.sizes
    low, high = int(sizes.min()), int(sizes.max())
    spread = count(high, "point") if low == high else f"{low:,} to {high:,} points, median {np.median(sizes):,.10g}"
    words = whereabouts(points)
    where = "of dask" if "lazy" in words else "on disk" if "on disk" in words else "in memory"
    rows = [
        ("clouds", f"{len(sizes):,}"),
        ("size of a cloud", spread),
        ("dimensions", f"{points.shape[1]:,}"),
        ("shared points", f"{points.shape[0]:,}"),
        ("kept", f"{float_dtype(points.dtype)}, {'sparse' if 'sparse' in words else 'dense'}, {where}"),
        ("weights", "uniform" if layout.uniform else "non-uniform"),
    ]
    drawing = "" if low == high else bars(sizes, "number of clouds by their size")
    return card("PointClouds", facts(rows), drawing, _first(layout))


def card(title: str, *parts: str) -> str:
    """Return a title over parts that are HTML already."""
    return f'<div style="color:inherit"><strong>{escape(title)}</strong>{"".join(parts)}</div>'


def facts(rows: Iterable[tuple[str, str]]) -> str:
    """Return names beside values, as a table."""
    name_cell = f"{CELL};opacity:.7;white-space:nowrap"
    cells = (
        f'<tr><td style="{name_cell}">{_text(name)}</td><td style="{CELL}">{_text(value)}</td></tr>'
        for name, value in rows
    )
    return f'<table style="margin:.3em 0;border:none">{"".join(cells)}</table>'


def folded(summary: str, lines: Iterable[str], *, shown: bool = False) -> str:
    """Return lines of code that can be unfolded, or are unfolded at first."""
    text = "\n".join(map(_text, lines))
    return (
        f'<details{" open" if shown else ""}><summary style="cursor:pointer">{_text(summary)}</summary>'
        f'<pre style="margin:.2em 1em;color:inherit;background:none">{text}</pre></details>'
    )


def bars(sizes: NDArray[np.int64], label: str) -> str:
    """Return a histogram of whole numbers that differ; a bar stands for as many of them as any other."""
    low, high = int(sizes.min()), int(sizes.max())
    step = -(-(high - low + 1) // MOST_BARS)
    heights = np.bincount((sizes - low) // step)
    wide = WIDTH / len(heights)
    tall = np.where(heights > 0, np.maximum(1, heights * (HEIGHT / heights.max())), 0)
    drawn = "".join(
        f'<rect x="{place * wide:.1f}" y="{HEIGHT - height:.1f}" width="{wide - 1:.1f}" height="{height:.1f}"/>'
        for place, height in enumerate(tall.tolist())
        if height
    )
    return _drawing(f'<g fill="currentColor" fill-opacity=".55">{drawn}</g>', label, f"{low:,}", f"{high:,}")


def line(x: Sequence[float], y: Sequence[float], marked: int, label: str) -> str:
    """Return values over increasing places, with a dot at one of them, all of which are finite."""
    across, up = np.array([x, y], np.float64)
    place = 3 + (WIDTH - 6) * (across - across[0]) / max(float(np.ptp(across)), TINY)
    height = HEIGHT - 3 - (HEIGHT - 6) * (up - up.min()) / max(float(np.ptp(up)), TINY)
    path = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(place.tolist(), height.tolist(), strict=True))
    drawn = (
        f'<polyline points="{path}" fill="none" stroke="currentColor" stroke-width="1.5" stroke-opacity=".75"/>'
        f'<circle cx="{place[marked]:.1f}" cy="{height[marked]:.1f}" r="3" fill="currentColor"/>'
    )
    return _drawing(drawn, f"{label}, {up.min():.4f} to {up.max():.4f}", f"{across[0]:,g}", f"{across[-1]:,g}")


def _drawing(drawn: str, label: str, low: str, high: str) -> str:
    """Return a drawing over a line, with what it shows and the ends of the axis below."""
    said = escape(label)
    return (
        f'<svg role="img" aria-label="{said}" width="{WIDTH}" height="{HEIGHT + 18}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT + 18}" style="display:block;margin:.3em 0">{drawn}'
        f'<path d="M0 {HEIGHT + 0.5}H{WIDTH}" stroke="currentColor" stroke-opacity=".5"/>'
        f'<g fill="currentColor" font-size="11"><text y="{HEIGHT + 14}">{low}</text>'
        f'<text x="{WIDTH}" y="{HEIGHT + 14}" text-anchor="end">{high}</text>'
        f'<text x="{WIDTH // 2}" y="{HEIGHT + 14}" text-anchor="middle" fill-opacity=".7">{said}</text></g></svg>'
    )


def _first(layout: Layout) -> str:
    """Return the first clouds as a table, and how many more there are."""
    head = "".join(f'<th style="{CELL};opacity:.7">{name}</th>' for name in ("name", "points", "largest weight"))
    body = []
    for name, start, stop in islice(zip(layout.names.values, layout.indptr, layout.indptr[1:], strict=False), SHOWN):
        values = (str(name), f"{stop - start:,}", f"{layout.weights[start:stop].max():.3g}")
        body.append("<tr>" + "".join(f'<td style="{CELL}">{_text(value)}</td>' for value in values) + "</tr>")
    rest = len(layout.names) - len(body)
    more = f'<div style="opacity:.7">and {count(rest, "more cloud")}</div>' if rest else ""
    return f'<table style="margin:.3em 0;border:none"><tr>{head}</tr>{"".join(body)}</table>{more}'


def _text(value: str) -> str:
    """Return text that is no markup, cut where it is long."""
    return escape(value if len(value) <= LONGEST else value[: LONGEST - 1] + "…")
