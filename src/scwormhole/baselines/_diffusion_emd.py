"""DiffusionEMD: histograms on a grid diffused to many scales, whose L1 distance follows W1. NumPy and SciPy only.

After Tong et al. 2021, written from the paper. In a time t a diffusion spreads mass over about the square root of t. A
histogram is described by how it changes from each time to its double, ``mu P^2t - mu P^t``, which weighs ``t^alpha``,
and by what it is in the end: with alpha of a half a shift counts by its length.

Voxels are neighbours if their centres are within the square root of 2 of each other in the plane, and of 3 in space: if
they share a corner, or are the same. So the graph is a product of paths, one an axis, and so are its degrees, its
diffusion operator and the powers of that: they are applied axis by axis, as small matrices, and exactly. The authors
approximate the powers by polynomials.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from scwormhole.ot._cohort import Cohort
from scwormhole.ot._threads import one_thread

from ._blocks import batches, steps
from ._checks import check_amounts, check_counts
from ._common import Array, Embedding
from ._grid import Grid


class DiffusionEMD(Embedding):
    """Diffused histograms on a grid: the L1 distance of two vectors follows the W1 distance of two clouds.

    Nothing is learned but the box of the grid. Vectors are in the units of the points, but distances are only
    correlated with those of transport: they lack a factor. As other methods are held to W2 squared, :meth:`pairwise`
    and :meth:`distances` return the L1 distance squared, which correlates better with it than the distance itself. The
    authors' program takes the six coarsest scales, ``n_scales=6``. For labels see :func:`knn_labels` with ``k=1``.

    Parameters
    ----------
    side
        See :class:`Grid`.
    box
        See :class:`Grid`.
    max_scale
        The longest diffusion takes two to this power of steps.
    n_scales
        Diffusions, each of half the steps of the next. All down to one step by default.
    alpha
        How weights grow with time; near a half for W1.

    Attributes
    ----------
    grid_
        The :class:`Grid`.
    diffusions_
        Diffusion along an axis for each scale, the shortest first.
    alpha_
        How weights grow with time.

    Examples
    --------
    >>> import numpy as np, scwormhole as wh
    >>> from scwormhole.baselines import DiffusionEMD
    >>> clouds = wh.PointClouds.from_list([np.array([[float(x), 0.0]]) for x in (0, 1, 5)])
    >>> apart = DiffusionEMD(side=6).fit(clouds).pairwise(clouds)
    >>> bool(apart[0, 1] < apart[1, 2] < apart[0, 2])
    True
    """

    def __init__(
        self,
        *,
        side: int | None = None,
        box: tuple[float, float] | None = None,
        max_scale: int = 10,
        n_scales: int | None = None,
        alpha: float = 0.5,
    ) -> None:
        super().__init__(
            {"side": side, "box": box, "max_scale": max_scale, "n_scales": n_scales, "alpha": alpha},
        )

    def _fit(self, clouds: Cohort) -> None:
        """Find the box of the grid."""
        params = self._params
        check_counts(params, "max_scale", least=0, most=30)  # a diffusion takes two to this power of steps
        most, count = params["max_scale"], params["n_scales"]
        if count is not None:
            check_counts(params, "n_scales", most=most + 1)
        check_amounts(params, "alpha")
        self.grid_ = Grid(side=params["side"], box=params["box"]).fit(clouds)
        self.alpha_ = float(params["alpha"])
        one = path_diffusion(self.grid_.side_)
        times = [1 << scale for scale in range(most + 1 - (count or most + 1), most + 1)]
        self.diffusions_ = np.stack([np.linalg.matrix_power(one, time) for time in times])

    def transform(self, clouds: Cohort) -> NDArray[np.float32]:
        """Return one vector a cloud, to be compared by L1 distances.

        Parameters
        ----------
        clouds
            A cohort of the dimension that was fitted.
        """
        clouds, grid = self._known(clouds), self.grid_
        width = len(self.diffusions_) * grid.n_voxels_
        vectors = np.empty((len(clouds), width), np.float32)
        with one_thread:
            for batch in batches(clouds, max(clouds.dim, width // int(clouds.rungs.min()))):
                masses = grid.histograms(batch.points, batch.weights)
                found = described(masses.reshape(-1, *grid.shape_), self.diffusions_, self.alpha_)
                vectors[batch.index] = grid.spacing_ * found
        return vectors

    def _crossed(self, x: Array, y: Array) -> NDArray[np.float64]:
        table = np.empty((len(x), len(y)))
        for columns in steps(len(y), y.shape[1]):
            table[:, columns] = cdist(x, y[columns], "cityblock")
        return np.asarray(table**2)

    def _paired(self, x: Array, y: Array) -> NDArray[np.float64]:
        return np.asarray(np.abs(x.astype(np.float64) - y).sum(axis=1) ** 2)


def path_diffusion(side: int) -> NDArray[np.float64]:
    """Return the diffusion along a path of voxels: rows sum to one, and the ends do not count more than the rest.

    Parameters
    ----------
    side
        Voxels of the path.
    """
    kernel = np.eye(side) + np.eye(side, k=1) + np.eye(side, k=-1)
    degree = kernel.sum(1)
    kernel /= degree[:, None] * degree
    return np.asarray(kernel / kernel.sum(1, keepdims=True))


def described(masses: NDArray[Any], diffusions: Sequence[Any] | NDArray[Any], alpha: float) -> NDArray[np.float64]:
    """Return what changes between diffusions of histograms, weighted, and the last diffusion.

    Parameters
    ----------
    masses
        Histograms, clouds by axes of the grid.
    diffusions
        Diffusion along an axis for each scale, the shortest first.
    alpha
        How weights grow with time.
    """
    at = [_diffused(masses, diffusion).reshape(len(masses), -1) for diffusion in diffusions]
    last = len(at) - 1
    changes = [0.5 ** ((last - 1 - k) * alpha) * (at[k + 1] - at[k]) for k in range(last)]
    return np.concatenate([*changes, at[-1]], axis=1)


def _diffused(masses: NDArray[Any], diffusion: NDArray[np.float64]) -> NDArray[Any]:
    for _ in range(masses.ndim - 1):
        masses = np.tensordot(masses, diffusion, (1, 0))  # the new axis goes last: in the end the order is as before
    return masses
