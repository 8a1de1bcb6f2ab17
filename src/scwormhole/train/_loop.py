"""The host loop: feeds steps, looks at held-out clouds, stops, keeps the best. No mathematics of its own."""

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from ._blocks import Blocks, prefetched
from ._held_out import Look
from ._settings import Recipe
from ._step import Rules, TrainState, run_steps

logger = logging.getLogger(__name__)

PER_CALL = 10  # steps a call of the device
LOOKS = 15  # looks at held-out clouds in a full training, about
IMPROVED = 0.01  # share by which the held-out error must fall to count as better
LAST_THIRD = 0.1  # share by which it may still fall in the last third of a training that is called converged


class Progress(NamedTuple):
    """What training needs to go on from here, beside the clouds: the checkpoint."""

    state: TrainState
    best: Any  # weights
    best_error: float
    step: int
    seconds: float


@dataclass
class History:
    """What a person reads of a training: a row for every look at held-out clouds."""

    step: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    correlation: list[float] = field(default_factory=list)
    error: list[float] = field(default_factory=list)
    encoder_loss: list[float] = field(default_factory=list)
    decoder_loss: list[float] = field(default_factory=list)


class Outcome(NamedTuple):
    """How a training ended."""

    params: Any
    converged: bool
    advice: str


def learning_rate(recipe: Recipe, step: int, share: float) -> float:
    """Return the learning rate of a step: a warm-up, then half a cosine over the share of the training that is done."""
    warm = min(1.0, (step + 1) / max(1, recipe.warmup))
    return recipe.learning_rate * warm * 0.5 * (1.0 + np.cos(np.pi * min(1.0, share)))


def train(
    progress: Progress,
    history: History,
    blocks: Blocks,
    recipe: Recipe,
    rules: Rules,
    graph: Any,
    *,
    examine: Callable[[Any], Look],
    keep: Callable[[Progress, History], None],
    elapsed: Callable[[], float],
    show: bool,
) -> Outcome:
    """Train until held-out clouds gain no more, or steps or time are up.

    Parameters
    ----------
    progress
        Where to start: before the first step, or a checkpoint.
    history
        Written to.
    blocks
        Makes the arrays of steps.
    recipe
        How to train.
    rules
        What the loss is made of.
    graph
        Definition of the networks.
    examine
        Compares divergences of held-out clouds under some weights.
    keep
        Called with a checkpoint after every look.
    elapsed
        Seconds since the fit began.
    show
        Whether to show a progress bar.
    """
    every = max(PER_CALL, recipe.max_steps // LOOKS // PER_CALL * PER_CALL)
    state, best, best_error, first = progress.state, progress.best, progress.best_error, progress.step
    if first == 0:
        best, best_error = _look(history, examine, state.params, 0, elapsed(), (np.nan, np.nan)), history.error[-1]
    waited, in_time = _waited(history), True
    spans = (range(s, min(s + PER_CALL, recipe.max_steps)) for s in range(first, recipe.max_steps, PER_CALL))
    with tqdm(total=recipe.max_steps, initial=first, desc="training", unit="step", disable=not show, delay=2) as bar:
        for span, feed in prefetched(blocks, spans):
            spent = elapsed() / recipe.max_seconds if recipe.max_seconds else 0.0
            rates = [learning_rate(recipe, s, max(s / recipe.max_steps, spent)) for s in span]
            state, info = run_steps(state, feed, np.asarray(rates, np.float32), graph=graph, rules=rules)
            bar.update(len(span))
            in_time = recipe.max_seconds is None or elapsed() < recipe.max_seconds
            if span.stop % every and in_time and span.stop < recipe.max_steps:
                continue
            losses = tuple(float(np.mean(part)) for part in jax.device_get(info))
            here = _look(history, examine, state.params, span.stop, elapsed(), losses)
            if history.error[-1] < best_error * (1 - IMPROVED):
                waited = 0
            else:
                waited += 1
            if history.error[-1] < best_error:
                best, best_error = here, history.error[-1]
            bar.set_postfix(correlation=f"{history.correlation[-1]:.4f}")
            keep(Progress(state, best, best_error, span.stop, elapsed()), history)
            if waited >= recipe.patience or not in_time:
                break
    converged, advice = _judge(history, waited >= recipe.patience, in_time)
    return Outcome(best, converged, advice)


def _look(
    history: History,
    examine: Callable[[Any], Look],
    params: Any,
    step: int,
    seconds: float,
    losses: tuple[float, float],
) -> Any:
    """Write a row of the history, and return a copy of the weights."""
    found = examine(params)
    if not np.isfinite(found.error):
        raise FloatingPointError(
            f"after {step} steps the embedding is not finite any more; lower learning_rate, or scale the points."
        )
    rows = (step, seconds, found.correlation, found.error, *losses)
    for name, value in zip(vars(history), rows, strict=True):
        getattr(history, name).append(value)
    logger.info("step %d: held-out correlation %.4f", step, found.correlation)
    return jax.device_get(params)


def _waited(history: History) -> int:
    """Return how many looks ago the held-out error last improved."""
    waited, best = 0, np.inf
    for error in history.error:
        waited = 0 if error < best * (1 - IMPROVED) else waited + 1
        best = min(best, error)
    return waited


def _judge(history: History, gave_up: bool, in_time: bool) -> tuple[bool, str]:
    """Say whether more training would help."""
    if gave_up:
        return True, "held-out clouds gained no more."
    late = [error for step, error in zip(history.step, history.error, strict=True) if step < 2 / 3 * history.step[-1]]
    if late and min(history.error) >= (1 - LAST_THIRD) * min(late):
        return True, "held-out clouds hardly gained any more."
    bound = "max_steps" if in_time else "max_seconds"
    return False, f"held-out clouds were still gaining when {bound} was reached; raise it."
