"""Means and roots of covariances as vectors, in the manner of COVET (Haviv et al. 2024). NumPy on padded arrays.

For covariances that commute, ``|S^1/2 - T^1/2|_F^2`` is what :class:`Frechet` has for them. In general it is between
once and twice that, since for unit traces ``tr S^1/2 T^1/2`` is at most the fidelity and at least its square. So these
vectors embed the Fréchet distance, if not without distortion.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from scwormhole.ot._cohort import Cohort
from scwormhole.ot._mahalanobis import non_negative
from scwormhole.ot._metrics import GroundCost
from scwormhole.ot._options import RelativeEpsilon, SolverName
from scwormhole.ot._pool import draw_points, principal_axes
from scwormhole.ot._scale import mean_and_spread
from scwormhole.ot._threads import one_thread

from ._blocks import batches, learned_from
from ._checks import check_counts
from ._common import Embedding
from ._gaussians import mean_and_factor
from ._solved import as_targets, solve_pairs


class Moments(Embedding):
    """The mean of each cloud and the square root of its covariance, as COVET has it for niches.

    Squared distances of vectors approximate the squared W2 of Gaussians: exact for means and for covariances that
    commute, else at most twice too large in the covariances' part.

    Parameters
    ----------
    n_components
        Principal axes, of the points seen from their cloud's mean, on which covariances are taken; all dimensions if
        they are no more than that. Means are taken in full.
    scaled
        Whether both parts get a factor, by non-negative least squares on solved pairs; else nothing is solved.
    metric
        See :func:`scwormhole.ot.pairwise`; ``"S2"`` or ``"W2"``.
    epsilon
        See :func:`scwormhole.ot.pairwise`.
    relative_epsilon
        See :func:`scwormhole.ot.pairwise`.
    n_pairs
        Pairs to solve.
    solver
        See :func:`scwormhole.ot.pairwise`.
    rng
        Seed of axes and pairs.

    Attributes
    ----------
    axes_
        The axes, one a row.
    scales_
        Factors of the squared distances of means and of roots.

    Examples
    --------
    >>> import numpy as np, scwormhole as wh
    >>> from scwormhole.baselines import Moments
    >>> square = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    >>> clouds = wh.PointClouds.from_list([square, 3 * square, square + [5.0, 0.0]])
    >>> Moments().fit(clouds).pairwise(clouds).round(3)
    array([[ 0.,  8., 25.],
           [ 8.,  0., 33.],
           [25., 33.,  0.]])
    """

    def __init__(
        self,
        *,
        n_components: int = 32,
        scaled: bool = False,
        metric: str | GroundCost = "S2",
        epsilon: float = 0.05,
        relative_epsilon: RelativeEpsilon = "mean",
        n_pairs: int = 500,
        solver: SolverName = "auto",
        rng: int = 0,
    ) -> None:
        super().__init__(
            {
                "n_components": n_components,
                "scaled": scaled,
                "metric": metric,
                "epsilon": epsilon,
                "relative_epsilon": relative_epsilon,
                "n_pairs": n_pairs,
                "solver": solver,
                "rng": rng,
            }
        )

    def _fit(self, clouds: Cohort) -> None:
        """Find the axes, and the factors if asked for."""
        params = self._params
        check_counts(params, "n_components")
        targets = as_targets(clouds, params)
        self.origin_ = mean_and_spread((clouds,), params["rng"])[0].mean(0)
        self.axes_ = np.eye(clouds.dim)
        if clouds.dim > params["n_components"]:
            with one_thread:
                chosen = learned_from(clouds, params["rng"])
                points, _ = draw_points(clouds, chosen, centred=True, rng=params["rng"])
                self.axes_ = principal_axes(points, params["n_components"], params["rng"])
        self.scales_ = np.ones(2)
        if params["scaled"]:
            solved = solve_pairs(clouds, targets, params)
            self.epsilon_, self.metric_ = solved.epsilon, params["metric"]
            z = self.transform(solved.clouds).astype(np.float64)
            squares = (z[solved.first] - z[solved.second]) ** 2
            parts = [part.sum(axis=1) for part in np.split(squares, [clouds.dim], axis=1)]
            self.scales_ = non_negative(np.stack(parts, axis=1), solved.values)

    def transform(self, clouds: Cohort) -> NDArray[np.float32]:
        """Return the mean of each cloud, and the root of its covariance: the diagonal and above, there times root two.

        Parameters
        ----------
        clouds
            A cohort of the dimension that was fitted.
        """
        clouds = self._known(clouds)
        rows, columns = np.triu_indices(len(self.axes_))
        twice = np.where(rows == columns, 1.0, np.sqrt(2.0))
        z = np.empty((len(clouds), clouds.dim + len(rows)), np.float32)
        with one_thread:
            for batch in batches(clouds, 2 * clouds.dim + len(self.axes_) ** 2):
                means, factors = mean_and_factor(batch.points, batch.weights)
                z[batch.index, : clouds.dim] = np.sqrt(self.scales_[0]) * (means - self.origin_)
                roots = _root(factors @ self.axes_.T)[:, rows, columns]
                z[batch.index, clouds.dim :] = np.sqrt(self.scales_[1]) * twice * roots
        return z


def _root(factors: NDArray[np.float64]) -> NDArray[Any]:
    """Return the symmetric root of ``F' F``."""
    _, deviations, axes = np.linalg.svd(factors, full_matrices=False)
    return np.asarray(np.swapaxes(axes, -1, -2) @ (deviations[..., None] * axes))
