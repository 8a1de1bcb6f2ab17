"""The host loop, on steps that only count: when it looks, when it stops, what it keeps, how it goes on."""

from dataclasses import asdict
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

from scwormhole.train import _loop
from scwormhole.train._checkpoint import of_saved, to_saved
from scwormhole.train._held_out import Look
from scwormhole.train._history import History
from scwormhole.train._loop import begin, learning_rate, train
from scwormhole.train._plan import Clock
from scwormhole.train._settings import Recipe

CURVES = {
    "gains": lambda step: 1 / (1 + step),
    "gains nothing": lambda step: 1.0,
    "gains late": lambda step: 1.0 if step < 120 else 100 / step,
    "gets worse": lambda step: 1 + step / 100 if step > 30 else 2 - step / 30,
    "wavers": lambda step: 1.0 + 0.3 * np.sin(step / 7),
}


class KilledError(Exception):
    pass


@pytest.fixture
def counted(monkeypatch):
    """Steps that add one to the weight, and remember their rates."""
    rates_of = {}

    def run_steps(state, feed, rates, *, graph, rules, mesh):
        rates_of.update(zip(feed, map(float, rates), strict=True))
        params = {"weight": state.params["weight"] + len(feed)}
        return state._replace(params=params), (np.ones(len(feed)), np.zeros(len(feed)))

    monkeypatch.setattr(_loop, "run_steps", run_steps)
    return rates_of


class Ticking(Clock):
    """A clock that goes on by what work takes, and by nothing else."""

    def __init__(self, now=0.0):
        super().__init__()
        self.now = now

    def elapsed(self):
        return self.now


def trained(curve, recipe, *, saved=None, stop_at=None, clock=None, blocks=None):
    """Train a weight that counts its steps; returns the outcome, the history and all checkpoints."""
    progress, history, kept = begin({"weight": jnp.zeros(())}, 0.0), History(), []
    if saved is not None:
        progress, history = of_saved(saved, progress), saved.history

    def keep(progress):
        kept.append(to_saved("encoder", progress, history, []))
        if len(kept) == stop_at:
            raise KilledError

    def examine(params):
        return Look(0.5, float(curve(float(params["weight"]))))

    blocks = blocks or SimpleNamespace(feed=lambda span: span, solves=lambda span: False)
    options = {"examine": examine, "keep": keep, "clock": clock or Ticking(), "show": False}
    try:
        outcome = train("encoder", progress, history, blocks, recipe, None, None, **options)
    except KilledError:
        outcome = None
    return outcome, history, kept


def told(outcome, history):
    return float(outcome.params["weight"]), outcome.end, repr(asdict(history))


@pytest.mark.parametrize("max_steps", [20, 100, 600])
@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES.keys())
def test_the_best_weights_are_kept(counted, curve, max_steps):
    outcome, history, _ = trained(curve, Recipe(max_steps=max_steps, patience=3))
    assert curve(float(outcome.params["weight"])) == min(history.error)
    assert history.step[0] == 0
    assert history.step == sorted(set(history.step))
    assert history.step[-1] <= max_steps
    assert sorted(counted) == list(range(history.step[-1]))


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES.keys())
def test_a_training_taken_up_at_any_checkpoint_ends_the_same(counted, curve):
    recipe = Recipe(max_steps=300, patience=2)
    outcome, history, kept = trained(curve, recipe)
    rates = dict(counted)
    for number, saved in enumerate(kept, 1):
        assert trained(curve, recipe, stop_at=number)[0] is None
        again = trained(curve, recipe, saved=saved)
        assert told(*again[:2]) == told(outcome, history)
        assert counted == rates


def test_it_stops_when_nothing_is_gained_and_says_so(counted):
    outcome, history, _ = trained(CURVES["gains nothing"], Recipe(max_steps=10_000, patience=3))
    assert outcome.end.converged
    assert outcome.end.limit is None
    assert "gained no more" in outcome.end.advice
    assert history.step[-1] < 5000
    rates = [counted[step] for step in sorted(counted)]
    assert rates[-1] < 0.5 * max(rates)


def test_it_advises_more_steps_while_it_gains(counted):
    outcome, history, _ = trained(CURVES["gains"], Recipe(max_steps=100))
    assert outcome.end[0] is False
    assert outcome.end.limit == "max_steps"
    assert "max_steps" in outcome.end.advice
    assert history.step[-1] == 100


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES.keys())
@pytest.mark.parametrize("max_steps", [0, 10, 20, 40])
def test_a_training_that_was_short_has_not_converged(counted, curve, max_steps):
    outcome, _, _ = trained(curve, Recipe(max_steps=max_steps))
    assert not outcome.end.converged
    assert outcome.end.limit == "max_steps"


