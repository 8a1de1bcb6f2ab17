"""The host loop: feeds steps, looks at held-out clouds, stops, keeps the best. No mathematics of its own."""

import logging
import math
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
from ._step import Rules, TrainState, run_steps, start

logger = logging.getLogger(__name__)

PER_CALL = 10  # steps a call of the device
LOOKS = 30  # looks at held-out clouds in a full training, about
IMPROVED = 0.003  # share by which the held-out error must fall to count as better
COOL = 0.6  # share of the schedule at which its last part begins; jumped to when nothing is gained before
LAST_THIRD = 0.1  # share by which it may still fall in the last third of a training that is called converged


class Progress(NamedTuple):
    """What a phase of training needs to go on from here, beside the clouds: the checkpoint."""

    state: TrainState
    best: Any  # weights
    best_error: float
    step: int
    waited: int  # looks without improvement
    skipped: int  # steps of the schedule left out, because nothing was gained any more at a high rate
    began: float  # seconds since the fit began
    seconds: float


@dataclass
class History:
    """What a person reads of a training: a row for every look at held-out clouds.

    In the phase ``"encoder"`` the error is the root mean squared error of held-out divergences over their standard
    deviation, in the phase ``"decoder"`` the mean divergence of decoded clouds from what they were, over the mean
    divergence between clouds.
    """

    phase: list[str] = field(default_factory=list)
    step: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    correlation: list[float] = field(default_factory=list)
    error: list[float] = field(default_factory=list)
    encoder_loss: list[float] = field(default_factory=list)
    decoder_loss: list[float] = field(default_factory=list)

    def errors(self, phase: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the steps and the errors of a phase."""
        rows = [row for row, name in enumerate(self.phase) if name == phase]
        return np.array(self.step)[rows], np.array(self.error)[rows]


class Outcome(NamedTuple):
    """How a training ended."""

    params: Any
    converged: bool
    advice: str


def learning_rate(recipe: Recipe, step: int, share: float) -> float:
    """Return the learning rate of a step: a warm-up, then half a cosine over the share of the training that is done."""
    warm = recipe.learning_rate * min(1.0, (step + 1) / max(1, recipe.warmup))
    if recipe.decay == "exponential":
        return warm * 0.99 ** (step // 100)
    return warm * 0.5 * (1.0 + math.cos(math.pi * min(1.0, share)))


def begin(params: Any, seconds: float) -> Progress:
    """Return a phase before its first step."""
    return Progress(start(params), params, np.inf, 0, 0, 0, seconds, seconds)


def train(
    phase: str,
    progress: Progress,
    history: History,
    blocks: Blocks,
    recipe: Recipe,
    rules: Rules,
    graph: Any,
    *,
    examine: Callable[[Any], Look],
    keep: Callable[[Progress], None],
    elapsed: Callable[[], float],
    show: bool,
) -> Outcome:
    """Train until held-out clouds gain no more, or steps or time are up.

    Parameters
    ----------
    phase
        What is trained, for the history.
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
        Looks how good weights are on held-out clouds.
    keep
        Called with a checkpoint after every look.
    elapsed
        Seconds since the fit began.
    show
        Whether to show a progress bar.
    """
    every = max(PER_CALL, recipe.max_steps // LOOKS // PER_CALL * PER_CALL)
    state, best, best_error, first, waited, skipped, began, _ = progress
    in_time = True
    if first == 0:
        best = _look(history, phase, examine, state.params, 0, elapsed(), (np.nan, np.nan))
        best_error = history.error[-1]
    schedule = _Schedule(recipe.max_steps, first, skipped)
    with tqdm(total=recipe.max_steps, initial=first, desc=f"training {phase}", disable=not show, delay=2) as bar:
        for span, feed in prefetched(blocks, schedule.spans() if waited < recipe.patience else iter(())):
            share = _spent(recipe, began, elapsed())
            rates = [learning_rate(recipe, s, max(schedule.share(s), share)) for s in span]
            state, info = run_steps(state, feed, np.asarray(rates, np.float32), graph=graph, rules=rules)
            bar.update(len(span))
            in_time = recipe.max_seconds is None or elapsed() < recipe.max_seconds
            if span.stop % every and in_time and schedule.share(span.stop) < 1:
                continue
            losses = tuple(float(np.mean(part)) for part in jax.device_get(info))
            here = _look(history, phase, examine, state.params, span.stop, elapsed(), losses)
            waited = 0 if history.error[-1] < best_error * (1 - IMPROVED) else waited + 1
            if history.error[-1] < best_error:
                best, best_error = here, history.error[-1]
            bar.set_postfix(correlation=f"{history.correlation[-1]:.4f}", error=f"{history.error[-1]:.4f}")
            if waited >= recipe.patience and schedule.share(span.stop) < COOL:
                waited = 0
                schedule.cool(span.stop)
            keep(Progress(state, best, best_error, span.stop, waited, schedule.skipped, began, elapsed()))
            if waited >= recipe.patience or not in_time:
                break
    return Outcome(best, *_judge(history, phase, waited >= recipe.patience, in_time))


class _Schedule:
    """Which steps come next, and how far the schedule is: it may be shortened on the way."""

    def __init__(self, max_steps: int, first: int, skipped: int) -> None:
        self.max_steps, self.first, self.skipped = max_steps, first, skipped

    def share(self, step: int) -> float:
        return (step + self.skipped) / self.max_steps if self.max_steps else 1.0

    def cool(self, step: int) -> None:
        # one span more is already on its way
        self.skipped = max(self.skipped, int(COOL * self.max_steps) // PER_CALL * PER_CALL - step)

    def spans(self) -> Iterator[range]:
        step = self.first
        while self.share(step) < 1:
            yield range(step, min(step + PER_CALL, self.max_steps - self.skipped))
            step += PER_CALL


def _spent(recipe: Recipe, began: float, now: float) -> float:
    """Return the share of this phase's time that has passed; 0 without a limit."""
    if recipe.max_seconds is None:
        return 0.0
    return (now - began) / max(recipe.max_seconds - began, 1e-9)


def _look(
    history: History,
    phase: str,
    examine: Callable[[Any], Look],
    params: Any,
    step: int,
    seconds: float,
    losses: tuple[float, ...],
) -> Any:
    """Write a row of the history, and return a copy of the weights."""
    found = examine(params)
    if not np.isfinite(found.error):
        raise FloatingPointError(
            f"after {step} steps the {phase} gives numbers that are not finite; lower learning_rate, or raise epsilon."
        )
    row = (phase, step, seconds, found.correlation, found.error, *losses)
    for name, value in zip(vars(history), row, strict=True):
        getattr(history, name).append(value)
    logger.info("%s, step %d: held-out correlation %.4f, error %.4f", phase, step, found.correlation, found.error)
    return jax.device_get(params)


def _judge(history: History, phase: str, gave_up: bool, in_time: bool) -> tuple[bool, str]:
    """Say whether more training would help."""
    if gave_up:
        return True, "held-out clouds gained no more."
    steps, errors = history.errors(phase)
    late = errors[steps < 2 / 3 * steps[-1]]
    if len(errors) == 1 or (len(late) and errors.min() >= (1 - LAST_THIRD) * late.min()):
        return True, "held-out clouds hardly gained any more."
    bound = "max_steps" if in_time else "max_seconds"
    return False, f"held-out clouds were still gaining when {bound} was reached; raise it."
