"""What a user is told beside distances: the record of how they came about, and warnings. NumPy only."""

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ._metrics import Metric
from ._solver import Solved, Solver


class TransportWarning(UserWarning):
    """Some distances are less certain than asked for."""


@dataclass(frozen=True, kw_only=True)
class TransportInfo:
    """How distances came about; arrays have the shape of the distances.

    Parameters
    ----------
    epsilon
        Regularisation used, in units of the ground cost; 0 for an unregularised solver.
    method
        Name of the solver.
    max_points
        Size of the samples that large clouds were solved on, or None.
    converged
        Whether a pair met its tolerance.
    iterations
        Iterations spent on a pair.
    error
        Estimated error of a pair's distance, in its units.
    sampled
        Whether a pair was solved on a sample of its points.
    """

    epsilon: float
    method: str
    max_points: int | None
    converged: NDArray[np.bool_]
    iterations: NDArray[np.int32]
    error: NDArray[np.float64]
    sampled: NDArray[np.bool_]

    @property
    def solver(self) -> NDArray[np.str_]:
        """How each pair was solved, in words."""
        return np.where(self.sampled, f"{self.method} on {self.max_points} points", self.method)

    def __repr__(self) -> str:
        sampled = f", {self.sampled.mean():.1%} on {self.max_points} points" if self.sampled.any() else ""
        return (
            f"TransportInfo: {self.converged.size:,} pairs by {self.method}{sampled}, "
            f"{self.converged.mean():.2%} converged, epsilon {self.epsilon:.4g}, "
            f"median of {np.median(self.iterations):.0f} iterations"
        )


def dress(
    table: Solved, solver: Solver, metric: Metric, *, max_points: int | None, sampled: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], TransportInfo]:
    """Return distances and their record; warn of what is less certain than asked for."""
    value = table.value
    if metric.non_negative and solver.name != "low_rank":
        np.maximum(value, 0.0, out=value)
    info = TransportInfo(
        epsilon=solver.epsilon,
        method=solver.name,
        max_points=max_points,
        converged=table.converged,
        iterations=table.iterations,
        error=table.error,
        sampled=sampled,
    )
    broken, late = ~np.isfinite(value), ~table.converged & np.isfinite(value)
    if broken.any():
        warnings.warn(
            f"{_counted(broken)} distances are not finite, the first at {_place(broken)}: the costs leave the range of "
            "the solver. Scale the points, or raise epsilon.",
            TransportWarning,
            stacklevel=3,
        )
    if late.any():
        known = late & (value != 0)
        worst = (table.error[known] / np.abs(value[known])).max() if known.any() else np.inf
        warnings.warn(
            f"{_counted(late)} distances did not reach the tolerance, the first at {_place(late)}; estimated relative "
            f"error up to {worst:.1e}. Raise max_iterations or epsilon; return_info tells which.",
            TransportWarning,
            stacklevel=3,
        )
    return value, info


def _place(mask: NDArray[np.bool_]) -> tuple[int, ...]:
    return tuple(int(i[0]) for i in np.nonzero(mask))


def _counted(mask: NDArray[np.bool_]) -> str:
    """Say how many distances are meant, of how many; a table holds each twice."""
    if mask.ndim == 2:
        mask = mask[np.triu_indices(len(mask), 0 if mask.diagonal().any() else 1)]
    return f"{mask.sum():,} of {mask.size:,}"
