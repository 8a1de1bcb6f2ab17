"""A whole fit: holds clouds out, fits the base, frames the points, trains, and returns what can embed."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scwormhole.clouds import PointClouds
from scwormhole.ot import Targets, distances

from ._blocks import GROMOV_WORK, Blocks, turns_for
from ._checkpoint import Saved, of_saved, to_saved
from ._frame import frame_of
from ._held_out import Look, Split, look, split_clouds
from ._loop import History, Outcome, Progress, begin, train
from ._parameters import Parameters
from ._settings import Recipe, Transport
from ._step import Rules
from ._strata import Strata, stratify
from ._use import Trained, define

FEW_HELD_OUT = 16  # held-out clouds below which their pairs with training clouds count too
LARGEST_TABLE = 4e8  # entries of cost matrices that all held-out pairs may take; fewer clouds are held out above
MOST_DECODED = 64  # held-out clouds that are decoded at a look
ENCODER_TIME = 0.6  # share of max_seconds that the encoder may take if there is a decoder


class Fitted(NamedTuple):
    """What came of a fit."""

    trained: Trained
    history: History
    converged: bool
    advice: str
    epsilon: float
    held_out: NDArray[np.int64]


class _Phase(NamedTuple):
    """A part of a training."""

    name: str
    blocks: Blocks
    recipe: Recipe
    rules: Rules
    examine: Callable[[Any], Look]


def fit(
    clouds: PointClouds, params: Parameters, *, saved: Saved | None, keep: Callable[[Saved], None], show: bool
) -> Fitted:
    """Fit a model to a cohort.

    Encoder and decoder are trained together, the encoder by both losses. Then the encoder that was best on held-out
    clouds stays as it is, and the decoder goes on until it gains no more on them.

    Parameters
    ----------
    clouds
        The cohort.
    params
        What to do.
    saved
        A checkpoint to go on from, or None.
    keep
        Called with checkpoints.
    show
        Whether to show a progress bar.
    """
    earlier = saved.header["seconds"] if saved else 0.0
    began = time.perf_counter()
    transport, network, recipe, _, _, _ = params
    split = split_clouds(clouds, _n_held_out(clouds, transport, recipe), recipe.rng)
    strata = _strata(clouds, split.train, recipe)
    size = float(np.minimum(clouds.sizes, transport.max_points or clouds.sizes.max())[split.train].mean())
    turns = turns_for(size**2, strata, network, gromov=transport.gromov)
    targets = transport.targets(clouds, recipe.max_steps // turns * strata.n_pairs, recipe.rng)
    trained, rules = _prepared(clouds, params, split, strata, targets)
    blocks = Blocks(
        clouds,
        strata,
        targets,
        trained.base,
        trained.frame,
        n_components=network.n_components,
        turns=turns,
        rotate=recipe.rotate and transport.gromov,
    )
    phases = _phases(clouds, params, split, blocks, targets, trained, rules)
    history, weights = History(), trained.params
    names = [phase.name for phase in phases]
    first = names.index(saved.header["phase"]) if saved else 0
    ends = [Outcome(None, *end) for end in saved.header["ends"]] if saved else []
    for phase in phases[first:]:
        progress = begin(weights, earlier + time.perf_counter() - began)
        if saved is not None and phase is phases[first]:
            progress, history = of_saved(saved, progress)
        so_far = [(end.converged, end.advice) for end in ends]
        outcome = train(
            phase.name,
            progress,
            history,
            phase.blocks,
            phase.recipe,
            phase.rules,
            trained.graph,
            examine=phase.examine,
            keep=_keeper(keep, phase.name, history, so_far),
            elapsed=lambda: earlier + time.perf_counter() - began,
            show=show,
        )
        weights = outcome.params
        ends.append(outcome)
    targets.warn(stacklevel=3)
    advice = " ".join(f"{name}: {end.advice}" for name, end in zip(names, ends, strict=True))
    return Fitted(
        replace(trained, params=weights),
        history,
        all(end.converged for end in ends),
        advice,
        targets.epsilon,
        split.held_out,
    )


def _keeper(
    keep: Callable[[Saved], None], phase: str, history: History, ends: list[tuple[bool, str]]
) -> Callable[[Progress], None]:
    return lambda progress: keep(to_saved(phase, progress, history, ends))


def _prepared(
    clouds: PointClouds, params: Parameters, split: Split, strata: Strata, targets: Targets
) -> tuple[Trained, Rules]:
    """Fit the base, find the units, and return the networks before the first step, and their losses."""
    transport, network, recipe, base, nugget, _ = params
    train_on = clouds[split.train]
    if base is not None:
        base.set_params(epsilon=targets.epsilon, relative_epsilon=None).fit(train_on)
        nugget = base.nugget_
    some = targets.blocks(np.stack([strata.batch(0), strata.batch(1)]))
    mean = float(some[:, ~np.eye(strata.batch_size, dtype=bool)].mean())
    frame = frame_of(
        train_on,
        degree=targets.metric.degree,
        mean_divergence=mean,
        origin=None if base is None else base.origin_,
        rng=recipe.rng,
    )
    weights = define(network, frame, base=base is not None, nugget=nugget, seed=recipe.rng)[1]
    unit_dec = frame.length**transport.degree_dec
    rules = Rules(
        coeff_dec=recipe.coeff_dec,
        metric_dec=transport.metric_dec,
        epsilon_dec=transport.decoder_epsilon(train_on, recipe.rng) / unit_dec if network.n_points else 0.0,
        mean_target=mean / frame.unit**2,
        unit_dec=float(unit_dec / frame.unit**2),
    )
    return Trained(network, frame, base, nugget, weights), rules


def _phases(
    clouds: PointClouds,
    params: Parameters,
    split: Split,
    blocks: Blocks,
    targets: Targets,
    trained: Trained,
    rules: Rules,
) -> list[_Phase]:
    network, recipe = params.network, params.recipe
    if not rules.mean_target > 0:  # all clouds are one: there is nothing to learn
        recipe, rules = replace(recipe, max_steps=0), rules._replace(mean_target=1.0)
    seconds = recipe.max_seconds
    if seconds is not None and network.n_points:
        seconds = ENCODER_TIME * seconds
    examine = _divergence_look(trained, clouds, split, targets)
    phases = [_Phase("encoder", blocks, replace(recipe, max_seconds=seconds), rules, examine)]
    if network.n_points:
        view = _decoder_look(trained, clouds, split, params.transport, rules, recipe)
        alone = rules._replace(decoder_only=True)
        phases.append(_Phase("decoder", blocks.without_targets(), recipe, alone, view))
    return phases


def _n_held_out(clouds: PointClouds, transport: Transport, recipe: Recipe) -> int:
    """Return how many clouds to hold out: fewer where their pairs would take long to solve."""
    size = np.minimum(clouds.sizes, transport.max_points or clouds.sizes.max()).mean()
    work = float(size**2) * (GROMOV_WORK if transport.gromov else 1)
    return int(min(max(np.sqrt(2 * LARGEST_TABLE / work), 32), recipe.n_validation))


def _strata(clouds: PointClouds, train_on: NDArray[np.int64], recipe: Recipe) -> Strata:
    rungs = clouds.rungs[train_on]
    strata = stratify(np.minimum(rungs, recipe.max_points or rungs.max()), recipe.batch_size, recipe.rng)
    return replace(strata, members=tuple(train_on[members] for members in strata.members))


def _divergence_look(trained: Trained, clouds: PointClouds, split: Split, targets: Targets) -> Callable[[Any], Look]:
    """Return a function that looks how good weights are on held-out pairs."""
    held_out, others = split.held_out, np.empty(0, np.int64)
    if len(held_out) < FEW_HELD_OUT:
        others = np.random.default_rng(0).permutation(split.train)[: 2 * FEW_HELD_OUT]
    positions = np.concatenate([held_out, others])
    rows, columns = np.triu_indices(len(positions), 1)
    new = rows < len(held_out) if len(held_out) else np.ones(len(rows), bool)
    rows, columns = rows[new], columns[new]
    true = targets.blocks(positions[None])[0][rows, columns]
    some, shared = clouds[positions], clouds.shared_mass(positions)

    def examine(weights: Any) -> Look:
        return look(replace(trained, params=weights).embed(some).table(shared)[rows, columns], true)

    return examine


def _decoder_look(
    trained: Trained, clouds: PointClouds, split: Split, transport: Transport, rules: Rules, recipe: Recipe
) -> Callable[[Any], Look]:
    """Return a function that looks how close decoded held-out clouds are to what they were."""
    positions = split.held_out if len(split.held_out) >= FEW_HELD_OUT else split.train
    some = clouds[positions[:MOST_DECODED]]
    frame = trained.frame
    options: dict[str, Any] = {"epsilon": rules.epsilon_dec * frame.length**transport.degree_dec}
    options |= {"relative_epsilon": None, "max_points": recipe.max_points, "progress": False}

    def examine(weights: Any) -> Look:
        model = replace(trained, params=weights)
        points, mass = model.decode(model.embed(some).z)
        decoded = PointClouds.from_list(list(points), list(mass))
        apart = distances(some, decoded, transport.metric_dec, **options)
        return Look(float("nan"), float(apart.mean() / (rules.mean_target * frame.unit**2)))

    return examine
