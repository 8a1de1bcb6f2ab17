"""Solved transport between neighbours, and how many neighbours were found. Reads AnnData through ``_adata``."""

import logging
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from anndata import AnnData
from numpy.typing import NDArray
from tqdm.auto import tqdm

from scwormhole._adata import cohort_over, find_cohort, known_keys, match_genes, read_record, read_representation
from scwormhole.clouds import PointClouds
from scwormhole.clouds._wording import count
from scwormhole.ot import Targets, pairwise
from scwormhole.ot._base_fit import squared_distances
from scwormhole.ot._metrics import METRICS

from ._distances import _remade
from ._nearest import Index, Vectors, measured, nearest_exactly

PAIRS = 16_384  # solved at a time
LOOKED_UP = 1 << 22  # pairs whose values are looked up at a time
ROUNDING = 1e-6  # of a distance: what is farther by less is as near

logger = logging.getLogger(__name__)


class Rescored(NamedTuple):
    """Candidates in order of solved transport, with their divergences."""

    found: Index
    divergence: NDArray[np.float32]
    n_pairs: int
    n_unconverged: int


class Transport(NamedTuple):
    """Clouds of the rows of an AnnData, and how their pairs are solved: as for the model."""

    clouds: PointClouds
    settings: dict[str, Any]


def read_transport(adata: AnnData, key: str, cells: AnnData | None, rng: int) -> Transport:
    """Return the clouds that were embedded, one a row, or say why they cannot be had.

    Parameters
    ----------
    adata
        What has an embedding.
    key
        Its name.
    cells
        Where the clouds are; in ``adata`` itself by default.
    rng
        Seed of sampling large clouds.
    """
    record = read_record(adata, key)
    params = record["params"]
    if params["metric"] not in METRICS:
        raise ValueError(
            f"the model's metric is {params['metric']!r}, a ground cost that is not kept in adata; pairs can be solved "
            f"for {', '.join(map(repr, METRICS))}. Solve pairs of your own cost with wh.ot.distances."
        )
    most = params.get("max_points_ot")
    settings = {"metric": str(params["metric"]), "epsilon": float(record["epsilon"]), "relative_epsilon": None}
    settings |= {"tol": float(params["tol"]), "max_points": None if most is None else int(most), "rng": rng}
    return Transport(_clouds(adata, record, cells), settings)


def _clouds(adata: AnnData, record: dict[str, Any], cells: AnnData | None) -> PointClouds:
    source, features = record["source"], [str(name) for name in record["names"]]
    name, kind = source["clouds"], source["kind"]
    if cells is None and kind != "niches":
        raise ValueError(
            f"the clouds are {kind} of cells, which adata, one row a cloud, lacks; give the AnnData of the cells as "
            "clouds=."
        )
    held = adata if cells is None else cells
    find_cohort(held, name)
    if _remade(held, source):
        raise ValueError(
            f"the niches {name!r} were made again in another way since they were embedded; embed them again."
        )
    representation = read_representation(held, source.get("use_rep"), source.get("layer"))
    if representation.genes:
        representation = match_genes(representation, features)
    elif len(representation.names) != len(features):
        raise ValueError(
            f"adata.obsm[{source['use_rep']!r}] has {len(representation.names)} columns, and {len(features)} were "
            "embedded; give the same coordinates, in the same order."
        )
    clouds = cohort_over(held, name, representation.points)
    if cells is None:
        return clouds
    names = pd.Index(cells.obs_names if kind == "niches" else clouds.names.astype(object))
    if not names.is_unique:
        raise ValueError("several cells of clouds have one name; use its obs_names_make_unique() and embed again.")
    places = names.get_indexer(adata.obs_names)
    missing = adata.obs_names[places < 0]
    if len(missing):
        raise ValueError(
            f"{count(len(missing), 'row')} of adata, first {missing[0]!r}, are not among the {kind} of clouds; "
            f"{known_keys(names, missing[0])}."
        )
    chosen: PointClouds = clouds[places]
    return chosen


