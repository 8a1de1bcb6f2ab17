"""What a solver is to the drivers: the records that pass between them. NumPy only."""

from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

NEAR_NUMBERS = 1 << 18  # gathered at a time for rows that are close: copies of a cloud may be many


class Prepared(NamedTuple):
    """Clouds as a solver wants them."""

    points: NDArray[Any]  # [b, n, d]; padding repeats the cloud's first point, where any ground cost is defined
    weights: NDArray[Any]  # [b, n]; zero on padding
    means: NDArray[np.float64]  # [b, d] what was taken out of the points; zero where nothing was
    alone: NDArray[np.float64]  # [b] transport of each cloud to itself, zero where the metric has no use for it


class Solved(NamedTuple):
    """Problems solved, in the user's units."""

    value: NDArray[np.float64]
    error: NDArray[Any]  # estimate, of the value
    iterations: NDArray[Any]
    converged: NDArray[np.bool_]

    @classmethod
    def empty(cls, *shape: int) -> "Solved":
        """Return room for problems, each at zero and certain until something is put there."""
        return cls(np.zeros(shape), np.zeros(shape, np.float32), np.zeros(shape, np.int32), np.ones(shape, bool))

    def first(self, count: int) -> "Solved":
        """Return the first problems."""
        return Solved(self.value[:count], self.error[:count], self.iterations[:count], self.converged[:count])

    def put(self, where: Any, solved: "Solved", pick: Any = ...) -> None:
        """Write solved problems to their places."""
        for ours, theirs in zip(self, solved, strict=True):
            ours[where] = theirs[pick]

    def blame(self, error: NDArray[Any], converged: NDArray[np.bool_]) -> None:
        """Add what the halves of self-terms are uncertain by."""
        np.add(self.error, 0.5 * error, out=self.error)
        np.logical_and(self.converged, converged, out=self.converged)


class Solver(Protocol):
    """A way to compute transport between padded clouds. Called from several threads at once."""

    name: ClassVar[str]
    crosses: ClassVar[bool]  # whether it gains from clouds each with each, and has ``crossed``

    @property
    def epsilon(self) -> float:
        """Regularisation in units of the ground cost; 0 where there is none."""
        ...

    def prepare(self, points: NDArray[Any], weights: NDArray[Any]) -> Prepared:
        """Bring padded clouds into the form that the other calls take, with ``alone`` at zero."""
        ...

    def alone(self, x: Prepared) -> Solved:
        """Transport of each cloud to itself, ``[b]``."""
        ...

    def paired(self, x: Prepared, y: Prepared) -> Solved:
        """Divergence of the clouds of ``x`` from those of ``y``, one to one, ``[k]``."""
        ...

    def plan(self, x: Prepared, y: Prepared) -> tuple[NDArray[np.float64], bool]:
        """Coupling of the first cloud of ``x`` with the first of ``y``, ``[n, m]``, and whether it converged."""
        ...

    def bytes_per_pair(self, n: int, m: int) -> int:
        """Memory that a pair of clouds of ``n`` and ``m`` points takes at work."""
        ...


class CrossingSolver(Solver, Protocol):
    """A solver for which each with each is cheaper than pairs."""

    @property
    def max_iterations(self) -> int:
        """Where a pair that does not converge is left."""
        ...

    def crossed(self, x: Prepared, y: Prepared) -> Solved:
        """Divergence of each cloud of ``x`` from each of ``y``, ``[p, q]``; the slowest pairs may be left open."""
        ...


def fill(points: NDArray[Any], weights: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return clouds in double precision, padding at the first point of its cloud, weights summing to one."""
    points, weights = np.asarray(points, np.float64), np.asarray(weights, np.float64)
    real = weights > 0
    first = points[np.arange(len(points)), real.argmax(1)][:, None]
    return np.where(real[..., None], points, first), weights / weights.sum(1, keepdims=True)


def centred(
    points: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return filled clouds with their means taken out, and the means; exact however far the clouds are from zero."""
    first = points[:, :1]
    near = points - first
    means = np.einsum("bn,bnd->bd", weights, near)
    return near - means[:, None], first[:, 0] + means


def squared_gaps(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the squared Euclidean distances of rows of ``x`` from rows of ``y``, without cancellation."""
    if not x.any() and not y.any():
        return np.zeros((len(x), len(y)))
    middle = x.mean(0)
    x, y = x - middle, y - middle
    gaps = (x**2).sum(1)[:, None] + (y**2).sum(1) - 2 * x @ y.T
    near = gaps < 1e-6 * ((x**2).sum(1)[:, None] + (y**2).sum(1))
    rows, columns = np.nonzero(near)
    step = max(1, NEAR_NUMBERS // x.shape[1])
    for start in range(0, len(rows), step):
        i, j = rows[start : start + step], columns[start : start + step]
        gaps[i, j] = ((x[i] - y[j]) ** 2).sum(1)
    return gaps
