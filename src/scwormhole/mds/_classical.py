"""Classical multidimensional scaling: vectors from a table of squared distances. NumPy and SciPy only."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from ._criterion import criterion
from ._validation import check_count


def classical_mds(divergences: ArrayLike, n_components: int | None = None) -> NDArray[np.float64]:
    """Return vectors whose scalar products are nearest to those that a table of squared distances asks for.

    Exact where the table is Euclidean and there are components enough. Where it is not, the squared distances of the
    vectors may be far from the table, as the error of scalar products is what is least, not theirs.

    Parameters
    ----------
    divergences
        Squared distances, each cloud with each.
    n_components
        Length of a vector; one per positive eigenvalue by default. Components beyond these are zero.

    Examples
    --------
    >>> z = classical_mds([[0, 1, 4], [1, 0, 1], [4, 1, 0]], 1)
    >>> abs(z[0, 0] - z[2, 0]).round(6)
    np.float64(2.0)
    """
    if n_components is not None:
        check_count("n_components", n_components)
    half = criterion(divergences) / 2
    values, vectors = linalg.eigh(half)
    kept = values > len(half) * np.finfo(float).eps * max(values[-1], 0.0)
    values, vectors = values[kept][::-1], vectors[:, kept][:, ::-1]
    z = vectors * np.sqrt(values)
    if len(values):
        largest = z[np.abs(z).argmax(axis=0), np.arange(z.shape[1])]
        z = z * np.where(largest < 0, -1.0, 1.0)  # a decomposition leaves the sign open
    if n_components is None:
        return np.asarray(z)
    return np.pad(z[:, :n_components], [(0, 0), (0, max(0, n_components - z.shape[1]))])
