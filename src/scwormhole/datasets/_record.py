"""What data sets come as: clouds with what is known of them. Records only."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scwormhole.clouds import PointClouds


class Labelled(NamedTuple):
    """Clouds, and a label of each.

    Parameters
    ----------
    clouds
        The cohort.
    labels
        One row a cloud.

    Examples
    --------
    >>> import scwormhole as wh
    >>> clouds, labels = wh.datasets.simplex()
    >>> len(clouds) == len(labels)
    True
    """

    clouds: PointClouds
    labels: NDArray[Any]


class Gaussians(NamedTuple):
    """Samples of Gaussians, and the Gaussians.

    Parameters
    ----------
    clouds
        The samples, a cloud each.
    means
        Means, one row a cloud.
    covariances
        Covariances, one matrix a cloud.

    Examples
    --------
    >>> import scwormhole as wh
    >>> wh.datasets.gaussians(n_clouds=10).covariances.shape
    (10, 8, 8)
    """

    clouds: PointClouds
    means: NDArray[np.float64]
    covariances: NDArray[np.float64]
