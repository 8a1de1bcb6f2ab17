"""Folders of plain data: a JSON header and arrays in safetensors. Knows no models, runs no code it reads.

A folder is written beside its place and then renamed, so there is never half of one. The header holds a digest of the
arrays, so a part of one folder is not taken for a part of another. Files that are not ours are left where they are.
"""

import hashlib
import json
import math
import os
import secrets
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

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
        The folder, which must not exist. A link to a folder stays a link.
    header
        What JSON can hold; ``kind`` and ``format`` say what it is. A number that is not finite is written as null.
    arrays
        Arrays by name.
    overwrite
        Whether an existing folder of the same kind may be replaced; other files in it stay. Any other is left alone.
    """
    target = Path(os.path.realpath(folder))
    if target.exists() or os.path.lexists(folder):
        if not target.is_dir():
            raise FileExistsError(f"{folder} is {'a file' if target.exists() else 'a broken link'}; give a folder.")
        if not overwrite:
            raise FileExistsError(f"{folder} exists; give another folder, or overwrite=True to replace it.")
        if folder_kind(target) != header["kind"]:
            raise FileExistsError(
                f"{folder} exists and is not a {header['kind']}, so it is not overwritten; give another folder."
            )
    mark = f"{os.getpid()}-{secrets.token_hex(4)}"
    aside, old = target.with_name(f".{target.name}.{mark}"), target.with_name(f".{target.name}.{mark}.old")
    try:
        aside.mkdir(parents=True)
        save_file({name: np.asarray(array, order="C") for name, array in arrays.items()}, aside / ARRAYS)
        text = json.dumps(as_plain({**header, "digest": _digest(aside / ARRAYS)}), indent=1, allow_nan=False)
        (aside / HEADER).write_text(text, "utf-8")
        if target.exists():
            target.rename(old)
        aside.rename(target)
        if old.exists():
            for other in {*old.iterdir()} - {old / HEADER, old / ARRAYS}:
                other.rename(target / other.name)
    except (OSError, SafetensorError) as error:
        raise OSError(f"{folder} could not be written ({error}); is there room, and may you write there?") from error
    finally:
        if old.exists() and not target.exists():
            old.rename(target)
        for leftover in (aside, old):
            remove_folder(leftover)


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
        there = f"has no {' and no '.join(missing)}" if source.is_dir() else "is a file"
        there = there if source.exists() else "is not there"
        raise FileNotFoundError(f"{source} {there}; a {kind} is a folder with {HEADER} and {ARRAYS}.")
    try:
        header = json.loads((source / HEADER).read_text("utf-8"), parse_constant=_refuse)
    except (ValueError, OSError) as error:
        raise ValueError(f"{source} is damaged: {error}. Restore it from a copy, or write it again.") from error
    if not isinstance(header, dict) or header.get("kind") != kind:
        found = header.get("kind") if isinstance(header, dict) else None
        raise ValueError(f"{source} holds {found!r}, not a {kind}; give the folder of one.")
    if not isinstance(header.get("format"), int):
        raise ValueError(f"{source} is damaged: its header has no format. Restore it from a copy, or write it again.")
    if header["format"] > format:
        raise ValueError(
            f"{source} was written in format {header['format']}, and this version of scwormhole reads up to {format}; "
            "install a newer scwormhole."
        )
    try:
        found, arrays = _digest(source / ARRAYS), load_file(source / ARRAYS)
    except (ValueError, SafetensorError, OSError) as error:
        raise ValueError(f"{source} is damaged: {error}. Restore it from a copy, or write it again.") from error
    if header.get("digest") != found:
        raise ValueError(
            f"{source} is damaged: {ARRAYS} is not the one that {HEADER} was written with. Restore it from a copy, or "
            "write it again."
        )
    return Contents(header, arrays)


def remove_folder(folder: str | os.PathLike[str]) -> None:
    """Remove the two files of a folder, and the folder if nothing else is in it; what is not there is no fault.

    Parameters
    ----------
    folder
        The folder.
    """
    target = Path(os.path.realpath(folder))
    if not target.is_dir():
        return
    for name in (HEADER, ARRAYS):
        (target / name).unlink(missing_ok=True)
    if not any(target.iterdir()):
        target.rmdir()


def folder_kind(folder: str | os.PathLike[str]) -> Any:
    """Return what kind of folder it is, None if it is none of ours.

    Parameters
    ----------
    folder
        The folder.
    """
    try:
        header = json.loads((Path(folder) / HEADER).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return header.get("kind") if isinstance(header, dict) else None


def as_plain(value: Any) -> Any:
    """Return what every reader of JSON can hold: Python's own numbers, and None for those that are not finite.

    Parameters
    ----------
    value
        A value, or lists and dictionaries of values.
    """
    if isinstance(value, dict):
        return {name: as_plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "blake2b").hexdigest()[:32]


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")
