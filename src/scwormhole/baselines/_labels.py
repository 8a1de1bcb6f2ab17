"""Labels of clouds by those of their nearest. NumPy on a table of divergences."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._checks import check_counts

ROWS = 512  # of the table, at a time


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
    check_counts({"k": k}, "k")
    if table.dtype.kind not in "biuf":
        raise ValueError(f"table has entries of type {table.dtype}; give divergences as numbers.")
    if np.isnan(table).any():
        raise ValueError(
            f"table has {np.isnan(table).sum():,} entries that are not numbers; leave out rows and columns that have "
            "any."
        )
    try:
        levels, codes = np.unique(train_labels, return_inverse=True)
    except TypeError as error:
        kinds = ", ".join(sorted({type(label).__name__ for label in train_labels}))
        raise ValueError(
            f"train_labels are of types that do not go together: {kinds}; give labels of one type, and leave out "
            "columns without a label."
        ) from error
    k = min(int(k), table.shape[1])
    voted = np.empty(len(table), np.int64)
    for start in range(0, len(table), ROWS):
        part = table[start : start + ROWS]
        near = np.sort(np.argpartition(part, k - 1, axis=1)[:, :k], axis=1)
        order = np.argsort(np.take_along_axis(part, near, axis=1), axis=1, kind="stable")
        labels = codes[np.take_along_axis(near, order, axis=1)]  # [rows, k], nearest first
        votes = np.zeros((len(part), len(levels)), np.int64)
        np.add.at(votes, (np.arange(len(part))[:, None], labels), 1)
        leading = np.take_along_axis(votes, labels, axis=1).argmax(axis=1)  # the nearest of those that lead
        voted[start : start + ROWS] = labels[np.arange(len(part)), leading]
    return np.asarray(levels[voted])
