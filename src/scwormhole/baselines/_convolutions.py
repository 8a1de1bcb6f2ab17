"""The networks of DWE: histograms on a grid to vectors and back by convolutions. Flax only."""

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array

POOLED = 4  # voxels along an axis that two poolings make one of


class ConvolutionalNetworks(nnx.Module):
    """An encoder and a decoder between histograms, flat and of mass one, and vectors.

    Parameters
    ----------
    shape
        Voxels along each axis: two or three axes.
    n_components
        Length of a vector.
    n_channels
        Channels of the finest convolutions; those after a pooling have twice as many.
    hidden
        Width of the dense layers.
    scale
        What masses are multiplied by before they are seen.
    rngs
        Keys of the first weights.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        n_components: int,
        *,
        n_channels: int,
        hidden: int,
        scale: float,
        rngs: nnx.Rngs,
    ) -> None:
        self.shape, self.scale = shape, scale
        self.coarse = tuple(-(-side // POOLED) for side in shape)
        kernel = (3,) * len(shape)
        n_coarse = 2 * n_channels
        for side in self.coarse:
            n_coarse *= side
        self.fine = nnx.Conv(1, n_channels, kernel, rngs=rngs)
        self.middle = nnx.Conv(n_channels, 2 * n_channels, kernel, rngs=rngs)
        self.middle_again = nnx.Conv(2 * n_channels, 2 * n_channels, kernel, rngs=rngs)
        self.flat = nnx.Linear(n_coarse, hidden, rngs=rngs)
        self.vector = nnx.Linear(hidden, n_components, rngs=rngs)
        self.back_hidden = nnx.Linear(n_components, hidden, rngs=rngs)
        self.back_coarse = nnx.Linear(hidden, n_coarse, rngs=rngs)
        self.back_middle = nnx.Conv(2 * n_channels, n_channels, kernel, rngs=rngs)
        self.back_fine = nnx.Conv(n_channels, 1, kernel, rngs=rngs)

    def encode(self, masses: Array) -> Array:
        """Return the vectors ``[b, k]`` of histograms ``[b, v]``."""
        grid = self.scale * masses.reshape(-1, *self.shape)
        missing = [(0, POOLED * coarse - side) for coarse, side in zip(self.coarse, self.shape, strict=True)]
        h = jnp.pad(grid, [(0, 0), *missing])[..., None]
        h = _pooled(jax.nn.relu(self.fine(h)))
        h = jax.nn.relu(self.middle(h))
        h = _pooled(jax.nn.relu(self.middle_again(h)))
        return self.vector(jax.nn.relu(self.flat(h.reshape(len(h), -1))))

    def decode(self, vectors: Array) -> Array:
        """Return the logarithms of histograms ``[b, v]`` of vectors ``[b, k]``."""
        h = jax.nn.relu(self.back_coarse(jax.nn.relu(self.back_hidden(vectors))))
        h = h.reshape(len(vectors), *self.coarse, -1)
        h = jax.nn.relu(self.back_middle(_repeated(h)))
        h = self.back_fine(_repeated(h))[..., 0]
        h = h[(slice(None), *(slice(side) for side in self.shape))]
        return jax.nn.log_softmax(h.reshape(len(vectors), -1), axis=-1)


def _pooled(h: Array) -> Array:
    """Return means over blocks of two voxels along each axis."""
    window = (2,) * (h.ndim - 2)
    means: Array = nnx.avg_pool(h, window, strides=window)
    return means


def _repeated(h: Array) -> Array:
    """Return each voxel twice along each axis."""
    for axis in range(1, h.ndim - 1):
        h = jnp.repeat(h, 2, axis=axis)
    return h
