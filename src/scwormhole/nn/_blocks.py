"""Attention between the points of a cloud, by their mass: Flax only.

The weight of a point enters as its logarithm beside the logits, so a point split into two of half its weight changes
nothing, and padding, of weight zero, is not seen.
"""

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array

UNSEEN = -1e9  # stands for the logarithm of zero, without making NaN of a difference


class Block(nnx.Module):
    """Attention and a two-layer network, each beside a residual.

    Parameters
    ----------
    width
        Length of a point's vector.
    hidden
        Width of the network's hidden layer.
    n_heads
        Heads of the attention; they share the width.
    post
        Whether to normalise after each residual, as the paper does, and not before each branch.
    rngs
        Keys of the first weights.
    """

    def __init__(self, width: int, hidden: int, n_heads: int, *, post: bool, rngs: nnx.Rngs) -> None:
        self.n_heads, self.post = n_heads, post
        self.query_key_value = nnx.Linear(width, 3 * width, rngs=rngs)
        self.mixed = nnx.Linear(width, width, rngs=rngs)
        self.wide = nnx.Linear(width, hidden, rngs=rngs)
        self.narrow = nnx.Linear(hidden, width, rngs=rngs)
        self.first_norm = nnx.LayerNorm(width, rngs=rngs)
        self.second_norm = nnx.LayerNorm(width, rngs=rngs)

    def __call__(self, h: Array, log_weights: Array) -> Array:
        """Update the points of clouds, ``[b, n, w]``, by log-weights ``[b, n]``."""
        if self.post:
            h = self.first_norm(h + self.attend(h, log_weights))
            h = self.second_norm(h + self.narrow(jax.nn.relu(self.wide(h))))
            return h
        h = h + self.attend(self.first_norm(h), log_weights)
        return h + self.narrow(jax.nn.gelu(self.wide(self.second_norm(h))))

    def attend(self, h: Array, log_weights: Array) -> Array:
        """Let every point see all points of its cloud."""
        b, n, width = h.shape
        each = width // self.n_heads
        query, key, value = jnp.split(self.query_key_value(h).reshape(b, n, 3 * self.n_heads, each), 3, axis=2)
        logits = jnp.einsum("bnhe,bmhe->bhnm", query * each**-0.5, key) + log_weights[:, None, None, :]
        seen = jnp.einsum("bhnm,bmhe->bnhe", jax.nn.softmax(logits, axis=-1), value)
        return self.mixed(seen.reshape(b, n, width))


def log_weights(weights: Array) -> Array:
    """Return logarithms of weights, of padding something very low."""
    return jnp.where(weights > 0, jnp.log(jnp.where(weights > 0, weights, 1.0)), UNSEEN)
