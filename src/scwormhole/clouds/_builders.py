"""Three ways into a cohort, from a list, from groups and from a graph: touches what it is given only to read it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ._labels import code_labels
from ._layout import Layout, as_weights, assemble
from ._names import Names
from ._points import as_array, as_points, stack_points
from ._rows import is_sparse
from ._validation import check_matrix, check_not_empty, check_numeric, check_one_dimension
from ._wording import count


def list_layout(arrays: Any, weights: Any, names: Any) -> Layout:
    """Return a cohort of arrays put one below the other.

    Parameters
    ----------
    arrays
        One matrix a cloud.
    weights
        One vector a cloud, or None.
    names
        One string a cloud, or None.
    """
    matrices = _items(arrays, "arrays")
    if not matrices:
        raise ValueError("the cohort is empty: arrays has length 0; at least one cloud is needed.")
    labels = Names.given(names, len(matrices))
    matrices = [_matrix(array, labels.label(position)) for position, array in enumerate(matrices)]
    sizes = np.array([matrix.shape[0] for matrix in matrices], dtype=np.int64)
    check_not_empty(sizes, labels)
    check_one_dimension(np.array([matrix.shape[1] for matrix in matrices]), labels)
    joined = None if weights is None else _joined_weights(_items(weights, "weights"), sizes, labels)
    points = as_points(stack_points(matrices))
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    return assemble(points, indptr, np.arange(indptr[-1]), joined, labels)


def group_layout(points: Any, labels: Any, weights: Any) -> Layout:
    """Return a cohort with one cloud for each level of a labelling.

    Parameters
    ----------
    points
        Points, not copied.
    labels
        One label a point.
    weights
        One number a point, or None.
    """
    points = as_points(points)
    codes, levels = code_labels(labels)
    if len(codes) != points.shape[0]:
        found = f"{count(len(codes), 'label')} for {count(points.shape[0], 'point')}"
        raise ValueError(f"labels and X differ in length: {found}; give one label a point.")
    if weights is not None:
        weights = as_weights(weights, points.shape[0], "weights")
    # Sixteen bits are sorted by radix, in linear time.
    order = np.argsort(codes.astype(np.uint16) if len(levels) <= 2**16 else codes, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(codes))])
    return assemble(points, indptr, order, None if weights is None else weights[order], levels)


def graph_layout(points: Any, graph: Any, names: Any) -> Layout:
    """Return a cohort whose clouds are the rows of a graph.

    Parameters
    ----------
    points
        Points, not copied.
    graph
        Sparse matrix, clouds by points; stored values are weights.
    names
        One string a cloud, or None.
    """
    points = as_points(points)
    if not is_sparse(graph):
        raise TypeError(
            f"graph is a {type(graph).__name__}, not a SciPy sparse matrix; use scipy.sparse.csr_array(graph)."
        )
    check_numeric(graph.dtype, "values of graph")
    if graph.ndim != 2 or graph.shape[1] != points.shape[0]:
        raise ValueError(
            f"graph has shape {graph.shape} over {count(points.shape[0], 'point')}; it needs one row a cloud and one "
            "column a point. If rows of X were selected, select the same columns of graph."
        )
    if graph.shape[0] == 0:
        raise ValueError(f"the cohort is empty: graph has shape {graph.shape}; at least one row is needed.")
    # Conversion to floats copies, so the graph itself stays as it is; and it comes first, since booleans do not add up.
    rows = sparse.csr_array(graph.astype(np.float64))
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return assemble(points, rows.indptr, rows.indices, rows.data, names)


def _items(values: Any, what: str) -> list[Any]:
    if isinstance(values, Mapping):
        raise TypeError(f"{what} is a {type(values).__name__}; give list({what}.values()), and the keys as names.")
    if is_sparse(values) or isinstance(values, str) or not hasattr(values, "__iter__"):
        raise TypeError(f"{what} is a {type(values).__name__}; a list with one array a cloud is needed.")
    return list(values)


def _matrix(array: Any, label: str) -> Any:
    """Return one cloud's points, dense or sparse, checked for all that one cloud can get wrong but being empty."""
    what = f"points of {label}"
    matrix = as_array(array, what)
    if matrix.shape[:1] == (0,):
        return np.empty((0, 0))
    check_matrix(matrix, what)
    return matrix


def _joined_weights(weights: Sequence[Any], sizes: NDArray[np.int64], names: Names) -> NDArray[np.float64]:
    if len(weights) != len(sizes):
        found = f"weights has length {len(weights):,} for {count(len(sizes), 'cloud')}"
        raise ValueError(f"{found}; give one vector a cloud.")
    return np.concatenate(
        [
            as_weights(vector, int(size), f"weights of {names.label(position)}")
            for position, (vector, size) in enumerate(zip(weights, sizes, strict=True))
        ]
    )
