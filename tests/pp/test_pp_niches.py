"""Niches: squidpy's neighbours, libraries apart, weights as said, and a word where the input looks wrong."""

import logging
import warnings

import anndata
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

import scwormhole as wh
from scwormhole._adata import read_cohort


def tissue(n=300, *, rng=0, dim=2, **obs):
    """Cells on a grid with some disorder, in a box of side 100, in no order."""
    generator = np.random.default_rng(rng)
    side = int(np.ceil(n ** (1 / dim)))
    grid = generator.permutation(np.stack(np.meshgrid(*[np.arange(side)] * dim), -1).reshape(-1, dim))[:n]
    return anndata.AnnData(
        generator.gamma(2.0, size=(n, 4)).astype(np.float32),
        obs=pd.DataFrame(obs, index=[f"cell{i}" for i in range(n)]),
        obsm={"spatial": (grid + generator.uniform(-0.4, 0.4, grid.shape)) * 100 / side},
    )


def neighbours(graph):
    return [set(graph[i].indices.tolist()) for i in range(graph.shape[0])]


@pytest.fixture
def slides():
    """Two slides in the same place, cell by cell in turn."""
    adata = tissue(200)
    adata.obsm["spatial"][1::2] = adata.obsm["spatial"][::2] + 0.1
    adata.obs["slide"] = ["a", "b"] * 100
    return adata


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_a_radius_takes_all_cells_within_it(dim):
    adata = tissue(120, dim=dim)
    wh.pp.niches(adata, radius=30)
    near = cdist(adata.obsm["spatial"], adata.obsm["spatial"]) <= 30
    assert np.array_equal(adata.obsp["niches"].toarray(), near)
    assert adata.obsp["niches"].dtype == np.float32
    assert adata.obsp["niches"].format == "csr"
    assert np.array_equal(adata.obs["niches_size"], near.sum(1))


def test_a_cell_on_the_radius_is_inside():
    adata = tissue(5)
    adata.obsm["spatial"] = np.array([[0, 0], [3, 4], [5, 0], [0, 5.001], [0, 1]], float)
    wh.pp.niches(adata, radius=5)
    assert neighbours(adata.obsp["niches"])[0] == {0, 1, 2, 4}


@pytest.mark.parametrize("library_key", [None, "library"])
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({"radius": 12.0}, ("spatial_neighbors_radius", {"radius": 12.0}, {"coord_type": "generic", "radius": 12.0})),
        ({"n_neighbors": 7}, ("spatial_neighbors_knn", {"n_neighs": 7}, {"coord_type": "generic", "n_neighs": 7})),
        ({"delaunay": True}, ("spatial_neighbors_delaunay", {}, {"coord_type": "generic", "delaunay": True})),
    ],
)
def test_neighbours_are_squidpys(ours, theirs, library_key):
    with warnings.catch_warnings(action="ignore"):
        import squidpy as sq
    adata = tissue(400, library=pd.Categorical(np.random.default_rng(1).choice(list("xyz"), 400)))
    name, options, older = theirs
    shared = {"library_key": library_key, "set_diag": True}
    with warnings.catch_warnings(action="ignore"):
        if hasattr(sq.gr, name):
            getattr(sq.gr, name)(adata, **options, **shared)
        else:
            sq.gr.spatial_neighbors(adata, **older, **shared)
        wh.pp.niches(adata, library_key=library_key, **ours)
    assert (adata.obsp["niches"] != adata.obsp["spatial_connectivities"]).nnz == 0
    assert adata.obsp["niches"].has_sorted_indices


def test_a_graph_that_exists_gives_the_same_niches():
    adata = tissue()
    wh.pp.niches(adata, radius=12, key_added="first")
    wh.pp.niches(adata, connectivities_key="first")
    assert (adata.obsp["niches"] != adata.obsp["first"]).nnz == 0
    assert "spatial_key" not in adata.uns["niches"]["params"]


def test_stored_weights_are_kept_and_a_cell_weighs_as_its_strongest_neighbour():
    adata = tissue(3)
    adata.obsp["mine"] = sparse.csr_matrix(np.array([[0, 2, 0.5], [2, 0, 0], [0.5, 0, 9]], np.float32))
    wh.pp.niches(adata, connectivities_key="mine", weights="stored")
    assert np.array_equal(adata.obsp["niches"].toarray(), [[2, 2, 0.5], [2, 2, 0], [0.5, 0, 0.5]])
    wh.pp.niches(adata, connectivities_key="mine")
    assert np.array_equal(adata.obsp["niches"].toarray(), [[1, 1, 1], [1, 1, 0], [1, 0, 1]])


