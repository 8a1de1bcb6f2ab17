"""A lower bound on Gromov-Wasserstein between Gaussians (Delon, Desolneux and Salmona 2022). NumPy on padded arrays.

With squared Euclidean distances within each cloud, and both centred, Gromov-Wasserstein squared is::

    GW^2 = min  E (|x - x'|^2 - |y - y'|^2)^2
         = E |x - x'|^4 + E |y - y'|^4 - max (4 E |x|^2 |y|^2 + 4 E |x|^2 E |y|^2 + 8 |E x y'|_F^2)

over couplings of x with y, the pair x', y' being another draw from the same coupling. For a Gaussian with the sorted
eigenvalues D of its covariance, E |x - x'|^4 = 4 tr(D)^2 + 8 |D|^2. Each maximum by itself has a bound: by
Cauchy-Schwarz E |x|^2 |y|^2 <= tr D tr E + 2 |D| |E|, and |E x y'|_F^2 <= <D, E>, the spectra paired from the largest
on, the shorter one filled up with zeros. Together::

    GW^2 >= 4 (tr D - tr E)^2 + 4 (|D| - |E|)^2 + 4 |D - E|^2

With the spectrum D cut to the n dimensions of the smaller one, |D - E|^2 is |D_n - E|^2 + |D|^2 - |D_n|^2: the
fourth term of Delon et al. is what is lost in cutting, and zero for equal dimensions. The Wormhole paper prints
4 (|D|^2 - |E|^2) in its place, which changes its sign with the order of the clouds and cannot be part of a bound.

The bound is a squared Euclidean distance, that of the vectors 2 (tr D, |D|, D): so this rival embeds.
"""

import numpy as np
from numpy.typing import NDArray

from scwormhole.ot._cohort import Cohort, as_cohort
from scwormhole.ot._threads import one_thread

from ._blocks import batches
from ._common import Embedding
from ._gaussians import mean_and_factor


class GaussianGW(Embedding):
    """A lower bound on the squared Gromov-Wasserstein distance of Gaussians that have the clouds' covariances.

    Distances within clouds are squared Euclidean, and results are in the units of ``metric="GW"`` in
    :func:`scwormhole.ot.pairwise`: fourth powers of a length. It bounds the distance of the Gaussians, not that of the
    clouds, which may have other fourth moments, and is exact where one is the other scaled and turned. Nothing is
    learned. Clouds of fewer dimensions than were fitted are taken as flat ones.

    Examples
    --------
    >>> import numpy as np, scwormhole as wh
    >>> from scwormhole.baselines import GaussianGW
    >>> square = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    >>> turn = np.array([[0.6, 0.8], [-0.8, 0.6]])
    >>> clouds = wh.PointClouds.from_list([square, square @ turn, 2 * square])
    >>> GaussianGW().fit(clouds).pairwise(clouds).round(6)
    array([[  0.,   0., 288.],
           [  0.,   0., 288.],
           [288., 288.,   0.]])
    """

    def __init__(self) -> None:
        super().__init__({})

    def transform(self, clouds: Cohort) -> NDArray[np.float64]:
        """Return twice the trace, the norm and the falling eigenvalues of each cloud's covariance.

        Parameters
        ----------
        clouds
            A cohort of at most the dimension that was fitted.
        """
        clouds = self._known(clouds)
        z = np.zeros((len(clouds), 2 + self.dim_))
        with one_thread:
            for batch in batches(clouds, 2 * clouds.dim):
                _, factors = mean_and_factor(batch.points, batch.weights)
                spectrum = np.linalg.svd(factors, compute_uv=False) ** 2
                norm = np.sqrt((spectrum**2).sum(axis=1))
                z[batch.index, 0], z[batch.index, 1] = spectrum.sum(axis=1), norm
                z[batch.index, 2 : 2 + spectrum.shape[1]] = spectrum
        return 2 * z

    def _known(self, clouds: Cohort, name: str = "clouds") -> Cohort:
        clouds = as_cohort(clouds, name)
        return clouds if clouds.dim < getattr(self, "dim_", 0) else super()._known(clouds, name)
