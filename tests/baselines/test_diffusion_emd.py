"""DiffusionEMD: the operator by its definition, Diracs that move, and the authors' program where it is installed."""

import importlib.util
import sys
import types

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.exceptions import NotFittedError

import scwormhole as wh
from scwormhole.baselines import DiffusionEMD
from scwormhole.baselines._diffusion_emd import path_diffusion


def blobs(n=20, dim=2, seed=0):
    """Clouds of two lumps of different sizes and places."""
    rng = np.random.default_rng(seed)
    points, weights = [], []
    for _ in range(n):
        centres = rng.uniform(-1, 1, size=(2, dim))
        size = rng.integers(20, 60)
        points.append(np.clip(centres[rng.integers(2, size=size)] + 0.15 * rng.normal(size=(size, dim)), -1, 1))
        weights.append(rng.uniform(0.5, 1, size))
    return wh.PointClouds.from_list(points, weights)


def diracs(places):
    return wh.PointClouds.from_list([np.atleast_2d(np.asarray(place, float)) for place in places])


def neighbours(grid):
    """The graph by its definition."""
    return sparse.csr_matrix((cdist(grid.centres_, grid.centres_) <= np.sqrt(grid.dim_) * grid.spacing_ * 1.001) * 1.0)


def graph_diffusion(kernel):
    degree = np.asarray(kernel.sum(1)).ravel()
    kernel = sparse.diags(1 / degree) @ kernel @ sparse.diags(1 / degree)
    return sparse.diags(1 / np.asarray(kernel.sum(1)).ravel()) @ kernel


@pytest.mark.parametrize(("dim", "side"), [(2, 7), (3, 5)])
def test_vectors_are_those_of_the_diffusion_on_the_graph(dim, side):
    clouds = blobs(6, dim)
    model = DiffusionEMD(side=side, max_scale=4, n_scales=3, alpha=0.4).fit(clouds)
    operator = graph_diffusion(neighbours(model.grid_))
    at = {0: model.grid_.transform(clouds).astype(float)}
    for step in range(16):
        at[step + 1] = at[step] @ operator
    expected = np.concatenate([0.5**0.4 * (at[8] - at[4]), at[16] - at[8], at[16]], axis=1)
    np.testing.assert_allclose(model.transform(clouds), model.grid_.spacing_ * expected, atol=1e-6)


def test_diffusion_keeps_mass_and_forgets_where_it_was():
    operator = path_diffusion(9)
    np.testing.assert_allclose(operator.sum(1), 1)
    resting = np.array([5 / 12, 7 / 18, *[1 / 3] * 5, 7 / 18, 5 / 12])  # sums of 1 / (degree * degree) over neighbours
    end = np.linalg.matrix_power(operator, 1 << 12)
    np.testing.assert_allclose(end, np.tile(resting / resting.sum(), (9, 1)))


def test_the_same_cloud_has_the_same_vector():
    clouds = blobs(3)
    points, weights = clouds[1]
    order = np.random.default_rng(0).permutation(np.repeat(np.arange(len(points)), 2))
    copy = wh.PointClouds.from_list([points[order]], [weights[order] / 2])
    model = DiffusionEMD(side=12).fit(clouds)
    np.testing.assert_allclose(model.transform(copy)[0], model.transform(clouds)[1], atol=1e-7)
    np.testing.assert_allclose(model.distances(copy, clouds[[1]]), 0, atol=1e-12)


@pytest.mark.parametrize("dim", [2, 3])
def test_diracs_are_farther_the_more_they_move(dim):
    places = np.zeros((12, dim))
    places[:, 0] = np.arange(12)
    table = DiffusionEMD(side=12).fit(diracs(places)).pairwise(diracs(places))
    assert (np.diff(table[0]) > 0).all()
    assert (np.diff(table[:, -1]) < 0).all()


def test_shifts_count_by_their_length():
    places = np.stack([np.arange(12), np.zeros(12)], axis=1)
    inner = DiffusionEMD(side=48, box=(0, 47)).fit(diracs(places)).pairwise(diracs(places + 16))[0]
    assert np.corrcoef(np.sqrt(inner), np.arange(12))[0, 1] > 0.98


def test_distances_are_squared_l1_distances():
    clouds, others = blobs(8), blobs(5, seed=1)
    model = DiffusionEMD(side=10).fit(clouds)
    x, y = model.transform(clouds), model.transform(others)
    assert x.dtype == np.float32
    assert x.shape == (8, 11 * 100)
    np.testing.assert_allclose(model.pairwise(clouds, others), cdist(x, y, "cityblock") ** 2)
    np.testing.assert_allclose(model.distances(clouds[:5], others), np.diag(model.pairwise(clouds[:5], others)))
    table = model.pairwise(clouds)
    np.testing.assert_allclose(table, table.T)
    assert (np.diag(table) == 0).all()