def test_gaussian_weights_fall_with_distance():
    adata = tissue(150)
    apart = cdist(adata.obsm["spatial"], adata.obsm["spatial"])
    wh.pp.niches(adata, radius=20, weights="gaussian")
    expected = np.where(apart <= 20, np.exp(-((apart / 10) ** 2) / 2), 0)
    np.testing.assert_allclose(adata.obsp["niches"].toarray(), expected, rtol=1e-5)
    assert adata.uns["niches"]["params"]["sigma"] == 10
    wh.pp.niches(adata, n_neighbors=5, weights="gaussian", sigma=4)
    pattern = adata.obsp["niches"].toarray() > 0
    np.testing.assert_allclose(adata.obsp["niches"].toarray()[pattern], np.exp(-((apart / 4) ** 2) / 2)[pattern], 1e-5)
    assert (pattern.sum(1) == 6).all()


def test_a_gaussian_without_a_radius_is_as_wide_as_neighbours_are_far():
    adata = tissue(150)
    wh.pp.niches(adata, n_neighbors=5, weights="gaussian")
    apart = np.sort(cdist(adata.obsm["spatial"], adata.obsm["spatial"]), 1)[:, 1:6]
    assert adata.uns["niches"]["params"]["sigma"] == pytest.approx(np.median(apart))


def test_libraries_stay_apart(slides):
    wh.pp.niches(slides, radius=25, library_key="slide")
    codes = slides.obs["slide"].astype("category").cat.codes.to_numpy()
    rows, columns = slides.obsp["niches"].nonzero()
    assert (codes[rows] == codes[columns]).all()
    one = slides[slides.obs["slide"] == "a"].copy()
    wh.pp.niches(one, radius=25, key_added="alone")
    assert (one.obsp["alone"] != one.obsp["niches"]).nnz == 0


def test_several_radii_are_several_cohorts():
    adata = tissue()
    wh.pp.niches(adata, radius=[8, 16.5])
    assert {"niches_8", "niches_16.5"} <= {*adata.obsp}
    assert adata.uns["niches_8"]["params"]["radius"] == 8
    assert (adata.obs["niches_8_size"] <= adata.obs["niches_16.5_size"]).all()
    wh.pp.niches(adata, radius=8, key_added="once")
    assert (adata.obsp["once"] != adata.obsp["niches_8"]).nnz == 0


def test_a_cell_without_neighbours_keeps_itself():
    adata = tissue(50)
    adata.obsm["spatial"][7] = 1e6
    for include_self in (True, False):
        with pytest.warns(UserWarning, match="1 cell of 50 have no neighbour"):
            wh.pp.niches(adata, radius=30, include_self=include_self)
        assert neighbours(adata.obsp["niches"])[7] == {7}
        assert (3 in neighbours(adata.obsp["niches"])[3]) is include_self
    assert adata.uns["niches"]["params"]["n_alone"] == 1
    assert (read_cohort(adata).clouds.sizes > 0).all()


def test_cells_in_one_place_are_neighbours_and_not_themselves_twice():
    adata = tissue(8)
    adata.obsm["spatial"] = np.repeat([[0.0, 0.0], [9.0, 9.0]], 4, 0)
    with pytest.warns(UserWarning, match="in the place of another"):
        wh.pp.niches(adata, n_neighbors=3)
    assert neighbours(adata.obsp["niches"]) == [{0, 1, 2, 3}] * 4 + [{4, 5, 6, 7}] * 4
    with pytest.warns(UserWarning, match="in the place of another"):
        wh.pp.niches(adata, n_neighbors=2, include_self=False)
    assert all(len(found) == 2 and i not in found for i, found in enumerate(neighbours(adata.obsp["niches"])))


def test_a_small_library_has_all_its_cells_as_neighbours():
    adata = tissue(12, slide=["a"] * 9 + ["b"] * 3)
    wh.pp.niches(adata, n_neighbors=5, library_key="slide")
    assert neighbours(adata.obsp["niches"])[10] == {9, 10, 11}


