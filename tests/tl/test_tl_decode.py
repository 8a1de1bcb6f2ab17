"""Decoded clouds and distances: the model's own, named and labelled."""

import warnings

import anndata
import numpy as np
import pytest

import scwormhole as wh
from scwormhole._adata import read_cohort

GENES = ["Gad1", "Pvalb", "Sst"]


def test_rows_are_decoded_as_the_model_does(embedded):
    decoded = wh.tl.decode(embedded, ["cell3", "cell50"])
    model = wh.tl.model(embedded)
    expected = model.inverse_transform(embedded.obsm["X_wormhole"][[3, 50]])
    np.testing.assert_allclose(decoded.X, expected.points, rtol=1e-5)
    assert decoded.var_names.tolist() == GENES
    assert decoded.obs["cloud"].cat.categories.tolist() == ["cell3", "cell50"]
    assert (decoded.obs["cloud"].value_counts() == model.n_points_).all()
    assert decoded.obs.groupby("cloud", observed=True)["weight"].sum().tolist() == pytest.approx([1, 1])
    assert decoded.obs_names.is_unique
    assert decoded.uns["decoded"]["source"]["clouds"] == "niches"
    for which in ([3, 50], np.isin(np.arange(60), [3, 50])):
        assert np.array_equal(wh.tl.decode(embedded, which).X, decoded.X)
    assert np.array_equal(wh.tl.decode(embedded, embedded.obsm["X_wormhole"][[3, 50]]).X, decoded.X)
    assert wh.tl.decode(embedded, "cell3").n_obs == model.n_points_


def test_a_barycenter_is_what_the_mean_vector_stands_for(embedded):
    made = wh.tl.barycenters(embedded, "side")
    model, z = wh.tl.model(embedded), embedded.obsm["X_wormhole"]
    for side in ("left", "right"):
        here = (embedded.obs["side"] == side).to_numpy()
        expected = model.barycenter(z[here]).points
        np.testing.assert_allclose(made[made.obs["cloud"] == side].X, expected, atol=1e-4)
    assert made.uns["decoded"]["n_clouds"].tolist() == embedded.obs["side"].value_counts()[["left", "right"]].tolist()
    assert made.uns["cloud_colors"].tolist() == ["#ff0000", "#0000ff"]
    one = wh.tl.barycenters(embedded, "side", groups=["right"])
    np.testing.assert_allclose(one.X, made[made.obs["cloud"] == "right"].X, atol=1e-4)
    assert one.uns["cloud_colors"].tolist() == ["#0000ff"]


def test_rows_without_a_group_are_left_out(tissue):
    before = wh.tl.barycenters(tissue, "side", groups=["left"])
    tissue.obs.loc[tissue.obs["side"] == "right", "side"] = None
    after = wh.tl.barycenters(tissue, "side")
    assert after.obs["cloud"].cat.categories.tolist() == ["left"]
    np.testing.assert_allclose(after.X, before.X, atol=1e-4)


def test_a_way_goes_from_one_end_to_the_other(embedded):
    made = wh.tl.interpolate(embedded, "cell3", "cell50", n=5)
    expected = wh.tl.model(embedded).interpolate(*embedded.obsm["X_wormhole"][[3, 50]], n=5)
    np.testing.assert_allclose(made.X, expected.points, atol=1e-4)
    assert made.obs["cloud"].cat.categories.tolist() == ["0", "1", "2", "3", "4"]
    assert made.obs.groupby("cloud", observed=True)["share"].first().tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert made.uns["decoded"]["start"] == "cell3"
    ends = wh.tl.decode(embedded, ["cell3", "cell50"]).X
    step = len(ends) // 2
    np.testing.assert_allclose(np.concatenate([made.X[:step], made.X[-step:]]), ends, atol=1e-4)


def test_a_way_between_groups_and_vectors(embedded):
    middles = wh.tl.barycenters(embedded, "side")
    made = wh.tl.interpolate(embedded, "left", "right", groupby="side", n=2)
    np.testing.assert_allclose(made.X, middles.X, atol=1e-4)
    again = wh.tl.interpolate(embedded, *middles.uns["decoded"]["vectors"], n=2)
    np.testing.assert_allclose(again.X, middles.X, atol=1e-4)


def test_distances_are_the_models(embedded):
    clouds, model = read_cohort(embedded).clouds, wh.tl.model(embedded)
    rows = [3, 50, 12, 4]
    table = wh.tl.distances(embedded, [f"cell{row}" for row in rows])
    assert table.index.tolist() == table.columns.tolist() == ["cell3", "cell50", "cell12", "cell4"]
    for i, one in enumerate(rows):
        expected = [model.distances(clouds[[one]], clouds[[other]])[0] for other in rows]
        np.testing.assert_allclose(table.iloc[i], expected, rtol=1e-3, atol=1e-4)
    assert (np.diag(table) == 0).all()


def test_distances_between_groups_are_those_of_their_middles(embedded):
    table = wh.tl.distances(embedded, groupby="side")
    left, right = wh.tl.barycenters(embedded, "side").uns["decoded"]["vectors"]
    assert table.loc["left", "right"] == pytest.approx(((left - right) ** 2).sum(), rel=1e-4)
    assert table.shape == (2, 2)


