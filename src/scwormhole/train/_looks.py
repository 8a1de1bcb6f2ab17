"""Looks at held-out clouds: how close embedded divergences, and decoded clouds, are to the truth."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from scwormhole.clouds import PointClouds
from scwormhole.ot import Targets, distances

from ._held_out import Look, Split, look
from ._parameters import Parameters
from ._step import Rules
from ._use import Trained

FEW_HELD_OUT = 16  # held-out clouds below which their pairs with training clouds count too
MOST_DECODED = 64  # held-out clouds that are decoded at a look


def divergence_look(
    trained: Trained, clouds: PointClouds, split: Split, targets: Targets, max_memory: int
) -> Callable[[Any], Look]:
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
        found = replace(trained, params=weights).embed(some, max_memory=max_memory)
        return look(found.table(shared)[rows, columns], true)

    return examine


def decoder_look(
    trained: Trained, clouds: PointClouds, split: Split, params: Parameters, rules: Rules
) -> Callable[[Any], Look]:
    """Return a function that looks how close decoded held-out clouds are to what they were."""
    positions = split.held_out if len(split.held_out) >= FEW_HELD_OUT else split.train
    some, transport = clouds[positions[:MOST_DECODED]], params.transport
    unit = trained.frame.length**transport.degree_dec
    options: dict[str, Any] = {"epsilon": rules.epsilon_dec * unit}
    options |= {"relative_epsilon": None, "max_points": params.recipe.max_points, "progress": False}

    def examine(weights: Any) -> Look:
        model = replace(trained, params=weights)
        points, mass = model.decode(model.embed(some, max_memory=params.max_memory).z)
        decoded = PointClouds.from_list(list(points), list(mass))
        apart = distances(some, decoded, transport.metric_dec, **options)
        return Look(float("nan"), float(apart.mean() / (rules.mean_dec * unit)))

    return examine
