"""What a fit is told by default, where it depends on the cohort."""

import numpy as np
import pytest

import scwormhole as wh
from scwormhole.train import read_parameters


def network(sizes, **params):
    rng = np.random.default_rng(0)
    clouds = wh.PointClouds.from_list([rng.normal(size=(size, 2)) for size in sizes])
    return read_parameters(wh.Wormhole(**params).get_params(), clouds).network


@pytest.mark.parametrize(
    ("sizes", "n_induced"),
    [([10, 20, 30], 0), ([32, 32], 0), ([33, 33], 16), ([5] * 20 + [200], 16)],
)
def test_attention_is_full_where_that_is_less_work(sizes, n_induced):
    assert network(sizes).n_induced == n_induced


@pytest.mark.parametrize("asked", [0, 16])
def test_attention_is_as_was_asked_for(asked):
    assert network([5, 5], n_induced=asked).n_induced == network([99, 99], n_induced=asked).n_induced == asked


def test_attention_through_half_a_vector_is_refused():
    with pytest.raises(ValueError, match="n_induced is -1; give a whole number of at least 0"):
        network([5, 5], n_induced=-1)
