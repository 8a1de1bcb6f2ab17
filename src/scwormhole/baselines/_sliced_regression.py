"""Regression of W2 on sliced bounds from below and above (RG; Nguyen, Nguyen and Ho 2025, arXiv:2509.20508). NumPy.

Along a direction transport is sorting. What it costs on the line is below the squared W2; what the same coupling costs
in the full space is above it. Over many directions this gives three roots of costs on either side, paired as in RG:

=====================  ==============================================  ============================================
mean over directions   sliced W2                                       projected W2
weighted mean          energy-based sliced W2, large costs count more  expected sliced transport, small ones do
extreme                max-sliced W2                                   min-sliced generalised geodesic
=====================  ==============================================  ============================================

W2 itself, not squared, is a linear combination of them: by plain least squares, or as the mean over the three pairs of
``w lower + (1 - w) upper`` with ``0 <= w <= 1``, which has half as many coefficients.

A cloud is kept as its points at equally spaced quantiles along each direction. So couplings of two clouds are between
places of the same number, and a block of pairs is a few matrix products a direction.
"""

import warnings
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import lsq_linear

from scwormhole.ot._cohort import Cohort
from scwormhole.ot._metrics import GroundCost
from scwormhole.ot._options import RelativeEpsilon, SolverName
from scwormhole.ot._scale import mean_and_spread
from scwormhole.ot._slices import along
from scwormhole.ot._solver import squared_gaps
from scwormhole.ot._threads import one_thread

from ._blocks import blocks
from ._checks import check_counts
from ._common import Array, Comparison, Kept
from ._directions import turned_directions
from ._solved import as_targets, solve_pairs

Model = Literal["auto", "constrained", "unconstrained"]
Float = NDArray[np.float64]
BOUNDS = ("sliced", "energy_sliced", "max_sliced", "projected", "expected", "min_lifted")  # lower ones, upper ones
MOST_QUANTILES = 128
# A little off the middle of each cell: where a quantile function jumps there, rounding would decide.
PLACE = 0.501
FOLDS = 5
LEAST_PAIRS = 2 * FOLDS  # to hold some out


