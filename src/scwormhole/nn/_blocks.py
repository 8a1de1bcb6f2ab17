"""Attention between the points of a cloud, by their mass: Flax only.

The weight of a point enters as its logarithm beside the logits, so a point split into two of half its weight changes
nothing, and padding, of weight zero, is not seen.

Attention of every point to every point is quadratic in their number, and mostly exponentials. By default a few learned
vectors look at all points, and the points look at these (induced attention; Lee et al. 2019), which is linear.
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
    n_induced
        Learned vectors between the points; 0 for attention of every point to every point, as in the paper.
    post
        Whether to normalise after each residual, as the paper does, and not before each branch.
    rngs
        Keys of the first weights.
    """

    def __init__(self, width: int, hidden: int, n_heads: int, *, n_induced: int, post: bool, rngs: nnx.Rngs) -> None:
        self.n_heads, self.n_induced, self.post = n_heads, n_induced, post
        if n_induced:
            self.queries = nnx.Param(jax.random.normal(rngs.params(), (n_induced, width)))
            self.induced = nnx.Linear(width, 2 * width, rngs=rngs)
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
        query, key, value = jnp.split(self.query_key_value(h), 3, axis=-1)
        if self.n_induced:
            queries = jnp.broadcast_to(self.queries[...], (len(h), *self.queries.shape))
            few = self._seen(queries, key, value, log_weights)
            key, value = jnp.split(self.induced(few), 2, axis=-1)
            log_weights = jnp.zeros((len(h), self.n_induced))
        return self.mixed(self._seen(query, key, value, log_weights))

    def _seen(self, query: Array, key: Array, value: Array, log_weights: Array) -> Array:
        """Return what queries ``[b, n, w]`` see of keys and values ``[b, m, w]``."""
        query, key, value = (part.reshape(*part.shape[:2], self.n_heads, -1) for part in (query, key, value))
        logits = jnp.einsum("bnhe,bmhe->bhnm", query * query.shape[-1] ** -0.5, key)
        shares = jax.nn.softmax(logits + log_weights[:, None, None, :], axis=-1)
        return jnp.einsum("bhnm,bmhe->bnhe", shares, value).reshape(*query.shape[:2], -1)


def log_weights(weights: Array) -> Array:
    """Return logarithms of weights, of padding something very low."""
    return jnp.where(weights > 0, jnp.log(jnp.where(weights > 0, weights, 1.0)), UNSEEN)
