"""What a person reads of a training: how held-out clouds fared, and how it ended. Plain records."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np


@dataclass
class History:
    """What a person reads of a training: a row for every look at held-out clouds.

    In the phase ``"encoder"`` the error is the root mean squared error of held-out divergences over their standard
    deviation, in the phase ``"decoder"`` the mean divergence of decoded clouds from what they were, over the mean
    divergence between clouds, both in the decoder's metric.
    """

    phase: list[str] = field(default_factory=list)
    step: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    correlation: list[float] = field(default_factory=list)
    error: list[float] = field(default_factory=list)
    encoder_loss: list[float] = field(default_factory=list)
    decoder_loss: list[float] = field(default_factory=list)

    def of_phase(self, phase: str) -> "History":
        """Return the rows of one phase."""
        rows = [row for row, name in enumerate(self.phase) if name == phase]
        return History(**{name: [column[row] for row in rows] for name, column in vars(self).items()})

    def last(self) -> dict[str, str]:
        """Return what the last look found, as text; the decoder has no correlation."""
        found = {"held-out correlation": self.correlation[-1], "error": self.error[-1]}
        return {name: f"{value:.4f}" for name, value in found.items() if np.isfinite(value)}

    @classmethod
    def of(cls, columns: dict[str, list[Any]]) -> "History":
        """Return a history from its columns, in which None may stand for a number that is not finite."""
        known: dict[str, Any] = {n: [np.nan if v is None else v for v in column] for n, column in columns.items()}
        return cls(**known)


class End(NamedTuple):
    """How a phase ended."""

    converged: bool
    advice: str
    limit: str | None  # the parameter that ended it
