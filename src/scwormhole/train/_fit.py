"""A whole fit: holds clouds out, fits the base, frames the points, trains, and returns what can embed."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from ..clouds import PointClouds
from ..ot import BaseFeatures, Targets
from ._blocks import GROMOV_WORK, Blocks, turns_for
from ._checkpoint import Saved, of_saved, to_saved
from ._frame import frame_of
from ._held_out import Look, look, split_clouds
from ._loop import History, Outcome, Progress, train
from ._settings import Network, Recipe, Transport
from ._step import Rules, start
from ._strata import Strata, stratify
from ._use import Trained, define

FEW_HELD_OUT = 16  # held-out clouds below which their pairs with training clouds count too
LARGEST_TABLE = 4e8  # entries of cost matrices that all held-out pairs may take; fewer clouds are held out above


class Fitted(NamedTuple):
    """What came of a fit."""

    trained: Trained
    history: History
    outcome: Outcome
    epsilon: float
    held_out: NDArray[np.int64]


def fit(
    clouds: PointClouds,
    transport: Transport,
    network: Network,
    recipe: Recipe,
    *,
    base: BaseFeatures | None,
    nugget: bool,
    saved: Saved | None,
    keep: Callable[[Saved], None],
    show: bool,
) -> Fitted:
    """Fit a model to a cohort.

    Parameters
    ----------
    clouds
        The cohort.
    transport
        Divergences.
    network
        Sizes of the networks.
    recipe
        How to train.
    base
        Features that are not fitted yet, or None.
    nugget
        Whether there is a nugget where there is no base; a base decides for itself.
    saved
        A checkpoint to go on from, or None.
    keep
        Called with checkpoints.
    show
        Whether to show a progress bar.
    """
    began = time.perf_counter() - (saved.header["seconds"] if saved else 0.0)
    split = split_clouds(clouds, _n_held_out(clouds, transport, recipe), recipe.rng)
    strata = _strata(clouds, split.train, recipe)
    pairs = strata.batch_size * (strata.batch_size - 1) // 2
    targets = transport.targets(clouds, recipe.max_steps * pairs, recipe.rng)
    if base is not None:
        base.set_params(epsilon=targets.epsilon, relative_epsilon=None).fit(clouds[split.train])
        nugget = base.nugget_
    first = targets.blocks(np.stack([strata.batch(number) for number in range(2)]))
    mean = float(first.sum() / (2 * 2 * pairs)) if pairs else 0.0
    origin = base.origin_ if base is not None else None
    frame = frame_of(
        clouds[split.train], degree=targets.metric.degree, mean_divergence=mean, origin=origin, rng=recipe.rng
    )
    graph, params = define(network, frame, base=base is not None, nugget=nugget, seed=recipe.rng)
    trained = Trained(network, frame, base, nugget, params)
    rules = Rules(
        coeff_dec=recipe.coeff_dec,
        metric_dec=transport.metric_dec,
        epsilon_dec=transport.decoder_epsilon(clouds, recipe.rng) / frame.length**transport.degree_dec,
        mean_target=mean / frame.unit**2 or 1.0,
        unit_dec=float(frame.length**transport.degree_dec / frame.unit**2),
    )
    turns = turns_for(float(clouds.sizes[split.train].mean()) ** 2, strata, network, gromov=targets.metric.gromov)
    blocks = Blocks(
        clouds,
        strata,
        targets,
        base,
        frame,
        n_components=network.n_components,
        turns=turns,
        rotate=recipe.rotate and targets.metric.gromov,
    )
    progress = Progress(start(params), params, np.inf, 0, 0.0)
    history = History()
    if saved is not None:
        progress, history = of_saved(saved, progress)
    outcome = train(
        progress,
        history,
        blocks,
        recipe if mean > 0 else replace(recipe, max_steps=0),
        rules,
        graph,
        examine=_examiner(trained, clouds, split.train, split.held_out, targets, strata),
        keep=lambda progress, history: keep(to_saved(progress, history)),
        elapsed=lambda: time.perf_counter() - began,
        show=show,
    )
    targets.warn(stacklevel=3)
    return Fitted(replace(trained, params=outcome.params), history, outcome, targets.epsilon, split.held_out)


def _n_held_out(clouds: PointClouds, transport: Transport, recipe: Recipe) -> int:
    """Return how many clouds to hold out: fewer where their pairs would take long to solve."""
    size = np.minimum(clouds.sizes, transport.max_points or clouds.sizes.max()).mean()
    work = float(size**2) * (GROMOV_WORK if transport.gromov else 1)
    return int(np.clip(np.sqrt(2 * LARGEST_TABLE / work), 32, recipe.n_validation))


def _strata(clouds: PointClouds, train_on: NDArray[np.int64], recipe: Recipe) -> Strata:
    rungs = clouds.rungs[train_on]
    strata = stratify(np.minimum(rungs, recipe.max_points or rungs.max()), recipe.batch_size, recipe.rng)
    return replace(strata, members=tuple(train_on[members] for members in strata.members))


def _examiner(
    trained: Trained,
    clouds: PointClouds,
    train_on: NDArray[np.int64],
    held_out: NDArray[np.int64],
    targets: Targets,
    strata: Strata,
) -> Callable[[Any], Look]:
    """Return a function that looks how good weights are on held-out pairs."""
    others = np.empty(0, np.int64)
    if len(held_out) < FEW_HELD_OUT:
        others = np.random.default_rng(0).permutation(train_on)[: 2 * FEW_HELD_OUT]
    positions = np.concatenate([held_out, others])
    rows, columns = np.triu_indices(len(positions), 1)
    new = rows < len(held_out) if len(held_out) else np.ones(len(rows), bool)
    rows, columns = rows[new], columns[new]
    true = targets.blocks(positions[None])[0][rows, columns]
    some = clouds[positions]

    def examine(params: Any) -> Look:
        z, noise = replace(trained, params=params).embed(some)
        return look(((z[rows] - z[columns]) ** 2).sum(1) + noise[rows] + noise[columns], true)

    return examine
