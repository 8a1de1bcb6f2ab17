"""What figures hold: the values that were asked for, on the Axes that were given; data stay as they are."""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes

import scwormhole as wh


def dots(axis):
    """Places and values of all dots on Axes, layer by layer."""
    return [(np.asarray(c.get_offsets()), c.get_array()) for c in axis.collections]


@pytest.mark.parametrize("draw", [wh.pl.umap, wh.pl.diffmap, wh.pl.spatial])
def test_axes_given_are_used_and_nothing_is_shown(draw, tissue, monkeypatch):
    shown = []
    monkeypatch.setattr(plt, "show", lambda: shown.append(True))
    axis = plt.figure().add_subplot()
    assert draw(tissue, color="depth", ax=axis) is axis
    assert shown == []
    assert isinstance(draw(tissue, color="depth", show=True), Axes)
    assert shown == [True]


def test_the_wrong_number_of_axes_is_refused(tissue):
    with pytest.raises(ValueError, match="ax holds 1 Axes, and 2 are needed"):
        wh.pl.umap(tissue, color=["depth", "layer"], ax=plt.figure().add_subplot())


def test_data_stay_as_they_are(tissue):
    before = tissue.copy()
    wh.pl.umap(tissue, color=["layer", "cell_type", "batch", "Cux2", 1, None])
    wh.pl.spatial(tissue, color="layer", library_key="library")
    wh.pl.history(tissue)
    assert {*tissue.uns} == {*before.uns}
    assert tissue.obs.equals(before.obs)
    assert tissue.obs.dtypes.equals(before.obs.dtypes)


def test_cells_are_drawn_in_their_library_with_one_scale(tissue):
    axes = wh.pl.spatial(tissue, color="depth", library_key="library")
    assert [axis.get_title() for axis in axes] == ["one", "two"]
    assert len({(axis.collections[0].norm.vmin, axis.collections[0].norm.vmax) for axis in axes}) == 1
    for axis, rows in zip(axes, (slice(0, 120), slice(120, 240)), strict=True):
        ((places, values),) = dots(axis)
        order, wanted = np.argsort(values), np.argsort(tissue.obs["depth"].to_numpy()[rows])
        np.testing.assert_allclose(places[order], tissue.obsm["spatial"][rows][wanted])


def test_cells_without_a_value_lie_below_in_grey(tissue):
    axis = wh.pl.spatial(tissue, color=1)
    below, above = axis.collections
    assert (len(below.get_offsets()), len(above.get_offsets())) == (180, 60)
    assert below.get_zorder() < above.get_zorder()
    np.testing.assert_allclose(below.get_facecolor()[0, :3], [0.851] * 3, atol=0.01)
    np.testing.assert_allclose(
        np.sort(above.get_array()), np.sort(tissue.obsm["X_wormhole_diffmap"][::4, 0]), atol=1e-12
    )


def test_a_diffusion_map_shows_its_rows_and_components_only(tissue):
    axis = wh.pl.diffmap(tissue, color="layer", components=(2, 3))
    ((places, _),) = dots(axis)
    assert len(places) == 60
    assert axis.get_xlabel() == "diffusion component 2"
    np.testing.assert_allclose(np.sort(places[:, 1]), np.sort(tissue.obsm["X_wormhole_diffmap"][::4, 2]), rtol=1e-6)


def test_the_users_own_colours_are_used(tissue):
    tissue.uns["layer_colors"] = ["#ff0000", "#00ff00", "#0000ff"]
    axis = wh.pl.umap(tissue, color="layer")
    colours = {tuple(colour) for colour in axis.collections[0].get_facecolor()}
    assert colours == {(1, 0, 0, 1), (0, 1, 0, 1), (0, 0, 1, 1)}
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["deep", "middle", "upper"]


def test_missing_levels_are_named_none(tissue):
    tissue.obs["layer"] = tissue.obs["layer"].cat.remove_categories("deep")
    axis = wh.pl.umap(tissue, color="layer")
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["middle", "upper", "none"]
    tissue.obsm["X_wormhole_umap"][tissue.obs["layer"].isna().to_numpy()] = np.nan
    axis = wh.pl.umap(tissue, color="layer")
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["middle", "upper"]


def test_many_levels_have_different_colours(tissue):
    tissue.obs["cluster"] = [f"c{i % 40}" for i in range(tissue.n_obs)]
    axis = wh.pl.umap(tissue, color="cluster")
    assert len(np.unique(axis.collections[0].get_facecolor(), axis=0)) == 40


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (lambda a: wh.pl.umap(a, color="leyer"), "neither a column .*'layer'"),
        (lambda a: wh.pl.umap(a, key="other"), r"no 'X_other_umap'.*wh\.tl\.umap"),
        (lambda a: wh.pl.diffmap(a, key="other"), r"no 'X_other_diffmap'.*wh\.tl\.diffmap"),
        (lambda a: wh.pl.spatial(a, spatial_key="place"), r"no 'place'; there are .*'spatial'"),
        (lambda a: wh.pl.spatial(a, library_key="slide"), "no 'slide'"),
        (lambda a: wh.pl.history(a, key="other"), "no embedding 'other'"),
    ],
)
def test_a_missing_key_is_told_with_those_there_are(draw, said, tissue):
    with pytest.raises(KeyError, match=said):
        draw(tissue)


