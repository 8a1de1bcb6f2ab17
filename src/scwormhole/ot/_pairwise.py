"""The distances that users ask for: all pairs of a cohort, or two cohorts one to one. Host code only."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._cohort import Cohort, as_cohort
from ._info import dress
from ._metrics import GroundCost
from ._options import Options, RelativeEpsilon, SolverName


def pairwise(
    clouds: Cohort,
    metric: str | GroundCost = "S2",
    *,
    epsilon: float = 0.05,
    relative_epsilon: RelativeEpsilon = "mean",
    solver: SolverName = "auto",
    tol: float = 1e-3,
    max_iterations: int = 1000,
    max_points: int | None = None,
    rank: int = 32,
    max_memory: int | str = "2 GiB",
    progress: bool = True,
    rng: int = 0,
    return_info: bool = False,
) -> Any:
    """Compute optimal transport between every two clouds of a cohort.

    Parameters
    ----------
    clouds
        The cohort.
    metric
        ``"S2"`` (default) and ``"S1"`` are Sinkhorn divergences with the squared Euclidean and the L1 ground cost,
        ``"W2"`` and ``"W1"`` entropic costs, ``"GS"`` and ``"GW"`` the same for Gromov-Wasserstein with squared
        Euclidean distances within each cloud. A function of two points, symmetric and written in ``jax.numpy``, is a
        ground cost of your own, of which the Sinkhorn divergence is taken.
    epsilon
        Entropic regularisation: a share of the mean ground cost between clouds, or absolute (see ``relative_epsilon``).
    relative_epsilon
        ``"mean"`` makes ``epsilon`` a share of the cohort's mean ground cost; None takes it in the units of the cost;
        ``"box"`` takes it as for points scaled to [-1, 1], above three dimensions divided by the square root of the
        dimension, as the paper does. Distances are in the user's units in any case.
    solver
        ``"auto"`` is ``"sinkhorn"``, for GW and GS inside a mirror descent. ``"exact"`` solves the unregularised
        problem by POT's network simplex, ``"low_rank"`` approximates large clouds by OTT's low-rank Sinkhorn.
    tol
        Largest estimated error of a distance, relative to it. Below 1e-4 the work is done in double precision.
    max_iterations
        Where a pair that does not converge is left, with a warning.
    max_points
        Largest number of points a cloud is solved with; larger clouds are sampled by weight, seeded by their position.
    rank
        Rank of the low-rank solver.
    max_memory
        Memory for work in progress, in bytes or as ``"2 GiB"``; the table of distances and its record come on top.
    progress
        Whether to show a bar once the work takes over two seconds.
    rng
        Seed of all sampling.
    return_info
        Whether to return a :class:`TransportInfo` beside the distances.

    Returns
    -------
    A matrix of distances in the units of the ground cost (squared lengths for ``"S2"`` and ``"W2"``, their squares for
    ``"GS"`` and ``"GW"``), with the record of how each came about if asked for.

    Examples
    --------
    >>> import numpy as np, scwormhole as wh
    >>> square = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> clouds = wh.PointClouds.from_list([square, square + 3.0])
    >>> wh.ot.pairwise(clouds).round(3)
    array([[ 0., 18.],
           [18.,  0.]])
    """
    clouds = as_cohort(clouds, "clouds")
    options = Options(
        metric=metric,
        epsilon=epsilon,
        relative_epsilon=relative_epsilon,
        solver=solver,
        tol=tol,
        max_iterations=max_iterations,
        max_points=max_points,
        rank=rank,
        max_memory=max_memory,
        progress=progress,
        rng=rng,
    )
    drive = options.drive((clouds,))
    table = drive.all_pairs(clouds)
    large = _large(clouds, max_points)
    distances, info = dress(table, drive.solver, drive.metric, max_points=max_points, sampled=large[:, None] | large)
    return (distances, info) if return_info else distances


def distances(
    first: Cohort,
    second: Cohort,
    metric: str | GroundCost = "S2",
    *,
    epsilon: float = 0.05,
    relative_epsilon: RelativeEpsilon = "mean",
    solver: SolverName = "auto",
    tol: float = 1e-3,
    max_iterations: int = 1000,
    max_points: int | None = None,
    rank: int = 32,
    max_memory: int | str = "2 GiB",
    progress: bool = True,
    rng: int = 0,
    return_info: bool = False,
) -> Any:
    """Compute optimal transport between the clouds of two cohorts, one to one.

    Parameters
    ----------
    first
        A cohort.
    second
        Another of as many clouds and the same dimension; its cloud ``i`` is compared with cloud ``i`` of the first.
    metric
        See :func:`pairwise`.
    epsilon
        See :func:`pairwise`.
    relative_epsilon
        See :func:`pairwise`; mean and box are those of both cohorts.
    solver
        See :func:`pairwise`.
    tol
        See :func:`pairwise`.
    max_iterations
        See :func:`pairwise`.
    max_points
        See :func:`pairwise`.
    rank
        See :func:`pairwise`.
    max_memory
        See :func:`pairwise`.
    progress
        See :func:`pairwise`.
    rng
        See :func:`pairwise`.
    return_info
        See :func:`pairwise`.

    Returns
    -------
    One distance a pair, with the record of how each came about if asked for.

    Examples
    --------
    >>> import numpy as np, scwormhole as wh
    >>> line = np.linspace(0.0, 1.0, 5)[:, None]
    >>> here = wh.PointClouds.from_list([line, 2 * line])
    >>> there = wh.PointClouds.from_list([line + 2.0, 2 * line])
    >>> wh.ot.distances(here, there).round(3)
    array([4., 0.])
    """
    first, second = as_cohort(first, "first"), as_cohort(second, "second")
    if len(first) != len(second):
        raise ValueError(
            f"first has {len(first):,} clouds and second {len(second):,}; distances are one to one. "
            "For every cloud with every cloud, join them and call pairwise."
        )
    if first.dim != second.dim:
        raise ValueError(
            f"first has {first.dim} dimensions and second {second.dim}; give the same coordinates of both."
        )
    options = Options(
        metric=metric,
        epsilon=epsilon,
        relative_epsilon=relative_epsilon,
        solver=solver,
        tol=tol,
        max_iterations=max_iterations,
        max_points=max_points,
        rank=rank,
        max_memory=max_memory,
        progress=progress,
        rng=rng,
    )
    drive = options.drive((first, second))
    table = drive.one_to_one(first, second)
    values, info = dress(
        table,
        drive.solver,
        drive.metric,
        max_points=max_points,
        sampled=_large(first, max_points) | _large(second, max_points),
    )
    return (values, info) if return_info else values


def _large(clouds: Cohort, max_points: int | None) -> NDArray[np.bool_]:
    return np.zeros(len(clouds), bool) if max_points is None else clouds.sizes > max_points
