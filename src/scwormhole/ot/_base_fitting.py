"""Fits the untrained embedding: which clouds are solved, what is held out, whether there is a nugget. Touches no files.

The class in ``_base`` only remembers what is found here.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._base_fit import BaseReport, FittedBase, own_columns
from ._cohort import Cohort
from ._invariant import InvariantParts
from ._mahalanobis import Array, Blocks, apart, both
from ._metrics import Metric
from ._parts import EuclideanParts, Measured
from ._pool import stream
from ._regression import Regression, regress
from ._slices import LOW_DIMENSION
from ._threads import one_thread

MOST_CLOUDS = 4096  # clouds that axes, tree and principal components are learned from
BLOCK, SMALL_BLOCK = 32, 16  # clouds of a block of solved pairs; the second where pairs are few
N_PAIRS, FEW_PAIRS, FEWEST_PAIRS = 24_000, 4_000, 500
SOLVED_NUMBERS = 2_000_000_000  # entries of all cost matrices together, where clouds are large
GROMOV_WORK = 10  # how many times dearer a pair is for Gromov-Wasserstein
WIDTH = 128  # principal components that the metric is fitted on, at least
NUGGET_FROM = 0.03  # share of the mean divergence above which a nugget is worth it
PINNED = 4  # the mean has columns of its own if it takes at most one in so many
HELD_OUT = 4  # one cloud in so many

Solve = Callable[[NDArray[np.int64]], Array]


def n_pairs_for(clouds: Cohort, metric: Metric) -> int:
    """Return how many pairs are worth solving: fewer where clouds are large."""
    work = float(clouds.sizes.mean() ** 2) * (GROMOV_WORK if metric.gromov else 1)
    return int(np.clip(SOLVED_NUMBERS / work, FEWEST_PAIRS, N_PAIRS))


def draw_blocks(n_clouds: int, n_pairs: int, rng: int) -> NDArray[np.int64]:
    """Return clouds in disjoint blocks of one size, within which about so many pairs can be formed."""
    least = BLOCK if n_pairs >= FEW_PAIRS else SMALL_BLOCK
    size = min(max(least, 2 * n_pairs // n_clouds + 2), n_clouds)
    count = max(1, min(n_clouds // size, round(n_pairs / (size * (size - 1) / 2))))
    return np.random.default_rng(rng).permutation(n_clouds)[: count * size].reshape(count, size)


def fit_base(
    clouds: Cohort,
    solve: Solve,
    metric: Metric,
    *,
    kind: str,
    n_components: int,
    nugget: bool | str,
    n_pairs: int,
    rng: int,
) -> FittedBase:
    """Measure, solve, regress.

    Parameters
    ----------
    clouds
        The cohort.
    solve
        Returns the divergences within blocks of clouds.
    metric
        The divergence.
    kind
        What is measured.
    n_components
        Length of a vector.
    nugget
        Whether there is one; ``"auto"`` finds out.
    n_pairs
        Pairs to solve, about.
    rng
        Seed.
    """
    degree = metric.degree or 2
    low = clouds.dim <= LOW_DIMENSION
    pinned = kind != "invariant" and low and metric.separates_means and n_components >= PINNED * clouds.dim
    members = draw_blocks(len(clouds), n_pairs, rng)
    chosen = _with_others(members, len(clouds), rng)
    with one_thread:
        parts = _learn_parts(clouds, chosen, kind, centred=pinned, absolute=degree == 1, rng=rng)
        measured = _measure(parts, clouds, chosen)
    target = solve(members)
    if not np.isfinite(target).all():
        raise ValueError(
            f"{(~np.isfinite(target)).sum():,} of the solved divergences are not finite; scale the points, raise "
            "epsilon, or look whether a ground cost of your own is finite."
        )
    n_mean = parts.n_mean if pinned else 0
    solved = Measured(*(column[: members.size].reshape(*members.shape, *column.shape[1:]) for column in measured))
    mean = solved.values[:, :, :n_mean]
    blocks = Blocks(
        solved.values[:, :, n_mean:],
        own_columns(solved, parts.size, degree),
        target - apart(mean @ mean.transpose(0, 2, 1)),
        1 - np.stack([clouds.shared_mass(some) for some in members]),
    )
    groups, families, trust = parts.groups[n_mean:], parts.families[n_mean:], parts.trust[n_mean:]
    width = n_components - n_mean

    others = measured.values[members.size :, n_mean:]

    def fitted(some: Blocks, with_nugget: bool) -> Regression:
        seen = np.concatenate([some.values.reshape(-1, some.values.shape[2]), others])
        return regress(some, seen, groups, families, trust, width=max(WIDTH, width), nugget=with_nugget, rng=rng)

    with one_thread:
        final, report = _decide(fitted, blocks, target, width, nugget)
    return FittedBase(parts, final, degree, pinned, n_components, report)


def _decide(
    fitted: Callable[[Blocks, bool], Regression], blocks: Blocks, target: Array, width: int, nugget: bool | str
) -> tuple[Regression, BaseReport]:
    """Fit to a part of the clouds to learn what it is worth and whether there is a nugget, then to all."""
    train, unseen = _split(blocks)
    trial = fitted(train, nugget is not False)
    share = _share(trial, blocks, target, width)
    keep = share > NUGGET_FROM if nugget == "auto" else bool(nugget)
    if trial.nugget != keep:
        trial = fitted(train, keep)
    trial = trial._replace(beside=_beside(trial, blocks, target, width, unseen))
    final = fitted(blocks, keep)._replace(beside=trial.beside)
    correlation, error = _agreement(trial, blocks, target, width, unseen)
    everywhere = np.broadcast_to(blocks.pairs, target.shape)
    return final, BaseReport(
        n_clouds=target.shape[0] * target.shape[1],
        n_pairs=int(everywhere.sum()),
        correlation=_agreement(final, blocks, target, width, everywhere)[0],
        held_out_correlation=correlation,
        held_out_error=error,
        nugget_share=share,
    )


def _with_others(members: NDArray[np.int64], n_clouds: int, rng: int) -> NDArray[np.int64]:
    """Return the clouds that are solved and, after them, others to learn the cohort's variance from."""
    others = np.random.default_rng(rng).permutation(np.setdiff1d(np.arange(n_clouds), members))
    return np.concatenate([members.ravel(), others[: max(0, MOST_CLOUDS - members.size)]])


