"""Unregularised transport by POT's network simplex, on padded clouds. The only module that imports POT."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ._metrics import GroundCost, Metric, manhattan, paired_costs, squared_euclidean
from ._solver import Prepared, Solved, fill

MOST_PIVOTS = 10_000_000


@dataclass(frozen=True)
class Exact:
    """Exact transport. A Sinkhorn divergence tends to it as epsilon goes to zero, so S2 and W2 are the same here."""

    metric: Metric
    epsilon: float = 0.0

    name: ClassVar[str] = "exact"
    crosses: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _pot()

    def prepare(self, points: NDArray[Any], weights: NDArray[Any]) -> Prepared:
        """Keep points as they are, in double precision."""
        filled, weights = fill(points, weights)
        return Prepared(filled, weights, np.zeros((len(filled), 1)), np.zeros(len(filled)))

    def alone(self, x: Prepared) -> Solved:
        """Transport of each cloud to itself: nothing, unless a cost of the user's is above zero from x to x."""
        if self.metric.degree is None:
            return self._transport(x, x)
        return Solved.empty(len(x.points))

    def paired(self, x: Prepared, y: Prepared) -> Solved:
        """Solve the clouds of ``x`` with those of ``y``, one to one."""
        found = self._transport(x, y)
        return found._replace(value=found.value - 0.5 * (x.alone + y.alone)) if self.metric.debiased else found

    def _transport(self, x: Prepared, y: Prepared) -> Solved:
        emd2: Callable[..., Any] = _pot().emd2
        value, converged = [], []
        for x_points, a, y_points, b in zip(x.points, x.weights, y.points, y.weights, strict=True):
            costs = ground_costs(self.metric.cost, x_points[a > 0], y_points[b > 0])
            a, b = (weights[weights > 0] / weights.sum() for weights in (a, b))
            # POT's centring of the potentials costs half of the time on small clouds, and is of no use here
            cost, log = emd2(a, b, costs, numItermax=MOST_PIVOTS, log=True, center_dual=False, check_marginals=False)
            value.append(cost)
            converged.append(log["warning"] is None)
        found = np.array(value, np.float64)
        return Solved(found, 1e-12 * np.abs(found), np.zeros(len(found), np.int64), np.array(converged))

    def bytes_per_pair(self, n: int, m: int) -> int:
        """Cost, plan, and the arcs of the network."""
        return 64 * n * m

    def plan(self, x: Prepared, y: Prepared) -> tuple[NDArray[np.float64], bool]:
        """Coupling of the first cloud of each side."""
        costs = ground_costs(self.metric.cost, x.points[0], y.points[0])
        plan, log = _pot().emd(x.weights[0], y.weights[0], costs, numItermax=MOST_PIVOTS, log=True)
        return np.asarray(plan, np.float64), log["warning"] is None


def ground_costs(cost: GroundCost, x: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
    """Return the ground costs of two clouds in double precision."""
    from scipy.spatial.distance import cdist

    if cost is squared_euclidean:
        return np.asarray(cdist(x, y, "sqeuclidean"))
    if cost is manhattan:
        return np.asarray(cdist(x, y, "cityblock"))
    with jax.enable_x64(True):
        return np.asarray(paired_costs(cost, jnp.asarray(x[None]), jnp.asarray(y[None]))[0], np.float64)


def _pot() -> Any:
    try:
        import ot
    except ImportError as error:
        raise ImportError("solver='exact' needs POT: pip install 'scwormhole[exact]'.") from error
    return ot
