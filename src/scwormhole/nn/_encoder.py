"""The encoder: a cloud to a vector and a nugget, over features that need no training. Flax only.

With features ``phi`` the vector is ``S phi + network(points, phi)``. At the start ``S`` is the identity and the
network's last layer is zero, so training begins at what the features know.
"""

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array

from ._blocks import Block, log_weights

MOST_GROWTH = 3.0  # of the logarithm of a nugget over that of the features


class Encoder(nnx.Module):
    """A permutation-invariant transformer over points, and over features of their cloud.

    Parameters
    ----------
    dim
        Dimension of the points.
    n_components
        Length of an embedding.
    width
        Length of a point's vector.
    hidden
        Width of the hidden layers.
    n_blocks
        Number of attention blocks.
    n_heads
        Heads of each.
    n_induced
        Learned vectors between the points in each; 0 for attention of every point to every point.
    n_fixed
        How many of the first components are taken from the features as they are: the mean of the cloud.
    base
        Whether there are features. Without them the embedding is the mean over the points, as in the paper.
    nugget
        Whether there is a nugget; it starts from that of the features.
    post
        Whether blocks normalise as the paper's do.
    rngs
        Keys of the first weights.
    """

    def __init__(
        self,
        dim: int,
        n_components: int,
        *,
        width: int,
        hidden: int,
        n_blocks: int,
        n_heads: int,
        n_induced: int,
        n_fixed: int,
        base: bool,
        nugget: bool,
        post: bool,
        rngs: nnx.Rngs,
    ) -> None:
        self.n_fixed, self.base, self.nugget = n_fixed, base, nugget
        self.embed = nnx.Linear(dim, width, rngs=rngs)
        self.blocks = nnx.List(
            [Block(width, hidden, n_heads, n_induced=n_induced, post=post, rngs=rngs) for _ in range(n_blocks)]
        )
        self.norm = None if post else nnx.LayerNorm(width, rngs=rngs)
        n_free, out = n_components - n_fixed, None
        if base:
            self.stretch = nnx.Param(jnp.eye(n_free))
            self.context = nnx.Linear(n_free, width, rngs=rngs)
            self.wide = nnx.Linear(width + n_free, hidden, rngs=rngs)
            zeros = nnx.initializers.zeros_init()
            out = nnx.Linear(hidden, n_free + nugget, kernel_init=zeros, rngs=rngs)
        elif not post or width != n_components or nugget:
            out = nnx.Linear(width, n_free + nugget, rngs=rngs)
        self.out = out  # none in the paper's: the mean over the points is the embedding
        # normalised points have squared distances of about twice the width, and the authors' program takes the mean
        # over components for their sum; without that the first losses are so large that Adam's moments do not recover
        self.shrink = 1.0 if out is not None else width**-0.5

    def __call__(self, points: Array, weights: Array, features: Array, noise: Array) -> tuple[Array, Array]:
        """Embed clouds.

        Parameters
        ----------
        points
            Points, ``[b, n, d]``.
        weights
            Weights, ``[b, n]``, rows summing to one and zero on padding.
        features
            Features, ``[b, k]``; ignored without a base.
        noise
            Nuggets of the features, ``[b]``.

        Returns
        -------
        Vectors ``[b, k]`` and nuggets ``[b]``.
        """
        h = self.embed(points)
        shape = features[:, self.n_fixed :]
        if self.base:
            h = h + self.context(shape)[:, None]
        seen = log_weights(weights)
        for block in self.blocks:
            h = block(h, seen)
        pooled = jnp.einsum("bn,bnw->bw", weights, h if self.norm is None else self.norm(h))
        if self.base:
            pooled = jax.nn.gelu(self.wide(jnp.concatenate([pooled, shape], -1)))
        vectors, noise = self._with_nugget(self.shrink * pooled if self.out is None else self.out(pooled), noise)
        if not self.base:
            return vectors, noise
        return jnp.concatenate([features[:, : self.n_fixed], shape @ self.stretch[...] + vectors], -1), noise

    def _with_nugget(self, out: Array, noise: Array) -> tuple[Array, Array]:
        if not self.nugget:
            return out, jnp.zeros_like(noise)
        growth = MOST_GROWTH * jnp.tanh(out[:, -1] / MOST_GROWTH)
        return out[:, :-1], noise * jnp.exp(growth)
