"""Writes a cohort to one file and reads it back: touches the file system and nothing else, never pickle.

The file is an uncompressed ``.npz``: plain arrays and a line of JSON that says what they are.
"""

import json
import os
import uuid
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from ._layout import Layout
from ._names import Names
from ._reader import source_of
from ._rows import CHUNK_BYTES, float_dtype, row_chunks, stored_values, whereabouts
from ._validation import check_layout, check_matrix, check_not_empty, check_weights

FORMAT = "scwormhole.PointClouds"
VERSION = 1
# What a damaged file was seen to raise, from the zip directory down to the JSON and the array headers.
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    KeyError,
    EOFError,
    OSError,
    ValueError,
    TypeError,
    AttributeError,
    MemoryError,
    RuntimeError,
)


def write_layout(path: str | os.PathLike[str], layout: Layout, *, overwrite: bool) -> None:
    """Write a cohort beside its place and move it there when it is complete.

    Parameters
    ----------
    path
        File to write.
    layout
        The cohort.
    overwrite
        Whether an existing file may be replaced.
    """
    target = Path(path)
    _check_target(target, overwrite)
    aside = target.with_name(f".{target.name}.{uuid.uuid4().hex}.partial")
    try:
        with aside.open("xb") as file:
            with zipfile.ZipFile(file, "w") as archive:
                _write_members(archive, layout)
            file.flush()
            os.fsync(file.fileno())
        _check_target(target, overwrite)
        aside.replace(target)
    finally:
        aside.unlink(missing_ok=True)


def read_layout(path: str | os.PathLike[str]) -> Layout:
    """Read a cohort, or say why the file is not one.

    Parameters
    ----------
    path
        File to read.
    """
    with Path(path).open("rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                return _read_members(archive, _read_header(archive, path))
        except _ForeignFileError as error:
            raise ValueError(str(error)) from None
        except DAMAGE as error:
            raise ValueError(
                f"{os.fspath(path)!r} is damaged or no file of PointClouds ({type(error).__name__}: {error}); "
                "restore it from a copy, or write it again with .save()."
            ) from error


class _ForeignFileError(Exception):
    """The file is whole, but not ours to read."""


def _check_target(target: Path, overwrite: bool) -> None:
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {str(target.parent)!r}; create it first.")
    if target.is_dir():
        raise IsADirectoryError(f"{str(target)!r} is a folder; give the name of a file, for example 'clouds.npz'.")
    if target.exists() and not overwrite:
        raise FileExistsError(f"{str(target)!r} exists; pass overwrite=True to replace it, or choose another name.")


def _write_members(archive: zipfile.ZipFile, layout: Layout) -> None:
    points = layout.points
    kept_sparse = "sparse" in whereabouts(source_of(points))
    header = {"format": FORMAT, "version": VERSION, "sparse": kept_sparse, "shape": [int(n) for n in points.shape]}
    _write_array(archive, "header", np.array(json.dumps(header)))
    _write_array(archive, "indptr", layout.indptr)
    _write_array(archive, "indices", layout.indices)
    _write_array(archive, "weights", layout.weights)
    _write_array(archive, "names", layout.names.values)
    dtype = float_dtype(points.dtype)
    if not kept_sparse:
        _write(archive, "points", (block for _, block in row_chunks(points)), points.shape, dtype)
        return
    # A member states its length before its content, so rows on disk are read once to count and then once a member.
    sizes = np.concatenate([np.diff(block.indptr) for _, block in row_chunks(points)])
    indptr = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    _write_array(archive, "points_indptr", indptr)
    columns = (block.indices[: block.indptr[-1]].astype(np.int64) for _, block in row_chunks(points))
    _write(archive, "points_indices", columns, indptr[-1:], np.int64)
    _write(archive, "points_data", (stored_values(block) for _, block in row_chunks(points)), indptr[-1:], dtype)


def _write_array(archive: zipfile.ZipFile, name: str, array: NDArray[Any]) -> None:
    _write(archive, name, [array], array.shape, array.dtype)


def _write(
    archive: zipfile.ZipFile, name: str, blocks: Iterable[NDArray[Any]], shape: Iterable[int], dtype: DTypeLike
) -> None:
    """Write blocks of rows as one array, a chunk at a time."""
    lengths = tuple(int(length) for length in shape)
    description = {"descr": npy.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": lengths}
    with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
        npy.write_array_header_1_0(member, description)
        for block in blocks:
            flat = np.ascontiguousarray(block).reshape(-1)
            step = max(1, CHUNK_BYTES // max(1, flat.itemsize))
            for start in range(0, len(flat), step):
                member.write(flat[start : start + step].tobytes())


def _read_header(archive: zipfile.ZipFile, path: str | os.PathLike[str]) -> dict[str, Any]:
    where = repr(os.fspath(path))
    if "header.npy" not in archive.namelist():
        found = ", ".join(archive.namelist()[:5]) or "nothing"
        raise _ForeignFileError(f"{where} is no file of PointClouds, it holds {found}; give one that .save() wrote.")
    header: dict[str, Any] = json.loads(str(_read(archive, "header")))
    if header["format"] != FORMAT:
        raise _ForeignFileError(
            f"{where} has the format {header['format']!r}, and {FORMAT!r} is read here; give a file that .save() wrote."
        )
    if header["version"] > VERSION:
        raise _ForeignFileError(
            f"{where} has version {header['version']} of the format, and this scwormhole reads up to {VERSION}; "
            "update scwormhole to read it."
        )
    return header


def _read_members(archive: zipfile.ZipFile, header: dict[str, Any]) -> Layout:
    points: Any
    if header["sparse"]:
        parts = [_read(archive, f"points_{name}") for name in ("data", "indices", "indptr")]
        points = sparse.csr_array(tuple(parts), shape=tuple(header["shape"]))
        points.check_format(full_check=True)
    else:
        points = _read(archive, "points")
    indptr, indices, weights, names = (_read(archive, name) for name in ("indptr", "indices", "weights", "names"))
    for shared in (indptr, indices, weights):
        shared.flags.writeable = False
    layout = Layout(points, indptr, indices, weights, Names(names))
    check_matrix(points, "points")
    check_layout(points.shape[0], indptr, indices)
    if names.shape != (len(indptr) - 1,) or weights.shape != indices.shape:
        raise ValueError("its arrays differ in length")
    check_not_empty(layout.sizes, layout.names)
    check_weights(weights, indptr, layout.names)
    return layout


def _read(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    with archive.open(f"{name}.npy") as member:
        array: NDArray[Any] = npy.read_array(member, allow_pickle=False)
    return array