@pytest.mark.parametrize(("radius", "word"), [(1.5, "few"), (90, "many")])
def test_an_unlikely_radius_is_warned_of(radius, word, caplog):
    adata = tissue(1200)
    with warnings.catch_warnings(record=True) as caught, caplog.at_level(logging.INFO):
        warnings.simplefilter("always")
        wh.pp.niches(adata, radius=radius)
    assert any(f"which is {word}" in str(warning.message) for warning in caught)
    assert "niches: 1,200 niches of" in caplog.text
    assert "adata.obsp['niches']" in caplog.text


def test_libraries_that_overlap_are_warned_of(slides):
    with pytest.warns(UserWarning, match=r"adata.obs\['slide'\].*library_key"):
        wh.pp.niches(slides, radius=15)


def test_a_graph_that_joins_what_looks_like_libraries_is_warned_of(slides):
    slides.obsp["mine"] = sparse.csr_matrix(np.ones((200, 200)))
    with pytest.warns(UserWarning, match=r"50% of neighbours differ in adata.obs\['slide'\]"):
        wh.pp.niches(slides, connectivities_key="mine")


def test_pictures_of_several_libraries_are_warned_of():
    adata = tissue()
    adata.uns["spatial"] = {"one": {}, "two": {}}
    with pytest.warns(UserWarning, match="has 2 libraries"):
        wh.pp.niches(adata, radius=15)


def test_coinciding_positions_are_warned_of(slides):
    del slides.obs["slide"]
    slides.obsm["spatial"][1::2] = slides.obsm["spatial"][::2]
    with pytest.warns(UserWarning, match="100 of 200 cells are in the place of another"):
        wh.pp.niches(slides, radius=15)


def test_columns_that_are_no_libraries_cause_no_warning():
    adata = tissue(300, celltype=["a", "b", "c"] * 100, sample_depth=np.linspace(0, 1, 300), sample=["s"] * 300)
    wh.pp.niches(adata, radius=15)


def test_libraries_side_by_side_cause_no_warning():
    adata = tissue(200, sample=["a"] * 100 + ["b"] * 100)
    adata.obsm["spatial"][100:, 0] += 500
    wh.pp.niches(adata, radius=20)


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({}, ValueError, "exactly one of radius, n_neighbors, delaunay, connectivities_key; none"),
        ({"radius": 5, "delaunay": True}, ValueError, "radius and delaunay was given"),
        ({"radius": -1}, ValueError, "radius is -1"),
        ({"radius": []}, ValueError, "positive number, or several"),
        ({"radius": [5, np.nan]}, ValueError, "positive number, or several"),
        ({"radius": [5, 5.0]}, ValueError, "repeats"),
        ({"n_neighbors": 0}, ValueError, "n_neighbors is 0"),
        ({"n_neighbors": 2.5}, ValueError, "n_neighbors is 2.5"),
        ({"radius": 5, "spatial_key": "spatal"}, KeyError, "no 'spatal'; there are 'spatial'"),
        ({"radius": 5, "library_key": "libary"}, KeyError, "adata.obs has no 'libary'; there are 'library'"),
        ({"connectivities_key": "graph"}, KeyError, "adata.obsp has no 'graph'; it is empty"),
        ({"radius": 5, "weights": "normal"}, ValueError, "weights is 'normal'"),
        ({"radius": 5, "weights": "stored"}, ValueError, "connectivities_key"),
        ({"radius": 5, "sigma": 3}, ValueError, "sigma is for weights='gaussian'"),
        ({"radius": 5, "sigma": 0, "weights": "gaussian"}, ValueError, "sigma is 0"),
        ({"radius": 5, "table_key": "table"}, ValueError, "for a SpatialData only"),
    ],
)
def test_what_is_wrong_is_said(options, error, match):
    adata = tissue(30, library=["a"] * 30)
    with pytest.raises(error, match=match):
        wh.pp.niches(adata, **options)
    assert not adata.obsp
    assert not adata.uns


def test_positions_must_be_positions():
    adata = tissue(30)
    adata.obsm["spatial"][3, 0] = np.nan
    with pytest.raises(ValueError, match=r"no finite position for 1 cell: .*3\. Leave these"):
        wh.pp.niches(adata, radius=5)
    adata.obsm["spatial"] = np.zeros((30, 5))
    with pytest.raises(ValueError, match=r"shape \(30, 5\)"):
        wh.pp.niches(adata, radius=5)