def test_a_component_that_is_not_there_is_refused(tissue):
    with pytest.raises(ValueError, match="component 4 is asked for; there are 1 to 3"):
        wh.pl.diffmap(tissue, components=(1, 4))
    tissue.obsm["X_wormhole_diffmap"][:] = np.nan
    with pytest.raises(ValueError, match="all are NaN"):
        wh.pl.diffmap(tissue)


def test_fidelity_draws_the_pairs_and_says_their_correlation(solved):
    model, clouds = solved
    axis = wh.pl.fidelity(model, clouds)
    ((places, _),) = dots(axis)
    assert len(places) == 20 * 19 / 2
    true = wh.ot.pairwise(clouds, epsilon=model.epsilon_, relative_epsilon=None, progress=False)
    np.testing.assert_allclose(np.sort(places[:, 0]), np.sort(true[np.triu_indices(20, 1)]), rtol=1e-4, atol=1e-6)
    said = axis.texts[0].get_text()
    assert f"r = {np.corrcoef(places.T)[0, 1]:.3f}" in said
    assert "190 pairs" in said
    line = axis.lines[0].get_xydata()
    np.testing.assert_array_equal(line[:, 0], line[:, 1])


def test_fidelity_needs_clouds_to_compare(solved):
    model, clouds = solved
    with pytest.raises(ValueError, match="clouds is None"):
        wh.pl.fidelity(model)
    with pytest.raises(ValueError, match="at least three"):
        wh.pl.fidelity(model, clouds[:2])


def test_fidelity_of_an_adata_is_that_of_its_held_out_pairs(tissue, solved):
    solved_pairs = np.linspace(1, 2, 6)
    held = {"solved": solved_pairs, "embedded": solved_pairs**2, "clouds": np.arange(4)}
    tissue.uns["wormhole"]["held_out"] = held
    axis = wh.pl.fidelity(tissue)
    ((places, _),) = dots(axis)
    np.testing.assert_array_equal(places, np.stack([solved_pairs, solved_pairs**2], axis=1))
    assert "4 clouds, 6 pairs" in axis.texts[0].get_text()
    with pytest.raises(ValueError, match="beside an AnnData"):
        wh.pl.fidelity(tissue, solved[1])
    del tissue.uns["wormhole"]["held_out"]
    with pytest.raises(ValueError, match="no held-out pairs"):
        wh.pl.fidelity(tissue)


def test_history_has_a_panel_for_each_network_and_marks_the_best(tissue):
    encoder, decoder = wh.pl.history(tissue, x="seconds")
    assert encoder.get_xlabel() == "seconds"
    assert encoder.lines[1].get_xydata().tolist() == [[15.0, 0.98]]
    assert decoder.lines[1].get_xydata().tolist() == [[15.0, 0.1]]
    record = tissue.uns["wormhole"]["history"]
    alone = {name: values[:5] for name, values in record.items()}
    tissue.uns["wormhole"]["history"] = alone
    assert isinstance(wh.pl.history(tissue), Axes)
    with pytest.raises(ValueError, match="step"):
        wh.pl.history(tissue, x="epoch")


def test_clouds_are_drawn_to_one_scale_with_areas_by_weight():
    held = wh.PointClouds.from_list(
        [np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([[0.0, 4.0]])], weights=[[1, 3], [1]], names=["a", "b"]
    )
    one, two = wh.pl.clouds(held)
    assert (one.get_title(), two.get_title()) == ("a", "b")
    assert one.get_ylim() == two.get_ylim()
    areas = one.collections[0].get_sizes()
    assert areas[1] == pytest.approx(3 * areas[0])
    assert wh.pl.clouds(held, index=["b"]).get_title() == "b"
    with pytest.raises(ValueError, match="1 entries for 2 clouds"):
        wh.pl.clouds(held, titles=["a"])
    with pytest.raises(TypeError, match="list"):
        wh.pl.clouds([np.zeros((2, 2))])


def test_three_dimensions_are_seen_from_the_side_without_stretching():
    rng = np.random.default_rng(0)
    turned = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    for axes in (np.eye(3), turned):
        held = wh.PointClouds.from_list([np.concatenate([axes, -axes])])
        ((places, nearness),) = dots(wh.pl.clouds(held))
        assert len(places) == 6
        lengths = (places**2).sum() / 2
        assert lengths == pytest.approx(2)  # an orthonormal frame seen along a line: two of three square lengths stay
        assert np.all(np.diff(nearness) >= 0)  # the near ones last


def test_many_dimensions_are_brought_to_their_principal_axes():
    rng = np.random.default_rng(0)
    flat = rng.normal(size=(40, 2)) @ np.linalg.qr(rng.normal(size=(7, 2)))[0].T  # a plane in seven dimensions
    ((places, _),) = dots(wh.pl.clouds(wh.PointClouds.from_list([flat])))
    apart = lambda x: ((x[:, None] - x) ** 2).sum(-1)  # noqa: E731
    np.testing.assert_allclose(apart(places), apart(flat), atol=1e-10)


