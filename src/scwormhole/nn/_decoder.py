"""The decoder: a vector back to a cloud. Flax only."""

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array

from ._blocks import Block


class Decoder(nnx.Module):
    """Vectors to clouds of a fixed number of points: one layer makes the points, attention arranges them.

    Parameters
    ----------
    dim
        Dimension of the points.
    n_components
        Length of an embedding.
    n_points
        Points of a decoded cloud.
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
        How many of the first components are the mean of the cloud; the others say how points lie around it.
    weighted
        Whether points have weights of their own.
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
        n_points: int,
        width: int,
        hidden: int,
        n_blocks: int,
        n_heads: int,
        n_induced: int,
        n_fixed: int,
        weighted: bool,
        post: bool,
        rngs: nnx.Rngs,
    ) -> None:
        self.n_points, self.width, self.n_fixed, self.weighted = n_points, width, n_fixed, weighted
        self.multiply = nnx.Linear(n_components - n_fixed, n_points * width, rngs=rngs)
        self.seeds = nnx.Param(jax.random.normal(rngs.params(), (n_points, width)))
        self.blocks = nnx.List(
            [Block(width, hidden, n_heads, n_induced=n_induced, post=post, rngs=rngs) for _ in range(n_blocks)]
        )
        self.norm = None if post else nnx.LayerNorm(width, rngs=rngs)
        self.out = nnx.Linear(width, dim + weighted, rngs=rngs)
        self.middle = nnx.Linear(n_components, dim, rngs=rngs) if not n_fixed else None

    def __call__(self, vectors: Array) -> tuple[Array, Array]:
        """Decode vectors ``[b, k]`` to points ``[b, m, d]`` and weights ``[b, m]``."""
        b = len(vectors)
        h = self.multiply(vectors[:, self.n_fixed :]).reshape(b, self.n_points, self.width) + self.seeds[...]
        even = jnp.full((b, self.n_points), -jnp.log(self.n_points))
        for block in self.blocks:
            h = block(h, even)
        out = self.out(h if self.norm is None else self.norm(h))
        weights = jax.nn.softmax(out[..., -1], -1) if self.weighted else jnp.exp(even)
        points = out[..., : out.shape[-1] - self.weighted]
        if self.middle is not None:
            return points + self.middle(vectors)[:, None], weights
        points = points - jnp.einsum("bm,bmd->bd", weights, points)[:, None]
        return points + vectors[:, None, : self.n_fixed], weights
