"""Clouds seen along directions, where transport is sorting: pure NumPy on padded arrays, no fitting and no randomness.

On a line the W2 distance is the L2 distance between quantile functions. A quantile function is kept as its averages
over equal cells of [0, 1], which are exact integrals of a step function: the mean is exact, a point may be split in two
without any change, and weights act smoothly.

NumPy sorts with vector instructions: 256 clouds of 128 points along 64 directions take 3 ms, and 270 ms in a compiled
XLA sort on the same processor. So all of this stays on the host.
"""

import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray

LOW_DIMENSION = 3  # up to here directions can be spread evenly over all there are
EQUAL = 1e-5  # weights that differ by less than this share are sorted without them


def spread_directions(dim: int, n: int) -> NDArray[np.float64]:
    """Return unit vectors spread evenly over the directions of a line, a plane or a space, opposite ones counted once.

    Parameters
    ----------
    dim
        Dimension, 1 to 3.
    n
        Number of directions; a line has one, whatever is asked for.

    Examples
    --------
    >>> spread_directions(2, 2).round(3) + 0.0
    array([[1., 0.],
           [0., 1.]])
    """
    if not 1 <= dim <= LOW_DIMENSION:
        raise ValueError(
            f"dim is {dim}; directions are spread evenly in up to {LOW_DIMENSION} dimensions, use principal axes above."
        )
    if operator.index(n) < 1:
        raise ValueError(f"n is {n}; at least one direction is needed.")
    if dim == 1:
        return np.ones((1, 1))
    if dim == 2:
        angle = np.pi * np.arange(n) / n
        return np.stack([np.cos(angle), np.sin(angle)], axis=1)
    # Fibonacci's lattice on half a sphere: equal steps in height, turned by the golden angle.
    step = np.arange(n) + 0.5
    height = step / n
    angle = step * np.pi * (3 - np.sqrt(5))
    radius = np.sqrt(1 - height**2)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle), height], axis=1)


def quantile_cells(values: NDArray[Any], weights: NDArray[Any], n_cells: int) -> NDArray[Any]:
    """Return the averages of weighted quantile functions over equal cells of [0, 1].

    Parameters
    ----------
    values
        Numbers to sort, clouds by directions by places.
    weights
        Weights, clouds by places, of any positive sum; a place of weight zero is padding.
    n_cells
        Number of cells. With as many equal weights the cells are the sorted values.

    Returns
    -------
    Clouds by directions by cells.

    Examples
    --------
    >>> import numpy as np
    >>> values = np.array([[[3.0, 1.0, 2.0, 0.0]]])
    >>> quantile_cells(values, np.array([[1.0, 1.0, 2.0, 0.0]]), 2)
    array([[[1.5, 2.5]]])
    """
    filled = weights > 0
    largest = weights.max(axis=1)
    smallest = np.where(filled, weights, largest[:, None]).min(axis=1)
    equal = largest - smallest <= EQUAL * largest
    if equal.all():
        return _equal_cells(values, filled, n_cells)
    out = np.empty((*values.shape[:2], n_cells), values.dtype)
    if equal.any():
        out[equal] = _equal_cells(values[equal], filled[equal], n_cells)
    out[~equal] = _weighted_cells(values[~equal], weights[~equal], n_cells)
    return out


def sliced(points: NDArray[Any], weights: NDArray[Any], directions: NDArray[Any], *, n_cells: int) -> NDArray[Any]:
    """Return vectors whose squared Euclidean distance is the sliced W2 of two clouds, squared.

    It is the mean over directions of the one-dimensional W2 squared, times the dimension: so a cloud and its translate
    are at the square of the shift. Quantile functions are averaged over cells, so it is exact for clouds of ``n_cells``
    equal weights, and otherwise a little less: what varies within a cell is lost.

    Parameters
    ----------
    points
        Points, clouds by places by dimensions.
    weights
        Weights, clouds by places, zero on padding.
    directions
        Unit vectors, one row each.
    n_cells
        Cells of each quantile function.

    Returns
    -------
    Clouds by ``len(directions) * n_cells``.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.array([[[0.0, 0.0], [1.0, 2.0]], [[3.0, 4.0], [4.0, 6.0]]])
    >>> one, other = sliced(points, np.full((2, 2), 0.5), spread_directions(2, 8), n_cells=2)
    >>> ((one - other) ** 2).sum().round(6)
    np.float64(25.0)
    """
    n_directions, dim = directions.shape
    cells = quantile_cells(along(points, directions), weights, n_cells)
    return cells.reshape(len(points), -1) * np.asarray(np.sqrt(dim / (n_directions * n_cells)), cells.dtype)


def along(points: NDArray[Any], directions: NDArray[Any]) -> NDArray[Any]:
    """Return the coordinates of points along directions, clouds by directions by places, ready to be sorted."""
    across = points.transpose(0, 2, 1)
    if np.array_equal(directions, np.eye(points.shape[2])):  # the axes themselves
        return np.ascontiguousarray(across)
    return np.matmul(directions.astype(points.dtype, copy=False), across)


def _equal_cells(values: NDArray[Any], filled: NDArray[np.bool_], n_cells: int) -> NDArray[Any]:
    """Sort, then average: which share of a place falls into which cell depends on the cloud's size alone."""
    sizes, which = np.unique(filled.sum(axis=1), return_inverse=True)
    last = np.finfo(values.dtype).max  # padding comes last, and of it nothing falls into any cell
    ordered = np.sort(values if filled.all() else np.where(filled[:, None], values, last), axis=2)
    places, cells, size = np.arange(values.shape[2])[:, None], np.arange(n_cells), sizes[:, None, None]
    upper = np.minimum(np.minimum(places + 1, size) / size, (cells + 1) / n_cells)
    lower = np.maximum(places / size, cells / n_cells)
    shares = (n_cells * np.maximum(upper - lower, 0)).astype(values.dtype)  # [sizes, places, cells]
    return np.matmul(ordered, shares[which])


def _weighted_cells(values: NDArray[Any], weights: NDArray[Any], n_cells: int) -> NDArray[np.float64]:
    """Integrate each step function up to the edges of the cells; they lie end to end on one line, [r, r + 1] each."""
    n_clouds, n_directions, n_places = values.shape
    order = np.argsort(np.where((weights > 0)[:, None], values, np.inf), axis=2)
    mass = np.take_along_axis(np.broadcast_to(weights[:, None].astype(np.float64), values.shape), order, axis=2)
    mass /= mass.sum(axis=2, keepdims=True)
    ordered = np.take_along_axis(values, order, axis=2)
    knots = np.cumsum(mass, axis=2).reshape(-1, n_places)
    area = np.cumsum(mass * ordered, axis=2).reshape(-1, n_places)
    knots /= knots[:, -1:]
    row = np.arange(len(knots))[:, None]
    before = np.cumsum(area[:, -1]) - area[:, -1]
    edges = row + np.arange(n_cells + 1) / n_cells
    flat_knots, flat_area = (knots + row).ravel(), (area + before[:, None]).ravel()
    integral = np.interp(edges, np.append(0.0, flat_knots), np.append(0.0, flat_area))
    return (n_cells * np.diff(integral, axis=1)).reshape(n_clouds, n_directions, n_cells)
