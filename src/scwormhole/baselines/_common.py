"""What all rivals share: checks of what they are given, tables filled block by block, labels by neighbours. NumPy only.

A rival either embeds, and is an ``Embedding``, or compares what it keeps of two clouds, and is a ``Comparison``.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError

from scwormhole.ot._cohort import Batch, Cohort, as_cohort
from scwormhole.ot._estimator import Estimator
from scwormhole.ot._pool import BATCH_NUMBERS
from scwormhole.ot._solver import squared_gaps
from scwormhole.ot._threads import one_thread

Array = NDArray[Any]
Kept = tuple[Array, ...]  # what is kept of clouds, clouds first
MOST_ROWS = 1024  # clouds of a block
LABEL_ROWS = 512


class Baseline(Estimator, ABC):
    """A rival of the model, with the manners of scikit-learn.

    Parameters
    ----------
    params
        Parameters by name, as the constructor got them.
    """

    dim_: int

    def fit(self, clouds: Cohort, y: None = None) -> Self:
        """Remember the dimension, which is all that a rival without parameters needs.

        Parameters
        ----------
        clouds
            The cohort, of at least two clouds.
        y
            Of no effect.
        """
        self._begin(clouds)
        return self

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

    def _begin(self, clouds: Cohort) -> Cohort:
        """Return the cohort to fit to, or say why it cannot be; remember its dimension."""
        clouds = as_cohort(clouds, "clouds")
        if len(clouds) < 2:
            raise ValueError("clouds holds a single cloud; at least two are needed for a fit.")
        self.dim_ = clouds.dim
        return clouds

    def _known(self, clouds: Cohort, name: str = "clouds") -> Cohort:
        """Return a cohort that can be looked at after the fit, or say why it cannot."""
        if not hasattr(self, "dim_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call .fit(clouds) first.")
        clouds = as_cohort(clouds, name)
        if clouds.dim != self.dim_:
            raise ValueError(
                f"{name} has {clouds.dim} dimensions, and this {type(self).__name__} was fitted in {self.dim_}."
            )
        return clouds

    def _known_pairs(self, first: Cohort, second: Cohort) -> tuple[Cohort, Cohort]:
        first, second = self._known(first, "first"), self._known(second, "second")
        if len(first) != len(second):
            raise ValueError(f"first has {len(first):,} clouds and second {len(second):,}; distances are one to one.")
        return first, second


class Embedding(Baseline):
    """A rival that gives each cloud a vector.

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

    def pairwise(self, first: Cohort, second: Cohort | None = None) -> NDArray[np.float64]:
        x = self.transform(self._known(first, "first"))
        y = x if second is None else self.transform(self._known(second, "second"))
        table = np.empty((len(x), len(y)))
        for rows in steps(len(x), len(y)):
            table[rows] = self._crossed(x[rows], y)
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
        all_columns = blocks(others.rungs, self._size)
        with one_thread:
            for number, rows in enumerate(blocks(first.rungs, self._size)):
                x = self._look(first, rows)
                for columns in all_columns[number:] if second is None else all_columns:
                    same = second is None and columns is all_columns[number]
                    found = self._tile(x, x if same else self._look(others, columns))
                    found = (found + found.T) / 2 if same else found
                    table[np.ix_(rows, columns)] = found
                    if second is None:
                        table[np.ix_(columns, rows)] = found.T
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


def knn_labels(table: ArrayLike, train_labels: ArrayLike, *, k: int = 30) -> NDArray[Any]:
    """Return the most common label among the nearest clouds of known label, for each row of a table of divergences.

    Of labels that are equally common the one with the nearest cloud is taken.

    Parameters
    ----------
    table
        Divergences, clouds to be labelled by clouds of known label.
    train_labels
        Labels of the columns.
    k
        Neighbours that vote; all there are if they are fewer.

    Examples
    --------
    >>> knn_labels([[0.1, 0.4, 0.3], [0.9, 0.2, 0.3]], ["a", "b", "b"], k=1).tolist()
    ['a', 'b']
    >>> knn_labels([[0.1, 0.4, 0.3]], ["a", "b", "b"], k=3).tolist()
    ['b']
    """
    table, train_labels = np.asarray(table), np.asarray(train_labels)
    if table.ndim != 2 or not table.shape[1] or train_labels.shape != table.shape[1:]:
        raise ValueError(
            f"table has shape {table.shape} and train_labels {train_labels.shape}; give one label a column."
        )
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise ValueError(f"k is {k!r}; give a whole number of at least 1.")
    if np.isnan(table).any():
        raise ValueError(f"table has {np.isnan(table).sum():,} entries that are not numbers.")
    k = min(int(k), table.shape[1])
    levels, codes = np.unique(train_labels, return_inverse=True)
    voted = np.empty(len(table), np.int64)
    for start in range(0, len(table), LABEL_ROWS):
        part = table[start : start + LABEL_ROWS]
        near = np.sort(np.argpartition(part, k - 1, axis=1)[:, :k], axis=1)
        order = np.argsort(np.take_along_axis(part, near, axis=1), axis=1, kind="stable")
        labels = codes[np.take_along_axis(near, order, axis=1)]  # [rows, k], nearest first
        votes = np.zeros((len(part), len(levels)), np.int64)
        np.add.at(votes, (np.arange(len(part))[:, None], labels), 1)
        leading = np.take_along_axis(votes, labels, axis=1).argmax(axis=1)  # the nearest of those that lead
        voted[start : start + LABEL_ROWS] = labels[np.arange(len(part)), leading]
    return np.asarray(levels[voted])


def _part(kept: Kept, rows: slice) -> Kept:
    return tuple(part[rows] for part in kept)


def steps(n: int, width: int) -> Iterator[slice]:
    """Yield stretches of rows, each of which needs so many numbers, that fit into a block."""
    step = max(1, BATCH_NUMBERS // max(width, 1))
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def blocks(rungs: NDArray[np.int64], size: Callable[[int], int]) -> list[NDArray[np.int64]]:
    """Return clouds of one padded size each in blocks, of few clouds where these are large.

    Parameters
    ----------
    rungs
        Padded size of each cloud.
    size
        Numbers held for a cloud of a padded size.
    """
    found = []
    for rung in np.unique(rungs):
        step = int(np.clip(BATCH_NUMBERS // size(int(rung)), 1, MOST_ROWS))
        members = np.flatnonzero(rungs == rung)
        found += [members[start : start + step] for start in range(0, len(members), step)]
    return found


def batches(clouds: Cohort, width: int) -> Iterator[Batch]:
    """Go through a cohort in padded batches of bounded size, none of which is filled up with repeats.

    Parameters
    ----------
    clouds
        The cohort.
    width
        Numbers held for each point.
    """
    return (clouds.padded(some) for some in blocks(clouds.rungs, lambda rung: rung * width))
