"""What all rivals share: how they are fitted, checks of what they are given, tables filled block by block. NumPy only.

A rival either embeds, and is an ``Embedding``, or compares what it keeps of two clouds, and is a ``Comparison``.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from scwormhole.ot._cohort import Cohort, as_cohort
from scwormhole.ot._estimator import Estimator
from scwormhole.ot._solver import squared_gaps
from scwormhole.ot._threads import one_thread

from ._blocks import blocks, steps

Array = NDArray[Any]
Kept = tuple[Array, ...]  # what is kept of clouds, clouds first
KEPT_NUMBERS = 1 << 24  # of all that is kept at a time: 128 MiB in double precision


class Fitted(Estimator, ABC):
    """Something that is fitted to a cohort, with the manners of scikit-learn.

    Parameters
    ----------
    params
        Parameters by name, as the constructor got them.
    """

    dim_: int
    _fewest: ClassVar[int] = 2  # clouds of a fit

    def fit(self, clouds: Cohort, y: None = None) -> Self:
        """Fit to a cohort; a fit that fails leaves the one before as it was.

        Parameters
        ----------
        clouds
            The cohort, of at least two clouds; one is enough for a :class:`Grid`.
        y
            Of no effect.
        """
        clouds = as_cohort(clouds, "clouds")
        if len(clouds) < self._fewest:
            raise ValueError("clouds holds a single cloud; at least two are needed for a fit.")
        new = type(self)(**self._params)
        new.dim_ = clouds.dim
        new._fit(clouds)
        self.__dict__ = new.__dict__
        return self

    def _fit(self, clouds: Cohort) -> None:
        """Fit a new copy, whose dimension is known: all that a rival without parameters needs."""

    def _fitted(self) -> Self:
        if not hasattr(self, "dim_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call .fit(clouds) first.")
        return self

    def _known(self, clouds: Cohort, name: str = "clouds") -> Cohort:
        """Return a cohort that can be looked at after the fit, or say why it cannot."""
        dim, clouds = self._fitted().dim_, as_cohort(clouds, name)
        if clouds.dim != dim:
            raise ValueError(
                f"{name} has {clouds.dim} dimensions, and this {type(self).__name__} was fitted in {dim}; give the "
                "same coordinates, in the same order."
            )
        return clouds


class Transformer(Fitted):
    """Something that makes arrays of clouds.

    Parameters
    ----------
    params
        Parameters by name, as the constructor got them.
    """

    @abstractmethod
    def transform(self, clouds: Cohort) -> Array:
        """Return one vector a cloud.

        Parameters
        ----------
        clouds
            A cohort of the dimension that was fitted.
        """

    def fit_transform(self, clouds: Cohort, y: None = None) -> Array:
        """Fit, and return one vector a cloud.

        Parameters
        ----------
        clouds
            The cohort.
        y
            Of no effect.
        """
        return self.fit(clouds).transform(clouds)


class Baseline(Fitted):
    """A rival of the model.

    Parameters
    ----------
    params
        Parameters by name, as the constructor got them.
    """

    @abstractmethod
    def pairwise(self, first: Cohort, second: Cohort | None = None) -> NDArray[np.float64]:
        """Return the approximate divergence of each cloud of a cohort from each of another.

        Parameters
        ----------
        first
            A cohort of the dimension that was fitted.
        second
            Another; the first itself by default.
        """

    @abstractmethod
    def distances(self, first: Cohort, second: Cohort) -> NDArray[np.float64]:
        """Return the approximate divergence between the clouds of two cohorts, one to one.

        Parameters
        ----------
        first
            A cohort of the dimension that was fitted.
        second
            Another of as many clouds.
        """

    def _known_pairs(self, first: Cohort, second: Cohort) -> tuple[Cohort, Cohort]:
        first, second = self._known(first, "first"), self._known(second, "second")
        if len(first) != len(second):
            raise ValueError(
                f"first has {len(first):,} clouds and second {len(second):,}; distances are one to one, so give as "
                "many of both."
            )
        return first, second


class Embedding(Transformer, Baseline):
    """A rival that gives each cloud a vector.

    Parameters
    ----------
    params
        Parameters by name, as the constructor got them.
    """

    def pairwise(self, first: Cohort, second: Cohort | None = None) -> NDArray[np.float64]:
        x = self.transform(self._known(first, "first"))
        y = x if second is None else self.transform(self._known(second, "second"))
        table = np.empty((len(x), len(y)))
        for rows in steps(len(x), max(len(y), x.shape[1])):
            # within one cohort each pair once, so that the table is symmetric to the bit
            columns = slice(rows.start if second is None else 0, len(y))
            table[rows, columns] = self._crossed(x[rows], y[columns])
            if second is None:
                table[rows, rows] = (table[rows, rows] + table[rows, rows].T) / 2
                table[rows.stop :, rows] = table[rows, rows.stop :].T
        if second is None:
            np.fill_diagonal(table, 0.0)
        return table

    def distances(self, first: Cohort, second: Cohort) -> NDArray[np.float64]:
        first, second = self._known_pairs(first, second)
        x, y = self.transform(first), self.transform(second)
        out = np.empty(len(x))
        for rows in steps(len(x), x.shape[1]):
            out[rows] = self._paired(x[rows], y[rows])
        return out

    def _crossed(self, x: Array, y: Array) -> NDArray[np.float64]:
        """Divergences of each vector from each; squared distances, unless a rival has something else."""
        return squared_gaps(x.astype(np.float64, copy=False), y.astype(np.float64, copy=False))

    def _paired(self, x: Array, y: Array) -> NDArray[np.float64]:
        """Divergences of vectors, one to one."""
        return np.asarray(((x.astype(np.float64, copy=False) - y) ** 2).sum(axis=1))


class Comparison(Baseline):
    """A rival without vectors: it keeps something of each cloud, and compares that pair by pair.

    Parameters
    ----------
    params
        Parameters by name, as the constructor got them.
    """

    @abstractmethod
    def _keep(self, points: Array, weights: Array) -> Kept:
        """Return what is kept of the clouds of a padded batch."""

    @abstractmethod
    def _paired(self, x: Kept, y: Kept) -> NDArray[np.float64]:
        """Divergences of what was kept, whose first axes may be any that fit each other."""

    @abstractmethod
    def _size(self, rung: int) -> int:
        """Return the numbers held for a cloud of a padded size that is looked at."""

    @abstractmethod
    def _work(self, x: Kept, y: Kept) -> int:
        """Return the numbers held for a pair that is compared."""

    def _crossed(self, x: Kept, y: Kept) -> NDArray[np.float64]:
        """Divergences of each that was kept from each."""
        return self._paired(tuple(part[:, None] for part in x), tuple(part[None] for part in y))

    def pairwise(self, first: Cohort, second: Cohort | None = None) -> NDArray[np.float64]:
        first = self._known(first, "first")
        others = first if second is None else self._known(second, "second")
        table = np.zeros((len(first), len(others)))
        all_rows, all_columns = (blocks(clouds.rungs, self._size) for clouds in (first, others))
        with one_thread:
            for held in self._held(first, all_rows):
                for number, columns in enumerate(all_columns):
                    # within one cohort each pair of blocks once
                    wanted = [at for at in held if second is not None or at <= number]
                    if not wanted:
                        continue
                    y = held[number] if second is None and number in held else self._look(others, columns)
                    for at in wanted:
                        found = self._tile(held[at], y)
                        if second is None:
                            found = (found + found.T) / 2 if at == number else found
                            table[np.ix_(columns, all_rows[at])] = found.T
                        table[np.ix_(all_rows[at], columns)] = found
        if second is None:
            np.fill_diagonal(table, 0.0)
        return table

    def distances(self, first: Cohort, second: Cohort) -> NDArray[np.float64]:
        first, second = self._known_pairs(first, second)
        out = np.empty(len(first))
        with one_thread:
            for some in blocks(np.maximum(first.rungs, second.rungs), self._size):
                x, y = self._look(first, some), self._look(second, some)
                for rows in steps(len(some), self._work(x, y)):
                    out[some[rows]] = self._paired(_part(x, rows), _part(y, rows))
        return out

    def _held(self, clouds: Cohort, all_rows: list[NDArray[np.int64]]) -> Iterator[dict[int, Kept]]:
        """Yield what is kept of blocks, by their number, as many at a time as memory allows."""
        held: dict[int, Kept] = {}
        for number, rows in enumerate(all_rows):
            held[number] = self._look(clouds, rows)
            numbers = sum(part.size for kept in held.values() for part in kept)
            if numbers >= KEPT_NUMBERS or number == len(all_rows) - 1:
                yield held
                held.clear()

    def _look(self, clouds: Cohort, some: NDArray[np.int64]) -> Kept:
        batch = clouds.padded(some)
        return self._keep(batch.points, batch.weights)

    def _tile(self, x: Kept, y: Kept) -> NDArray[np.float64]:
        """Compare each with each, few at a time."""
        work = self._work(x, y)
        found = np.empty((len(x[0]), len(y[0])))
        for columns in steps(len(y[0]), work):
            some = _part(y, columns)
            for rows in steps(len(x[0]), work * len(some[0])):
                found[rows, columns] = self._crossed(_part(x, rows), some)
        return found


def _part(kept: Kept, rows: slice) -> Kept:
    return tuple(part[rows] for part in kept)
