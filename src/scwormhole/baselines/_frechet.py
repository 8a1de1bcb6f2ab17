"""Clouds taken for Gaussians, whose W2 has a closed form. NumPy on padded arrays.

For covariances ``S = F F'`` and ``T = G G'`` the trace of ``(S^1/2 T S^1/2)^1/2`` is the sum of the singular values of
``F' G``, whatever the factors are. So a factor is found once a cloud, and a pair takes one small decomposition.
"""

import numpy as np
from numpy.typing import NDArray

from ._common import Array, Comparison, Kept
from ._gaussians import mean_and_factor


class Frechet(Comparison):
    """The squared W2 distance of Gaussians that have the clouds' means and covariances.

    Nothing is learned. It is exact for Gaussians, for translates and for clouds that are stretched along their
    principal axes, and never above the squared W2 distance of the clouds. For labels see :func:`knn_labels`.

    Examples
    --------
    >>> import numpy as np, scwormhole as wh
    >>> from scwormhole.baselines import Frechet
    >>> square = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    >>> clouds = wh.PointClouds.from_list([square, 3 * square, square + [5.0, 0.0]])
    >>> Frechet().fit(clouds).pairwise(clouds).round(6)
    array([[ 0.,  8., 25.],
           [ 8.,  0., 33.],
           [25., 33.,  0.]])
    """

    def __init__(self) -> None:
        super().__init__({})

    def _size(self, rung: int) -> int:
        return 2 * rung * self.dim_

    def _work(self, x: Kept, y: Kept) -> int:
        return int(2 * x[1].shape[-1] * y[1].shape[-1] + self.dim_)

    def _keep(self, points: Array, weights: Array) -> Kept:
        means, factors = mean_and_factor(points, weights)
        return means, factors.transpose(0, 2, 1), (factors**2).sum(axis=(1, 2))

    def _paired(self, x: Kept, y: Kept) -> NDArray[np.float64]:
        (x_mean, x_factor, x_trace), (y_mean, y_factor, y_trace) = x, y
        apart = ((x_mean - y_mean) ** 2).sum(axis=-1)
        common = _nuclear(np.swapaxes(x_factor, -1, -2) @ y_factor)
        return np.asarray(apart + np.maximum(x_trace + y_trace - 2 * common, 0.0))


def _nuclear(matrices: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sums of singular values; without a decomposition where there are at most two of them."""
    if min(matrices.shape[-2:]) == 1:
        return np.asarray(np.sqrt((matrices**2).sum(axis=(-2, -1))))
    if matrices.shape[-2:] == (2, 2):
        a, b, c, d = (matrices[..., i, j] for i in (0, 1) for j in (0, 1))
        return np.asarray(np.sqrt(a * a + b * b + c * c + d * d + 2 * np.abs(a * d - b * c)))
    return np.asarray(np.linalg.svd(matrices, compute_uv=False).sum(axis=-1))
