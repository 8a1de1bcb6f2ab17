"""How DWE is trained: batches with the divergences of all their pairs, the compiled step, and the loop on the host.

A few batches are solved at a time, and gone through several times in changing order before the next ones are solved.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax import Array
from jax.scipy.special import xlogy
from numpy.typing import NDArray
from tqdm.auto import tqdm

from scwormhole.ot import Targets
from scwormhole.ot._cohort import Cohort
from scwormhole.train._plan import Clock
from scwormhole.train._step import squared_distances

from ._grid import Grid

GROUP, TURNS = 8, 4  # batches that are solved together, and how often each is used
LAST_RATE = 0.01  # of the learning rate, in the end
NOTED = 50  # steps whose mean is a row of the history
ADAM = optax.scale_by_adam()

History = dict[str, list[float]]


class Block(NamedTuple):
    """What a step is fed with."""

    masses: NDArray[np.float32]  # [b, v]
    target: NDArray[np.float32]  # [b, b], in units of the mean


class State(NamedTuple):
    """What the next step needs."""

    params: Any
    moments: Any


class Losses(NamedTuple):
    """What a person reads of a step."""

    encoder: Array
    decoder: Array


class Pairs:
    """Makes the batches of any step, always the same ones for a step.

    Parameters
    ----------
    clouds
        The cohort.
    grid
        Makes histograms.
    targets
        Solves pairs.
    batch_size
        Clouds of a batch.
    rng
        Seed.
    """

    def __init__(self, clouds: Cohort, grid: Grid, targets: Targets, batch_size: int, rng: int) -> None:
        self._clouds, self._grid, self._targets = clouds, grid, targets
        self._batch_size, self._rng, self.mean = batch_size, rng, 1.0
        self._first = self._solved(0)
        self.mean = float(np.mean([block.target[_off(batch_size)] for block in self._first])) or 1.0
        self._first = [block._replace(target=block.target / np.float32(self.mean)) for block in self._first]
        self.mean_square = float(np.mean([block.masses**2 for block in self._first]))

    def group(self, number: int) -> list[Block]:
        """Return the batches of one group, each as often as it is used."""
        blocks = self._first if number == 0 else self._solved(number)
        generator = np.random.default_rng([self._rng, 1, number])
        return [blocks[place] for _ in range(TURNS) for place in generator.permutation(GROUP)]

    def _solved(self, number: int) -> list[Block]:
        generator = np.random.default_rng([self._rng, 0, number])
        some = [generator.choice(len(self._clouds), self._batch_size, replace=False) for _ in range(GROUP)]
        tables = (self._targets.blocks(np.stack(some)) / self.mean).astype(np.float32)
        padded = map(self._clouds.padded, some)
        masses = (self._grid.histograms(batch.points, batch.weights).astype(np.float32) for batch in padded)
        return [Block(*both) for both in zip(masses, tables, strict=True)]


def loss(params: Any, block: Block, coeff: float, graph: Any) -> tuple[Array, Losses]:
    """Return squared errors of divergences over their mean, and the divergence of decoded histograms."""
    networks = nnx.merge(graph, params)
    z = networks.encode(block.masses)
    error = jnp.where(_off(len(z)), squared_distances(z) - block.target, 0.0)
    encoder = (error**2).sum() / (len(z) * (len(z) - 1))
    decoder = (xlogy(block.masses, block.masses) - block.masses * networks.decode(z)).sum(-1).mean()
    return encoder + coeff * decoder, Losses(encoder, decoder)


@partial(jax.jit, static_argnames=("graph",), donate_argnames=("state",))
def step(state: State, block: Block, rate: float, coeff: float, *, graph: Any) -> tuple[State, Losses]:
    """Take a step of Adam; the state is used up."""
    slopes, losses = jax.grad(loss, has_aux=True)(state.params, block, coeff, graph)
    updates, moments = ADAM.update(slopes, state.moments)
    return State(jax.tree.map(lambda p, u: p - rate * u, state.params, updates), moments), losses


def train(
    params: Any,
    pairs: Pairs,
    *,
    graph: Any,
    coeff: float,
    learning_rate: float,
    max_steps: int,
    max_seconds: float | None,
    clock: Clock,
    show: bool,
) -> tuple[Any, History, int]:
    """Train until steps or time are up, and return weights, the history and the number of steps.

    Parameters
    ----------
    params
        Weights at the start, which are used up.
    pairs
        Makes batches.
    graph
        Definition of the networks.
    coeff
        Weight of the decoder's loss.
    learning_rate
        At the start; it falls exponentially over the steps or over the time, whichever is more used up.
    max_steps
        Steps at most.
    max_seconds
        Time at most, or None.
    clock
        Runs since the fit began.
    show
        Whether to show a progress bar.
    """
    state, taken, losses = State(params, ADAM.init(params)), 0, list[Losses]()
    history: History = {"step": [], "seconds": [], "encoder_loss": [], "decoder_loss": []}
    blocks: list[Block] = []
    bar = tqdm(total=max_steps, desc="DWE", unit="step", delay=2, disable=not show)
    with bar:
        while taken < max_steps and clock.allows(max_seconds, "step", *(() if blocks else ("solving",))):
            if not blocks:
                with clock.timing("solving" if taken else "solved before"):
                    blocks = pairs.group(taken // (GROUP * TURNS))
            share = max(taken / max_steps, clock.elapsed() / max_seconds if max_seconds else 0.0)
            with clock.timing("step" if taken else "first step"):
                state, found = step(state, blocks.pop(), learning_rate * LAST_RATE**share, coeff, graph=graph)
                losses.append(jax.device_get(found))
            taken += 1
            bar.update()
            if taken % NOTED == 0 or taken == max_steps:
                _note(history, losses, taken, clock)
    if losses:
        _note(history, losses, taken, clock)
    return state.params, history, taken


def _note(history: History, losses: list[Losses], taken: int, clock: Clock) -> None:
    """Add the mean of losses to a history, and forget them."""
    encoder, decoder = (float(mean) for mean in np.mean(losses, axis=0))
    if not np.isfinite(encoder + decoder):
        raise FloatingPointError(f"the loss is no longer a number after {taken:,} steps; lower learning_rate.")
    row = {"step": taken, "seconds": clock.elapsed(), "encoder_loss": encoder, "decoder_loss": decoder}
    for name, value in row.items():
        history[name].append(value)
    losses.clear()


def _off(size: int) -> NDArray[np.bool_]:
    """Where a table is not on its diagonal."""
    return ~np.eye(size, dtype=bool)
