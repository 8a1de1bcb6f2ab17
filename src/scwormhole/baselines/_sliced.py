"""Sliced Wasserstein vectors as they are: drives what sorts clouds along directions, and scales it. NumPy."""

import numpy as np
from numpy.typing import NDArray

from scwormhole.ot._cohort import Cohort
from scwormhole.ot._metrics import GroundCost
from scwormhole.ot._options import RelativeEpsilon, SolverName
from scwormhole.ot._scale import mean_and_spread
from scwormhole.ot._slices import sliced
from scwormhole.ot._threads import one_thread

from ._blocks import batches
from ._checks import check_counts
from ._common import Embedding
from ._directions import turned_directions
from ._solved import as_targets, solve_pairs


class SlicedFeatures(Embedding):
    """Quantile functions of a cloud along many directions, one factor fitted: plain sliced Wasserstein vectors.

    The squared distance of two vectors is the mean over the directions of the one-dimensional squared W2, times the
    dimension and a factor. With the factor one, a translate is at the square of the shift: exactly on a line and, from
    two directions on, in the plane; within 2 % in space, for 64 directions; above with the noise of random directions.

    Parameters
    ----------
    n_directions
        Directions: evenly spread in up to three dimensions, random above.
    n_cells
        Cells of each quantile function, over which it is averaged.
    scaled
        Whether the factor is fitted to solved pairs by least squares; else it is one, and nothing is solved.
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
        Seed of directions and pairs.

    Attributes
    ----------
    directions_
        The directions.
    n_cells_
        Cells of each quantile function.
    scale_
        The factor, of squared distances.

    Examples
    --------
    >>> import numpy as np, scwormhole as wh
    >>> from scwormhole.baselines import SlicedFeatures
    >>> points = np.random.default_rng(0).normal(size=(30, 2))
    >>> clouds = wh.PointClouds.from_list([points, points + [3.0, 4.0]])
    >>> SlicedFeatures(scaled=False).fit(clouds).pairwise(clouds).round(3)
    array([[ 0., 25.],
           [25.,  0.]])
    """

    def __init__(
        self,
        *,
        n_directions: int = 64,
        n_cells: int = 32,
        scaled: bool = True,
        metric: str | GroundCost = "S2",
        epsilon: float = 0.05,
        relative_epsilon: RelativeEpsilon = "mean",
        n_pairs: int = 500,
        solver: SolverName = "auto",
        rng: int = 0,
    ) -> None:
        super().__init__(
            {
                "n_directions": n_directions,
                "n_cells": n_cells,
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
        """Draw directions, and fit the factor."""
        params = self._params
        check_counts(params, "n_directions", "n_cells")
        targets = as_targets(clouds, params)
        self.n_cells_ = params["n_cells"]
        self.origin_ = mean_and_spread((clouds,), params["rng"])[0].mean(0)
        self.directions_ = turned_directions(clouds.dim, params["n_directions"], params["rng"])
        self.scale_ = 1.0
        if params["scaled"]:
            solved = solve_pairs(clouds, targets, params)
            self.epsilon_, self.metric_ = solved.epsilon, params["metric"]
            z = self.transform(solved.clouds)
            found = self._paired(z[solved.first], z[solved.second])
            self.scale_ = float(found @ solved.values / (found @ found)) if found.any() else 1.0

    def transform(self, clouds: Cohort) -> NDArray[np.float32]:
        """Return the quantile functions of each cloud along the directions.

        Parameters
        ----------
        clouds
            A cohort of the dimension that was fitted.
        """
        clouds = self._known(clouds)
        z = np.empty((len(clouds), len(self.directions_) * self.n_cells_), np.float32)
        with one_thread:
            for batch in batches(clouds, max(clouds.dim, len(self.directions_))):
                some = sliced(batch.points - self.origin_, batch.weights, self.directions_, n_cells=self.n_cells_)
                z[batch.index] = np.sqrt(self.scale_) * some
        return z
