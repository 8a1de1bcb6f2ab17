"""What cannot be a cohort is refused at once, with the place, the rule and the remedy."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from scwormhole.clouds import PointClouds

X = np.arange(8.0).reshape(4, 2)
from_list, from_groups, from_graph = PointClouds.from_list, PointClouds.from_groups, PointClouds.from_graph


def with_value(value, row=2):
    points = X.copy()
    points[row, 1] = value
    return points


def on_disk(**attributes):
    return type("Dataset", (), {"__getitem__": lambda self, key: None, **attributes})()


ARRAYS = {
    "empty cohort": ([], ValueError, "the cohort is empty: arrays has length 0"),
    "dict": ({"a": X}, TypeError, r"arrays is a dict; give list\(arrays.values\(\)\), and the keys as names"),
    "one sparse matrix": (sparse.csr_array(X), TypeError, "arrays is a csr_array; a list with one array a cloud"),
    "a number": (3, TypeError, "arrays is a int; a list with one array"),
    "vector": ([X, X[0]], ValueError, r"points of cloud 1 have shape \(2,\).*reshape\(-1, 1\)"),
    "matrix for a list": (X, ValueError, r"points of cloud 0 have shape \(2,\)"),
    "scalar": ([1.0], ValueError, r"points of cloud 0 have shape \(\)"),
    "three axes": ([np.ones((2, 2, 2))], ValueError, r"cloud 0 have shape \(2, 2, 2\); a matrix"),
    "empty clouds": (
        [X, X[:0], [], *[X[:0]] * 5],
        ValueError,
        "7 of 8 clouds without points: cloud 1, cloud 2, cloud 3, cloud 4, cloud 5 and 2 more.*drop these clouds",
    ),
    "mixed dimensions": (
        [X, X[:, :1], X],
        ValueError,
        r"1 dimension in 1 cloud \(first cloud 1\), 2 dimensions in 2 clouds \(first cloud 0\).*same columns",
    ),
    "dimension zero": ([X[:, :0]], ValueError, "points of cloud 0 have 0 dimensions"),
    "ragged": ([[[1, 2], [3]]], ValueError, "points of cloud 0 are no matrix .*the same dimension"),
    "strings": ([X, [["a", "b"]]], TypeError, "points of cloud 1 hold values of type <U1; real numbers are allowed"),
    "objects": ([X.astype(object)], TypeError, r"hold values of type object.*\.astype\(float\)"),
    "complex": ([X.astype(complex)], TypeError, "hold values of type complex128"),
    "dates": ([X.astype("M8[s]")], TypeError, "hold values of type datetime64"),
    "none": ([None], TypeError, "points of cloud 0 hold values of type object"),
    "masked": ([np.ma.masked_equal(X, 3)], TypeError, r"cloud 0 are a masked array.*\.filled\(\)"),
    "nan": (
        [X, with_value(np.nan), X, with_value(-np.inf)],
        ValueError,
        r"1 NaN and 1 infinite values in 2 rows: 6, 14 \(in cloud 1, cloud 3\).*drop these rows",
    ),
    "sparse nan": ([sparse.csr_array(with_value(np.nan))], ValueError, r"1 NaN and 0 infinite values in 1 row: 2 \("),
    "many nan": (
        [np.full((9, 2), np.nan)],
        ValueError,
        "18 NaN and 0 infinite values in 9 rows: 0, 1, 2, 3, 4 and 4 more",
    ),
}


@pytest.mark.parametrize(("arrays", "error", "message"), ARRAYS.values(), ids=ARRAYS)
def test_arrays(arrays, error, message):
    with pytest.raises(error, match=message):
        from_list(arrays)


WEIGHTS = {
    "too few vectors": ([[1] * 4], ValueError, "weights has length 1 for 2 clouds; give one vector a cloud"),
    "too short": ([[1] * 4, [1] * 3], ValueError, r"weights of cloud 1 \('b'\) have shape \(3,\) for 4 points"),
    "too deep": ([[1] * 4, [[1] * 4]], ValueError, r"weights of cloud 1 \('b'\) have shape \(1, 4\) for 4 points"),
    "negative": (
        [[1] * 4, [1, -1, -2, 1]],
        ValueError,
        r"2 negative weights in 1 cloud: cloud 1 \('b'\).*not negative",
    ),
    "nan": ([[1, np.nan, 1, 1], [1] * 4], ValueError, r"1 NaN weight in 1 cloud: cloud 0 \('a'\)"),
    "infinite": ([[1, np.inf, 1, 1], [1] * 4], ValueError, r"1 infinite weight in 1 cloud: cloud 0 \('a'\)"),
    "zero": ([[1] * 4, [0] * 4], ValueError, r"all weights are zero in 1 cloud: cloud 1 \('b'\).*positive weight"),
    "too large": ([[1] * 4, [1e308] * 4], ValueError, r"too large to be summed in 1 cloud: cloud 1 \('b'\)"),
    "strings": ([[1] * 4, ["x"] * 4], TypeError, r"weights of cloud 1 \('b'\) hold values of type <U1"),
    "dict": ({"a": [1] * 4}, TypeError, "weights is a dict"),
}


@pytest.mark.parametrize(("weights", "error", "message"), WEIGHTS.values(), ids=WEIGHTS)
def test_weights(weights, error, message):
    with pytest.raises(error, match=message):
        from_list([X, X], weights, names=["a", "b"])


NAMES = {
    "too few": (["a"], ValueError, "names has length 1 for 2 clouds"),
    "repeated": (["a", "a"], ValueError, "these occur more than once: 'a'. Give every cloud a name of its own"),
    "numbers": ([1, 2], TypeError, r"names\[0\] is 1 of type int; convert them with \[str\(name\) for name in names\]"),
    "mixed": (["a", None], TypeError, r"names\[1\] is None of type NoneType"),
    "one string": ("ab", TypeError, "names is the single string 'ab'; give one string a cloud, 2 in all"),
}


@pytest.mark.parametrize(("names", "error", "message"), NAMES.values(), ids=NAMES)
def test_names(names, error, message):
    with pytest.raises(error, match=message):
        from_list([X, X], names=names)


LABELS = {
    "wrong length": (["a"] * 3, ValueError, "3 labels for 4 points; give one label a point"),
    "two axes": ([["a"]] * 4, ValueError, r"labels have shape \(4, 1\); one label a point"),
    "categorical": (pd.Categorical(["a", None, "a", "b"]), ValueError, "missing at 1 position of 4: 1. .*drop these"),
    "nan": ([1.0, np.nan, np.nan, 2.0], ValueError, "missing at 2 positions of 4: 1, 2"),
    "nan array": (np.array([1.0, np.nan, np.nan, 2.0]), ValueError, "missing at 2 positions of 4: 1, 2"),
    "nan among strings": (["a", np.nan, "b", np.float32("nan")], ValueError, "missing at 2 positions of 4: 1, 3"),
    "none": (["a", None, "b", "b"], ValueError, "missing at 1 position of 4: 1"),
    "pandas na": (pd.Series(["a", "b", "c", pd.NA], dtype="string"), ValueError, "missing at 1 position of 4: 3"),
    "pandas integers": (pd.Series([1, 2, pd.NA, 2], dtype="Int64"), ValueError, "missing at 1 position of 4: 2"),
    "pandas nat": (pd.Series([pd.NaT, *pd.to_datetime(["2020"] * 3)], dtype=object), ValueError, "1 position of 4: 0"),
    "nat": (np.array(["NaT", "2020", "2020", "2020"], "M8[Y]"), ValueError, "missing at 1 position of 4: 0"),
    "mixed": (["a", 1, "b", 2], TypeError, "labels mix the types int, str"),
    "unhashable": (np.array([{}, {}, {}, {}], dtype=object), TypeError, "labels cannot be told apart"),
    "levels alike": (pd.Categorical([1, "1", 1, 1]), ValueError, "occur more than once: '1'"),
}


@pytest.mark.parametrize(("labels", "error", "message"), LABELS.values(), ids=LABELS)
def test_labels(labels, error, message):
    with pytest.raises(error, match=message):
        from_groups(X, labels)


def test_group_weights():
    with pytest.raises(ValueError, match=r"weights have shape \(3,\) for 4 points"):
        from_groups(X, list("abab"), weights=[1, 1, 1])
    with pytest.raises(ValueError, match=r"1 negative weight in 1 cloud: cloud 1 \('b'\)"):
        from_groups(X, list("abab"), weights=[1, -1, 1, 1])


GRAPHS = {
    "dense": (
        np.eye(4),
        TypeError,
        r"graph is a ndarray, not a SciPy sparse matrix; use scipy.sparse.csr_array\(graph\)",
    ),
    "other points": (sparse.eye_array(3), ValueError, r"graph has shape \(3, 3\) over 4 points.*same columns of graph"),
    "no rows": (sparse.csr_array((0, 4)), ValueError, r"the cohort is empty: graph has shape \(0, 4\)"),
    "empty rows": (
        sparse.eye_array(6, 4),
        ValueError,
        "2 of 6 clouds without points: cloud 4, cloud 5.*widen the radius",
    ),
    "zeros only": (sparse.csr_array(([0.0], [1], [0, 1]), shape=(1, 4)), ValueError, "1 of 1 cloud without points"),
    "negative": (
        -sparse.eye_array(4),
        ValueError,
        "4 negative weights in 4 clouds: cloud 0, cloud 1, cloud 2, cloud 3",
    ),
    "nan": (sparse.eye_array(4) * np.nan, ValueError, "4 NaN weights"),
    "complex": (sparse.eye_array(4) * 1j, TypeError, "values of graph hold values of type complex128"),
}


@pytest.mark.parametrize(("graph", "error", "message"), GRAPHS.values(), ids=GRAPHS)
def test_graphs(graph, error, message):
    with pytest.raises(error, match=message):
        from_graph(X, graph)


LAYOUTS = {
    "no clouds": ([0], [], [], ValueError, "the cohort is empty: indptr has length 1"),
    "start": ([1, 2], [0, 1], [1, 1], ValueError, "indptr runs from 1 to 2; it must start at 0 and end at 2"),
    "end": ([0, 3], [0, 1], [1, 1], ValueError, "indptr runs from 0 to 3"),
    "falling": ([0, 2, 1, 2], [0, 1], [1, 1], ValueError, "indptr falls from 2 to 1 at cloud 1"),
    "too far": ([0, 1, 2], [0, 4], [1, 1], ValueError, "leaves the points 1 time, first with 4 in cloud 1.*0 to 3"),
    "below zero": ([0, 2], [0, -1], [1, 1], ValueError, "leaves the points 1 time, first with -1 in cloud 0"),
    "empty": ([0, 0, 2], [0, 1], [1, 1], ValueError, "1 of 2 clouds without points: cloud 0"),
    "real": ([0.0, 2.0], [0, 1], [1, 1], TypeError, "indptr has shape .* and type float64; a vector of integers"),
    "deep": ([0, 2], [[0, 1]], [1, 1], TypeError, r"indices has shape \(1, 2\)"),
    "weights": ([0, 2], [0, 1], [1, 1, 1], ValueError, r"weights have shape \(3,\) for 2 points"),
}


@pytest.mark.parametrize(("indptr", "indices", "weights", "error", "message"), LAYOUTS.values(), ids=LAYOUTS)
def test_layouts(indptr, indices, weights, error, message):
    with pytest.raises(error, match=message):
        PointClouds(X, indptr, indices, weights)


POINTS = {
    "vector": (X[0], ValueError, r"points have shape \(2,\).*reshape\(-1, 1\)"),
    "no rows": (X[:0], ValueError, r"points have shape \(0, 2\), no rows"),
    "no columns": (X[:, :0], ValueError, "points have 0 dimensions"),
    "text on disk": (on_disk(shape=(4, 2), dtype=np.dtype("O")), TypeError, "points hold values of type object"),
    "by column on disk": (
        on_disk(shape=(4, 2), dtype=np.dtype("f4"), format="csc"),
        ValueError,
        r"sparse on disk by column \(Dataset\).*to_memory",
    ),
    "unknown shape": (
        on_disk(shape=(np.nan, 2), dtype=np.dtype("f4")),
        ValueError,
        "unknown shape.*compute_chunk_sizes",
    ),
    "not an array": (SimpleNamespace(), TypeError, "points hold values of type object"),
    "nan in no cloud": (with_value(np.nan), ValueError, r"1 row: 2 \(in no cloud\)"),
}


@pytest.mark.parametrize(("points", "error", "message"), POINTS.values(), ids=POINTS)
def test_points(points, error, message):
    with pytest.raises(error, match=message):
        PointClouds(points, [0, 2], [0, 1], [1, 1])


def test_backed_by_column_is_refused(tmp_path):
    import h5py
    from anndata.io import sparse_dataset, write_elem

    with h5py.File(tmp_path / "csc.h5", "w") as file:
        write_elem(file, "X", sparse.csc_matrix(X))
        with pytest.raises(ValueError, match="sparse on disk by column"):
            from_groups(sparse_dataset(file["X"]), list("abab"))
