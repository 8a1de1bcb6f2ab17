"""A trained model at work: embeds and decodes, streaming. The host side of the networks."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from itertools import groupby
from operator import itemgetter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
from jax.sharding import Mesh
from numpy.typing import NDArray
from tqdm.auto import tqdm

from scwormhole.clouds import PaddedBatch, PointClouds
from scwormhole.nn import Decoder, Encoder
from scwormhole.ot import BaseFeatures, Embedded
from scwormhole.ot._schedule import ahead, run, workers
from scwormhole.ot._threads import one_thread

from ._devices import AXIS, SPLIT, WHOLE, everywhere, exchanged, own_devices
from ._frame import Frame
from ._settings import Network
from ._step import Networks

CACHE_NUMBERS = 1 << 18  # numbers of the widest layer or of the attention that the network works on at a time
BATCH_NUMBERS = 1 << 23  # the same of a batch, which is read and measured at a time
BLOCK = 1 << 15  # clouds whose vectors are handed over at a time
MEMORY = 1 << 31  # bytes for batches and for points that were read
WORK_SHARE, KEPT_SHARE = 2, 4  # one byte in so many for batches, and for points that were read
WORK_COPIES = 6  # of the points of a batch while it is worked on, in double precision
MOST_ROWS = 512
MARGIN = 0.1  # of the range of each coordinate: how far outside decoded points may lie


@dataclass(frozen=True)
class Trained:
    """All that is needed to embed and to decode."""

    network: Network
    frame: Frame
    base: BaseFeatures | None
    nugget: bool
    params: Any

    @property
    def graph(self) -> Any:
        """Definition of the networks."""
        return define(self.network, self.frame, base=self.base is not None, nugget=self.nugget)[0]

    def embed(
        self, clouds: PointClouds, *, batch_size: int | None = None, max_memory: int = MEMORY, progress: bool = False
    ) -> Embedded:
        """Return vectors and nuggets in the user's units, reading a batch of clouds at a time."""
        found = Embedded(
            np.empty((len(clouds), self.network.n_components), np.float32), np.empty(len(clouds), np.float32)
        )
        options: dict[str, Any] = {"batch_size": batch_size, "max_memory": max_memory, "progress": progress}
        for block, some in self.stream(clouds, cut(len(clouds), BLOCK), **options):
            found.z[block], found.nugget[block] = some
        return found

    def stream(
        self,
        clouds: PointClouds,
        blocks: Sequence[slice],
        *,
        batch_size: int | None = None,
        max_memory: int = MEMORY,
        progress: bool = False,
    ) -> Iterator[tuple[slice, Embedded]]:
        """Yield blocks of clouds beside their vectors and nuggets, in the user's units, one after another.

        Parameters
        ----------
        clouds
            The cohort.
        blocks
            Runs of clouds.
        batch_size
            Clouds at a time; as many as suit the processor by default.
        max_memory
            Bytes for batches that are made ready and worked on, and for points that were read.
        progress
            Whether to show a bar.
        """
        k, unit, mesh, graph = self.network.n_components, np.float32(self.frame.unit), own_devices(), self.graph
        params = everywhere(self.params, mesh)
        at_once = CACHE_NUMBERS if jax.default_backend() == "cpu" else BATCH_NUMBERS
        threads = self._threads(clouds, max_memory, mesh.size)
        rows_of = self._batch_sizes(clouds, batch_size, max_memory, mesh.size, threads)

        def batches() -> Iterator[tuple[slice, PaddedBatch]]:
            for block in blocks:
                members = np.arange(block.start, block.stop)
                for rung in np.unique(rungs := clouds.rungs[block]):
                    for batch in clouds.batches(rows_of[int(rung)], members[rungs == rung]):
                        yield block, batch

        def some(task: tuple[slice, PaddedBatch]) -> tuple[slice, NDArray[np.int64], Any]:
            block, batch = task
            n = len(batch.index)  # the rest of the batch repeats its last cloud
            known = nothing_known(len(batch.points), k)
            if self.base is not None:
                features, own = self.base.features(batch.points[:n], batch.weights[:n])
                known.z[:n], known.nugget[:n] = features / unit, own / unit**2
            feed = (*self.frame.points(batch), *known)
            rows = min(self._rows(batch.points.shape[1], at_once), len(batch.points) // mesh.size)
            found = jax.device_get(_encode(params, feed, n, graph=graph, rows=rows, mesh=mesh))
            return block, batch.index - block.start, tuple(part[:n] for part in found)

        total = sum(block.stop - block.start for block in blocks)
        bar = tqdm(total=total, desc="embedding", unit="cloud", unit_scale=True, delay=2, disable=not progress)
        with bar, one_thread, clouds.reading(max_memory // KEPT_SHARE):
            for block, parts in groupby(run(some, ahead(batches()), threads), key=itemgetter(0)):
                size = block.stop - block.start
                found = Embedded(np.empty((size, k), np.float32), np.empty(size, np.float32))
                for _, places, (vectors, noise) in parts:
                    found.z[places], found.nugget[places] = vectors * unit, noise * unit**2
                    bar.update(len(places))
                yield block, found

    def decode(self, z: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return points and weights of the clouds that vectors in the user's units stand for."""
        rows = max(1, min(MOST_ROWS, len(z), CACHE_NUMBERS // (self.network.n_points * self.network.width)))
        decode = partial(_decode, self.params, graph=self.graph)
        points, weights = [], []
        for first in range(0, len(z), rows):
            some = np.asarray(z[first : first + rows], np.float32) / np.float32(self.frame.unit)
            filled = np.concatenate([some, np.repeat(some[-1:], rows - len(some), 0)])
            found = decode(filled)
            points.append(np.asarray(found[0])[: len(some)])
            weights.append(np.asarray(found[1], np.float64)[: len(some)])
        return self.frame.clouds(np.concatenate(points), MARGIN), np.concatenate(weights)

    def header(self) -> dict[str, Any]:
        """Return what JSON can hold of it."""
        frame = {name: getattr(self.frame, name) for name in ("length", "unit", "centred")}
        base = None if self.base is None else self.base.to_arrays()[1]
        return {"network": asdict(self.network), "frame": frame, "nugget": self.nugget, "base": base}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays it consists of."""
        arrays = {f"params{jax.tree_util.keystr(path)}": np.asarray(leaf) for path, leaf in _leaves(self.params)}
        arrays |= {f"frame.{name}": getattr(self.frame, name) for name in ("origin", "low", "high")}
        own = {} if self.base is None else self.base.to_arrays()[0]
        return arrays | {f"base.{name}": array for name, array in own.items()}

    @classmethod
    def of(cls, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> "Trained":
        """Undo :meth:`header` and :meth:`arrays`."""
        places: dict[str, Any] = {name: arrays[f"frame.{name}"] for name in ("origin", "low", "high")}
        network, frame = Network(**header["network"]), Frame(**header["frame"], **places)
        own = {name.removeprefix("base."): array for name, array in arrays.items() if name.startswith("base.")}
        base = None if header["base"] is None else BaseFeatures.from_arrays(own, header["base"])
        template = define(network, frame, base=base is not None, nugget=header["nugget"])[1]
        leaves = []
        for path, leaf in _leaves(template):
            found = arrays[f"params{jax.tree_util.keystr(path)}"]
            if found.shape != leaf.shape:
                raise ValueError(f"weights {jax.tree_util.keystr(path)} have shape {found.shape}, not {leaf.shape}")
            leaves.append(found)
        return cls(network, frame, base, header["nugget"], jax.tree.unflatten(jax.tree.structure(template), leaves))

    def _batch_sizes(
        self, clouds: PointClouds, batch_size: int | None, max_memory: int, n_devices: int, threads: int
    ) -> dict[int, int]:
        """Return how many clouds of each padded size are worked on at a time: a multiple of the devices."""
        sizes = {}
        for rung, count in zip(*np.unique(clouds.rungs, return_counts=True), strict=True):
            affordable = max_memory // WORK_SHARE // self._bytes(int(rung), clouds.dtype.itemsize, threads)
            rows = batch_size or self._rows(int(rung), BATCH_NUMBERS)
            rows = min(rows, affordable, 1 << (int(count) - 1).bit_length())
            sizes[int(rung)] = -(-rows // n_devices) * n_devices
        return sizes

    def _threads(self, clouds: PointClouds, max_memory: int, n_devices: int) -> int:
        """Return how many batches are worked on at a time: fewer than there are cores where clouds are too large."""
        largest = int(clouds.rungs.max(initial=1))
        for threads in range(workers(), 0, -1):
            needed = WORK_SHARE * n_devices * self._bytes(largest, clouds.dtype.itemsize, threads)
            if needed <= max_memory:
                return threads
        raise ValueError(
            f"max_memory is {max_memory / 2**20:,.3g} MiB; clouds of {clouds.sizes.max():,} points in {clouds.dim:,} "
            f"dimensions need {needed / 2**20:,.3g} MiB at least. Raise it, or make clouds of fewer points."
        )

    def _bytes(self, size: int, itemsize: int, threads: int) -> int:
        """Return the bytes that a cloud takes on its way, of those under way at a time: read, waiting and worked on."""
        dim = len(self.frame.origin)
        width = dim if self.base is None else self.base.width
        return size * (dim * itemsize * (2 * threads + 3) + width * 8 * WORK_COPIES * threads)

    def _rows(self, size: int, numbers: int) -> int:
        """Return how many clouds of a padded size hold so many numbers: a power of two."""
        widest = max(len(self.frame.origin), 3 * self.network.width, self.network.hidden)
        each = size * (widest + self.network.n_heads * (self.network.n_induced or size))
        return 1 << int(np.clip(numbers // each, 1, MOST_ROWS)).bit_length() - 1


def embed_shared(
    trained: Trained, clouds: PointClouds, blocks: Sequence[slice] | None, **options: Any
) -> Iterator[tuple[slice, Embedded]]:
    """Yield blocks of a cohort beside their vectors, each embedded by one of the processes and handed to all.

    Parameters
    ----------
    trained
        The model, the same everywhere.
    clouds
        The cohort, the same everywhere.
    blocks
        Runs of clouds; all by default, of a fixed size.
    **options
        See :meth:`Trained.stream`.
    """
    blocks = cut(len(clouds), BLOCK) if blocks is None else blocks
    if jax.process_count() == 1:
        yield from trained.stream(clouds, blocks, **options)
        return
    own = trained.stream(clouds, blocks[jax.process_index() :: jax.process_count()], **options)
    for first in range(0, len(blocks), jax.process_count()):
        turn = blocks[first : first + jax.process_count()]
        size = max(block.stop - block.start for block in turn)
        sent = np.zeros((size, trained.network.n_components + 1), np.float32)
        if jax.process_index() < len(turn):
            block, (z, nugget) = next(own)
            sent[: len(z), :-1], sent[: len(z), -1] = z, nugget
        for block, found in zip(turn, exchanged(sent).reshape(-1, *sent.shape), strict=False):
            count = block.stop - block.start
            yield block, Embedded(found[:count, :-1], found[:count, -1])


def cut(n: int, size: int) -> list[slice]:
    """Return runs of so many, the last of what is left."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def nothing_known(n_clouds: int, n_components: int) -> Embedded:
    """Return what stands for features, in the network's units, where there are none."""
    return Embedded(np.zeros((n_clouds, n_components), np.float32), np.ones(n_clouds, np.float32))


def _leaves(params: Any) -> list[tuple[Any, Any]]:
    return jax.tree_util.tree_flatten_with_path(params)[0]


def define(network: Network, frame: Frame, *, base: bool, nugget: bool, seed: int = 0) -> tuple[Any, Any]:
    """Return the definition of the networks, and their first weights."""
    return _define(network, len(frame.origin), frame.centred, base, nugget, seed)


@lru_cache(8)
def _define(network: Network, dim: int, centred: bool, base: bool, nugget: bool, seed: int) -> tuple[Any, Any]:
    sizes: dict[str, Any] = {"width": network.width, "hidden": network.hidden, "n_blocks": network.n_blocks}
    shared = {
        **sizes,
        "n_heads": network.n_heads,
        "n_induced": network.n_induced,
        "n_fixed": dim if centred else 0,
        "post": network.post,
    }
    rngs = nnx.Rngs(seed)
    encoder = Encoder(dim, network.n_components, base=base, nugget=nugget, rngs=rngs, **shared)
    decoder = None
    if network.n_points:
        decoder = Decoder(
            dim, network.n_components, n_points=network.n_points, weighted=network.weighted, rngs=rngs, **shared
        )
    graph, params = nnx.split(Networks(encoder, decoder))
    return graph, jax.device_get(params)


@partial(jax.jit, static_argnames=("graph", "rows", "mesh"))
def _encode(params: Any, feed: Any, n_wanted: Any, *, graph: Any, rows: int, mesh: Mesh) -> Any:
    """Embed the first clouds of a batch, each device its share of them."""
    share = partial(_encode_share, graph=graph, rows=rows)
    given = (WHOLE, SPLIT, WHOLE)
    return jax.shard_map(share, mesh=mesh, in_specs=given, out_specs=SPLIT, check_vma=False)(params, feed, n_wanted)


def _encode_share(params: Any, feed: Any, n_wanted: Any, *, graph: Any, rows: int) -> Any:
    """Embed the share of one device, a few clouds at a time: what a layer makes of them is still near when read."""
    encoder = nnx.merge(graph, params).encoder
    n_rows = len(feed[0])
    n_wanted = jnp.clip(n_wanted - lax.axis_index(AXIS) * n_rows, 0, n_rows)

    def some(turn: Any, found: Any) -> Any:
        first = jnp.minimum(turn * rows, n_rows - rows)
        new = encoder(*(lax.dynamic_slice_in_dim(part, first, rows) for part in feed))
        return jax.tree.map(lambda all_, part: lax.dynamic_update_slice_in_dim(all_, part, first, 0), found, new)

    empty = (jnp.zeros_like(feed[2]), jnp.zeros_like(feed[3]))
    return lax.fori_loop(0, (n_wanted + rows - 1) // rows, some, empty)


@partial(jax.jit, static_argnames=("graph",))
def _decode(params: Any, z: Any, *, graph: Any) -> Any:
    return nnx.merge(graph, params).decoder(z)
