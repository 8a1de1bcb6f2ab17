"""The mass that clouds have in common, against the definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from scwormhole import PointClouds


def dense(clouds):
    """Weights, clouds by points."""
    table = np.zeros((len(clouds), clouds.n_points))
    for row in range(len(clouds)):
        places = slice(clouds.indptr[row], clouds.indptr[row + 1])
        np.add.at(table[row], clouds.indices[places], clouds.weights[places])
    return table


@given(st.integers(0, 2**32 - 1))
def test_it_is_the_sum_of_the_smaller_weights(seed):
    generator = np.random.default_rng(seed)
    graph = sparse.random_array((6, 9), density=0.5, rng=generator).tolil()
    graph[np.arange(6), generator.integers(9, size=6)] = 1.0
    clouds = PointClouds.from_graph(np.eye(9), graph.tocsr())
    held = dense(clouds)
    expected = np.minimum(held[:, None], held).sum(2)
    np.testing.assert_allclose(clouds.shared_mass(), expected, atol=1e-12)
    some = generator.permutation(6)[:4]
    np.testing.assert_allclose(clouds.shared_mass(some), expected[np.ix_(some, some)], atol=1e-12)
    np.testing.assert_allclose(clouds[some].shared_mass_with(clouds[:4]), expected[some, np.arange(4)], atol=1e-12)


def test_clouds_of_their_own_points_have_nothing_in_common():
    clouds = PointClouds.from_list([np.ones((n, 2)) for n in (3, 1, 4)])
    np.testing.assert_array_equal(clouds.shared_mass(), np.eye(3))
    np.testing.assert_array_equal(clouds.shared_mass_with(PointClouds.from_list(list(np.ones((3, 2, 2))))), 0)


def test_a_point_listed_twice_counts_with_both_its_weights():
    clouds = PointClouds(np.eye(2), [0, 2, 4], [0, 0, 0, 1], np.ones(4))
    np.testing.assert_allclose(clouds.shared_mass(), [[1, 0.5], [0.5, 1]])
    np.testing.assert_allclose(clouds[:1].shared_mass_with(clouds[1:]), 0.5)


def test_cohorts_of_other_lengths_are_refused():
    clouds = PointClouds.from_list([np.ones((2, 2))] * 3)
    with pytest.raises(ValueError, match=r"3 clouds here and 2 in other"):
        clouds.shared_mass_with(clouds[:2])