def test_cells_without_a_library_are_an_error(slides):
    slides.obs.loc["cell3", "slide"] = None
    with pytest.raises(ValueError, match="no value for 1 cell: cell3"):
        wh.pp.niches(slides, radius=5, library_key="slide")


def test_a_graph_across_libraries_is_an_error(slides):
    slides.obsp["mine"] = sparse.csr_matrix(np.ones((200, 200)))
    with pytest.raises(ValueError, match="20,000 of 39,800 edges join cells of different libraries"):
        wh.pp.niches(slides, connectivities_key="mine", library_key="slide")


def test_a_line_has_no_triangulation():
    adata = tissue(30)
    adata.obsm["spatial"][:, 1] = 0
    with pytest.raises(ValueError, match="30 positions of a library have no Delaunay triangulation"):
        wh.pp.niches(adata, delaunay=True)


def test_a_copy_leaves_the_original_alone():
    adata = tissue()
    made = wh.pp.niches(adata, radius=15, copy=True)
    assert "niches" in made.obsp
    assert not adata.obsp
    assert not adata.uns
    assert adata.obs.columns.empty


def test_a_view_becomes_actual_with_anndatas_own_warning():
    adata = tissue()
    view = adata[:100]
    with pytest.warns(anndata.ImplicitModificationWarning):
        wh.pp.niches(view, radius=15)
    assert not view.is_view
    assert view.obsp["niches"].shape == (100, 100)
    assert not adata.obsp


def test_niches_that_lost_cells_are_refused():
    adata = tissue(200, slide=["a"] * 100 + ["b"] * 100)
    wh.pp.niches(adata, radius=15, library_key="slide")
    assert len(read_cohort(adata[:100].copy()).clouds) == 100  # a whole library is whole
    with pytest.raises(ValueError, match="adata was subset since"):
        read_cohort(adata[::2].copy())


def test_a_spatialdata_is_taken_by_its_table():
    spatialdata = pytest.importorskip("spatialdata")
    with warnings.catch_warnings(action="ignore"):
        data = spatialdata.SpatialData(tables={"cells": tissue(50), "other": tissue(40)})
    wh.pp.niches(data, radius=25, table_key="cells")
    assert "niches" in data.tables["cells"].obsp
    with pytest.raises(ValueError, match="2 tables, there are 'cells', 'other'; say which with table_key"):
        wh.pp.niches(data, radius=25)
    with pytest.raises(KeyError, match="no table 'cell'; there are 'cells'"):
        wh.pp.niches(data, radius=25, table_key="cell")
    with pytest.raises(TypeError, match="adata is a list"):
        wh.pp.niches([1], radius=25)


@pytest.mark.parametrize("kind", ["h5ad", "zarr"])
def test_niches_survive_a_file(kind, tmp_path, slides):
    wh.pp.niches(slides, radius=[25, 40], library_key="slide", weights="gaussian")
    with warnings.catch_warnings(action="ignore"):  # about how later versions will write
        getattr(slides, f"write_{kind}")(tmp_path / f"slides.{kind}")
        back = getattr(anndata, f"read_{kind}")(tmp_path / f"slides.{kind}")
    assert read_cohort(back, "niches_25").clouds == read_cohort(slides, "niches_25").clouds
    assert back.uns["niches_40"]["params"]["radius"] == 40
    assert back.uns["niches_40"]["kind"] == "niches"


def test_what_is_the_users_is_not_overwritten():
    adata = tissue(50)
    adata.uns["spatial"], adata.obsp["graph"] = {"slide": {"images": 1}}, sparse.eye_array(50, k=1).tocsr()
    for options in ({"n_neighbors": 3, "key_added": "spatial"}, {"connectivities_key": "graph", "key_added": "graph"}):
        with pytest.raises(ValueError, match="would be overwritten, made by something else; give another key_added"):
            wh.pp.niches(adata, **options)
    assert adata.uns["spatial"] == {"slide": {"images": 1}}
    assert adata.obsp["graph"].nnz == 49
    for n_neighbors in (3, 4):  # its own may be made again
        wh.pp.niches(adata, n_neighbors=n_neighbors)
    assert adata.obs["niches_size"].unique().tolist() == [5]


def test_no_cells_are_an_error():
    with pytest.raises(ValueError, match="adata has no cells"):
        wh.pp.niches(tissue(20)[:0].copy(), radius=5)
