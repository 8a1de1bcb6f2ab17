"""What data sets come as: clouds with what is known of them. Records only."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scwormhole.clouds import PointClouds
from scwormhole.clouds._html import card, facts
from scwormhole.clouds._wording import listed


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

    def _repr_html_(self) -> str:
        return _record_html(self)


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

    def _repr_html_(self) -> str:
        return _record_html(self)


def _record_html(record: Labelled | Gaussians) -> str:
    """Return a record as HTML: a line for every array beside the clouds, and the clouds."""
    arrays = record._asdict()
    shown = arrays.pop("clouds")._repr_html_()
    return card(type(record).__name__, facts((name, _array_text(array)) for name, array in arrays.items()), shown)


def _array_text(array: NDArray[Any]) -> str:
    """Return shape and type of an array; of one row, what it holds."""
    text = f"{' x '.join(f'{length:,}' for length in array.shape)}, {array.dtype}"
    if array.ndim > 1:
        return text
    values = np.unique(array)
    return f"{text}, {len(values):,} different: {listed(values, len(values))}"
