"""Gathers clouds into dense batches: touches NumPy arrays, and points through ``_rows``.

Padding belongs to a batch, never to the cohort: one large cloud makes one large batch, and costs the others nothing.
"""

import operator
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._layout import Layout, entries
from ._rows import Points, float_dtype, take_rows

SMALLEST_HALF_STEP = 8


class PaddedBatch(NamedTuple):
    """Clouds side by side, the smaller ones filled up with points at zero that weigh nothing.

    Parameters
    ----------
    points
        Points, clouds by places by dimensions, in the floating type of the cohort.
    weights
        Weights, clouds by places, in the same type; zero where there is padding.
    index
        Positions of the clouds in the cohort. It may be shorter than ``points``: the rows after it repeat its last
        cloud to keep the shape, and are to be ignored. So hand a compiled function ``points`` and ``weights``, not the
        whole batch.

    Examples
    --------
    >>> import numpy as np
    >>> from scwormhole.clouds import PointClouds
    >>> clouds = PointClouds.from_list([np.ones((3, 2)), np.ones((4, 2))])
    >>> batch = clouds.padded([0, 1])
    >>> batch.points.shape, batch.index
    ((2, 4, 2), array([0, 1]))
    """

    points: NDArray[Any]
    weights: NDArray[Any]
    index: NDArray[np.int64]  # type: ignore[assignment]  # hides tuple.index, which nobody asks a batch for


def ladder(size: int) -> int:
    """Return the padded size of a cloud: the smallest rung of 1, 2, 4, 8, 12, 16, 24, 32, 48, 64, ... that holds it.

    The rungs double, from 8 on with one in between, so a cohort needs few of them and a cloud above 8 points is padded
    by less than half its size.

    Parameters
    ----------
    size
        Number of points, at least one.

    Examples
    --------
    >>> [ladder(size) for size in (1, 3, 8, 9, 13, 100)]
    [1, 4, 8, 12, 16, 128]
    """
    size = operator.index(size)
    if size < 1:
        raise ValueError(f"size is {size}; a cloud has at least one point.")
    power = 1 << (size - 1).bit_length()
    return 3 * power // 4 if power > SMALLEST_HALF_STEP and size <= 3 * power // 4 else power


def rungs(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rung of each size.

    Parameters
    ----------
    sizes
        Numbers of points, each at least one.
    """
    distinct, inverse = np.unique(sizes, return_inverse=True)
    return np.array([ladder(size) for size in distinct], np.int64)[inverse]


def pad(layout: Layout, positions: NDArray[np.int64], size: int | None) -> PaddedBatch:
    """Return clouds as one dense batch, gathered in one go.

    Parameters
    ----------
    layout
        The cohort.
    positions
        Clouds of the batch, repeats allowed.
    size
        Places for points, or None for the rung of the largest cloud.
    """
    starts = layout.indptr[positions]
    sizes = layout.indptr[positions + 1] - starts
    largest = int(sizes.max())
    size = ladder(largest) if size is None else operator.index(size)
    if size < largest:
        raise ValueError(
            f"size is {size}, but {layout.names.label(int(positions[sizes.argmax()]))} has {largest:,} points; "
            f"give at least that, or None for the rung of the ladder, {ladder(largest)}."
        )
    place = np.arange(size)
    filled = place < sizes[:, None]  # (b, n)
    source = starts[:, None] + np.minimum(place, sizes[:, None] - 1)  # (b, n), padding looks at the cloud's last point
    weights = np.where(filled, layout.weights[source], 0).astype(float_dtype(layout.points.dtype), copy=False)
    return PaddedBatch(_gather(layout, positions, source, filled), weights, positions)


def rung_batches(layout: Layout, positions: NDArray[np.int64], batch_size: int) -> Iterator[PaddedBatch]:
    """Yield batches of one rung each and of one number of rows, the last of a rung filled up with its last cloud.

    Parameters
    ----------
    layout
        The cohort.
    positions
        Clouds to go through; within a rung they keep this order.
    batch_size
        Rows of every batch.
    """
    held = rungs(layout.sizes[positions])
    for rung in np.unique(held):
        members = positions[held == rung]
        for start in range(0, len(members), batch_size):
            index = members[start : start + batch_size]
            filler = np.repeat(index[-1:], batch_size - len(index))
            yield pad(layout, np.concatenate([index, filler]), int(rung))._replace(index=index)


def _gather(
    layout: Layout, positions: NDArray[np.int64], source: NDArray[np.int64], filled: NDArray[np.bool_]
) -> NDArray[Any]:
    points: Any = layout.points
    dim = points.shape[1]
    if _takes_directly(points):
        # One pass over memory. The default mode would write to a second buffer first, and no row is out of range.
        out = np.empty((*source.shape, dim), points.dtype)
        np.take(points, layout.indices[source], axis=0, out=out, mode="clip")
        out[~filled] = 0
        return out
    out = np.zeros((*source.shape, dim), float_dtype(points.dtype))
    out[filled] = take_rows(points, layout.indices[entries(layout.indptr, positions)])
    return out


def _takes_directly(points: Points) -> bool:
    """Return whether ``np.take`` can read rows in place; it would copy all points of another order or type first."""
    if not isinstance(points, np.ndarray):
        return False
    return points.flags.c_contiguous and points.flags.aligned and points.dtype == float_dtype(points.dtype)
