"""Folders of plain data: a JSON header and arrays in safetensors. Knows no models, runs no code it reads.

A folder is written beside its place and then renamed, so there is never half of one.
"""

import json
import os
import secrets
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

HEADER, ARRAYS = "header.json", "arrays.safetensors"


class Contents(NamedTuple):
    """What a folder holds."""

    header: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def write_folder(
    folder: str | os.PathLike[str], header: dict[str, Any], arrays: dict[str, NDArray[Any]], *, overwrite: bool = False
) -> None:
    """Write a header and arrays to a folder of their own.

    Parameters
    ----------
    folder
        The folder, which must not exist.
    header
        What JSON can hold; ``kind`` and ``format`` say what it is.
    arrays
        Arrays by name.
    overwrite
        Whether an existing folder of the same kind may be replaced. Any other is left alone.
    """
    target = Path(folder)
    if target.exists() or target.is_symlink():
        if not overwrite:
            raise FileExistsError(f"{target} exists; give another folder, or overwrite=True to replace it.")
        if _kind(target) != header["kind"]:
            raise FileExistsError(f"{target} exists and is not a {header['kind']}, so it is not overwritten.")
    target.parent.mkdir(parents=True, exist_ok=True)
    mark = f"{os.getpid()}-{secrets.token_hex(4)}"
    aside, old = target.with_name(f".{target.name}.{mark}"), target.with_name(f".{target.name}.{mark}.old")
    aside.mkdir()
    try:
        (aside / HEADER).write_text(json.dumps(header, indent=1, allow_nan=True), "utf-8")
        save_file({name: np.asarray(array, order="C") for name, array in arrays.items()}, aside / ARRAYS)
        if target.exists():
            target.rename(old)
        aside.rename(target)
    finally:
        if old.exists() and not target.exists():
            old.rename(target)
        for leftover in (aside, old):
            shutil.rmtree(leftover, ignore_errors=True)


def read_folder(folder: str | os.PathLike[str], kind: str, format: int) -> Contents:
    """Read a folder, or say what is wrong with it.

    Parameters
    ----------
    folder
        The folder.
    kind
        What it must be.
    format
        Newest format that can be read.
    """
    source = Path(folder)
    missing = [name for name in (HEADER, ARRAYS) if not (source / name).is_file()]
    if missing:
        there = "is not there" if not source.exists() else f"has no {' and no '.join(missing)}"
        raise FileNotFoundError(f"{source} {there}; a {kind} is a folder with {HEADER} and {ARRAYS}.")
    try:
        header = json.loads((source / HEADER).read_text("utf-8"))
        arrays = load_file(source / ARRAYS)
    except (ValueError, SafetensorError, OSError) as error:
        raise ValueError(f"{source} is damaged: {error}") from error
    if not isinstance(header, dict) or header.get("kind") != kind:
        found = header.get("kind") if isinstance(header, dict) else None
        raise ValueError(f"{source} holds {found!r}, not a {kind}.")
    if not isinstance(header.get("format"), int):
        raise ValueError(f"{source} is damaged: its header has no format.")
    if header["format"] > format:
        raise ValueError(
            f"{source} was written in format {header['format']}, and this version of scwormhole reads up to {format}; "
            "install a newer scwormhole."
        )
    return Contents(header, arrays)


def _kind(folder: Path) -> Any:
    try:
        header = json.loads((folder / HEADER).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return header.get("kind") if isinstance(header, dict) else None
