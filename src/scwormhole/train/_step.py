"""The step: losses, gradient and update, pure and compiled; several steps a call."""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax import Array, lax
from jax.sharding import Mesh

from scwormhole.nn import Decoder, Encoder
from scwormhole.ot import divergence

from ._devices import gathered, spread


class Networks(nnx.Module):
    """Encoder and, if there is one, decoder."""

    def __init__(self, encoder: Encoder, decoder: Decoder | None) -> None:
        self.encoder, self.decoder = encoder, decoder


class TrainState(NamedTuple):
    """What the next step needs."""

    params: Any
    moments: Any


class StepInfo(NamedTuple):
    """What a person reads of each step."""

    encoder_loss: Array
    decoder_loss: Array


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["coeff_dec", "epsilon_dec", "mean_target", "mean_dec"],
    meta_fields=["metric_dec", "clip", "decoder_only"],
)
@dataclass(frozen=True)
class Rules:
    """What the loss is made of. Numbers that differ from cohort to cohort are not compiled in."""

    coeff_dec: float
    epsilon_dec: float  # in the units of the decoder's metric, on points as the network sees them
    mean_target: float  # in the network's units
    mean_dec: float  # the mean divergence between clouds in the decoder's metric, in the same units as its epsilon
    metric_dec: Any
    clip: float | None = None  # largest norm of a gradient
    decoder_only: bool = False  # the encoder stays as it is


TOL_DEC, MOST_ITERATIONS_DEC = 1e-2, 100  # rough: the next step asks again


def with_decoder(params: Any, other: Any) -> Any:
    """Return weights with the decoder of others: the best encoder may be an early one, whose decoder knew little."""
    return jax.tree.map_with_path(lambda path, own, new: new if path[0].key == "decoder" else own, params, other)


def start(params: Any) -> TrainState:
    """Return the state before the first step."""
    return TrainState(params, optimizer(None).init(params))


def optimizer(clip: float | None) -> Any:
    """Return Adam, with or without a largest norm of the gradient; its state is the same."""
    return optax.chain(optax.identity() if clip is None else optax.clip_by_global_norm(clip), optax.scale_by_adam())


@partial(jax.jit, static_argnames=("graph", "mesh"), donate_argnames=("state",))
def run_steps(
    state: TrainState, feed: Any, rates: Array, *, graph: Any, rules: Rules, mesh: Mesh
) -> tuple[TrainState, StepInfo]:
    """Take as many steps as the feed holds, the clouds of each divided among the devices.

    Parameters
    ----------
    state
        State, which is used up.
    feed
        Arrays of the steps.
    rates
        Learning rate of each.
    graph
        Definition of the networks.
    rules
        What the loss is made of.
    mesh
        The devices; state and feed are on each of them.
    """

    def step(state: TrainState, given: tuple[Any, Array]) -> tuple[TrainState, StepInfo]:
        batch, rate = given
        slopes, info = jax.grad(partial(loss, graph=graph, rules=rules, mesh=mesh), has_aux=True)(state.params, batch)
        updates, moments = optimizer(rules.clip).update(slopes, state.moments)
        params = jax.tree.map(lambda p, u: p - rate * u, state.params, updates)
        return TrainState(params, moments), info

    return lax.scan(step, state, (feed, rates))


def loss(params: Any, batch: Any, *, graph: Any, rules: Rules, mesh: Mesh) -> tuple[Array, StepInfo]:
    """Return the loss of one batch: squared errors of divergences and, with a decoder, its reconstruction."""
    networks = nnx.merge(graph, params)
    z, noise = encode_strata(networks.encoder, batch, mesh)
    if rules.decoder_only:
        decoder_loss = reconstruction(networks.decoder, lax.stop_gradient(z), batch, rules, mesh)
        return decoder_loss, StepInfo(jnp.zeros(()), decoder_loss)
    apart = squared_distances(z) + batch.fresh * (noise[:, None] + noise)
    off = ~jnp.eye(len(z), dtype=bool)
    error = jnp.where(off, apart - batch.target, 0.0) / rules.mean_target
    encoder_loss = (error**2).sum() / off.sum()
    if networks.decoder is None:
        return encoder_loss, StepInfo(encoder_loss, jnp.zeros(()))
    decoder_loss = reconstruction(networks.decoder, z, batch, rules, mesh)
    return encoder_loss + rules.coeff_dec * decoder_loss, StepInfo(encoder_loss, decoder_loss)


def encode_strata(encoder: Encoder, batch: Any, mesh: Mesh) -> tuple[Array, Array]:
    """Embed a batch, stratum after stratum."""
    first, parts = 0, []
    for points, weights in zip(batch.points, batch.weights, strict=True):
        some = slice(first, first + len(points))
        parts.append(_divided(encoder, mesh, points, weights, batch.features[some], batch.noise[some]))
        first += len(points)
    z, noise = (jnp.concatenate(part) for part in zip(*parts, strict=True))
    return z, noise


def _divided(network: Any, mesh: Mesh, *given: Array) -> Any:
    """Apply a network to rows that are divided among the devices, filled up with repeats where they do not divide."""
    n = len(given[0])
    own = [
        spread(jnp.pad(part, [(0, -n % mesh.size), *[(0, 0)] * (part.ndim - 1)], mode="edge"), mesh) for part in given
    ]
    return jax.tree.map(lambda part: gathered(part, mesh)[:n], network(*own))


def reconstruction(decoder: Decoder, z: Array, batch: Any, rules: Rules, mesh: Mesh) -> Array:
    """Return the mean divergence of decoded clouds from the clouds they were, over the mean between clouds."""
    points, mass = _divided(decoder, mesh, z)
    # clouds are fed from their own means, and decoded around what the vector says their mean is: their own
    own = z[:, None, : decoder.n_fixed] if decoder.n_fixed else 0.0
    largest = max(truth.shape[1] for truth in batch.points)  # one size for all: one solver to compile
    truth = jnp.concatenate([_widened(part, largest) for part in batch.points])
    weights = jnp.concatenate([_widened(part, largest) for part in batch.weights])
    # a cost of the user's may mind where clouds are; for the others a shift less is a digit more
    points, truth = (points, truth + own) if callable(rules.metric_dec) else (points - own, truth)
    found = divergence(
        points,
        truth,
        mass,
        b=weights,
        metric=rules.metric_dec,
        epsilon=rules.epsilon_dec,
        tol=TOL_DEC,
        max_iterations=MOST_ITERATIONS_DEC,
    )
    return found.mean() / rules.mean_dec


def _widened(part: Array, size: int) -> Array:
    return jnp.pad(part, [(0, 0), (0, size - part.shape[1]), *[(0, 0)] * (part.ndim - 2)])


def squared_distances(z: Array) -> Array:
    """Return the squared Euclidean distances of rows, never below zero."""
    square = (z**2).sum(-1)
    return jnp.maximum(square[:, None] + square - 2 * z @ z.T, 0.0)
