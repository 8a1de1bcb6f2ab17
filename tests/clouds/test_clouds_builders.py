"""Lists, groups and graphs become the clouds they describe."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from scwormhole.clouds import PointClouds

finite = st.floats(-1e6, 1e6, width=32)


@st.composite
def cloud_lists(draw):
    dim = draw(st.integers(1, 3))
    sizes = draw(st.lists(st.integers(1, 20), min_size=1, max_size=8))
    clouds = [draw(arrays(np.float64, (size, dim), elements=finite)) for size in sizes]
    weights = [draw(arrays(np.float64, size, elements=st.floats(0.001, 1000))) for size in sizes]
    return clouds, weights


@given(cloud_lists())
def test_list_round_trip(lists):
    matrices, weights = lists
    clouds = PointClouds.from_list(matrices, weights)
    assert len(clouds) == len(matrices)
    assert clouds.sizes.dtype == clouds.indptr.dtype == clouds.indices.dtype == np.int64
    np.testing.assert_array_equal(clouds.sizes, [len(matrix) for matrix in matrices])
    for cloud, matrix, mass in zip(clouds, matrices, weights, strict=True):
        np.testing.assert_array_equal(cloud.points, matrix)
        np.testing.assert_allclose(cloud.weights, mass / mass.sum(), rtol=1e-12)
        assert cloud.weights.sum() == pytest.approx(1, abs=1e-12)


@given(cloud_lists())
def test_building_twice_changes_no_bit(lists):
    clouds = PointClouds.from_list(*lists)
    again = PointClouds(clouds.points, clouds.indptr, clouds.indices, clouds.weights)
    np.testing.assert_array_equal(again.weights, clouds.weights)
    assert again == clouds


def test_list_defaults():
    clouds = PointClouds.from_list([np.ones((2, 3)), np.zeros((4, 3))])
    np.testing.assert_array_equal(clouds.weights, [0.5] * 2 + [0.25] * 4)
    assert clouds.names.tolist() == ["0", "1"]
    assert (clouds.dim, clouds.n_points) == (3, 6)


def test_list_takes_any_iterable_of_matrices():
    expected = PointClouds.from_list([np.ones((2, 3)), np.ones((2, 3))])
    assert PointClouds.from_list(np.ones((2, 2, 3))) == expected
    assert PointClouds.from_list(np.ones((2, 3)) for _ in range(2)) == expected
    assert PointClouds.from_list([[[1, 1, 1]] * 2, pd.DataFrame(np.ones((2, 3)))]) == expected


def test_list_of_sparse_stays_sparse():
    parts = [sparse.csr_array(np.eye(3)), sparse.coo_matrix(np.eye(3)[:2]), sparse.csc_array(np.eye(3)[1:])]
    clouds = PointClouds.from_list(parts)
    assert clouds.points.format == "csr"
    assert clouds == PointClouds.from_list([part.toarray() for part in parts])


def test_mixed_list_is_made_dense_with_a_warning():
    with pytest.warns(UserWarning, match="1 of 2 parts are sparse and are made dense") as record:
        clouds = PointClouds.from_list([sparse.csr_array(np.eye(3)), np.eye(3)])
    assert record[0].filename == __file__
    assert isinstance(clouds.points, np.ndarray)


def test_list_finds_the_common_type():
    assert PointClouds.from_list([np.ones((2, 2), np.float32), np.ones((2, 2))]).dtype == np.float64
    assert PointClouds.from_list([np.ones((2, 2), np.float32), np.ones((2, 2), np.float16)]).dtype == np.float32
    assert PointClouds.from_list([np.ones((2, 2), np.float32), np.ones((2, 2), int)]).dtype == np.float64


@pytest.mark.parametrize(
    "labels",
    [
        ["b", "a", "b", "c"],
        np.array(["b", "a", "b", "c"]),
        np.array(["b", "a", "b", "c"], dtype=object),
        np.array([b"b", b"a", b"b", b"c"]),
        pd.Series(["b", "a", "b", "c"], index=[9, 8, 7, 6]),
        pd.Index(["b", "a", "b", "c"]),
        pd.Series(["b", "a", "b", "c"], dtype="string"),
        pd.Categorical(["b", "a", "b", "c"]),
        pd.Series(pd.Categorical(["b", "a", "b", "c"], categories=["a", "unused", "b", "c"])),
        pd.CategoricalIndex(["b", "a", "b", "c"]),
    ],
    ids=lambda labels: type(labels).__name__,
)
def test_groups(labels):
    X = np.arange(8.0).reshape(4, 2)
    clouds = PointClouds.from_groups(X, labels, weights=[1, 1, 3, 1])
    assert clouds.names.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(clouds["b"].points, X[[0, 2]])
    np.testing.assert_array_equal(clouds["b"].weights, [0.25, 0.75])


def test_groups_follow_the_categories():
    labels = pd.Categorical(["low", "high", "low"], categories=["low", "middle", "high"], ordered=True)
    assert PointClouds.from_groups(np.eye(3), labels).names.tolist() == ["low", "high"]


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ([10, 9, 10], ["9", "10"]),
        (np.array([True, False, True]), ["False", "True"]),
        (np.array([1.5, -2.0, 1.5]), ["-2.0", "1.5"]),
        (pd.Series([3, 2, 3], dtype="Int64"), ["2", "3"]),
        (np.array(["2020-01-02", "2020-01-01", "2020-01-02"], "M8[D]"), ["2020-01-01", "2020-01-02"]),
    ],
)
def test_groups_that_are_not_strings(labels, names):
    clouds = PointClouds.from_groups(np.eye(3), labels)
    assert clouds.names.tolist() == names
    np.testing.assert_array_equal(clouds.sizes, [1, 2])


@given(st.lists(st.integers(0, 5), min_size=1, max_size=60))
def test_groups_partition_the_points(labels):
    X = np.arange(len(labels), dtype=float)[:, None]
    clouds = PointClouds.from_groups(X, labels)
    for name, cloud in zip(clouds.names, clouds, strict=True):
        np.testing.assert_array_equal(cloud.points[:, 0], np.flatnonzero(np.array(labels) == int(name)))
        np.testing.assert_allclose(cloud.weights, 1 / len(cloud.points))


def test_more_groups_than_sixteen_bits():
    labels = np.random.default_rng(0).permutation(70_000)
    clouds = PointClouds.from_groups(labels[:, None].astype(float), labels)
    np.testing.assert_array_equal(clouds.padded(slice(None)).points[:, 0, 0], np.arange(70_000))


def test_graph_values_are_weights(dense, graph):
    clouds = PointClouds.from_graph(dense, graph)
    for row, cloud in enumerate(clouds):
        members = graph[[row]].indices
        np.testing.assert_array_equal(cloud.points, dense[members])
        np.testing.assert_allclose(cloud.weights, graph[[row]].data / graph[[row]].sum())


@pytest.mark.parametrize("dtype", [bool, np.int32, np.float32, np.float64])
@pytest.mark.parametrize(
    "make", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array, sparse.coo_array, sparse.lil_array]
)
def test_graph_formats(make, dtype):
    connected = np.array([[1, 1, 0], [0, 1, 1]])
    clouds = PointClouds.from_graph(np.eye(3), make(connected.astype(dtype)), names=["left", "right"])
    np.testing.assert_array_equal(clouds["right"].points, np.eye(3)[1:])
    np.testing.assert_array_equal(clouds["right"].weights, [0.5, 0.5])


@pytest.mark.parametrize("dtype", [bool, np.float64])
def test_graph_drops_zeros_and_adds_duplicates(dtype):
    values, columns, indptr = np.array([1, 1, 1, 0, 1]).astype(dtype), [2, 0, 2, 1, 1], [0, 4, 5]
    graph = sparse.csr_array((values, columns, indptr), shape=(2, 3))
    before = [graph.data.copy(), graph.indices.copy(), graph.indptr.copy()]
    clouds = PointClouds.from_graph(np.eye(3), graph)
    np.testing.assert_array_equal(clouds.indices, [0, 2, 1])
    np.testing.assert_allclose(clouds.weights, [1 / 3, 2 / 3, 1])
    for now, then in zip((graph.data, graph.indices, graph.indptr), before, strict=True):
        np.testing.assert_array_equal(now, then)


def test_constructor_allows_repeated_points():
    clouds = PointClouds(np.eye(2), [0, 3], [0, 0, 1], [1, 1, 2])
    np.testing.assert_array_equal(clouds[0].points, np.eye(2)[[0, 0, 1]])
    np.testing.assert_array_equal(clouds[0].weights, [0.25, 0.25, 0.5])
    assert clouds.weights.dtype == np.float64


def test_arrays_are_protected():
    weights = np.array([0.5, 0.5])
    clouds = PointClouds(np.eye(2), [0, 2], [0, 1], weights)
    for array in (clouds.weights, clouds.indices, clouds.indptr, clouds.names):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[0]
    weights[0] = 0.5  # the user's own array stays the user's
    cloud = clouds[0]
    cloud.points[:] = 7
    cloud.weights[:] = 7
    assert clouds == PointClouds(np.eye(2), [0, 2], [0, 1], [0.5, 0.5])
