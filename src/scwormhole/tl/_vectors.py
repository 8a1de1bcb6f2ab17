"""Where vectors are made, here or on dask's workers, and where they are put, in memory or in a store."""

import hashlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from scwormhole.clouds import PointClouds
from scwormhole.clouds._rows import dense_block, read_block
from scwormhole.clouds._scan import digest
from scwormhole.model import Wormhole
from scwormhole.ot import Embedded

from ._lazy import embed_lazily
from ._store import BLOCK, Store, mark_of

SAMPLED = 256  # rows of points of dask that a store is known by again: to read all would take as long as to embed

Path = str | os.PathLike[str] | None
Blocks = Iterator[tuple[slice, Embedded]]


def embed_here(
    model: Wormhole,
    clouds: PointClouds,
    store: Path,
    *,
    known_by: Callable[[], str] | None = None,
    max_memory: int | str | None = None,
) -> Embedded:
    """Embed clouds in this process, or in several that share the work.

    Parameters
    ----------
    model
        The model.
    clouds
        The clouds.
    store
        Folder of a store for the vectors; None to keep them in memory.
    known_by
        Makes what the clouds are known by again; a digest of all of them by default.
    max_memory
        See :meth:`scwormhole.Wormhole.embed_blocks`.
    """

    def embedded(blocks: list[slice]) -> Blocks:
        return model.embed_blocks(clouds, blocks, max_memory=max_memory)

    known_by = known_by or (lambda: digest(clouds))
    return _kept(model, len(clouds), store, lambda: mark_of(model, known_by()), embedded)


def embed_there(
    client: Any, model: Wormhole, points: Any, graph: Any, store: Path, *, max_memory: int | str | None = None
) -> Embedded:
    """Embed niches on the workers of a client of dask.

    Parameters
    ----------
    client
        The client.
    model
        The model.
    points
        Cells by genes, an array of dask.
    graph
        Niches by cells, weights.
    store
        Folder of a store for the vectors; None to keep them in memory.
    max_memory
        See :meth:`scwormhole.Wormhole.embed_blocks`.
    """
    options: dict[str, Any] = {"max_memory": max_memory, "progress": model.get_params()["progress"]}

    def embedded(blocks: list[slice]) -> Blocks:
        return embed_lazily(client, model, mark_of(model, "")["model"], points, graph, blocks, **options)

    return _kept(model, graph.shape[0], store, lambda: mark_of(model, sampled(points, graph)), embedded)


def _kept(
    model: Wormhole, n: int, path: Path, mark: Callable[[], dict[str, str]], embedded: Callable[[list[slice]], Blocks]
) -> Embedded:
    """Return vectors that are made a block at a time; of those in a store only what is missing is made."""
    if path is None:
        found = Embedded(np.empty((n, model.n_components_), np.float32), np.empty(n, np.float32))
        for block, some in embedded([slice(start, min(start + BLOCK, n)) for start in range(0, n, BLOCK)]):
            found.z[block], found.nugget[block] = some
        return found
    store = Store(path, n, model.n_components_, mark())
    store.fill(embedded)
    return Embedded(store.vectors(), store.nugget())


def sampled(points: Any, graph: Any) -> str:
    """Return what points of dask and a graph over them are known by: all of the graph, and some rows."""
    rows = np.unique(np.linspace(0, points.shape[0] - 1, SAMPLED).astype(np.int64))
    graph = sparse.csr_array(graph)
    parts = [graph.indptr, graph.indices, graph.data, dense_block(read_block(points[rows])), np.array(points.shape)]
    found = hashlib.blake2b(digest_size=16)
    for part in parts:
        found.update(np.ascontiguousarray(part).data)
    return found.hexdigest()
