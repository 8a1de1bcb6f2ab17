"""Public files: taken from the user's folder, or downloaded once into a cache and checked by their SHA-256."""

import os
from collections.abc import Iterator
from pathlib import Path

CACHE = "SCWORMHOLE_CACHE"  # the variable that moves the cache

Folder = str | os.PathLike[str] | None


def find(name: str, file: str, folder: Folder, *, urls: tuple[str, ...], sha256: str) -> Path:
    """Return where a file is: in the folder if one is given, else in the cache, downloaded if it is not there yet.

    Parameters
    ----------
    name
        Name of the data set, which is also its folder in the cache.
    file
        Name of the file.
    folder
        The user's folder, or None.
    urls
        Where to download from, tried one after the other.
    sha256
        Checksum of what is downloaded.
    """
    if folder is not None:
        path = Path(folder) / file
        if not path.is_file():
            there = ", ".join(sorted(other.name for other in _listed(Path(folder)))[:10]) or "nothing"
            raise FileNotFoundError(
                f"{name} needs {file}, which is not in {folder} (there: {there}). "
                "Give the folder that holds the files, or no folder to download them."
            )
        return path
    import pooch

    cache, troubles = cache_folder() / name, []
    for url in urls:
        try:
            return Path(pooch.retrieve(url, f"sha256:{sha256}", file, cache, progressbar=True))
        except (OSError, ValueError) as error:  # no way there, and a file that is not the one
            troubles.append(f"{url}: {str(error)[:200]}")
    raise OSError(
        f"{name} is neither in {cache} nor could it be downloaded ({'; '.join(troubles)}). "
        f"Download {file} elsewhere and give its folder, or put it into the cache."
    )


def cache_folder() -> Path:
    """Return the folder that downloads are kept in: ``SCWORMHOLE_CACHE``, or the system's place for caches."""
    import pooch

    return Path(os.environ.get(CACHE) or pooch.os_cache("scwormhole"))


def _listed(folder: Path) -> Iterator[Path]:
    return folder.iterdir() if folder.is_dir() else iter(())
