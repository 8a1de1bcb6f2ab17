"""A trained model at work: embeds and decodes, streaming. The host side of the networks."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
from numpy.typing import NDArray
from tqdm.auto import tqdm

from scwormhole.clouds import PaddedBatch, PointClouds
from scwormhole.nn import Decoder, Encoder
from scwormhole.ot import BaseFeatures, Embedded
from scwormhole.ot._schedule import run, workers
from scwormhole.ot._threads import one_thread

from ._frame import Frame
from ._settings import Network
from ._step import Networks

CACHE_NUMBERS = 1 << 18  # numbers of the widest layer or of the attention that the network works on at a time
BATCH_NUMBERS = 1 << 23  # the same of a batch, which is read and measured at a time
MOST_ROWS = 1024
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

    def embed(self, clouds: PointClouds, *, batch_size: int | None = None, progress: bool = False) -> Embedded:
        """Return vectors and nuggets in the user's units, reading a batch of clouds at a time."""
        k, unit = self.network.n_components, np.float32(self.frame.unit)
        z, noise = np.empty((len(clouds), k), np.float32), np.empty(len(clouds), np.float32)
        graph, params = self.graph, jax.device_put(self.params)
        at_once = CACHE_NUMBERS if jax.default_backend() == "cpu" else BATCH_NUMBERS

        def some(batch: PaddedBatch) -> tuple[NDArray[np.int64], Any]:
            known = nothing_known(len(batch.points), k)
            if self.base is not None:
                features, own = self.base.features(batch.points, batch.weights)
                known = Embedded(features / unit, own / unit**2)
            rows = min(self._rows(batch.points.shape[1], at_once), len(batch.points))
            feed = (*self.frame.points(batch), *known)
            return batch.index, jax.device_get(_encode(params, feed, len(batch.index), graph=graph, rows=rows))

        bar = tqdm(total=len(clouds), desc="embedding", unit="cloud", delay=2, disable=not progress)
        with bar, one_thread:
            for index, found in run(some, self._batches(clouds, batch_size), workers()):
                z[index], noise[index] = (part[: len(index)] for part in found)
                bar.update(len(index))
        return Embedded(z * unit, noise * unit**2)

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

    def _batches(self, clouds: PointClouds, batch_size: int | None) -> Iterator[PaddedBatch]:
        for rung in np.unique(clouds.rungs):
            held = np.flatnonzero(clouds.rungs == rung)
            rows = batch_size or self._rows(int(rung), BATCH_NUMBERS)
            yield from clouds.batches(min(rows, 1 << (len(held) - 1).bit_length()), held)

    def _rows(self, size: int, numbers: int) -> int:
        """Return how many clouds of a padded size hold so many numbers: a power of two."""
        widest = max(len(self.frame.origin), 3 * self.network.width, self.network.hidden)
        each = size * (widest + self.network.n_heads * (self.network.n_induced or size))
        return 1 << int(np.clip(numbers // each, 1, MOST_ROWS)).bit_length() - 1


def nothing_known(n_clouds: int, n_components: int) -> Embedded:
    """Return what stands for features, in the network's units, where there are none."""
    return Embedded(np.zeros((n_clouds, n_components), np.float32), np.ones(n_clouds, np.float32))


def _leaves(params: Any) -> list[tuple[Any, Any]]:
    return jax.tree_util.tree_flatten_with_path(params)[0]


def define(network: Network, frame: Frame, *, base: bool, nugget: bool, seed: int = 0) -> tuple[Any, Any]:
    """Return the definition of the networks, and their first weights."""
    dim = len(frame.origin)
    n_fixed = dim if frame.centred else 0
    sizes: dict[str, Any] = {"width": network.width, "hidden": network.hidden, "n_blocks": network.n_blocks}
    shared = {
        **sizes,
        "n_heads": network.n_heads,
        "n_induced": network.n_induced,
        "n_fixed": n_fixed,
        "post": network.post,
    }

    def make() -> Networks:
        rngs = nnx.Rngs(seed)
        encoder = Encoder(dim, network.n_components, base=base, nugget=nugget, rngs=rngs, **shared)
        decoder = None
        if network.n_points:
            decoder = Decoder(
                dim, network.n_components, n_points=network.n_points, weighted=network.weighted, rngs=rngs, **shared
            )
        return Networks(encoder, decoder)

    return nnx.split(make())


@partial(jax.jit, static_argnames=("graph", "rows"))
def _encode(params: Any, feed: Any, n_wanted: Any, *, graph: Any, rows: int) -> Any:
    """Embed the first clouds of a batch, a few at a time: what a layer makes of them is still near when read."""
    encoder = nnx.merge(graph, params).encoder
    n_rows = len(feed[0])

    def some(turn: Any, found: Any) -> Any:
        first = jnp.minimum(turn * rows, n_rows - rows)
        new = encoder(*(lax.dynamic_slice_in_dim(part, first, rows) for part in feed))
        return jax.tree.map(lambda all_, part: lax.dynamic_update_slice_in_dim(all_, part, first, 0), found, new)

    empty = (jnp.zeros_like(feed[2]), jnp.zeros_like(feed[3]))
    return lax.fori_loop(0, (n_wanted + rows - 1) // rows, some, empty)


@partial(jax.jit, static_argnames=("graph",))
def _decode(params: Any, z: Any, *, graph: Any) -> Any:
    return nnx.merge(graph, params).decoder(z)
