"""Weights are taken apart and put together."""

import jax
import numpy as np
import pytest

from scwormhole.train._frame import Frame
from scwormhole.train._settings import Network
from scwormhole.train._step import with_decoder
from scwormhole.train._use import define


@pytest.fixture(scope="module")
def weights():
    """Weights of two seeds."""
    network = Network(n_components=4, width=8, hidden=8, n_blocks=1, n_heads=2, n_points=3)
    frame = Frame(np.zeros(2), 1.0, 1.0, False, np.zeros(2), np.ones(2))
    return [define(network, frame, base=False, nugget=False, seed=seed)[1] for seed in (0, 1)]


def test_the_decoder_of_others_is_taken_and_nothing_else(weights):
    one, other = weights
    mixed = with_decoder(one, other)
    assert jax.tree.structure(mixed) == jax.tree.structure(one)
    for part, source in (("encoder", one), ("decoder", other)):
        for found, expected in zip(jax.tree.leaves(mixed[part]), jax.tree.leaves(source[part]), strict=True):
            np.testing.assert_array_equal(found, expected)
    same = zip(jax.tree.leaves(one["decoder"]), jax.tree.leaves(mixed["decoder"]), strict=True)
    assert not all(np.array_equal(a, b) for a, b in same)