class SlicedRegression(Comparison):
    """W2 as a linear combination of sliced bounds from below and above, fitted to a few hundred solved pairs.

    The squares of what the combination gives are returned, so they compare with ``"S2"`` and ``"W2"``. Bounds are over
    a fixed set of directions, none of them optimised; energies are in units of a pair's own mean cost, so nothing
    depends on the user's unit. There is no embedding.

    Parameters
    ----------
    n_directions
        Directions: evenly spread and turned at random in up to three dimensions, random above.
    n_quantiles
        Quantiles that clouds are sampled at along each direction; by default as many as the largest cloud has points,
        and at most 128. With as many equally heavy points in every cloud the couplings are exact.
    model
        ``"unconstrained"`` and ``"constrained"`` as in the paper; ``"auto"`` takes the better on held-out pairs, and
        ``"constrained"`` where there are too few to hold any out.
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
        Seed of directions, pairs and what is held out.

    Attributes
    ----------
    coefficients_
        Coefficient of each bound, by name.
    model_
        Which of the two models they are of.
    held_out_error_
        Root mean squared error of W2 on held-out pairs for each model that was tried, relative to its mean.

    Examples
    --------
    >>> import numpy as np, scwormhole as wh
    >>> from scwormhole.baselines import SlicedRegression
    >>> rng = np.random.default_rng(0)
    >>> clouds = wh.PointClouds.from_list([rng.normal(size=(20, 2)) * rng.gamma(5.0) for _ in range(30)])
    >>> rival = SlicedRegression(n_pairs=200).fit(clouds[:20])
    >>> rival.pairwise(clouds[20:], clouds).shape
    (10, 30)
    """

    def __init__(
        self,
        *,
        n_directions: int = 64,
        n_quantiles: int | None = None,
        model: Model = "auto",
        metric: str | GroundCost = "S2",
        epsilon: float = 0.05,
        relative_epsilon: RelativeEpsilon = "mean",
        n_pairs: int = 400,
        solver: SolverName = "auto",
        rng: int = 0,
    ) -> None:
        super().__init__(
            {
                "n_directions": n_directions,
                "n_quantiles": n_quantiles,
                "model": model,
                "metric": metric,
                "epsilon": epsilon,
                "relative_epsilon": relative_epsilon,
                "n_pairs": n_pairs,
                "solver": solver,
                "rng": rng,
            }
        )

    def _fit(self, clouds: Cohort) -> None:
        """Solve pairs, and fit the coefficients to them."""
        params = self._params
        check_counts(params, "n_directions", *["n_quantiles"] * (params["n_quantiles"] is not None))
        if params["model"] not in get_args(Model):
            raise ValueError(f"model is {params['model']!r}; give one of {', '.join(map(repr, get_args(Model)))}.")
        targets = as_targets(clouds, params)
        self.origin_ = mean_and_spread((clouds,), params["rng"])[0].mean(0)
        self.directions_ = turned_directions(clouds.dim, params["n_directions"], params["rng"])
        self.n_quantiles_ = params["n_quantiles"] or min(int(clouds.sizes.max()), MOST_QUANTILES)
        solved = solve_pairs(clouds, targets, params)
        self.epsilon_, self.metric_ = solved.epsilon, params["metric"]
        bounds = self._listed(solved.clouds, solved.clouds, solved.first, solved.second)
        target = np.sqrt(np.maximum(solved.values, 0.0))
        tried = get_args(Model)[1:] if params["model"] == "auto" else (params["model"],)
        self.held_out_error_ = {model: _held_out(bounds, target, model, params["rng"]) for model in tried}
        self.model_ = min(tried, key=self.held_out_error_.__getitem__)
        found = _regress(bounds, target, self.model_)
        self.coefficients_ = dict(zip(BOUNDS, found.tolist(), strict=True))
        if len(target) < LEAST_PAIRS:
            warnings.warn(
                f"SlicedRegression is fitted to {len(target)} pairs. Of fewer than {LEAST_PAIRS} none are held out, so "
                f"nothing tells how good its {self.model_} model is; raise n_pairs, or fit to more clouds.",
                stacklevel=3,
            )

    def bounds(self, first: Cohort, second: Cohort) -> dict[str, Float]:
        """Return what W2 is a combination of, not squared, between the clouds of two cohorts, one to one, by name.

        They are bounds on W2 for clouds of ``n_quantiles`` equally heavy points. Others are sampled at their quantiles,
        and a value may be on the wrong side of W2 by what that changes.

        Parameters
        ----------
        first
            A cohort of the dimension that was fitted.
        second
            Another of as many clouds.
        """
        first, second = self._known_pairs(first, second)
        every = np.arange(len(first))
        return dict(zip(BOUNDS, self._listed(first, second, every, every).T, strict=True))

    def _listed(self, first: Cohort, second: Cohort, i: NDArray[np.int64], j: NDArray[np.int64]) -> Float:
        """Return the bounds for listed pairs, pairs by bounds."""
        found = np.empty((len(i), len(BOUNDS)))
        with one_thread:
            for some in blocks(np.maximum(first.rungs[i], second.rungs[j]), self._size):
                x, y = self._look(first, i[some]), self._look(second, j[some])
                found[some] = _bounds(*_costs(x, y))
        return found

    def _keep(self, points: Array, weights: Array) -> Kept:
        """Points at the quantiles along each direction, ``[b, l, q * d]``, and their coordinates, ``[b, l, q]``."""
        seen = points - self.origin_
        places = _quantile_places(along(seen, self.directions_), weights, self.n_quantiles_)
        chosen = seen[np.arange(len(seen))[:, None, None], places]  # [b, l, q, d]
        line = np.einsum("blqd,ld->blq", chosen, self.directions_)
        return chosen.reshape(*places.shape[:2], -1), line

    def _size(self, rung: int) -> int:
        """Return the numbers held for a cloud: sorted places, and chosen points twice."""
        held = len(self.directions_) * (4 * rung + 2 * self.n_quantiles_ * (self.dim_ + 1))
        return held + rung * self.dim_

    def _work(self, x: Kept, y: Kept) -> int:
        return 6 * len(self.directions_)

    def _paired(self, x: Kept, y: Kept) -> Float:
        return self._combined(_bounds(*_costs(x, y)))

    def _crossed(self, x: Kept, y: Kept) -> Float:
        lower, upper = np.empty((2, len(x[0]), len(y[0]), len(self.directions_)))
        for number in range(len(self.directions_)):
            upper[..., number], lower[..., number] = (
                squared_gaps(one[:, number], other[:, number]) / self.n_quantiles_
                for one, other in zip(x, y, strict=True)
            )
        return self._combined(_bounds(lower, upper))

    def _combined(self, bounds: Float) -> Float:
        return np.asarray(np.maximum(bounds @ list(self.coefficients_.values()), 0.0) ** 2)


