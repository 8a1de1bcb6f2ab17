"""Pairs of a cohort that are solved so that a rival can be fitted to them. Host code around ``ot.Targets``."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scwormhole.ot import Targets
from scwormhole.ot._cohort import Cohort
from scwormhole.ot._metrics import as_metric

from ._checks import check_counts


class SolvedPairs(NamedTuple):
    """Pairs of clouds, their divergences, and the epsilon these were solved with."""

    clouds: Cohort  # those of the cohort that are in a pair
    first: NDArray[np.int64]  # positions in it
    second: NDArray[np.int64]
    values: NDArray[np.float64]
    epsilon: float


def as_targets(clouds: Cohort, params: dict[str, Any]) -> Targets:
    """Check how transport is to be computed, also where nothing will be, and return what solves pairs.

    Parameters
    ----------
    clouds
        The cohort.
    params
        ``metric``, ``epsilon``, ``relative_epsilon`` and ``solver`` as in :func:`scwormhole.ot.pairwise`, ``n_pairs``
        and ``rng``. The ground cost must be squared Euclidean.
    """
    metric = as_metric(params["metric"])
    if not metric.separates_means:
        raise ValueError(f"metric is {metric.name!r}; this rival is for squared Euclidean costs, so give 'S2' or 'W2'.")
    check_counts(params, "n_pairs")
    settings = ("metric", "epsilon", "relative_epsilon", "solver", "n_pairs", "rng")
    return Targets(clouds, **{name: params[name] for name in settings})


def solve_pairs(clouds: Cohort, targets: Targets, params: dict[str, Any]) -> SolvedPairs:
    """Solve pairs drawn at random, or all there are.

    Parameters
    ----------
    clouds
        The cohort.
    targets
        Solves its pairs.
    params
        ``n_pairs`` and ``rng``.
    """
    first, second = draw_pairs(len(clouds), params["n_pairs"], params["rng"])
    values = targets.blocks(np.stack([first, second], axis=1))[:, 0, 1]
    targets.warn(stacklevel=4)
    used, places = np.unique(np.stack([first, second]), return_inverse=True)
    first, second = places.reshape(2, -1)
    return SolvedPairs(clouds[used], first, second, values, targets.epsilon)


def draw_pairs(n_clouds: int, n_pairs: int, rng: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return pairs of different clouds, none of them twice; all of them if there are no more than asked for."""
    total = n_clouds * (n_clouds - 1) // 2
    if total <= max(4 * n_pairs, 1 << 16):
        first, second = np.triu_indices(n_clouds, 1)
        chosen = np.sort(np.random.default_rng(rng).permutation(total)[:n_pairs])
        return first[chosen].astype(np.int64), second[chosen].astype(np.int64)
    # there are many more than drawn, so few come twice
    drawn = np.random.default_rng(rng).integers(n_clouds, size=(4 * n_pairs + 64, 2))
    different = np.sort(drawn[drawn[:, 0] != drawn[:, 1]], axis=1)
    kept = np.sort(np.unique(different, axis=0, return_index=True)[1])[:n_pairs]
    return different[kept, 0], different[kept, 1]
