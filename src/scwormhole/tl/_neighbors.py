"""Nearest clouds by their vectors, as a graph that scanpy can use. Reads and writes AnnData through ``_adata``."""

import logging
import warnings
from numbers import Integral
from typing import Any

import numpy as np
from anndata import AnnData
from numpy.typing import NDArray
from scipy import sparse

from scwormhole._adata import EMBEDDING, check_free, log_written, plain, read_embedding, to_write
from scwormhole.clouds._wording import count

from ._nearest import Index, Search, Vectors, choose_search, nearest
from ._rescore import Transport, by_transport, embedding_recall, read_transport, search_recall

NEIGHBORS = "neighbors"  # the kind of a record
CANDIDATES = 3  # to be rescored for each neighbour wanted
FEWEST = 3  # clouds of a sample

logger = logging.getLogger(__name__)


def neighbors(
    adata: AnnData,
    k: int = 15,
    *,
    key: str = EMBEDDING,
    clouds: AnnData | None = None,
    rescore: bool = False,
    n_candidates: int | None = None,
    search: Search = "auto",
    n_sample: int = 100,
    key_added: str | None = None,
    copy: bool = False,
    progress: bool = True,
    rng: int = 0,
) -> AnnData | None:
    """Find the nearest clouds of each cloud by their vectors, and if asked for by solved transport among these.

    The graph is written as scanpy expects it: ``sc.tl.leiden(adata, neighbors_key="wormhole_neighbors")`` and
    ``sc.tl.umap`` run on it. A cloud is not its own neighbour. Without ``rescore`` nuggets do not count; solved
    divergences have the noise of sampling in them.

    Niches of cells that lie side by side share cells, so the nearest niches of a niche are those around it. To have
    clusters of like niches, rather than patches of one slice, ask for several times as many neighbours as a niche has
    cells.

    On a sample it is told how many neighbours were found: of the nearest vectors by the search, and of the nearest
    clouds by the embedding. The latter needs the clouds, and is left out, with a line in the log, where they are
    not at hand.

    Parameters
    ----------
    adata
        What has an embedding, one row a cloud.
    k
        Neighbours of a cloud.
    key
        Name of the embedding.
    clouds
        Cells that clouds are made of: for groups and metacells, and for niches of which ``adata`` is a subset. By
        default ``adata`` itself, which holds its niches.
    rescore
        Whether to solve the candidates of each cloud, with the model's metric and epsilon, and keep the nearest.
    n_candidates
        How many; three times ``k`` by default.
    search
        ``"exact"`` compares all with all, in chunks; ``"pynndescent"`` and ``"faiss"`` build an index. ``"auto"`` is
        exact up to 32,768 rows, then faiss if it is installed, else pynndescent.
    n_sample
        Rows to measure recall on, whose pairs are all solved; 0 for none.
    key_added
        Name of the graph; by default that of the embedding and ``"_neighbors"``.
    copy
        Whether to return a copy with the graph instead of adding it.
    progress
        Whether to show bars once work takes over two seconds.
    rng
        Seed of the index, of the sample, and of points of large clouds. Results are the same for the same seed;
        those of pynndescent on as many threads.

    Returns
    -------
    None, or the copy. Adds

    ``obsp[key_added + "_distances"]``
        Euclidean distances of vectors from the ``k`` nearest, float32: square roots of what divergences are estimated
        to be. With ``rescore`` the square roots of solved divergences.
    ``obsp[key_added + "_connectivities"]``
        Those of UMAP, by umap-learn.
    ``uns[key_added]``
        ``connectivities_key``, ``distances_key``, ``params`` (of which ``n_neighbors`` is ``k + 1``, as scanpy counts
        the cloud itself), ``recall``, and with ``rescore`` ``solved``: ``n_pairs``, ``n_unconverged``, and the
        transport's settings. In ``recall`` are ``search``, the share of nearest vectors found, over ``n_rows``;
        ``embedding``, the share of the ``k_pool`` nearest by solved transport among ``n_pool`` clouds that are the
        nearest by vectors; and ``rescored``, the share that is among the ``n_candidates_pool`` nearest by vectors.
        A pool is sparser than a large cohort, of which both are somewhat lower, the latter above all.

    Examples
    --------
    >>> import anndata, numpy as np, scwormhole as wh
    >>> rng = np.random.default_rng(0)
    >>> adata = anndata.AnnData(rng.gamma(2.0, size=(60, 3)), obsm={"spatial": rng.uniform(size=(60, 2))})
    >>> wh.pp.niches(adata, n_neighbors=5)
    >>> wh.tl.wormhole(adata, n_components=8, max_steps=0, progress=False)  # no training, to be quick
    >>> wh.tl.neighbors(adata, 5)
    >>> adata.obsp["wormhole_neighbors_distances"].nnz
    300
    >>> adata.uns["wormhole_neighbors"]["recall"]["search"]
    1.0
    """
    name = f"{key}_{NEIGHBORS}" if key_added is None else key_added
    vectors = _vectors(adata, key)
    search = choose_search(search, len(vectors))
    asked = _checked(len(vectors), k, n_candidates, n_sample, rng, rescore=rescore)
    check_free(adata, name, NEIGHBORS, ("obsp", f"{name}_distances"), ("obsp", f"{name}_connectivities"))
    transport = _transport(adata, key, clouds, rng, needed=rescore) if rescore or n_sample else None
    target = to_write(adata, copy=copy)

    found, apart = nearest(vectors, asked, search=search, rng=rng)
    params = {"k": k, "key": key, "search": search, "rescore": rescore, "n_sample": n_sample, "rng": rng}
    params |= {"n_candidates": asked if rescore else None}
    record: dict[str, Any] = {"params": params}
    if n_sample:
        record["recall"] = _recall(vectors, found, transport, params, progress=progress)
    if rescore and transport is not None:
        found, apart, record["solved"] = _rescored(transport, found, k, progress=progress)
    _write(target, name, found, apart, record)
    return target if copy else None


