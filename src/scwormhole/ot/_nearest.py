"""How far the points of a cloud are from their nearest neighbours in it: what noise of sampling looks like. NumPy only.

Where a second sample of the same distribution is transported to the first, a point goes to one of its near ones. How
far that is, the cloud's own points tell.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_NEAR = 256  # points of a cloud among which the nearest is looked for; in high dimension more are hardly nearer
SAME = 1e-5  # of both squares: nearer points are one point in pieces


def nearest(points: NDArray[Any], share: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the squared distance of each point from the nearest other one of its cloud; infinite if there is none.

    Points at one place count as one, so nothing changes where a point is split. In a large cloud the nearest is looked
    for among the ``MOST_NEAR`` heaviest points, of equally heavy ones those farthest from the origin.

    Parameters
    ----------
    points
        Points, clouds by places by dimensions.
    share
        Weights, clouds by places, zero on padding.

    Returns
    -------
    Clouds by places.
    """
    points = np.asarray(points, np.float32)
    square = np.einsum("bnd,bnd->bn", points, points)
    others, sizes, mass = points, square, share
    if points.shape[1] > MOST_NEAR:
        heaviest = np.lexsort((-square, -share), axis=1)[:, :MOST_NEAR]
        others = np.take_along_axis(points, heaviest[:, :, None], axis=1)
        sizes, mass = (np.take_along_axis(part, heaviest, axis=1) for part in (square, share))
    both = square[:, :, None] + sizes[:, None]
    apart = both - 2 * points @ others.transpose(0, 2, 1)
    np.copyto(apart, np.inf, where=(apart <= SAME * both) | (mass <= 0)[:, None])
    return np.asarray(apart.min(axis=2), np.float64)
