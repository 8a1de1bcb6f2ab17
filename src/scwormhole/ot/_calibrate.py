"""Calibration of a cohort: its scale, its epsilon, and what a tolerance costs, from a seeded sample of real pairs."""

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ._cohort import Cohort, as_cohort
from ._info import TransportWarning
from ._metrics import GroundCost, as_metric
from ._options import RelativeEpsilon
from ._pairwise import distances
from ._scale import as_epsilon, box, mean_cost


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """What was found of a cohort before training on it.

    Parameters
    ----------
    shift
        What the paper's scaling takes from every point; zero where no scaling was asked for.
    factor
        What it multiplies the rest with; one where no scaling was asked for.
    mean_cost
        Mean ground cost between clouds, in the user's units.
    epsilon
        Regularisation in the user's units.
    iterations
        Iterations after which 95 % of sampled pairs were done.
    most_iterations
        Iterations after which all of them were.
    converged
        Share of sampled pairs that met the tolerance; the others were left at ``max_iterations``.
    mean_distance
        Mean distance of the sampled pairs, in the user's units.
    n_pairs
        Number of pairs sampled.
    tol
        The tolerance.
    rng
        The seed.
    """

    shift: NDArray[np.float64]
    factor: float
    mean_cost: float
    epsilon: float
    iterations: int
    most_iterations: int
    converged: float
    mean_distance: float
    n_pairs: int
    tol: float
    rng: int


def calibrate(
    clouds: Cohort,
    metric: str | GroundCost = "S2",
    *,
    epsilon: float = 0.05,
    relative_epsilon: RelativeEpsilon = "mean",
    scale: bool = True,
    tol: float = 1e-3,
    max_iterations: int = 1000,
    n_pairs: int = 64,
    rng: int = 0,
) -> Calibration:
    """Measure what must be known of a cohort before much work is done on it.

    Pairs are drawn from the cohort and solved at their real sizes, which takes seconds.

    Parameters
    ----------
    clouds
        The cohort.
    metric
        See :func:`pairwise`.
    epsilon
        See :func:`pairwise`.
    relative_epsilon
        See :func:`pairwise`.
    scale
        Whether to look for the paper's box, [-1, 1] for all coordinates together, divided by the square root of the
        dimension where it is above three. The distances here stay in the user's units all the same.
    tol
        See :func:`pairwise`.
    max_iterations
        See :func:`pairwise`.
    n_pairs
        Number of pairs to solve, at most one a cloud.
    rng
        Seed of the sample.

    Examples
    --------
    >>> import numpy as np, scwormhole as wh
    >>> points = np.random.default_rng(0).normal(size=(8, 20, 2))
    >>> found = wh.ot.calibrate(wh.PointClouds.from_list(list(points)), n_pairs=16)
    >>> found.converged, round(found.epsilon / found.mean_cost, 3)
    (1.0, 0.05)
    """
    clouds = as_cohort(clouds, "clouds")
    if n_pairs < 1:
        raise ValueError(f"n_pairs is {n_pairs}; give at least 1.")
    known = as_metric(metric)
    used = as_epsilon((clouds,), known, epsilon, relative_epsilon, rng)
    generator = np.random.default_rng(rng)
    count = min(n_pairs, len(clouds))
    first = np.sort(generator.choice(len(clouds), count, replace=False))
    second = (first + generator.integers(1, max(len(clouds), 2))) % len(clouds)
    order = np.argsort(second)  # each cloud is in one pair on each side
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* did not reach", TransportWarning)  # told by `converged`
        values, info = distances(
            clouds[first[order]],
            clouds[second[order]],
            metric,
            epsilon=used,
            relative_epsilon=None,
            tol=tol,
            max_iterations=max_iterations,
            progress=False,
            rng=rng,
            return_info=True,
        )
    shift, factor = box((clouds,)) if scale else (np.zeros(clouds.dim), 1.0)
    return Calibration(
        shift=shift,
        factor=factor,
        mean_cost=mean_cost((clouds,), known, rng),
        epsilon=used,
        iterations=int(np.percentile(info.iterations, 95, method="higher")),
        most_iterations=int(info.iterations.max()),
        converged=float(info.converged.mean()),
        mean_distance=float(values.mean()),
        n_pairs=count,
        tol=tol,
        rng=rng,
    )
