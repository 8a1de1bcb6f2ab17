"""Figures of embeddability show the numbers they are made of."""

from dataclasses import replace

import anndata
import matplotlib.pyplot as plt
import numpy as np
import pytest

import scwormhole as wh
from scwormhole.mds import Embeddability


@pytest.fixture
def found():
    values = np.array([5.0, 2.0, 0.1, -0.5])
    return Embeddability(
        n_clouds=4,
        metric="S2",
        epsilon=0.05,
        eigenvalues=values,
        mean_divergence=1.0,
        lower=0.05,
        upper=0.1,
        least=0.06,
        widths=np.array([1, 2, 3]),
        errors=np.array([0.4, 0.065, 0.06]),
        noise=0.1,
        epsilons=np.array([0.01, 0.05, 0.5]),
        exact=np.array([0.99, 0.98, 0.8]),
        means=np.array([0.5, 0.6, 0.9]),
        halves=np.array([0.7, 0.8, 0.95]),
    )


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def test_spectrum_has_a_bar_for_each_eigenvalue_and_tells_the_negative_share(found):
    axis = wh.pl.spectrum(found)
    assert sorted(bar.get_height() for bar in axis.patches) == sorted(found.eigenvalues)
    assert "6.6% of the spectrum negative" in axis.get_title()
    assert len({bar.get_facecolor() for bar in axis.patches}) == 2


def test_spectrum_of_a_table_is_that_of_its_criterion_matrix():
    table = [[0, 1, 9], [1, 0, 1], [9, 1, 0]]
    axis = wh.pl.spectrum(table)
    np.testing.assert_allclose(sorted(bar.get_height() for bar in axis.patches), wh.mds.spectrum(table)[::-1])


def test_nothing_of_a_euclidean_table_is_drawn_as_lost():
    points = np.random.default_rng(0).normal(size=(12, 2))
    table = ((points[:, None] - points) ** 2).sum(-1)
    assert wh.mds.spectrum(table)[-1] < 0  # by rounding
    axis = wh.pl.spectrum(table)
    assert axis.get_title() == "0.0% of the spectrum negative"
    assert len({bar.get_facecolor() for bar in axis.patches}) == 1


def test_a_table_of_zeros_is_drawn(found):
    axis = wh.pl.spectrum(np.zeros((4, 4)))
    axis.figure.canvas.draw()
    assert axis.get_title() == "0.0% of the spectrum negative"
    nothing = np.zeros(3)
    flat = replace(found, eigenvalues=np.zeros(4), lower=0.0, least=0.0, upper=0.0, errors=nothing, noise=np.nan)
    wh.pl.embeddability(flat)[0].figure.canvas.draw()


def test_a_table_put_right_is_told_at_the_users_line():
    with pytest.warns(UserWarning, match="not quite symmetric") as told:
        wh.pl.spectrum([[0, 1, 4], [1 + 1e-9, 0, 1], [4, 1, 0]])
    assert told[0].filename == __file__


def test_three_panels_show_spectrum_widths_and_ladder(found):
    first, second, third = wh.pl.embeddability(found)
    assert len(first.patches) == 4
    curves = {line.get_label(): line.get_ydata() for line in (*second.get_lines(), *third.get_lines())}
    np.testing.assert_array_equal(curves["its first components"], found.errors)
    np.testing.assert_array_equal(curves["with exact transport"], found.exact)
    np.testing.assert_array_equal(curves["with distance of means"], found.means)
    np.testing.assert_array_equal(curves["between halves of clouds"], found.halves)
    assert "2 components" in second.get_title()
    assert "10.0% of a divergence is noise" in third.get_title()


def test_what_is_not_known_is_not_drawn(found):
    nothing = np.full(3, np.nan)
    bare = replace(found, exact=nothing, means=nothing, halves=nothing, noise=np.nan)
    third = wh.pl.embeddability(bare)[2]
    assert third.get_legend() is None
    assert third.get_title() == "noise unknown"


def test_an_anndata_is_read_under_its_key_and_axes_of_the_users_are_used(found):
    adata = anndata.AnnData(np.ones((3, 2)))
    adata.uns["mine"] = {"kind": "embeddability", **found.to_dict()}
    axes = plt.subplots(1, 3)[1]
    drawn = wh.pl.embeddability(adata, key="mine", ax=axes)
    assert list(drawn) == list(axes)
    assert len(wh.pl.spectrum(adata, key="mine").patches) == 4
    with pytest.raises(KeyError, match=r"no embeddability 'embeddability'.*mine.*wh.tl.embeddability"):
        wh.pl.embeddability(adata)
    with pytest.raises(TypeError, match="source is a list"):
        wh.pl.embeddability([[0.0]])


def test_ticks_of_a_spectrum_are_apart(found):
    axis = wh.pl.spectrum(found)
    axis.figure.canvas.draw()
    places = axis.transData.transform([(0, tick) for tick in axis.get_yticks()])[:, 1]
    assert np.diff(np.sort(places)).min() > 10  # pixels


def test_errors_that_are_rounding_do_not_stretch_the_axis(found):
    bare = replace(found, errors=np.array([0.5, 0.1, 1e-15]), least=0.0, lower=0.0, upper=0.0)
    assert wh.pl.embeddability(bare)[1].get_ylim()[0] == pytest.approx(1e-4)


def test_the_legend_of_the_ladder_is_below_its_curves(found):
    axis = wh.pl.embeddability(found)[2]
    axis.figure.canvas.draw()
    top = axis.get_legend().get_window_extent().ymax
    lowest = min(axis.transData.transform(line.get_xydata())[:, 1].min() for line in axis.get_lines()[:-1])
    assert top < lowest
