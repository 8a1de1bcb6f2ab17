"""A training that can be taken up again, as plain arrays and what JSON can hold. Touches no files.

A step is a function of its number and of the state before it, so the state and the step's number are all there is to
keep; the same goes for the history, and for the best weights so far.
"""

from dataclasses import asdict
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from ._loop import History, Progress

NUMBERS = ("best_error", "step", "waited", "skipped", "began", "seconds")


class Saved(NamedTuple):
    """A checkpoint: arrays by name, and a header."""

    arrays: dict[str, NDArray[Any]]
    header: dict[str, Any]


def to_saved(phase: str, progress: Progress, history: History, ends: list[tuple[bool, str]]) -> Saved:
    """Return a training's progress as plain arrays, with how earlier phases ended."""
    leaves = jax.device_get(jax.tree.leaves((progress.state, progress.best)))
    arrays = {f"{number:04d}": np.asarray(leaf) for number, leaf in enumerate(leaves)}
    header = {name: getattr(progress, name) for name in NUMBERS}
    return Saved(arrays, {"phase": phase, "ends": ends, **header, "history": asdict(history)})


def of_saved(saved: Saved, template: Progress) -> tuple[Progress, History]:
    """Undo :func:`to_saved`, given a progress of the same structure."""
    leaves, structure = jax.tree.flatten((template.state, template.best))
    found = [saved.arrays.get(f"{number:04d}") for number in range(len(leaves))]
    if len(saved.arrays) != len(leaves) or any(
        f is None or f.shape != leaf.shape for f, leaf in zip(found, leaves, strict=True)
    ):
        raise ValueError(
            "the checkpoint is of another model: its arrays do not fit. Remove it, or fit with resume=False."
        )
    state, best = jax.tree.unflatten(structure, [jax.numpy.asarray(f) for f in found])
    numbers = {name: saved.header[name] for name in NUMBERS}
    return Progress(state=state, best=best, **numbers), History(**saved.header["history"])
