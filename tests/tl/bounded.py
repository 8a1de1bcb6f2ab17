"""Fits and embeds niches over points on disk, and prints how much memory each took; run by ``test_tl_memory.py``."""

import json
import re
import resource
import sys
import warnings
from pathlib import Path

import anndata
import numpy as np

import scwormhole as wh

N, DIM, WARM = 120_000, 500, 10_000
MiB = 1 << 20


def status(name: str) -> int:
    return int(re.search(rf"{name}:\s+(\d+)", Path("/proc/self/status").read_text())[1]) * 1024


def make(folder: Path) -> None:
    """Write cells on a line, a part of the genes at a time."""
    import zarr

    stored = zarr.open_array(str(folder / "X.zarr"), mode="w", shape=(N, DIM), chunks=(2_000, DIM), dtype="f4")
    rng = np.random.default_rng(0)
    place = np.linspace(0, 20, N)
    profile = rng.normal(size=(3, DIM)).astype(np.float32)
    for start in range(0, N, 20_000):
        wave = np.stack([np.sin(f * place[start : start + 20_000]) for f in (1, 2, 3)], axis=1).astype(np.float32)
        stored[start : start + 20_000] = wave @ profile + rng.normal(size=(len(wave), DIM)).astype(np.float32)


def cells(folder: Path, n: int) -> anndata.AnnData:
    import dask.array

    adata = anndata.AnnData(dask.array.from_zarr(str(folder / "X.zarr"))[:n])
    adata.obsm["spatial"] = np.stack([np.arange(n), np.zeros(n)], axis=1)
    wh.pp.niches(adata, n_neighbors=7)
    return adata


def main(folder: Path, memory: str, limit: int) -> None:
    warnings.simplefilter("ignore")
    settings = {"n_components": 16, "max_steps": 0, "coeff_dec": 0, "progress": False, "max_memory": memory}
    small, whole = cells(folder, WARM), cells(folder, N)
    model = wh.tl.wormhole(small, return_model=True, **settings)  # what is loaded and compiled once does not count
    Path("/proc/self/clear_refs").write_text("5")
    before = status("VmRSS")
    if limit:
        most = status("VmData") + limit * MiB
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    wh.tl.embed(whole, model)
    sys.stdout.write(json.dumps({"embedding": (status("VmHWM") - before) / MiB}))


if __name__ == "__main__":
    if sys.argv[2] == "make":
        make(Path(sys.argv[1]))
    else:
        main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
