"""The tree is nested, its masses add up, and thermometers turn absolute differences into squared distances."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scwormhole.ot._tree import Tree, grow_tree, leaves_of, thermometer
from scwormhole.ot._tree import node_masses as masses_of_leaves


def node_masses(tree, points, weights):
    return masses_of_leaves(tree, leaves_of(tree, points), weights)


@pytest.fixture(scope="module")
def points():
    generator = np.random.default_rng(0)
    return generator.normal(size=(600, 3)) + 4 * generator.integers(0, 3, size=(600, 1))


@pytest.fixture(scope="module")
def tree(points):
    return grow_tree(points, branching=4, depth=3, least=40)


@pytest.fixture(scope="module")
def batch():
    generator = np.random.default_rng(1)
    points = generator.normal(size=(7, 20, 3)) + 4 * generator.integers(0, 3, size=(7, 20, 1))
    weights = generator.dirichlet(np.ones(20), size=7) * (np.arange(20) < generator.integers(5, 21, size=7)[:, None])
    return points, weights / weights.sum(1, keepdims=True)


def leaf_by_hand(tree, point):
    at = -1
    while (children := np.flatnonzero(tree.parents == at)).size:
        at = children[((tree.centres[children] - point) ** 2).sum(1).argmin()]
    return at


def test_the_tree_is_nested_and_as_deep_as_asked(tree):
    assert np.all(tree.parents < np.arange(len(tree.parents)))
    assert np.bincount(tree.levels)[0] == 4
    assert tree.levels.max() == 2
    assert np.bincount(tree.parents[tree.parents >= 0]).max() == 4
    assert len(tree.centres) == len(tree.parents)


def test_masses_add_up(tree, batch):
    masses = node_masses(tree, *batch)
    np.testing.assert_allclose(masses[:, tree.is_leaf].sum(1), 1)
    np.testing.assert_allclose(masses[:, tree.levels == 0].sum(1), 1)
    for node in np.flatnonzero(~tree.is_leaf):
        np.testing.assert_allclose(masses[:, tree.parents == node].sum(1), masses[:, node], atol=1e-12)


def test_a_point_goes_down_to_the_nearest_child(tree, batch):
    points, weights = batch
    for cloud, shares, masses in zip(points, weights, node_masses(tree, points, weights), strict=True):
        leaves = np.array([leaf_by_hand(tree, point) for point in cloud])
        expected = np.bincount(leaves, shares, len(tree.parents))
        np.testing.assert_allclose(masses[tree.is_leaf], expected[tree.is_leaf], atol=1e-12)


def test_masses_do_not_depend_on_order_padding_splitting_or_company(tree, batch):
    points, weights = batch
    plain = node_masses(tree, points, weights)
    order = np.random.default_rng(2).permutation(20)
    np.testing.assert_allclose(node_masses(tree, points[:, order], weights[:, order]), plain)
    padded = np.pad(points, ((0, 0), (0, 5), (0, 0)), constant_values=50.0)
    np.testing.assert_allclose(node_masses(tree, padded, np.pad(weights, ((0, 0), (0, 5)))), plain)
    split = np.concatenate([weights[:, :1] / 3, weights[:, 1:], 2 * weights[:, :1] / 3], axis=1)
    twice = np.concatenate([points, points[:, :1]], axis=1)
    np.testing.assert_allclose(node_masses(tree, twice, split), plain)
    np.testing.assert_allclose(node_masses(tree, points[3:4], weights[3:4]), plain[3:4])


def test_a_tree_is_the_same_for_the_same_seed(points):
    one, same, other = (grow_tree(points, rng=rng) for rng in (3, 3, 4))
    np.testing.assert_array_equal(one.centres, same.centres)
    assert one.centres.shape != other.centres.shape or not np.allclose(one.centres, other.centres)


def test_a_node_of_few_points_is_not_split(points):
    assert np.bincount(grow_tree(points, depth=5, least=200).levels)[0] == 4
    assert len(grow_tree(points, depth=5, least=len(points) + 1).parents) == 1
    assert len(grow_tree(points, depth=0).parents) == 1
    with pytest.raises(ValueError, match="branching is 1"):
        grow_tree(points, branching=1)


def test_points_that_coincide_make_fewer_nodes(batch):
    one = grow_tree(np.ones((100, 3)))
    np.testing.assert_allclose(node_masses(one, *batch)[:, one.is_leaf].sum(1), 1)
    two = grow_tree(np.repeat(np.eye(2), 50, axis=0), branching=4, depth=3, least=10)
    assert np.bincount(two.levels)[0] == 2


def test_a_leaf_above_the_last_level_keeps_its_mass():
    tree = Tree(np.array([[0.0], [10.0], [9.0], [11.0]]), np.array([-1, -1, 1, 1]))
    points, weights = np.array([[[-1.0], [8.0], [12.0], [30.0]]]), np.array([[0.5, 0.2, 0.3, 0.0]])
    np.testing.assert_allclose(node_masses(tree, points, weights), [[0.5, 0.5, 0.2, 0.3]])


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0.01, 1), st.integers(2, 20))
def test_a_thermometer_falls_short_by_a_quarter_of_two_cells_at_most(a, b, top, n_cells):
    codes = thermometer(np.array([[a], [b]]), np.array([top]), n_cells=n_cells)
    found = ((codes[0] - codes[1]) ** 2).sum()
    edges = np.append(np.linspace(0, top, n_cells), 1.0)
    widths = np.diff(edges)
    ends = [widths[min(np.searchsorted(edges, number, side="right") - 1, n_cells - 1)] for number in (a, b)]
    assert found <= abs(a - b) + 1e-12
    assert found >= abs(a - b) - sum(ends) / 4 - 1e-12


def test_a_thermometer_is_exact_at_its_edges_and_in_the_limit():
    marks = np.linspace(0, 0.5, 5)[:, None]
    codes = thermometer(marks, np.array([0.5]), n_cells=5)[:, 0]
    np.testing.assert_allclose(((codes[:, None] - codes) ** 2).sum(-1), np.abs(marks - marks.T), atol=1e-12)
    numbers = np.random.default_rng(0).random((50, 1))
    for n_cells in (10, 100, 1000):
        fine = thermometer(numbers, np.array([1.0]), n_cells=n_cells)[:, 0]
        error = np.abs(numbers - numbers.T) - ((fine[:, None] - fine) ** 2).sum(-1)
        assert 0 <= error.max() <= 0.5 / (n_cells - 1)
