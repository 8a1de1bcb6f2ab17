"""A training that can be taken up again, as plain arrays and what JSON can hold; the only files here are its folder.

A step is a function of its number and of the state before it, so the state and the step's number are all there is to
keep; the same goes for the history, and for the best weights so far.
"""

import os
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from scwormhole.io import folder_kind, read_folder, remove_folder, write_folder

from ._devices import agreed, is_first
from ._history import End, History
from ._loop import Progress

KIND, FORMAT = "scwormhole checkpoint", 1
NUMBERS = ("best_error", "step", "waited", "skipped", "began", "seconds")


class Saved(NamedTuple):
    """A checkpoint: arrays by name, and a header."""

    arrays: dict[str, NDArray[Any]]
    header: dict[str, Any]

    @property
    def ends(self) -> list[End]:
        """How earlier phases ended."""
        return [End(*end) for end in self.header["ends"]]

    @property
    def history(self) -> History:
        """What was seen so far."""
        return History.of(self.header["history"])


def to_saved(phase: str, progress: Progress, history: History, ends: list[End]) -> Saved:
    """Return a training's progress as plain arrays, with how earlier phases ended."""
    leaves = jax.device_get(jax.tree.leaves((progress.state, progress.best)))
    arrays = {f"{number:04d}": np.asarray(leaf) for number, leaf in enumerate(leaves)}
    header = {name: getattr(progress, name) for name in NUMBERS}
    return Saved(arrays, {"phase": phase, "ends": [list(end) for end in ends], **header, "history": asdict(history)})


def of_saved(saved: Saved, template: Progress) -> Progress:
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
    return Progress(state=state, best=best, **{name: saved.header[name] for name in NUMBERS})


class Checkpoints:
    """Where the last checkpoint of a fit is: in memory and, if there is one, in a folder.

    Parameters
    ----------
    folder
        The folder, or None.
    mark
        What must be the same for a fit to be taken up again.
    last
        The checkpoint in memory, or None.
    """

    def __init__(self, folder: str | os.PathLike[str] | None, mark: dict[str, Any], last: Saved | None) -> None:
        self.folder, self.mark, self.last = folder, mark, last
        self._full = False

    def start(self, *, resume: bool) -> Saved | None:
        """Return the checkpoint to go on from, the one in memory first; None, with a warning, if there is none.

        Without ``resume`` forget what is in memory, and refuse to begin over a checkpoint in the folder.
        """
        if not resume:
            self.last = None
            if self.folder is not None and os.path.lexists(self.folder):
                raise FileExistsError(
                    f"the checkpoint {self.folder} exists; fit(clouds, resume=True) goes on from it. "
                    "To start anew remove it."
                )
            return None
        found = [] if self.last is None else [self.last]
        if self.folder is not None and Path(self.folder).exists():
            header, arrays = read_folder(self.folder, KIND, FORMAT)
            found.append(Saved(arrays, header))
        for saved in found:
            if saved.header["of"] == self.mark:
                return saved
        if found:
            of = found[0].header["of"]
            differ = ", ".join(name for name in self.mark if self.mark[name] != of.get(name))
            raise ValueError(f"the checkpoint is of another fit; these differ: {differ}. Start anew without resume.")
        where = "in memory" if self.folder is None else f"in memory or at {self.folder}"
        warnings.warn(f"there is no checkpoint {where} to go on from; the fit starts anew.", stacklevel=3)
        return None

    def keep(self, saved: Saved) -> None:
        """Keep a checkpoint. If the folder cannot be written, warn once and go on: training is worth more."""
        self.last = saved._replace(header={**saved.header, "of": self.mark})
        if self.folder is None or not is_first():
            return
        header = {"kind": KIND, "format": FORMAT, **self.last.header}
        try:
            write_folder(self.folder, header, saved.arrays, overwrite=True)
        except OSError as error:
            if not self._full:
                warnings.warn(f"training goes on without a checkpoint on disk: {error}", stacklevel=2)
            self._full = True

    def remove(self) -> None:
        """Remove the folder, after a fit that ended; of several processes the first one does, and the others wait."""
        if is_first() and self.folder is not None and folder_kind(self.folder) == KIND:
            remove_folder(self.folder)
        agreed(True)
