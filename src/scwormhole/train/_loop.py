"""The host loop: feeds steps, looks at held-out clouds, stops, keeps the best. No mathematics of its own."""

import logging
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
from tqdm.auto import tqdm

from ._blocks import Blocks, Feed, prefetched
from ._devices import agreed, all_devices, everywhere
from ._held_out import Look
from ._history import End, History
from ._plan import Clock
from ._settings import Recipe
from ._step import Rules, TrainState, run_steps, start

logger = logging.getLogger(__name__)

PER_CALL = 10  # steps a call of the device
LOOKS = 30  # looks at held-out clouds in a full training, about
MOST_UNSEEN = 100  # steps between looks where time may end before the steps do
IMPROVED = 0.003  # share by which the held-out error must fall to count as better
COOL = 0.6  # share of the schedule at which its last part begins; jumped to when nothing is gained before


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


class Outcome(NamedTuple):
    """What a phase came to."""

    params: Any  # best weights
    last: Any  # weights after the last step
    end: End


def learning_rate(recipe: Recipe, step: int, share: float) -> float:
    """Return the learning rate of a step: a warm-up, then half a cosine over the share of the training that is done.

    The exponential one falls by a hundredth every hundred steps, from the first step on.
    """
    if recipe.decay == "exponential":
        return recipe.learning_rate * 0.99 ** (step // 100)
    warm = recipe.learning_rate * min(1.0, (step + 1) / max(1, recipe.warmup))
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
    clock: Clock,
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
    clock
        Seconds of the fit.
    show
        Whether to show a progress bar.
    """
    every = max(PER_CALL, recipe.max_steps // LOOKS // PER_CALL * PER_CALL)
    if recipe.max_seconds is not None:
        every = min(every, MOST_UNSEEN)
    patience = recipe.max_steps + 1 if recipe.patience is None else recipe.patience
    state, best, best_error, first, waited, skipped, began, _ = progress
    if not history.of_phase(phase).step:
        best = _look(history, phase, examine, state.params, first, clock, (np.nan, np.nan))
        best_error = history.error[-1]
    schedule, timed, mesh = _Schedule(recipe.max_steps, first, skipped), _Timed(blocks, clock), all_devices()
    state = everywhere(state, mesh)
    step, in_time, work = first, True, "first steps"

    def spans() -> Iterator[range]:
        nonlocal in_time
        for span in schedule.spans() if waited < patience else ():
            in_time = _in_time(clock, recipe, timed.work(span), work, "looking")
            if not in_time:  # what cannot end in time is not begun
                return
            yield span

    with tqdm(total=recipe.max_steps, initial=first, desc=f"training {phase}", disable=not show, delay=2) as bar:
        for span, feed in prefetched(timed, spans()):
            share = agreed(_spent(recipe, began, clock.elapsed()))
            rates = [learning_rate(recipe, s, max(schedule.share(s), share)) for s in span]
            with clock.timing(work):
                state, info = run_steps(state, feed, np.asarray(rates, np.float32), graph=graph, rules=rules, mesh=mesh)
                if recipe.max_seconds is not None:
                    jax.block_until_ready(info)  # else a step is timed before it is done
            work = "steps"
            bar.update(len(span))
            step, in_time = span.stop, in_time and _in_time(clock, recipe)
            if step % every and in_time and schedule.share(step) < 1:
                continue
            losses = tuple(float(np.mean(part)) for part in jax.device_get(info))
            here = _look(history, phase, examine, state.params, step, clock, losses)
            waited = 0 if history.error[-1] < best_error * (1 - IMPROVED) else waited + 1
            if history.error[-1] < best_error:
                best, best_error = here, history.error[-1]
            bar.set_postfix(history.last())
            if waited >= patience and schedule.share(step) < COOL:
                waited = 0
                schedule.cool(step)
            keep(Progress(state, best, best_error, step, waited, schedule.skipped, began, clock.elapsed()))
            if waited >= patience or not in_time:
                break
    end = _judge(step, gave_up=waited >= patience, cooled=schedule.skipped > 0, in_time=in_time)
    return Outcome(best, jax.device_get(state.params), end)


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
            whole = step - step % PER_CALL + PER_CALL  # looks come at whole numbers of calls
            yield range(step, min(whole, self.max_steps - self.skipped))
            step = whole


class _Timed:
    """Blocks whose solving is timed."""

    def __init__(self, blocks: Blocks, clock: Clock) -> None:
        self.blocks, self.clock = blocks, clock

    def work(self, span: range) -> str:
        return "solving" if self.blocks.solves(span) else "gathering"

    def feed(self, span: range) -> Feed:
        with self.clock.timing(self.work(span)):
            return self.blocks.feed(span)


def _in_time(clock: Clock, recipe: Recipe, *work: str) -> bool:
    return recipe.max_seconds is None or agreed(clock.allows(recipe.max_seconds, *work))


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
    clock: Clock,
    losses: tuple[float, ...],
) -> Any:
    """Write a row of the history, and return a copy of the weights."""
    params = jax.device_get(params)
    with clock.timing("looking" if history.of_phase(phase).step else "first look"):
        found = Look(*agreed(tuple(examine(params))))
    if not np.isfinite(found.error):
        raise FloatingPointError(
            f"after {step} steps the {phase} gives numbers that are not finite; lower learning_rate, or raise epsilon."
        )
    row = (phase, step, clock.elapsed(), found.correlation, found.error, *losses)
    for name, value in zip(vars(history), row, strict=True):
        getattr(history, name).append(value)
    logger.info("%s, step %d: held-out correlation %.4f, error %.4f", phase, step, found.correlation, found.error)
    return params


def _judge(step: int, *, gave_up: bool, cooled: bool, in_time: bool) -> End:
    """Say whether held-out clouds had stopped gaining, and if not, what ended the training before."""
    if gave_up or (cooled and in_time):
        return End(True, "held-out clouds gained no more.", None)
    limit = "max_steps" if in_time else "max_seconds"
    when = f"after {step:,} steps, before held-out clouds had stopped gaining" if step else "before the first step"
    return End(False, f"{limit} ended it {when}; raise it for a closer fit.", limit)
