"""The coupling of two clouds: which point goes where. Host code around the solvers."""

import warnings
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ._cohort import Cohort
from ._info import TransportWarning
from ._metrics import GroundCost
from ._options import Options, RelativeEpsilon, SolverName


def coupling(
    x: Any,
    y: Any,
    metric: str | GroundCost = "W2",
    *,
    epsilon: float = 0.05,
    relative_epsilon: RelativeEpsilon = "mean",
    solver: SolverName = "auto",
    tol: float = 1e-6,
    max_iterations: int = 10_000,
    rank: int = 32,
    rng: int = 0,
) -> NDArray[np.float64]:
    """Compute how much of each point of one cloud goes to each point of another.

    Parameters
    ----------
    x
        A cloud: an array of points, of equal weights, or points and weights, as ``clouds[3]`` gives them.
    y
        Another cloud of the same dimension.
    metric
        See :func:`pairwise`; a divergence and its cost have the same coupling.
    epsilon
        See :func:`pairwise`; small values give sharp couplings.
    relative_epsilon
        ``"mean"`` makes ``epsilon`` a share of the mean ground cost between the two clouds; None takes it as it is.
    solver
        See :func:`pairwise`.
    tol
        See :func:`pairwise`.
    max_iterations
        See :func:`pairwise`.
    rank
        See :func:`pairwise`.
    rng
        Seed of the low-rank solver.

    Returns
    -------
    A matrix whose rows sum to the weights of ``x`` and whose columns sum to those of ``y``.

    Examples
    --------
    >>> import numpy as np, scwormhole as wh
    >>> line = np.arange(3.0)[:, None]
    >>> wh.ot.coupling(line, line[::-1] + 10.0, solver="exact").round(2)
    array([[0.  , 0.  , 0.33],
           [0.  , 0.33, 0.  ],
           [0.33, 0.  , 0.  ]])
    """
    clouds = [_cloud(cloud, name) for cloud, name in ((x, "x"), (y, "y"))]
    dims = [points.shape[1] for points, _ in clouds]
    if dims[0] != dims[1]:
        raise ValueError(f"x has {dims[0]} dimensions and y {dims[1]}; give the same coordinates of both.")
    if relative_epsilon == "box":
        raise ValueError("relative_epsilon is 'box', which is for a cohort; give 'mean' or None for a coupling.")
    options = Options(
        metric=metric,
        epsilon=epsilon,
        relative_epsilon=relative_epsilon,
        solver=solver,
        tol=tol,
        max_iterations=max_iterations,
        max_points=None,
        rank=rank,
        max_memory="2 GiB",
        progress=False,
        rng=rng,
    )
    found = options.drive((cast(Cohort, clouds),)).solver
    one, other = (found.prepare(points[None], weights[None]) for points, weights in clouds)
    plan, converged = found.plan(one, other)
    if not converged:
        warnings.warn(
            f"the coupling did not reach the tolerance in {max_iterations:,} iterations; its marginals are exact, but "
            "it is not yet the best. Raise max_iterations or epsilon.",
            TransportWarning,
            stacklevel=2,
        )
    return _with_marginals(_folded(plan, *(len(points) for points, _ in clouds)), clouds[0][1], clouds[1][1])


def _cloud(cloud: Any, name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if isinstance(cloud, tuple):
        points, weights = (np.asarray(part, np.float64) for part in cloud)
    else:
        points = np.asarray(cloud, np.float64)
        weights = np.ones(len(points)) if points.ndim else np.ones(0)
    if points.ndim != 2 or not points.size:
        raise ValueError(f"{name} has shape {points.shape}; give points as rows, at least one of them.")
    if weights.shape != points.shape[:1]:
        raise ValueError(
            f"{name} has {len(points)} points and weights of shape {weights.shape}; give one weight a point."
        )
    if not np.isfinite(points).all():
        raise ValueError(
            f"{name} has points that are not finite, the first at row {int(np.argwhere(~np.isfinite(points))[0, 0])}; "
            "drop such points, or fill them in first."
        )
    if not np.isfinite(weights).all() or weights.min() < 0 or not weights.sum() > 0:
        raise ValueError(f"weights of {name} must be finite, not negative and not all zero.")
    return points, weights / weights.sum()


def _folded(plan: NDArray[np.float64], n: int, m: int) -> NDArray[np.float64]:
    """Return the plan without padding that a solver added, which lay at the first points."""
    plan = plan.copy()
    plan[0] += plan[n:].sum(0)
    plan[:, 0] += plan[:, m:].sum(1)
    return plan[:n, :m]


def _with_marginals(plan: NDArray[np.float64], a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the plan moved to exact marginals: scaled down, and the rest spread evenly (Altschuler et al. 2017)."""
    plan = plan * np.minimum(1.0, _ratio(a, plan.sum(1)))[:, None]
    plan = plan * np.minimum(1.0, _ratio(b, plan.sum(0)))
    rows, columns = np.maximum(a - plan.sum(1), 0), np.maximum(b - plan.sum(0), 0)
    left = rows.sum()
    return plan + np.outer(rows, columns / left) if left > 0 else plan


def _ratio(wanted: NDArray[np.float64], found: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.divide(wanted, found, out=np.ones_like(wanted), where=found > 0)