def test_distances_between_patients_have_all_of_their_nuggets(patients):
    patients.obs["wormhole_nugget"] = np.arange(12.0)
    table = wh.tl.distances(patients, np.arange(12))
    z = patients.obsm["X_wormhole"].astype(float)
    expected = ((z[:, None] - z) ** 2).sum(-1) + np.arange(12)[:, None] + np.arange(12)
    np.fill_diagonal(expected, 0)
    np.testing.assert_allclose(table, expected, atol=1e-4)


def test_distances_after_a_subset_warn_that_shared_cells_are_unknown(tissue):
    some = tissue[::2].copy()
    some.obs["wormhole_nugget"] = 1.0
    with pytest.warns(UserWarning, match="'niches' are no longer whole"):
        table = wh.tl.distances(some, [0, 1])
    assert table.iloc[0, 1] == pytest.approx(((some.obsm["X_wormhole"][0] - some.obsm["X_wormhole"][1]) ** 2).sum() + 2)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda a: wh.tl.decode(a, ["cell99"]), KeyError, "'cell99'"),
        (lambda a: wh.tl.decode(a, [99]), IndexError, "position 99"),
        (lambda a: wh.tl.decode(a, [3, 3]), ValueError, r"'.*3' is asked for more than once; give each name once"),
        (lambda a: wh.tl.decode(a, np.zeros((2, 5))), ValueError, "8 numbers"),
        (lambda a: wh.tl.barycenters(a, "sides"), KeyError, "no 'sides'; there are 'side'"),
        (lambda a: wh.tl.barycenters(a, "side", groups=["top"]), KeyError, "no group 'top'; there are 'left', 'right'"),
        (lambda a: wh.tl.barycenters(a, "side", groups=[]), ValueError, "groups is empty; .* 'left', 'right'"),
        (lambda a: wh.tl.interpolate(a, "cell0", "cell1", n=1), ValueError, "n is 1"),
        (lambda a: wh.tl.interpolate(a, np.ones(3), "cell1"), ValueError, "start has 3 numbers and end 8"),
        (lambda a: wh.tl.interpolate(a, "left", "top", groupby="side"), KeyError, "no group 'top'"),
        (lambda a: wh.tl.distances(a), ValueError, "give either which"),
        (lambda a: wh.tl.distances(a, [1], groupby="side"), ValueError, "give either which"),
        (lambda a: wh.tl.decode(a, [1], key="other"), KeyError, "no embedding 'other'; there are 'wormhole'"),
    ],
)
def test_what_is_wrong_is_said(call, error, match, embedded):
    with pytest.raises(error, match=match):
        call(embedded)


def test_without_a_decoder_the_error_says_so(patients):
    with pytest.raises(ValueError, match="no decoder, as coeff_dec is 0"):
        wh.tl.decode(patients, [0])


@pytest.mark.parametrize("kind", ["h5ad", "zarr"])
def test_decoded_clouds_survive_files(embedded, kind, tmp_path):
    made = {
        "decoded": wh.tl.decode(embedded, [1, 2]),
        "barycenters": wh.tl.barycenters(embedded, "side"),
        "way": wh.tl.interpolate(embedded, "left", "right", groupby="side", n=3),
    }
    for name, adata in made.items():
        with warnings.catch_warnings(action="ignore"):  # about how later versions will write
            getattr(adata, f"write_{kind}")(tmp_path / f"{name}.{kind}")
            back = getattr(anndata, f"read_{kind}")(tmp_path / f"{name}.{kind}")
        assert np.array_equal(back.X, adata.X)
        assert back.obs["cloud"].tolist() == adata.obs["cloud"].tolist()
        assert back.uns["decoded"]["by"] == adata.uns["decoded"]["by"]


def test_groups_are_found_by_their_value_and_one_needs_no_list(tissue):
    tissue.obs["domain"] = np.repeat([np.nan, 1.0, 2.0], 20)  # whole numbers, which NaN makes floats
    made = wh.tl.barycenters(tissue, "domain", groups=[2, 1])
    assert made.obs["cloud"].cat.categories.tolist() == ["2.0", "1.0"]
    assert wh.tl.interpolate(tissue, 1, 2, groupby="domain", n=2).uns["decoded"]["start"] == "1"
    assert wh.tl.barycenters(tissue, "side", groups="left").obs["cloud"].cat.categories.tolist() == ["left"]


def test_distances_without_the_graph_warn_that_shared_cells_are_unknown(tissue):
    del tissue.obsp["niches"]
    with pytest.warns(UserWarning, match="no longer whole"):
        assert wh.tl.distances(tissue, [0, 1]).shape == (2, 2)


def test_distances_after_niches_are_made_anew_warn_that_shared_cells_are_unknown(tissue):
    wh.pp.niches(tissue, n_neighbors=5)  # the same again
    wh.tl.distances(tissue, [0, 1])
    wh.pp.niches(tissue, n_neighbors=30)
    with pytest.warns(UserWarning, match="no longer those that were embedded"):
        wh.tl.distances(tissue, [0, 1])
