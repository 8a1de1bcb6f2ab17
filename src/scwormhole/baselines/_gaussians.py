"""Means of padded clouds, and factors of their covariances. NumPy only."""

import numpy as np
from numpy.typing import NDArray

from scwormhole.ot._solver import centred, fill

from ._common import Array


def mean_and_factor(points: Array, weights: Array) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the means of clouds, and matrices ``F`` with ``F' F`` their covariances.

    A factor is the centred points themselves, each times the root of its weight, where they are fewer than the
    dimensions; the triangle of their QR decomposition where they are more. So small variances keep their digits.

    Parameters
    ----------
    points
        Points, clouds by places by dimensions.
    weights
        Weights, clouds by places; zero on padding.

    Returns
    -------
    Clouds by dimensions, and clouds by at most so many rows by dimensions.
    """
    filled, share = fill(points, weights)
    near, means = centred(filled, share)
    factors = near * np.sqrt(share)[..., None]
    if factors.shape[1] > factors.shape[2]:
        factors = np.asarray(np.linalg.qr(factors, mode="r"))
    return means, factors
