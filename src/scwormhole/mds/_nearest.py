"""The Euclidean distance matrix nearest to a table of divergences, with a gap that proves it. NumPy and SciPy only.

Algorithm 2 of the paper descends ``|D' - D|^2`` by gradient steps, each projected onto the Euclidean distance matrices.
A step of one half leads to D from anywhere, so the answer is a single projection. Two of the three sets suffice for it:
a hollow table with a positive semidefinite criterion matrix has no negative entry. Dykstra's method over these two is a
gradient ascent with step one in the multipliers y of the diagonal,

    maximise  |D|^2 - |C(D + diag y)|^2,        C the projection onto the first set, a cone,

which is smooth, so L-BFGS climbs it in half to a fifth of the steps. Every y bounds the least stress from below; made
hollow, ``C(D + diag y)`` is a Euclidean distance matrix whose stress bounds it from above. At y = 0 these are the
paper's two bounds, and the climb closes the gap between them.
"""

import logging
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize
from tqdm.auto import tqdm

from ._classical import classical_mds
from ._criterion import Bounds, between, made_hollow, root_mean_square, squared_error, truncated
from ._validation import as_divergences, check_count, warn

SLOW_FROM = 2_000  # clouds from which the cost is told beforehand: it may be minutes
MEMORY = 10  # steps that L-BFGS remembers
ROUNDING = 1e-24  # gap that is nothing, as a share of the table's sum of squares

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, eq=False)  # arrays have no single truth
class NearestEDM:
    """A Euclidean distance matrix, and how near it is known to be to the nearest.

    Parameters
    ----------
    distances
        Squared distances, each cloud with each.
    stress
        Squared differences from what was asked for, summed over the whole table.
    lower
        No Euclidean distance matrix has less stress than this.
    bounds
        What was known before the first step: the paper's bounds.
    n_iter
        Decompositions that were made.
    converged
        Whether the gap was closed, to ``tol`` or to rounding.
    """

    distances: NDArray[np.float64]
    stress: float
    lower: float
    bounds: Bounds
    n_iter: int
    converged: bool

    @property
    def gap(self) -> float:
        """How far the stress may be above the least one."""
        return max(0.0, self.stress - self.lower)

    def embedding(self, n_components: int | None = None) -> NDArray[np.float64]:
        """Return vectors with these squared distances, or their first principal components.

        Parameters
        ----------
        n_components
            Length of a vector; as many as needed by default.
        """
        return classical_mds(self.distances, n_components)


class _Enough(Exception):  # noqa: N818 - nothing is wrong
    """The gap is closed."""


def nearest_edm(divergences: ArrayLike, *, tol: float = 1e-4, max_iter: int = 500, progress: bool = True) -> NearestEDM:
    """Find the table of squared Euclidean distances that is nearest to a table of divergences.

    Each step decomposes an n x n matrix, about ``10 n**3`` operations, and a few tables of that size are held: a
    second for hundreds of clouds, an hour for ten thousand. From 2,000 clouds on a logged warning tells it beforehand.

    Parameters
    ----------
    divergences
        Squared distances or divergences, each cloud with each.
    tol
        Gap at which to stop, as a share of the stress. One of 1e-24 of the table's sum of squares is rounding, and
        closed in any case.
    max_iter
        Decompositions at most.
    progress
        Whether to show a bar once work takes over two seconds.

    Examples
    --------
    >>> import scwormhole as wh
    >>> found = wh.mds.nearest_edm([[0, 1, 9], [1, 0, 1], [9, 1, 0]])
    >>> found.distances.round(3)
    array([[0.   , 2.111, 8.444],
           [2.111, 0.   , 2.111],
           [8.444, 2.111, 0.   ]])
    >>> found.converged, bool(found.bounds.lower <= found.stress <= found.bounds.upper)
    (True, True)
    """
    table = as_divergences(divergences)
    if not 0 < tol < 1:
        raise ValueError(f"tol is {tol}; give a share between 0 and 1.")
    check_count("max_iter", max_iter)
    n = len(table)
    if n >= SLOW_FROM:
        logger.warning(
            "nearest EDM of %d clouds: up to %d decompositions of %.0e operations, %.1f GiB; a sample of clouds is "
            "quicker",
            *(n, max_iter),
            *(10 * n**3, 8 * 8 * n**2 / 2**30),
        )
    climb = _Climb(table, tol, max_iter, progress)
    with climb.bar, suppress(_Enough):
        optimize.minimize(
            climb.down,
            np.zeros(n),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": max_iter, "maxfun": max_iter, "maxcor": MEMORY, "ftol": 0, "gtol": 0, "maxls": 50},
        )
    found = climb.found()
    if not found.converged:
        warn(
            f"stopped after {found.n_iter} decompositions with a stress of {found.stress:.4g}, at most "
            f"{found.gap:.2g} above the least one; raise max_iter for a smaller gap."
        )
    return found


class _Climb:
    """Ascends in the multipliers of the diagonal, and keeps the best table and the best bound on the way."""

    def __init__(self, table: NDArray[np.float64], tol: float, max_iter: int, progress: bool) -> None:
        self.unit = root_mean_square(table)
        self.table, self.tol, self.max_iter = table / self.unit, tol, max_iter
        self.rounding = ROUNDING * float((self.table**2).sum())
        self.best, self.stress, self.lower, self.n_iter = self.table, np.inf, 0.0, 0
        self.first = Bounds(0.0, np.inf)
        self.bar = tqdm(total=max_iter, desc="nearest EDM", unit="step", delay=2, disable=not progress)

    def down(self, multipliers: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Return what is to be minimised, half of the dual below zero, and its gradient: the diagonal."""
        if self.n_iter >= self.max_iter:
            raise _Enough
        raised = self.table + np.diag(multipliers)
        inside = truncated(raised)
        hollow = made_hollow(inside)
        stress = squared_error(self.table, hollow)
        if stress < self.stress:
            self.best, self.stress = hollow, stress
        # |D|^2 - |C(D + diag y)|^2, by Pythagoras and without the difference of two large numbers
        dual = squared_error(raised, inside) - float(multipliers @ multipliers)
        self.lower = max(self.lower, dual)
        if self.n_iter == 0:
            self.first = between(self.table, inside)
        self.n_iter += 1
        said = {"stress": f"{self._squared(self.stress):.4g}", "gap": f"{self._squared(self.gap):.1g}"}
        self.bar.set_postfix(said, refresh=False)  # a refresh would show the bar before its delay
        self.bar.update()
        if self.closed:
            raise _Enough
        return -dual / 2, np.diag(inside).copy()

    @property
    def gap(self) -> float:
        return max(0.0, self.stress - self.lower)

    @property
    def closed(self) -> bool:
        return self.gap <= self.tol * self.stress + self.rounding

    def found(self) -> NearestEDM:
        lower, upper = self.first
        return NearestEDM(
            distances=self.best * self.unit,
            stress=self._squared(self.stress),
            lower=self._squared(min(self.lower, self.stress)),
            bounds=Bounds(self._squared(lower), self._squared(upper)),
            n_iter=self.n_iter,
            converged=self.closed,
        )

    def _squared(self, stress: float) -> float:
        """Return a stress in squared units of the table: infinite or zero where these leave double precision."""
        return stress * self.unit * self.unit
