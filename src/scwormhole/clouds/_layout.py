"""The arrays of a cohort and what is done with them: touches NumPy arrays, and points to share or compare them only.

A cohort is a sparse matrix with one row a cloud and one column a point, whose rows sum to one. Cloud ``i`` holds the
points ``indices[indptr[i]:indptr[i + 1]]`` with the weights at the same places.
"""

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ._names import Names, join_names
from ._points import stack_points
from ._reader import source_of
from ._rows import Points, dense_block, float_dtype, rows_per_chunk, take_rows, whereabouts
from ._validation import check_finite, check_layout, check_not_empty, check_numeric, check_one_dimension, check_weights

CLOUDS_AT_ONCE = 1 << 14  # whose weights are compared


class Layout(NamedTuple):
    """Points, and which of them with which weight make up each cloud."""

    points: Points
    indptr: NDArray[np.int64]
    indices: NDArray[np.int64]
    weights: NDArray[np.float64]
    names: Names

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of points of each cloud."""
        return np.diff(self.indptr)

    @property
    def uniform(self) -> bool:
        """Whether all points of a cloud weigh the same; a run of clouds is looked at a time."""
        for first in range(0, len(self.names), CLOUDS_AT_ONCE):
            ends = self.indptr[first : first + CLOUDS_AT_ONCE + 1]
            sizes = np.diff(ends)
            if not np.allclose(self.weights[ends[0] : ends[-1]] * np.repeat(sizes, sizes), 1):
                return False
        return True


def assemble(points: Points, indptr: ArrayLike, indices: ArrayLike, weights: ArrayLike | None, names: Any) -> Layout:
    """Return the arrays of a cohort once they are checked, every cloud's weights scaled to sum to one.

    Parameters
    ----------
    points
        Points as :func:`~scwormhole.clouds._points.as_points` returns them.
    indptr, indices
        Where each cloud starts, and its points.
    weights
        Weights beside ``indices``, in any unit, or None for equal weights.
    names
        Names of the clouds, or None.
    """
    given = (indptr, indices, weights)
    indptr, indices = _integers(indptr, "indptr"), _integers(indices, "indices")
    check_layout(points.shape[0], indptr, indices)
    sizes = np.diff(indptr)
    names = names if isinstance(names, Names) else Names.given(names, len(sizes))
    check_not_empty(sizes, names)
    if weights is None:
        weights = np.repeat(1 / sizes, sizes)
    else:
        weights = _scaled(as_weights(weights, len(indices), "weights"), indptr, names)
    check_finite(points, indptr, indices, names)
    indptr, indices, weights = map(_frozen, (indptr, indices, weights), given)
    return Layout(points, indptr, indices, weights, names)


def as_weights(weights: ArrayLike, length: int, what: str) -> NDArray[np.float64]:
    """Return weights as numbers, one a point, or say what is wrong with them."""
    array = np.asarray(weights)
    check_numeric(array.dtype, what)
    if array.shape != (length,):
        raise ValueError(f"{what} have shape {array.shape} for {length:,} points; give one number a point.")
    return array.astype(np.float64, copy=False)


def entries(indptr: NDArray[np.int64], positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the places in ``indices`` that belong to some clouds, cloud after cloud."""
    starts, sizes = indptr[positions], indptr[positions + 1] - indptr[positions]
    before = np.cumsum(sizes) - sizes
    return np.repeat(starts - before, sizes) + np.arange(int(sizes.sum()))


def select(layout: Layout, positions: slice | NDArray[np.int64]) -> Layout:
    """Return some of the clouds over the same points; a run of neighbours shares every array."""
    points, indptr, indices, weights, names = layout
    chosen = np.arange(len(names))[positions]
    if len(chosen) == 0:
        raise IndexError(f"the selection holds no cloud; a cohort has at least one, this one has {len(names):,}.")
    values, repeats = np.unique(chosen, return_counts=True)
    if len(values) < len(chosen):
        raise IndexError(
            f"the selection holds {names.labels(values[repeats > 1])} more than once, and names must differ. To draw "
            "clouds with repeats use .padded(index), or concatenate selections and give names."
        )
    starts = np.concatenate([[0], np.cumsum(layout.sizes[chosen])])
    if isinstance(positions, slice) and positions.step in (None, 1):
        places: Any = slice(indptr[chosen[0]], indptr[chosen[-1] + 1])
    else:
        places = entries(indptr, chosen)
    return Layout(points, _frozen(starts), _frozen(indices[places]), _frozen(weights[places]), names.take(positions))