def test_follows_transport():
    clouds = blobs(24)
    pairs = np.triu_indices(24, 1)
    found = DiffusionEMD(side=16).fit(clouds).pairwise(clouds)[pairs]
    exact = wh.ot.pairwise(clouds, solver="exact", progress=False)[pairs]
    assert np.corrcoef(found, exact)[0, 1] > 0.9


def test_units_are_the_users():
    clouds = blobs(6)
    larger = wh.PointClouds.from_list([8 * c.points + 4 for c in clouds], [c.weights for c in clouds])
    found = DiffusionEMD(side=10).fit(clouds).pairwise(clouds)
    np.testing.assert_allclose(DiffusionEMD(side=10).fit(larger).pairwise(larger), 64 * found, rtol=1e-4)


def test_bad_input_is_refused():
    clouds = blobs(3)
    with pytest.raises(ValueError, match="grids are for 2 and 3"):
        DiffusionEMD().fit(blobs(3, dim=5))
    with pytest.raises(ValueError, match="at least two"):
        DiffusionEMD().fit(clouds[:1])
    with pytest.raises(NotFittedError, match="call"):
        DiffusionEMD().transform(clouds)
    with pytest.raises(ValueError, match="n_scales is 5; give a whole number from 1 to 4"):
        DiffusionEMD(max_scale=3, n_scales=5).fit(clouds)
    with pytest.raises(ValueError, match="max_scale is -1"):
        DiffusionEMD(max_scale=-1).fit(clouds)
    with pytest.raises(ValueError, match="alpha is -1"):
        DiffusionEMD(alpha=-1).fit(clouds)
    with pytest.raises(ValueError, match="3 dimensions, and this DiffusionEMD was fitted in 2"):
        DiffusionEMD(side=8).fit(clouds).transform(blobs(3, dim=3))


@pytest.fixture
def authors():
    """The module of PyPI's diffusionemd that holds the method; others of it import what scikit-learn has no more."""
    found = importlib.util.find_spec("DiffusionEMD")
    if found is None or importlib.util.find_spec("pygsp") is None:
        pytest.skip("diffusionemd is not installed")
    package = types.ModuleType("DiffusionEMD")
    package.__path__ = list(found.submodule_search_locations)
    sys.modules["DiffusionEMD"] = package
    yield importlib.import_module("DiffusionEMD.diffusion_emd")
    for name in [name for name in sys.modules if name.partition(".")[0] == "DiffusionEMD"]:
        del sys.modules[name]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("dim", "side"), [(2, 20), (3, 8)])
def test_is_what_the_authors_compute_exactly(authors, dim, side):
    clouds = blobs(10, dim)
    model = DiffusionEMD(side=side, n_scales=6).fit(clouds)
    masses = model.grid_.transform(clouds).astype(float)
    graph = neighbours(model.grid_) - sparse.eye(masses.shape[1])  # it adds the voxels themselves
    theirs = authors.DiffusionExact(use_diff_wavelets=True).fit_transform(graph, masses.T)
    theirs = theirs[:, masses.shape[1] :]  # it takes the histogram itself for another scale
    theirs *= np.repeat([-(2**0.5)] * 5 + [1], masses.shape[1])  # and weighs all changes by one scale less
    np.testing.assert_allclose(theirs, model.transform(clouds) / model.grid_.spacing_, atol=1e-7)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("dim", "side"), [(2, 28), (3, 12)])
def test_agrees_with_the_authors_defaults(authors, dim, side):
    clouds = blobs(20, dim)
    # away from the faces of the box, at which their defaults and the definition differ
    model = DiffusionEMD(side=side, box=(-2, 2), n_scales=6, max_scale=10 if dim == 2 else 6).fit(clouds)
    masses = model.grid_.transform(clouds).astype(float)
    graph = sparse.csr_matrix(neighbours(model.grid_) - sparse.eye(masses.shape[1]))
    theirs = authors.DiffusionCheb(max_scale=10 if dim == 2 else 6).fit_transform(graph, masses.T)
    pairs = np.triu_indices(20, 1)
    apart = cdist(theirs, theirs, "cityblock")[pairs]
    agreement = np.corrcoef(apart, np.sqrt(model.pairwise(clouds)[pairs]))[0, 1]
    assert agreement > 0.95
