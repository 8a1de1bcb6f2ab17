"""Nearest vectors of each vector, exactly or through an index. NumPy arrays only; never all distances at once."""

import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

Search = Literal["auto", "exact", "pynndescent", "faiss"]
Index = NDArray[np.int64]
Vectors = NDArray[np.float32]

EXACT = 32_768  # rows up to which comparing all with all takes less time than pynndescent takes to compile
FARTHER = 30  # neighbours that pynndescent is asked for beyond those wanted, which are the surer for it
PROBED = 96  # cells that faiss looks at for a vector, of about four times the square root of the rows
MEASURED = 1 << 24  # numbers of differences held at a time


def choose_search(search: Search, n: int) -> Search:
    """Return how vectors are searched, or say what is wrong with what was asked for.

    Parameters
    ----------
    search
        What was asked for.
    n
        How many vectors there are.
    """
    if search not in get_args(Search):
        raise ValueError(f"search is {search!r}; give one of {', '.join(map(repr, get_args(Search)))}.")
    there = find_spec("faiss") is not None
    if search == "faiss" and not there:
        raise ImportError("search is 'faiss', which is not installed; pip install faiss-cpu, or use 'pynndescent'.")
    if search != "auto":
        return search
    return "exact" if n <= EXACT else "faiss" if there else "pynndescent"


def nearest(vectors: Vectors, count: int, *, search: Search, rng: int) -> tuple[Index, Vectors]:
    """Return the nearest others of each vector and their distances, nearest first.

    Parameters
    ----------
    vectors
        One a row.
    count
        How many others.
    search
        How, as :func:`choose_search` has it.
    rng
        Seed of an index.
    """
    vectors = np.ascontiguousarray(vectors - vectors.mean(0, dtype=np.float64).astype(np.float32))
    ways: dict[str, Callable[[Vectors, int, int], Index]] = {"pynndescent": _by_pynndescent, "faiss": _by_faiss}
    rows = np.arange(len(vectors))
    if search == "exact":
        return nearest_exactly(vectors, rows, count)
    found = ways[search](vectors, min(count + 1, len(vectors)), rng)
    short = np.flatnonzero((found < 0).any(axis=1))  # an index may lose its way
    found = _others(found, rows)
    if len(short):
        found[short] = nearest_exactly(vectors, short, count)[0]
    return measured(vectors, rows, found)


def nearest_exactly(vectors: Vectors, rows: Index, count: int) -> tuple[Index, Vectors]:
    """Return the same for some rows, each compared with all vectors, in chunks.

    Parameters
    ----------
    vectors
        One a row.
    rows
        Rows to look from.
    count
        How many others.
    """
    from sklearn.neighbors import NearestNeighbors

    searched = NearestNeighbors(algorithm="brute").fit(vectors)
    found = searched.kneighbors(vectors[rows], n_neighbors=count + 1, return_distance=False)
    return measured(vectors, rows, _others(found, rows))


def _others(found: Index, rows: Index) -> Index:
    """Leave out each row itself, or the last where it is not among those found, as many others are in its place."""
    own = found == rows[:, None]
    own[~own.any(axis=1), -1] = True
    return np.asarray(found[~own].reshape(len(rows), -1), np.int64)


def measured(vectors: Vectors, rows: Index, found: Index) -> tuple[Index, Vectors]:
    """Return what was found in order of distances, which are had from differences: zero between equal vectors.

    Parameters
    ----------
    vectors
        One a row.
    rows
        Rows that were looked from.
    found
        What was found for each of them.
    """
    step = max(1, MEASURED // (found.shape[1] * vectors.shape[1]))
    ordered, apart = np.empty_like(found), np.empty(found.shape, np.float32)
    for start in range(0, len(rows), step):
        some = slice(start, start + step)
        difference = vectors[found[some]] - vectors[rows[some], None]  # [r, k, d]
        distance = np.sqrt(np.einsum("rkd,rkd->rk", difference, difference))
        order = np.lexsort((found[some], distance), axis=1)
        ordered[some] = np.take_along_axis(found[some], order, axis=1)
        apart[some] = np.take_along_axis(distance, order, axis=1)
    return ordered, apart


def _by_pynndescent(vectors: Vectors, count: int, rng: int) -> Index:
    from pynndescent import NNDescent

    asked = min(count + FARTHER, len(vectors))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Failed to correctly find")  # such rows are searched exactly
        found: Index = NNDescent(vectors, n_neighbors=asked, random_state=rng).neighbor_graph[0]
    return found[:, :count]


def _by_faiss(vectors: Vectors, count: int, rng: int) -> Index:
    import faiss

    n, dim = vectors.shape
    if n <= EXACT:
        index = faiss.IndexFlatL2(dim)
    else:
        cells = int(4 * np.sqrt(n))
        # faiss builds this one alike on any number of threads, which its HNSW is not in all versions
        index = faiss.IndexIVFFlat(faiss.IndexFlatL2(dim), dim, cells)
        index.cp.seed, index.nprobe = rng % 2**31, min(cells, PROBED)
        index.train(vectors)
    index.add(vectors)
    found: Index = index.search(vectors, count)[1]
    return found