def join(layouts: Sequence[Layout], names: Any) -> Layout:
    """Return the clouds of several cohorts as one; points that are one object stay one."""
    sizes = np.concatenate([layout.sizes for layout in layouts])
    labels = join_names([layout.names for layout in layouts]) if names is None else Names.given(names, len(sizes))
    check_one_dimension(np.repeat([x.points.shape[1] for x in layouts], [len(x.names) for x in layouts]), labels)
    distinct = {id(source_of(layout.points)): layout.points for layout in layouts}
    offsets = dict(zip(distinct, np.cumsum([0, *(x.shape[0] for x in distinct.values())]), strict=False))
    if len(distinct) > 1 and any({"on disk", "lazy"} & {*whereabouts(source_of(x))} for x in distinct.values()):
        warnings.warn(
            "cohorts over different points are put together in memory, points on disk too; to leave them on disk, put "
            "the points into one store and make the cohort over it.",
            stacklevel=3,
        )
    return Layout(
        stack_points(list(distinct.values())),
        _frozen(np.concatenate([[0], np.cumsum(sizes)])),
        _frozen(np.concatenate([layout.indices + offsets[id(source_of(layout.points))] for layout in layouts])),
        _frozen(np.concatenate([layout.weights for layout in layouts])),
        labels,
    )


def load(layout: Layout) -> Layout:
    """Return the same clouds over points in memory: those that some cloud holds, sparse where they were."""
    points, held = layout.points, np.zeros(layout.points.shape[0], bool)
    held[layout.indices] = True
    rows, step = np.flatnonzero(held), rows_per_chunk(points)
    parts = (points[part] for part in np.split(rows, np.flatnonzero(np.diff(rows // step)) + 1))
    dtype = float_dtype(points.dtype)
    kept: Points
    if "sparse" in whereabouts(source_of(points)):
        kept = sparse.vstack(list(parts), format="csr", dtype=dtype)
    else:
        kept, first = np.empty((len(rows), points.shape[1]), dtype), 0
        for part in parts:
            kept[first : first + len(part)] = dense_block(part)
            first += len(part)
    place = np.cumsum(held) - 1
    return layout._replace(points=kept, indices=_frozen(place[layout.indices]))


def same_clouds(a: Layout, b: Layout) -> bool:
    """Return whether two cohorts hold the same clouds under the same names, however their points are kept."""
    if a.points.shape[1] != b.points.shape[1] or a.names != b.names:
        return False
    if not np.array_equal(a.indptr, b.indptr) or not np.array_equal(a.weights, b.weights):
        return False
    if source_of(a.points) is source_of(b.points) and np.array_equal(a.indices, b.indices):
        return True
    step = min(rows_per_chunk(a.points), rows_per_chunk(b.points))
    chunks = (slice(start, start + step) for start in range(0, len(a.indices), step))
    return all(np.array_equal(take_rows(a.points, a.indices[c]), take_rows(b.points, b.indices[c])) for c in chunks)


def _scaled(weights: NDArray[np.float64], indptr: NDArray[np.int64], names: Names) -> NDArray[np.float64]:
    sums, sizes = check_weights(weights, indptr, names), np.diff(indptr)
    # Weights that sum to one up to rounding stay as they are, so that building a cohort twice changes no bit.
    settled = np.abs(sums - 1) <= 1e-12 + sizes * np.finfo(np.float64).eps
    return weights if settled.all() else weights / np.repeat(np.where(settled, 1, sums), sizes)


def _integers(values: ArrayLike, what: str) -> NDArray[np.int64]:
    array = np.asarray(values)
    if array.ndim != 1 or (array.size > 0 and array.dtype.kind not in "iu"):
        raise TypeError(f"{what} has shape {array.shape} and type {array.dtype}; a vector of integers is needed.")
    return array.astype(np.int64, copy=False)


def _frozen(array: NDArray[Any], given: Any = None) -> NDArray[Any]:
    """Return a read-only view, of a copy where the caller could still write: selections share these arrays."""
    shared = isinstance(given, np.ndarray) and given.flags.writeable and np.may_share_memory(array, given)
    view = array.copy() if shared else array.view()
    view.flags.writeable = False
    return view