def _quantile_places(values: Array, weights: Array, n: int) -> NDArray[np.int64]:
    """Return which place of a cloud holds each of equally spaced quantiles, clouds by directions by quantiles.

    The step functions of all rows lie end to end on one line, ``[r, r + 1]`` each, so one search finds all.
    """
    order = np.argsort(np.where((weights > 0)[:, None], values, np.inf), axis=2)
    mass = np.take_along_axis(np.broadcast_to(weights[:, None].astype(np.float64), values.shape), order, axis=2)
    knots = np.cumsum(mass, axis=2).reshape(-1, values.shape[2])
    row = np.arange(len(knots))[:, None]
    wanted = row + (np.arange(n) + PLACE) / n
    found = np.searchsorted((knots / knots[:, -1:] + row).ravel(), wanted) - row * values.shape[2]
    return np.take_along_axis(order, found.reshape(*values.shape[:2], n), axis=2)


def _costs(x: Kept, y: Kept) -> tuple[Float, Float]:
    """Return what the coupling along each direction costs on the line and in the full space, ``[..., l]``."""
    (x_points, x_line), (y_points, y_line) = x, y
    upper = ((x_points - y_points) ** 2).sum(axis=-1) / x_line.shape[-1]
    return ((x_line - y_line) ** 2).mean(axis=-1), upper


def _bounds(lower: Float, upper: Float) -> Float:
    """Return the bounds on W2 in the order of ``BOUNDS``, ``[..., 6]``, from costs along directions, ``[..., l]``."""
    found = [
        lower.mean(axis=-1),
        _weighted(lower, 1.0),
        lower.max(axis=-1),
        upper.mean(axis=-1),
        _weighted(upper, -1.0),
        upper.min(axis=-1),
    ]
    return np.asarray(np.sqrt(np.stack(found, axis=-1)))


def _weighted(costs: Float, sign: float) -> Float:
    """Return the mean of costs by their energies, in units of their plain mean."""
    mean = costs.mean(axis=-1, keepdims=True)
    energy = sign * costs / np.where(mean > 0, mean, 1.0)
    weights = np.exp(energy - energy.max(axis=-1, keepdims=True))
    return np.asarray((weights * costs).sum(axis=-1) / weights.sum(axis=-1))


def _regress(bounds: Float, target: Float, model: str) -> Float:
    """Return the coefficients of the bounds by least squares."""
    if model == "unconstrained":
        return np.asarray(np.linalg.lstsq(bounds, target, rcond=1e-9)[0])
    n = len(BOUNDS) // 2
    lower, upper = bounds[:, :n], bounds[:, n:]
    share = lsq_linear((lower - upper) / n, target - upper.mean(axis=1), bounds=(0.0, 1.0)).x
    return np.concatenate([share, 1 - share]) / n


def _held_out(bounds: Float, target: Float, model: str, rng: int) -> float:
    """Return the relative error on pairs that were not fitted to; infinite where there are too few to tell."""
    folds = np.random.default_rng(rng).permutation(len(target)) % FOLDS
    if len(target) < LEAST_PAIRS or not target.mean() > 0:
        return float("inf")
    error = np.empty(len(target))
    for fold in range(FOLDS):
        out = folds == fold
        error[out] = bounds[out] @ _regress(bounds[~out], target[~out], model) - target[out]
    return float(np.sqrt((error**2).mean()) / target.mean())
