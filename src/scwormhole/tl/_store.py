"""Vectors of a cohort in a zarr store, written a block at a time: what is finished is marked, and known to be whole.

A run that was killed, or whose disk was full, goes on where it was. The store appears only when it can be used, and
one that belongs to other clouds or to another model is left alone.
"""

import hashlib
import json
import logging
import os
import shutil
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.experimental.multihost_utils import broadcast_one_to_all, sync_global_devices
from numpy.typing import NDArray

from scwormhole.model import Wormhole
from scwormhole.ot import Embedded

KIND, FORMAT = "scwormhole embedding", 1
BLOCK = 1 << 15  # clouds of a block, which is a chunk of the store
UNFINISHED = -1
BROKEN = (OSError, KeyError, ValueError, RuntimeError, TypeError)  # what reading a damaged store may raise

logger = logging.getLogger(__name__)


class Store:
    """A store of vectors and nuggets.

    Parameters
    ----------
    path
        The folder: one that does not exist, or an unfinished store of the same clouds and model.
    n_clouds
        Clouds of the cohort.
    n_components
        Length of a vector.
    mark
        What must be the same for the store to be gone on with.
    """

    def __init__(self, path: str | os.PathLike[str], n_clouds: int, n_components: int, mark: dict[str, str]) -> None:
        self.path = Path(path)
        header = {"kind": KIND, "format": FORMAT, "n_clouds": n_clouds, "n_components": n_components, "of": mark}
        self.blocks = [slice(start, min(start + BLOCK, n_clouds)) for start in range(0, n_clouds, BLOCK)]
        self._open(header)
        self._vectors, self._nugget, self._finished = (self._array(name) for name in ("z", "nugget", "finished"))

    def missing(self) -> list[slice]:
        """Return the blocks that are not there yet, or not whole."""
        marks = self._finished[:]
        missing, damaged = [], 0
        for number, block in enumerate(self.blocks):
            if marks[number] == UNFINISHED or self._mark_of(block) != marks[number]:
                missing.append(block)
                damaged += int(marks[number] != UNFINISHED)
        if damaged:
            logger.warning("%d finished blocks of %s are damaged and are made again", damaged, self.path)
        if len(missing) < len(self.blocks):
            logger.info("%s has %d of %d blocks", self.path, len(self.blocks) - len(missing), len(self.blocks))
        return missing

    def fill(self, embedded: Callable[[list[slice]], Iterable[tuple[slice, Embedded]]]) -> None:
        """Write the blocks that are missing as they are made; of several processes the first one does.

        Parameters
        ----------
        embedded
            Makes blocks.
        """
        missing = self.missing()
        done = len(self.blocks) - len(missing)
        try:
            for block, (z, nugget) in embedded(missing) if missing else ():
                if jax.process_index() == 0:
                    self._write(block, z, nugget)
                done += 1
        except BaseException:
            said = "%d of %d blocks are in %s and stay; the same call goes on from there"
            logger.warning(said, done, len(self.blocks), self.path)
            raise
        _together("filled")

    def vectors(self) -> Any:
        """Return the vectors, which stay in the store until they are asked for."""
        import dask.array

        return dask.array.from_zarr(str(self.path / "z"))

    def nugget(self) -> NDArray[np.float32]:
        """Return the nuggets."""
        return np.asarray(self._nugget[:], np.float32)

    def _write(self, block: slice, z: NDArray[np.float32], nugget: NDArray[np.float32]) -> None:
        try:
            self._vectors[block], self._nugget[block] = z, nugget
            self._finished[block.start // BLOCK] = _mark(z, nugget)
        except OSError as error:
            raise OSError(
                error.errno,
                f"clouds {block.start:,} to {block.stop - 1:,} could not be written to {self.path} ({error}). Make "
                "room and call again: what was finished is kept.",
            ) from error

    def _open(self, header: dict[str, Any]) -> None:
        """Let the first process look at the store or make it, and all others know whether that went well."""
        failure = None
        if jax.process_index() == 0:
            try:
                self._check(header) if os.path.lexists(self.path) else self._create(header)
            except OSError as error:
                failure = error
        if jax.process_count() > 1 and not broadcast_one_to_all(np.array(failure is None)):
            raise failure or OSError(f"the store {self.path} is of no use; the first process tells why.")
        if failure is not None:
            raise failure

    def _create(self, header: dict[str, Any]) -> None:
        import zarr

        n, k = header["n_clouds"], header["n_components"]
        aside = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        shapes = {"z": ((n, k), (BLOCK, k), "f4", 0), "nugget": ((n,), (BLOCK,), "f4", 0)}
        shapes["finished"] = ((len(self.blocks),), (1,), "i8", UNFINISHED)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            zarr.open_group(str(aside), mode="w").attrs["scwormhole"] = json.dumps(header)
            for name, (shape, chunks, dtype, empty) in shapes.items():
                zarr.open_array(str(aside / name), mode="w", shape=shape, chunks=chunks, dtype=dtype, fill_value=empty)
            aside.rename(self.path)
        except OSError as error:
            raise OSError(
                error.errno,
                f"the store {self.path} could not be made ({error}); give a path with room that you may write to.",
            ) from error
        finally:
            shutil.rmtree(aside, ignore_errors=True)

    def _check(self, wanted: dict[str, Any]) -> None:
        """Refuse to go on with what is something else."""
        header = _header(self.path)
        theirs = {**header, **header.get("of", {})}
        differ = [
            name for name, value in {**wanted, **wanted["of"]}.items() if name != "of" and theirs.get(name) != value
        ]
        if differ:
            raise FileExistsError(
                f"{self.path} holds vectors of something else: {', '.join(differ)} differ. Give another path, or "
                "remove it."
            )

    def _array(self, name: str) -> Any:
        import zarr

        try:
            return zarr.open_array(str(self.path / name), mode="r+")
        except BROKEN as error:
            raise OSError(f"the store {self.path} is damaged: {name} cannot be opened ({error}). Remove it.") from error

    def _mark_of(self, block: slice) -> int | None:
        try:
            return _mark(self._vectors[block], self._nugget[block])
        except BROKEN:
            return None


def check_store(path: str | os.PathLike[str] | None, n_clouds: int) -> None:
    """Refuse, before any work is done, a path that cannot become a store of so many clouds or go on being one."""
    if path is None:
        return
    if "://" in os.fspath(path):
        raise ValueError(f"store is {os.fspath(path)!r}; give a folder on a disk, not an address.")
    if os.path.lexists(path):
        if (found := _header(Path(path)).get("n_clouds", 0)) != n_clouds:
            raise FileExistsError(f"{path} holds vectors of {found:,} clouds, not of {n_clouds:,}; give another path.")
        return
    parent = next(parent for parent in Path(path).absolute().parents if parent.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise OSError(f"the store {path} could not be made: {parent} is no folder that can be written to.")


def _header(path: Path) -> dict[str, Any]:
    """Return what a store says of itself, or refuse what is none."""
    import zarr

    try:
        header = json.loads(str(zarr.open_group(str(path), mode="r").attrs["scwormhole"]))
    except BROKEN as error:
        raise FileExistsError(f"{path} exists and is no store of vectors; give another path.") from error
    if header.get("kind") != KIND or header.get("format", FORMAT) > FORMAT:
        raise FileExistsError(f"{path} is a {header.get('kind')!r} of another version; give another path.")
    return dict(header)


def mark_of(model: Wormhole, clouds: str) -> dict[str, str]:
    """Return what a store is known by again, from a model and the digest of a cohort."""
    found = hashlib.blake2b(digest_size=16)
    arrays, header = model.to_arrays()
    for name, array in sorted(arrays.items()):
        found.update(name.encode() + np.ascontiguousarray(array).tobytes())
    found.update(json.dumps(header["trained"], sort_keys=True).encode())
    return {"model": found.hexdigest(), "clouds": clouds}


def _mark(z: Any, nugget: Any) -> int:
    return zlib.crc32(np.asarray(z, np.float32).tobytes(), zlib.crc32(np.asarray(nugget, np.float32).tobytes()))


def _together(what: str) -> None:
    if jax.process_count() > 1:
        sync_global_devices(f"scwormhole store {what}")