def by_transport(transport: Transport, candidates: Index, *, progress: bool) -> Rescored:
    """Solve each row with its candidates, every pair once, and return them in the order of solved transport.

    Parameters
    ----------
    transport
        Clouds and how to solve them.
    candidates
        Others of each row, the likeliest first.
    progress
        Whether to show a bar.
    """
    n, each = candidates.shape
    pairs = np.unique(_pairs(candidates, 0, n))
    told = (f"{len(pairs):,}", each, f"{n:,}")
    logger.info("rescoring: %s pairs of clouds will be solved, %d candidates for each of %s", *told)
    targets = Targets(transport.clouds, n_pairs=len(pairs), **transport.settings)
    solved = np.empty(len(pairs), np.float32)
    bar = tqdm(total=len(pairs), desc="rescoring", unit="pair", disable=not progress, delay=2, leave=False)
    with bar:
        for start in range(0, len(pairs), PAIRS):
            some = pairs[start : start + PAIRS]
            solved[start : start + PAIRS] = targets.blocks(np.stack(np.divmod(some, n), axis=1))[:, 0, 1]
            bar.update(len(some))
    targets.warn(stacklevel=3)
    found, divergence = np.empty_like(candidates), np.empty(candidates.shape, np.float32)
    for start in range(0, n, step := max(1, LOOKED_UP // each)):
        rows = slice(start, start + step)
        values = solved[np.searchsorted(pairs, _pairs(candidates[rows], start, n))]
        order = np.argsort(values, axis=1, kind="stable")
        found[rows] = np.take_along_axis(candidates[rows], order, axis=1)
        divergence[rows] = np.take_along_axis(values, order, axis=1)
    return Rescored(found, np.maximum(divergence, 0), len(pairs), targets.n_unconverged)


def _pairs(candidates: Index, start: int, n: int) -> Index:
    """Return a number for each pair, the same from both sides; ``divmod`` by ``n`` takes it apart."""
    rows = np.arange(start, start + len(candidates))[:, None]
    return np.asarray(np.minimum(rows, candidates) * n + np.maximum(rows, candidates))


def search_recall(vectors: Vectors, found: Index, rows: Index) -> float:
    """Return the share of the nearest vectors of some rows that were found; equally near ones are as good.

    Parameters
    ----------
    vectors
        One a row.
    found
        What was found, for all rows.
    rows
        Rows that are searched exactly.
    """
    wanted = found.shape[1]
    farthest = nearest_exactly(vectors, rows, wanted)[1][:, -1]
    return _share(measured(vectors, rows, found[rows])[1], farthest, wanted)


def embedding_recall(
    vectors: Vectors, transport: Transport, k: int, *, n_candidates: int | None, progress: bool
) -> dict[str, Any]:
    """Return the share of the nearest clouds by solved transport, in a pool, that are the nearest by vectors.

    Parameters
    ----------
    vectors
        Those of the pool.
    transport
        Clouds of the pool.
    k
        How many nearest, at most half of the others.
    n_candidates
        Candidates to be rescored for ``k``; None if nothing is rescored.
    progress
        Whether to show a bar.
    """
    size = len(vectors)
    wanted = max(1, min(k, (size - 1) // 2))
    solved = np.array(pairwise(transport.clouds, progress=progress, **transport.settings), np.float64)
    apart = squared_distances(vectors)
    for table in (solved, apart):
        np.fill_diagonal(table, np.inf)
    farthest = np.partition(solved, wanted - 1, axis=1)[:, wanted - 1]
    ranked = np.take_along_axis(solved, np.argsort(apart, axis=1, kind="stable"), axis=1)
    told = {"embedding": _share(ranked[:, :wanted], farthest, wanted), "n_pool": size, "k_pool": wanted}
    if n_candidates is not None:
        among = min(size - 1, round(n_candidates * wanted / k))
        told |= {"rescored": _share(ranked[:, :among], farthest, wanted), "n_candidates_pool": among}
    return told


def _share(values: NDArray[Any], farthest: NDArray[Any], wanted: int) -> float:
    """Return the share of the wanted ones that are among values, being no farther than the farthest of them."""
    near = (values <= farthest[:, None] * (1 + ROUNDING)).sum(axis=1)
    return float(np.minimum(near, wanted).mean() / wanted)