def test_without_patience_it_takes_all_steps(counted):
    outcome, history, _ = trained(CURVES["gains nothing"], Recipe(max_steps=600, patience=None))
    assert history.step[-1] == 600
    assert not outcome.end.converged


def test_it_ends_in_time(counted):
    clock = Ticking()
    gather = ticking(clock, solve=0.5, gather=0.5)
    outcome, history, kept = trained(
        CURVES["gains"], Recipe(max_steps=10_000, max_seconds=5.0), clock=clock, blocks=gather
    )
    assert 20 <= history.step[-1] < 200
    assert clock.now <= 5.0
    assert not outcome.end.converged
    assert outcome.end.limit == "max_seconds"
    assert "max_seconds" in outcome.end.advice
    assert kept[-1].header["step"] == history.step[-1]


def ticking(clock, *, solve, gather, every=50):
    """Blocks that are solved every so many steps, and take their time."""

    def solves(span):
        return span.start % every == 0

    def feed(span):
        clock.now += solve if solves(span) else gather
        return span

    return SimpleNamespace(feed=feed, solves=solves)


def test_what_cannot_be_solved_in_time_is_not_begun(counted):
    clock = Ticking()
    blocks = ticking(clock, solve=4.0, gather=0.125)
    outcome, history, _ = trained(
        CURVES["gains"], Recipe(max_steps=10_000, max_seconds=10.0), clock=clock, blocks=blocks
    )
    assert 10 <= history.step[-1] <= 100  # of two solved blocks; the third would have ended at twelve seconds
    assert clock.now < 10.0
    assert outcome.end.limit == "max_seconds"


def test_no_step_when_time_is_up(counted):
    outcome, history, kept = trained(CURVES["gains"], Recipe(max_steps=50, max_seconds=5.0), clock=Ticking(6.0))
    assert history.step == [0]
    assert not kept
    assert "before the first step" in outcome.end.advice


def test_no_steps_is_one_look(counted):
    _, history, kept = trained(CURVES["gains"], Recipe(max_steps=0))
    assert history.step == [0]
    assert not kept
    assert not counted


@pytest.mark.parametrize(("first", "second"), [(25, 60), (20, 50), (40, 45), (60, 30)])
def test_another_number_of_steps_is_looked_at_as_often(counted, first, second):
    saved = trained(CURVES["gains"], Recipe(max_steps=first))[2][-1]
    outcome, history, _ = trained(CURVES["gains"], Recipe(max_steps=second), saved=saved)
    assert history.step[-1] == max(first, second)
    assert max(np.diff(history.step)) <= 10
    assert float(outcome.params["weight"]) == max(first, second)


def test_numbers_that_are_not_finite_end_it(counted):
    with pytest.raises(FloatingPointError, match=r"after 20 steps.*learning_rate"):
        trained(lambda step: 1.0 if step < 20 else np.nan, Recipe(max_steps=50))


def test_a_checkpoint_of_another_model_is_refused(counted):
    saved = trained(CURVES["gains"], Recipe(max_steps=20))[2][0]
    for other in ({"weight": jnp.zeros(2)}, {"weight": jnp.zeros(()), "more": jnp.zeros(())}):
        with pytest.raises(ValueError, match="another model"):
            of_saved(saved, begin(other, 0.0))


def test_the_rate_warms_up_and_falls_along_half_a_cosine():
    recipe = Recipe(learning_rate=0.1, warmup=10)
    warm = [learning_rate(recipe, step, 0.0) for step in range(12)]
    np.testing.assert_allclose(warm, 0.1 * np.minimum(1, np.arange(1, 13) / 10))
    late = [learning_rate(recipe, 1000, share) for share in (0, 0.25, 0.5, 0.75, 1, 2)]
    np.testing.assert_allclose(late, 0.05 * (1 + np.cos(np.pi * np.array([0, 0.25, 0.5, 0.75, 1, 1]))), atol=1e-15)


def test_the_paper_rate_falls_by_a_hundredth_every_hundred_steps():
    recipe = Recipe(learning_rate=0.1, decay="exponential")
    rates = [learning_rate(recipe, step, 0.9) for step in (0, 99, 100, 1000)]
    np.testing.assert_allclose(rates, 0.1 * 0.99 ** np.array([0, 0, 1, 10]))
