"""A whole fit: holds clouds out, fits the base, frames the points, trains, and returns what can embed."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scwormhole.clouds import PointClouds
from scwormhole.ot import Targets
from scwormhole.ot._scale import box

from ._blocks import GROMOV_WORK, Blocks, turns_for
from ._checkpoint import Saved, of_saved, to_saved
from ._devices import agreed
from ._frame import frame_of
from ._held_out import Look, Split, learned_from, split_clouds
from ._history import End, History
from ._looks import decoder_look, divergence_look
from ._loop import Progress, begin, train
from ._parameters import Parameters
from ._plan import Clock, Plan, make_plan, spread_out
from ._settings import Recipe, Transport
from ._step import Rules, with_decoder
from ._strata import Strata, stratify
from ._use import Trained, define

READ_SHARE = 2  # one byte in so many of the memory is for points that are learned from, if they are on disk
LARGEST_TABLE = 4e8  # entries of cost matrices that all held-out pairs may take; fewer clouds are held out above
ENCODER_TIME = 0.6  # share of the time left that the encoder may take if there is a decoder
MORE_BATCHES = 16  # looked at where two of them hold but copies of one cloud
ROUNDING = 1e-10  # of the squared size of a cloud: a mean divergence that may be none
OPEN, MOST_AGREED = -1, 2**31 - 1  # stands for None where numbers are agreed on, and the largest of these
SCALED_BY = 16  # clouds of a batch whose mean divergence is the unit of the decoder's loss


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
    clouds stays as it is, and the decoder goes on until it gains no more on them; not so without patience.

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
    clock = Clock(saved.header["seconds"] if saved else 0.0)
    transport, network, recipe, base = params[:4]
    split = split_clouds(clouds, _n_held_out(clouds, transport, recipe), recipe.rng)
    clouds, positions = learned_from(clouds, split, max_bytes=params.max_memory // READ_SHARE, rng=recipe.rng)
    held = np.isin(positions, split.held_out)
    split = Split(np.flatnonzero(~held), np.flatnonzero(held))
    strata = _strata(clouds, split.train, recipe)
    plan = Plan(*saved.header["plan"]) if saved else _plan(clouds, params, strata, clock)
    size = float(np.minimum(clouds.sizes, transport.max_points or clouds.sizes.max())[split.train].mean())
    turns = turns_for(size**2, strata, network, gromov=transport.gromov)
    pairs = recipe.max_steps // turns * strata.n_pairs
    targets = transport.targets(clouds, pairs if plan.pairs is None else min(pairs, plan.pairs), recipe.rng)
    if base is not None:
        base.set_params(n_pairs=plan.base_pairs)
    trained, rules = _prepared(clouds, params, split, strata, targets)
    blocks = Blocks(
        clouds,
        strata,
        targets,
        trained.base,
        trained.frame,
        n_components=network.n_components,
        turns=turns,
        rotate=transport.turns and recipe.rotate,
    )
    seen = split if plan.looked_at is None else split._replace(held_out=spread_out(split.held_out, plan.looked_at))
    alike = not rules.mean_target > ROUNDING
    if alike:
        recipe, rules = replace(recipe, max_steps=0), replace(rules, mean_target=1.0)
        message = "All clouds are the same, so there is nothing to learn: every cloud gets the same vector."
        warnings.warn(message, stacklevel=3)
    phases = _phases(clouds, params._replace(recipe=recipe), seen, blocks, targets, trained, rules, clock)
    history, weights, ends = _train(
        phases, trained, saved, lambda saved: keep(_with(saved, plan, recipe)), clock, recipe=recipe, show=show
    )
    targets.warn(stacklevel=3)
    return Fitted(
        replace(trained, params=weights),
        history,
        alike or all(end.converged for end in ends),
        " ".join(f"{phase.name}: {end.advice}" for phase, end in zip(phases, ends, strict=True)),
        targets.epsilon,
        positions[split.held_out],
    )


def _train(
    phases: list[_Phase],
    trained: Trained,
    saved: Saved | None,
    keep: Callable[[Saved], None],
    clock: Clock,
    *,
    recipe: Recipe,
    show: bool,
) -> tuple[History, Any, list[End]]:
    """Train phase after phase, from the start or from a checkpoint."""
    history, weights, ends, progress = History(), trained.params, list[End](), None
    last = weights
    if saved is not None:
        history, ends = saved.history, saved.ends
        progress = of_saved(saved, begin(weights, clock.elapsed()))
        if ends and ends[0].limit in _raised(saved, recipe):
            # a limit was raised that had ended the encoder: it goes on from its best, and the decoder after it
            history, ends = history.of_phase(phases[0].name), []
            best_error, step = min(history.error), history.step[-1]
            progress = begin(progress.best, clock.elapsed())._replace(best_error=best_error, step=step)
    for phase in phases[len(ends) :]:
        if phase.rules.decoder_only and progress is None:
            weights = with_decoder(weights, last)
        if ends and not agreed(clock.allows(phase.recipe.max_seconds, "first steps", "first look")):
            ends.append(End(False, "max_seconds ended it before the first step; raise it.", "max_seconds"))
            continue
        outcome = train(
            phase.name,
            begin(weights, clock.elapsed()) if progress is None else progress,
            history,
            phase.blocks,
            phase.recipe,
            phase.rules,
            trained.graph,
            examine=phase.examine,
            keep=_keeper(keep, phase.name, history, list(ends)),
            clock=clock,
            show=show,
        )
        weights, last, progress = outcome.params, outcome.last, None
        ends.append(outcome.end)
    return history, weights, ends


def _raised(saved: Saved, recipe: Recipe) -> list[str]:
    """Return which limits were raised since a checkpoint."""
    limits = {name: (before, getattr(recipe, name)) for name, before in saved.header["limits"].items()}
    return [name for name, (then, now) in limits.items() if then is not None and (now is None or now > then)]


def _keeper(keep: Callable[[Saved], None], phase: str, history: History, ends: list[End]) -> Callable[[Progress], None]:
    return lambda progress: keep(to_saved(phase, progress, history, ends))


def _with(saved: Saved, plan: Plan, recipe: Recipe) -> Saved:
    limits = {name: getattr(recipe, name) for name in ("max_steps", "max_seconds")}
    return saved._replace(header={**saved.header, "plan": list(plan), "limits": limits})


def _plan(clouds: PointClouds, params: Parameters, strata: Strata, clock: Clock) -> Plan:
    if params.recipe.max_seconds is None:
        return Plan()
    seconds = params.recipe.max_seconds - clock.elapsed()
    plan = make_plan(clouds, params.transport, strata, seconds=seconds, rng=params.recipe.rng)
    numbers = agreed(tuple(OPEN if number is None else min(number, MOST_AGREED) for number in plan))
    return Plan(*(None if number == OPEN else number for number in numbers))


def _prepared(
    clouds: PointClouds, params: Parameters, split: Split, strata: Strata, targets: Targets
) -> tuple[Trained, Rules]:
    """Fit the base, find the units, and return the networks before the first step, and their losses."""
    transport, network, recipe, base, nugget = params[:5]
    train_on = clouds[split.train]
    some = np.stack([strata.batch(0), strata.batch(1)])
    mean = _mean(targets, some)
    if not mean > 0:  # very many clouds may be one, and a few others not
        mean = _mean(targets, np.stack([strata.batch(number) for number in range(MORE_BATCHES)]))
    if base is not None:
        base.set_params(epsilon=targets.epsilon, relative_epsilon=None).fit(train_on)
        nugget = base.nugget_
    frame = frame_of(
        train_on,
        degree=targets.metric.degree,
        mean_divergence=mean,
        origin=None if base is None else base.origin_,
        box=box((train_on,)) if transport.relative_epsilon == "box" and base is None else None,
        rng=recipe.rng,
    )
    weights = define(network, frame, base=base is not None, nugget=nugget, seed=recipe.rng)[1]
    epsilon_dec, mean_dec = 0.0, 1.0
    if network.n_points:
        decoded = transport.decoded(clouds, recipe.max_points, recipe.rng)
        unit = frame.length**transport.degree_dec
        epsilon_dec, mean_dec = decoded.epsilon / unit, _mean(decoded, spread_out(some, SCALED_BY)) / unit
    rules = Rules(
        coeff_dec=recipe.coeff_dec,
        metric_dec=frame.metric(transport.metric_dec),
        epsilon_dec=epsilon_dec,
        mean_target=mean / frame.unit**2,
        mean_dec=mean_dec if mean_dec > 0 else 1.0,
        clip=recipe.clip,
    )
    return Trained(network, frame, base, nugget, weights), rules


def _mean(targets: Targets, members: NDArray[np.int64]) -> float:
    """Return the mean divergence of different clouds within blocks."""
    return float(targets.blocks(members)[:, ~np.eye(members.shape[1], dtype=bool)].mean())


def _phases(
    clouds: PointClouds,
    params: Parameters,
    split: Split,
    blocks: Blocks,
    targets: Targets,
    trained: Trained,
    rules: Rules,
    clock: Clock,
) -> list[_Phase]:
    network, recipe = params.network, params.recipe
    two = bool(network.n_points) and recipe.patience is not None
    examine = divergence_look(trained, clouds, split, targets, params.max_memory)
    seconds = recipe.max_seconds
    if seconds is not None and two:
        seconds -= (1 - ENCODER_TIME) * max(0.0, seconds - clock.elapsed())
    phases = [_Phase("encoder", blocks, replace(recipe, max_seconds=seconds), rules, examine)]
    if two:
        view = decoder_look(trained, clouds, split, params, rules)
        alone = replace(rules, decoder_only=True)
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
