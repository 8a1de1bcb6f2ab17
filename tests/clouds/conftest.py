"""Points of one cohort in every kind of container."""

import warnings
from contextlib import contextmanager

import anndata
import dask.array
import h5py
import numpy as np
import pytest
import zarr
from anndata.io import sparse_dataset, write_elem
from scipy import sparse

CONTAINERS = [
    "array",
    "fortran",
    "big_endian",
    "csr_array",
    "csr_matrix",
    "csc_array",
    "coo_array",
    "memmap",
    "h5py",
    "zarr",
    "anndata_dense",
    "anndata_sparse",
    "zarr_sparse",
    "dask",
    "dask_sparse",
]


@pytest.fixture
def dense():
    """40 points in 3 dimensions, half of the coordinates zero."""
    rng = np.random.default_rng(0)
    return (rng.normal(size=(40, 3)) * (rng.random((40, 3)) < 0.5)).astype(np.float32)


@pytest.fixture
def graph():
    """12 clouds of 1 to 7 points over 40 points, with weights."""
    rng = np.random.default_rng(1)
    sizes = rng.integers(1, 8, size=12)
    columns = [np.sort(rng.choice(40, size=size, replace=False)) for size in sizes]
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    return sparse.csr_array((rng.random(sizes.sum()) + 0.1, np.concatenate(columns), indptr), shape=(12, 40))


@pytest.fixture(params=CONTAINERS)
def put(request, tmp_path):
    """How to put points into one kind of container."""
    return contextmanager(lambda dense: store(request.param, dense, tmp_path))


@pytest.fixture
def stored(put, dense):
    """The same points in one kind of container."""
    with put(dense) as points:
        yield points


def store(kind, dense, tmp_path):
    """Yield points in a container, and close its file afterwards."""
    if kind == "array":
        yield dense
    elif kind == "fortran":
        yield np.asfortranarray(dense)
    elif kind == "big_endian":
        yield dense.astype(">f4")
    elif kind in ("csr_array", "csr_matrix", "csc_array", "coo_array"):
        yield getattr(sparse, kind)(dense)
    elif kind == "memmap":
        np.save(tmp_path / "points.npy", dense)
        yield np.load(tmp_path / "points.npy", mmap_mode="r")
    elif kind == "h5py":
        with h5py.File(tmp_path / "points.h5", "w") as file:
            yield file.create_dataset("points", data=dense, chunks=(7, 2))
    elif kind == "zarr":
        points = zarr.open(str(tmp_path / "points.zarr"), mode="w", shape=dense.shape, dtype=dense.dtype, chunks=(7, 2))
        points[:] = dense
        yield points
    elif kind in ("anndata_dense", "anndata_sparse"):
        X = dense if kind == "anndata_dense" else sparse.csr_matrix(dense)
        anndata.AnnData(X).write_h5ad(tmp_path / "points.h5ad")
        adata = anndata.read_h5ad(tmp_path / "points.h5ad", backed="r")
        yield adata.X
        adata.file.close()
    elif kind == "zarr_sparse":
        group = zarr.open_group(str(tmp_path / "sparse.zarr"), mode="w")
        with warnings.catch_warnings(action="ignore"):  # about how later versions will write
            write_elem(group, "X", sparse.csr_matrix(dense))
        yield sparse_dataset(group["X"])
    elif kind == "dask":
        yield dask.array.from_array(dense, chunks=(7, 2))
    elif kind == "dask_sparse":
        yield dask.array.from_array(dense, chunks=(7, 3)).map_blocks(sparse.csr_matrix)
