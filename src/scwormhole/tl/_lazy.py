"""Embeds niches over points of dask on the workers of its client, a block of niches a task: touches no AnnData.

A task is given the rows that its niches hold, those of neighbours beyond the block among them, so borders are no
different from elsewhere. The model is sent to each worker once; if all that had it die, it is sent again.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from tqdm.auto import tqdm

from scwormhole.clouds import PointClouds
from scwormhole.clouds._rows import is_sparse, stored_values
from scwormhole.clouds._wording import listed
from scwormhole.model import Wormhole
from scwormhole.ot import Embedded

UNDER_WAY = 2  # tasks for each thread of the cluster
TRIES = 3  # of a block whose workers die
_models: dict[str, Wormhole] = {}  # on a worker: those that were made of arrays, by their mark


@dataclass(frozen=True)
class Sent:
    """A model as it travels."""

    mark: str
    arrays: dict[str, NDArray[Any]]
    header: dict[str, Any]


def running_client() -> Any:
    """Return the client of dask that is there, or None; whoever has one has imported it."""
    distributed = sys.modules.get("distributed")
    try:
        return None if distributed is None else distributed.default_client()
    except ValueError:
        return None


def is_lazy(points: Any) -> bool:
    """Return whether points are of dask."""
    array = sys.modules.get("dask.array")
    return array is not None and isinstance(points, array.Array)


def embed_lazily(
    client: Any,
    model: Wormhole,
    mark: str,
    points: Any,
    graph: Any,
    blocks: Sequence[slice],
    *,
    max_memory: int | str | None,
    progress: bool,
) -> Iterator[tuple[slice, Embedded]]:
    """Yield blocks of niches beside their vectors, as workers finish them.

    Parameters
    ----------
    client
        Client of dask.
    model
        The model.
    mark
        What the model is known by.
    points
        Cells by genes, an array of dask.
    graph
        Niches by cells, weights.
    blocks
        Runs of niches.
    max_memory
        See :meth:`scwormhole.Wormhole.embed_blocks`.
    progress
        Whether to show a bar.
    """
    from distributed import as_completed

    travelling = Sent(mark, *model.to_arrays())
    sent = _send(client, travelling)
    rows = points.rechunk({1: -1}) if points.numblocks[1] > 1 else points
    graph, waiting, tries = sparse.csr_array(graph), iter(blocks), Counter[int]()
    total = sum(block.stop - block.start for block in blocks)
    bar = tqdm(total=total, desc="embedding", unit="cloud", unit_scale=True, delay=2, disable=not progress)
    under_way: dict[Any, slice] = {}
    done = as_completed(with_results=True, raise_errors=False)

    def hand_over(block: slice | None) -> None:
        if block is not None:
            future = _submit(client, sent, rows, graph[block.start : block.stop], max_memory)
            under_way[future] = block
            done.add(future)

    try:
        with bar:
            for _ in range(UNDER_WAY * max(1, sum(client.nthreads().values()))):
                hand_over(next(waiting, None))
            while under_way:
                future, found = next(done)
                block = under_way.pop(future)
                tries[block.start] += 1
                if _was_lost(client, future) and tries[block.start] < TRIES:
                    if sent.status != "finished":
                        sent = _send(client, travelling)
                    hand_over(block)
                    continue
                if future.status != "finished" or client.status != "running":
                    raise _failed(future, block)
                hand_over(next(waiting, None))
                bar.update(block.stop - block.start)
                yield block, Embedded(*found)
    finally:
        if client.status == "running":
            client.cancel(list(under_way))


def _send(client: Any, travelling: Sent) -> Any:
    """Send a model to each worker, or say that there is none."""
    try:
        return client.scatter(travelling, broadcast=True, hash=False)
    except TimeoutError as error:
        raise RuntimeError(
            "dask's client has no workers to send the model to. Start some and call again: with a store, what was "
            "finished is kept."
        ) from error


def _was_lost(client: Any, future: Any) -> bool:
    """Return whether a task is gone with the workers that held its data, as dask does not send data again by itself."""
    return client.status == "running" and future.status in ("cancelled", "lost")


def _submit(client: Any, sent: Any, points: Any, graph: Any, max_memory: int | str | None) -> Any:
    """Hand over a block of niches with the rows they hold, each once."""
    from dask.delayed import delayed

    held, columns = np.unique(graph.indices, return_inverse=True)
    own = sparse.csr_array((graph.data, columns, graph.indptr), shape=(graph.shape[0], len(held)))
    pieces = points[held].to_delayed().ravel().tolist()
    return client.compute(delayed(_embed_block, pure=False)(sent, pieces, own, held, max_memory), retries=1)


def _embed_block(
    sent: Sent, pieces: list[Any], graph: Any, rows: NDArray[np.int64], max_memory: int | str | None
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Embed a block of niches; runs on a worker."""
    points = sparse.vstack(pieces, format="csr") if is_sparse(pieces[0]) else np.concatenate(pieces)
    _check_finite(points, rows)
    if sent.mark not in _models:
        _models.clear()
        _models[sent.mark] = Wormhole.from_arrays(sent.arrays, sent.header)
    clouds = PointClouds.from_graph(points, graph)
    ((_, found),) = _models[sent.mark].embed_blocks(clouds, [slice(0, len(clouds))], max_memory=max_memory)
    return found.z, found.nugget


def _check_finite(points: Any, rows: NDArray[np.int64]) -> None:
    """Refuse values that are not finite, by the numbers that rows have in the whole."""
    if np.isfinite(stored_values(points)).all():
        return
    sums = np.asarray(abs(points).sum(axis=1)).ravel()
    wrong = rows[~np.isfinite(sums)]
    raise ValueError(
        f"points hold values that are not finite in {len(wrong):,} rows: {listed(wrong, len(wrong))}. Every point must "
        "be finite: drop these rows or fill them in first."
    )


def _failed(future: Any, block: slice) -> Exception:
    """Return the error to raise for a task that came to nothing: the user's own fault, or the cluster's."""
    error = future.exception() if future.status == "error" else None
    if isinstance(error, ValueError):
        return ValueError(str(error))
    why = f"{type(error).__name__}: {error}" if error is not None else f"it was {future.status}"
    return RuntimeError(
        f"dask did not finish clouds {block.start:,} to {block.stop - 1:,} ({why}). Are its workers and its client "
        "still running? With a store, what was finished is kept."
    )
