"""Directions to look at clouds along. NumPy only."""

import numpy as np
from numpy.typing import NDArray

from scwormhole.ot._slices import LOW_DIMENSION, spread_directions


def turned_directions(dim: int, n: int, rng: int) -> NDArray[np.float64]:
    """Return unit vectors: evenly spread ones, turned at random, in up to three dimensions, random ones above.

    They are turned so that the pixels of an image do not hide behind one another.

    Parameters
    ----------
    dim
        Dimension.
    n
        Number of directions; a line has one, whatever is asked for.
    rng
        Seed.
    """
    generator = np.random.default_rng(rng)
    if dim <= LOW_DIMENSION:
        return np.asarray(spread_directions(dim, n) @ np.linalg.qr(generator.normal(size=(dim, dim)))[0])
    directions = generator.normal(size=(n, dim))
    return np.asarray(directions / np.linalg.norm(directions, axis=1, keepdims=True))
