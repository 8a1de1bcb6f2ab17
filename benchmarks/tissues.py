"""Tissues for the benchmark of scale, written to .h5ad files: simulated cortex, simulated sections, hypothalamus.

A file that exists is taken as it is. Values are log-normalised and sparse; libraries are in ``obs["library"]``.
"""

from collections.abc import Iterator
from pathlib import Path

import anndata
import h5py
import numpy as np
import pandas as pd
from scipy import sparse

import scwormhole as wh

N_GENES, N_TYPES = 300, 12
SECTION = 10_000  # cells of a simulated section
TARGET = 100.0  # counts that every cell is scaled to
DENSITY = 20 / (np.pi * 50**2)  # cells per um^2: 20 within 50 um


def make_cortex(files: list[Path], n_cells: int, n_genes: int, n_libraries: int, n_held: int) -> None:
    """Write the simulated cortex three times: whole, without its last libraries, and these alone."""
    adata = wh.datasets.cortex(n_cells, n_genes, n_libraries)
    adata.X = log_normalised(adata.X)
    codes = adata.obs["library"].str.removeprefix("slice ").astype(int).to_numpy()
    held = codes > n_libraries - n_held
    for path, cells in zip(files, (slice(None), ~held, held), strict=True):
        _finished(path, lambda unfinished, cells=cells: adata[cells].copy().write_h5ad(unfinished))


def make_sections(path: Path, n_cells: int) -> None:
    """Write simulated sections whose counts are drawn, and appended to the file, one section at a time."""

    def write(unfinished: Path) -> None:
        library = np.arange(n_cells) // SECTION
        obs = pd.DataFrame({"library": pd.Categorical([f"section {i}" for i in library])}, index=_names(n_cells))
        side = np.sqrt(min(SECTION, n_cells) / DENSITY)
        spatial = np.random.default_rng(0).uniform(0, side, (n_cells, 2))
        var = pd.DataFrame(index=[f"Gene{i}" for i in range(N_GENES)])
        anndata.AnnData(obs=obs, var=var, obsm={"spatial": spatial}).write_h5ad(unfinished)
        with h5py.File(unfinished, "r+") as file:
            if "X" in file:
                del file["X"]
            pieces = _sections(spatial / side)
            anndata.io.write_elem(file, "X", next(pieces))
            stored = anndata.io.sparse_dataset(file["X"])
            for piece in pieces:
                stored.append(piece)

    _finished(path, write)


def make_hypothalamus(files: dict[Path, int], folder: Path) -> dict[str, int]:
    """Write the types of cells of the hypothalamus, one-hot, of about so many cells in whole slices each."""
    cells = pd.read_csv(next((folder / "merfish_hypothalamus_celltypes").glob("*.csv.gz")))
    library = cells["animal"].astype(str) + "_" + cells["bregma"].astype(str)
    sizes = library.value_counts().sort_index()
    order = sizes.iloc[np.random.default_rng(0).permutation(len(sizes))]
    found = {}
    for path, wanted in files.items():
        chosen = order.index[: 1 + int(np.searchsorted(order.cumsum().to_numpy(), wanted))]
        rows = np.flatnonzero(library.isin(chosen))
        some = cells.iloc[rows]
        types = pd.Categorical(some["cell_type"], np.unique(cells["cell_type"]))
        ones = np.ones(len(some), np.float32)
        x = sparse.csr_matrix((ones, types.codes, np.arange(len(some) + 1)), (len(some), len(types.categories)))
        obs = pd.DataFrame({"library": pd.Categorical(library.iloc[rows])}, index=_names(len(some)))
        spatial = {"spatial": some[["x", "y"]].to_numpy(np.float64)}
        adata = anndata.AnnData(x, obs=obs, var=pd.DataFrame(index=list(types.categories)), obsm=spatial)
        _finished(path, adata.write_h5ad)
        found[str(path)] = len(some)
    return found


def log_normalised(counts: sparse.csr_matrix) -> sparse.csr_matrix:
    """Return log1p of counts scaled to the same sum in every cell, sparse as they were."""
    counts = sparse.csr_matrix(counts, dtype=np.float32)
    total = np.maximum(np.asarray(counts.sum(1)).ravel(), 1)
    scaled = counts.data * np.repeat((TARGET / total).astype(np.float32), np.diff(counts.indptr))
    return sparse.csr_matrix((np.log1p(scaled), counts.indices, counts.indptr), counts.shape)


def _sections(places: np.ndarray) -> Iterator[sparse.csr_matrix]:
    """Yield what the cells of one section after another express; types lie in bands across the section."""
    generator = np.random.default_rng(1)
    profile = generator.gamma(0.3, 0.8, (N_TYPES, N_GENES))  # mean counts: a fifth of the entries is not zero
    for first in range(0, len(places), SECTION):
        some = places[first : first + SECTION]
        band = (some[:, 0] + 0.1 * np.sin(6 * some[:, 1])) * N_TYPES + generator.normal(0, 1.5, len(some))
        size = generator.lognormal(0, 0.3, (len(some), 1))
        counts = generator.poisson(size * profile[band.astype(int) % N_TYPES]).astype(np.float32)
        yield log_normalised(sparse.csr_matrix(counts))


def _names(n_cells: int) -> list[str]:
    return [f"cell{i}" for i in range(n_cells)]


def _finished(path: Path, write) -> None:
    """Write a file under another name first, so that one that exists is whole."""
    if not path.exists():
        unfinished = path.with_suffix(".part")
        unfinished.unlink(missing_ok=True)
        write(unfinished)
        unfinished.rename(path)