def _vectors(adata: AnnData, key: str) -> Vectors:
    """Return the vectors if they are all numbers."""
    vectors = read_embedding(adata, key)[0]
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(bad):
        raise ValueError(
            f"{count(len(bad), 'row')} of {len(vectors):,} in adata.obsm[{'X_' + key!r}], first "
            f"{adata.obs_names[bad[0]]!r}, have values that are not finite; embed again, or leave these rows out."
        )
    return vectors


def _checked(n: int, k: int, n_candidates: int | None, n_sample: int, rng: int, *, rescore: bool) -> int:
    """Return how many nearest vectors are to be found for each row, or say what is wrong."""
    if n < 2:
        raise ValueError(f"there is {count(n, 'cloud')}; at least two are needed for one to be near another.")
    if not (_whole(k) and 1 <= k < n):
        raise ValueError(f"k is {k!r} for {count(n, 'cloud')}; give a whole number from 1 to {n - 1:,}.")
    if not (_whole(n_sample) and (n_sample == 0 or n_sample >= FEWEST)):
        raise ValueError(f"n_sample is {n_sample!r}; give a whole number of at least {FEWEST}, or 0 for no recall.")
    if not (_whole(rng) and rng >= 0):
        raise ValueError(f"rng is {rng!r}; give a whole number of at least 0.")
    if n_candidates is None:
        return min(CANDIDATES * k, n - 1) if rescore else k
    if not rescore:
        raise ValueError(f"n_candidates is {n_candidates!r}, and nothing is rescored; give rescore=True with it.")
    if not (_whole(n_candidates) and k <= n_candidates < n):
        raise ValueError(
            f"n_candidates is {n_candidates!r} for k = {k} and {count(n, 'cloud')}; give a whole number of at least k, "
            "and fewer than clouds."
        )
    return int(n_candidates)


