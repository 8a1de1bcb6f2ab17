"""All points of a cohort, read once wherever they live."""

import dask.array
import h5py
import numpy as np
import pytest
import zarr
from scipy import sparse

import scwormhole as wh
from scwormhole.clouds import _rows
from scwormhole.clouds._scan import digest, point_range, used_points

POINTS = np.random.default_rng(0).normal(size=(50, 3)).round(1)


def stored(kind, folder):
    if kind == "h5py":
        return h5py.File(folder / "points.h5", "w").create_dataset("points", data=POINTS)
    if kind == "zarr":
        array = zarr.open(str(folder / "points.zarr"), mode="w", shape=POINTS.shape, dtype=POINTS.dtype)
        array[:] = POINTS
        return array
    make = {"dense": np.asarray, "csr": sparse.csr_matrix, "csr_array": sparse.csr_array}
    return dask.array.from_array(POINTS, chunks=(7, 3)) if kind == "dask" else make[kind](POINTS)


@pytest.mark.parametrize("chunk", [1, 100, 1 << 25])
@pytest.mark.parametrize("kind", ["dense", "csr", "csr_array", "h5py", "zarr", "dask"])
def test_the_range_is_that_of_points_that_weigh_something(kind, chunk, tmp_path, monkeypatch):
    monkeypatch.setattr(_rows, "CHUNK_BYTES", chunk)
    points = stored(kind, tmp_path)
    for indices, weights, used in (
        (np.arange(50), np.ones(50), np.arange(50)),
        (np.array([3, 4, 40, 3, 21, 7]), np.array([1, 1, 0, 2, 1, 1]), [3, 4, 7, 21]),
    ):
        half = len(indices) // 2
        clouds = wh.PointClouds(points, [0, half, len(indices)], indices, weights)
        low, high = point_range(clouds)
        np.testing.assert_array_equal(low, POINTS[used].min(0))
        np.testing.assert_array_equal(high, POINTS[used].max(0))
        np.testing.assert_array_equal(np.flatnonzero(used_points(clouds)), used)
        if not kind.startswith("csr"):
            inside = wh.PointClouds(POINTS, [0, half, len(indices)], indices, weights)
            assert digest(clouds) == digest(inside)