def _learn_parts(
    clouds: Cohort, chosen: NDArray[np.int64], kind: str, *, centred: bool, absolute: bool, rng: int
) -> EuclideanParts | InvariantParts:
    if kind == "invariant":
        return InvariantParts.fit(clouds, chosen)
    return EuclideanParts.fit(clouds, chosen, centred=centred, tree=kind == "tree", absolute=absolute, rng=rng)


def _measure(parts: EuclideanParts | InvariantParts, clouds: Cohort, chosen: NDArray[np.int64]) -> Measured:
    """Measure some clouds, in their order."""
    place = np.empty(len(clouds), np.int64)
    place[chosen] = np.arange(len(chosen))
    out: list[NDArray[Any]] = []
    for batch in stream(clouds, parts.width, chosen):
        found = parts.measure(batch.points, batch.weights)
        if not out:
            out = [np.empty((len(chosen), *column.shape[1:])) for column in found]
        for column, new in zip(out, found, strict=True):
            column[place[batch.index]] = new[: len(batch.index)]
    return Measured(*out)


def _split(blocks: Blocks) -> tuple[Blocks, NDArray[np.bool_]]:
    """Leave out every fourth cloud, or whole blocks of them; return the rest, and the pairs of those left out."""
    n_blocks, m, _ = blocks.target.shape
    unseen = np.zeros(blocks.target.shape, bool)
    if n_blocks >= HELD_OUT:
        kept = n_blocks - n_blocks // HELD_OUT
        unseen[kept:] = blocks.pairs
        return Blocks(*(array[:kept] for array in blocks)), unseen
    kept = m - m // HELD_OUT
    unseen[:] = blocks.pairs
    unseen[:, :kept, :kept] = False
    some = (blocks.values[:, :kept], blocks.noise[:, :kept], *(table[:, :kept, :kept] for table in blocks[2:]))
    return Blocks(*some), unseen


def _predicted(regression: Regression, blocks: Blocks, target: Array, width: int) -> tuple[Array, Array]:
    """Return predicted divergences and what of them is nugget, tables of each block."""
    z, own = regression.embed(blocks.values, blocks.noise, width)
    nugget = both(own, blocks.fresh)
    means = target - blocks.target
    return means + apart(z @ z.transpose(0, 2, 1)) + nugget, nugget


def _beside(
    regression: Regression, blocks: Blocks, target: Array, width: int, unseen: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return how much of what lies beside the principal components counts, by clouds that these were not found on."""
    if not regression.nugget:
        return np.zeros(())
    own = regression.lost(blocks.values, (blocks.values - regression.centre) @ regression.basis)
    column = both(own, blocks.fresh)[unseen]
    missing = (target - _predicted(regression, blocks, target, width)[0])[unseen]
    return np.array(np.clip(column @ missing / np.maximum(column @ column, np.finfo(float).tiny), 0, 1))


def _share(regression: Regression, blocks: Blocks, target: Array, width: int) -> float:
    nugget = _predicted(regression, blocks, target, width)[1]
    total = target[:, blocks.pairs].sum()
    return float(nugget[:, blocks.pairs].sum() / total) if total > 0 else 0.0


def _agreement(
    regression: Regression, blocks: Blocks, target: Array, width: int, where: NDArray[np.bool_]
) -> tuple[float | None, float | None]:
    """Return the correlation and the relative error over some pairs; None where they cannot be told."""
    found, true = _predicted(regression, blocks, target, width)[0][where], target[where]
    if len(true) < 2 or not true.std() > 0 or not found.std() > 0:
        return None, None
    return float(np.corrcoef(found, true)[0, 1]), float(np.sqrt(((found - true) ** 2).mean()) / true.mean())