def _whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _transport(adata: AnnData, key: str, clouds: AnnData | None, rng: int, *, needed: bool) -> Transport | None:
    """Return the clouds to solve; None, with a line in the log, where they cannot be had and nobody asked for them."""
    if clouds is not None and not isinstance(clouds, AnnData):
        raise TypeError(f"clouds is a {type(clouds).__name__}; give the AnnData of the cells, or leave it out.")
    try:
        return read_transport(adata, key, clouds, rng)
    except (KeyError, ValueError) as error:
        if needed or clouds is not None:
            raise
        logger.info("recall of the embedding is not measured: %s", error.args[0])
        return None


def _recall(
    vectors: Vectors, found: Index, transport: Transport | None, params: dict[str, Any], *, progress: bool
) -> dict[str, Any]:
    """Return what was found of what is nearest, on a seeded sample of rows."""
    n = len(vectors)
    rows = np.random.default_rng(params["rng"]).permutation(n)[: params["n_sample"]]
    told: dict[str, Any] = {"search": search_recall(vectors, found, rows), "n_rows": len(rows)}
    logger.info("recall: the search found %.3f of the %d nearest vectors", told["search"], found.shape[1])
    if transport is None:
        return told
    pool = transport._replace(clouds=transport.clouds[rows])
    told |= embedding_recall(vectors[rows], pool, params["k"], n_candidates=params["n_candidates"], progress=progress)
    among = told["k_pool"], told["n_pool"]
    logger.info("recall: by vectors %.3f of the %d nearest among %d solved clouds", told["embedding"], *among)
    if "rescored" in told:
        logger.info("recall: rescored %.3f of the %d nearest among %d solved clouds", told["rescored"], *among)
    return told


def _rescored(
    transport: Transport, candidates: Index, k: int, *, progress: bool
) -> tuple[Index, NDArray[np.float32], dict[str, Any]]:
    """Return the nearest of the candidates by solved transport, square roots of divergences, and a record."""
    solved = by_transport(transport, candidates, progress=progress)
    record = {"n_pairs": solved.n_pairs, "n_unconverged": solved.n_unconverged, **transport.settings}
    return solved.found[:, :k], np.sqrt(solved.divergence[:, :k]), record


def _write(adata: AnnData, name: str, found: Index, apart: NDArray[np.float32], record: dict[str, Any]) -> None:
    n, k = found.shape
    names = {"connectivities_key": f"{name}_connectivities", "distances_key": f"{name}_distances"}
    graph = sparse.csr_matrix((apart.ravel(), found.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n), copy=True)
    graph.sort_indices()  # in place
    adata.obsp[names["distances_key"]] = graph
    adata.obsp[names["connectivities_key"]] = _connectivities(found, apart)
    params = record["params"]
    scanpys = {"n_neighbors": k + 1, "method": "umap", "metric": "euclidean", "random_state": params["rng"]}
    scanpys["use_rep"] = f"X_{params['key']}"
    adata.uns[name] = {"kind": NEIGHBORS, **names, **plain({**record, "params": scanpys | params})}
    log_written(adata, name, [*(f"obsp[{slot!r}]" for slot in reversed(names.values())), f"uns[{name!r}]"])


def _connectivities(found: Index, apart: NDArray[np.float32]) -> sparse.csr_matrix:
    """Return UMAP's, for which each row comes first among its own neighbours."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Tensorflow not installed")
        from umap.umap_ import fuzzy_simplicial_set

    n = len(found)
    near = np.concatenate([np.arange(n)[:, None], found], axis=1)
    apart = np.concatenate([np.zeros((n, 1), np.float32), apart], axis=1)
    shape_only = sparse.coo_matrix((n, 1))
    graph = fuzzy_simplicial_set(shape_only, near.shape[1], None, None, knn_indices=near, knn_dists=apart)[0]
    return sparse.csr_matrix(graph)