def test_barycenters_are_means_scaled_gene_by_gene_and_ordered(decoded):
    axis = wh.pl.barycenters(decoded)
    drawn = np.asarray(axis.images[0].get_array())
    genes = [label.get_text() for label in axis.get_xticklabels()]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["upper", "middle", "deep"]
    assert drawn.min(0).tolist() == [0] * 8
    assert drawn.max(0).tolist() == [1] * 8
    assert (np.diff(drawn.argmax(0)) >= 0).all()
    means = decoded.to_df().groupby(decoded.obs["cloud"], observed=True).mean()[genes].to_numpy()
    np.testing.assert_allclose(drawn, (means - means.min(0)) / np.ptp(means, axis=0), atol=1e-5)


def test_genes_can_be_chosen_and_wrong_ones_are_told(decoded):
    axis = wh.pl.barycenters(decoded, ["Gene4", "Gene1"])
    assert [label.get_text() for label in axis.get_xticklabels()] == ["Gene4", "Gene1"]
    with pytest.raises(KeyError, match=r"Gen9.*there are"):
        wh.pl.barycenters(decoded, ["Gen9"])
    with pytest.raises(KeyError, match=r"no 'cloud'.*wh\.tl\.barycenters"):
        wh.pl.barycenters(decoded[:, :2].copy().T)


def test_weights_count_in_the_means(decoded):
    decoded.obs["weight"] = np.where(np.arange(30) % 10 == 0, 1.0, 1e-12)
    drawn = np.asarray(wh.pl.barycenters(decoded, ["Gene3"]).images[0].get_array()).ravel()
    first = decoded.X[::10, 3]
    np.testing.assert_allclose(drawn, (first - first.min()) / np.ptp(first), atol=1e-6)


def test_a_way_through_genes_runs_from_left_to_right(decoded):
    axis = wh.pl.interpolation(decoded, n_genes=4)
    assert axis.images[0].get_array().shape == (4, 3)
    assert [label.get_text() for label in axis.get_xticklabels()] == ["0", "0.5", "1"]
    with pytest.raises(TypeError, match="no names"):
        wh.pl.interpolation(wh.PointClouds.from_list([np.eye(4), np.eye(4)]), ["Gene1"])


@pytest.mark.parametrize("n", [5, 8, 12])
def test_steps_of_a_way_have_room_for_their_shares(n):
    way = wh.PointClouds.from_list([np.full((2, 24), share) + np.arange(24) for share in np.linspace(0, 1, n)])
    axis = wh.pl.interpolation(way)
    axis.figure.canvas.draw()
    boxes = [label.get_window_extent() for label in axis.get_xticklabels()]
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


def test_a_column_without_values_is_grey_and_has_no_scale(tissue):
    tissue.obs["nothing"] = pd.Categorical([None] * tissue.n_obs, categories=[])
    axis = wh.pl.umap(tissue, color="nothing")
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["none"]
    assert axis.figure.axes == [axis]
    assert len(dots(axis)[0][0]) == tissue.n_obs


def test_cells_without_a_place_or_a_library_are_told(tissue):
    tissue.obsm["spatial"][:3] = np.nan
    with pytest.warns(UserWarning, match="3 of 240 cells have no position or no library"):
        axis = wh.pl.spatial(tissue, "layer", scale_bar=100)
    assert len(dots(axis)[0][0]) == 237
    tissue.obs["library"] = tissue.obs["library"].cat.remove_categories("one")
    with pytest.warns(UserWarning, match="120 of 240"):
        assert wh.pl.spatial(tissue, "layer", library_key="library").get_title() == "two"
    tissue.obsm["spatial"] = tissue.obsm["spatial"][:, :1]
    with pytest.raises(ValueError, match="has one column; positions have two"):
        wh.pl.spatial(tissue, "layer")


def test_long_legends_leave_room_for_the_map(tissue):
    tissue.obs["cluster"] = [f"level number {i % 120}" for i in range(tissue.n_obs)]
    axis = wh.pl.umap(tissue, color="cluster")
    axis.figure.canvas.draw()
    assert axis.get_window_extent().width / axis.figure.dpi > 2


def test_colours_and_components_that_make_no_map_are_refused(tissue):
    assert wh.pl.umap(tissue, np.int64(1)).get_xlabel() == "UMAP1"
    with pytest.raises(ValueError, match="color is empty"):
        wh.pl.umap(tissue, [])
    with pytest.raises(ValueError, match="3 components are given; a map has two"):
        wh.pl.diffmap(tissue, components=(1, 2, 3))


def test_one_cloud_or_gene_needs_no_list(decoded):
    clouds = wh.PointClouds.from_list([np.full((3, 2), float(i)) for i in range(13)])
    for index in (12, np.int64(12), str(clouds.names[12])):
        assert wh.pl.clouds(clouds, index=index).get_title() == clouds.names[12]
    assert [label.get_text() for label in wh.pl.barycenters(decoded, "Gene4").get_xticklabels()] == ["Gene4"]
