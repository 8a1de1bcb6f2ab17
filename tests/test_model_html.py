"""What a notebook shows of a Wormhole: what was set before a fit, and what was learned after it."""

import re

import numpy as np
import pytest

import scwormhole as wh
from scwormhole.train import History, Learned, model_html

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::scwormhole.ot.TransportWarning"),
]

TINY = {"n_components": 8, "width": 8, "hidden": 8, "n_heads": 1, "n_blocks": 1, "batch_size": 6, "max_steps": 10}


def cohort(n):
    generator = np.random.default_rng(0)
    return wh.PointClouds.from_list([generator.normal(size=(6, 2)) * generator.uniform(0.3, 2) for _ in range(n)])


@pytest.fixture(scope="module")
def fitted():
    return wh.Wormhole(**TINY, n_induced=2, coeff_dec=0, progress=False).fit(cohort(20))


def rows_of(page, model):
    return dict(row for row in page(model._repr_html_()).rows if len(row) == 2)


def test_before_a_fit_it_shows_what_was_set(page):
    shown = page(wh.Wormhole("W2", n_components=16)._repr_html_())
    assert "Wormhole, not fitted" in shown.text
    assert ["next", "model.fit(clouds)"] in shown.rows
    changed, everything = shown.pre
    assert changed.splitlines() == ["metric='W2'", "n_components=16"]
    assert len(everything.splitlines()) == len(wh.Wormhole().get_params())
    assert ("details", {"open": None}) in shown.tags


def test_defaults_are_not_listed_as_changes(page):
    shown = page(wh.Wormhole()._repr_html_())
    assert ["parameters", "all as by default"] in shown.rows
    assert len(shown.pre) == 1


def test_after_a_fit_it_shows_what_was_learned(fitted, page):
    rows, history = rows_of(page, fitted), fitted.history_
    best = int(np.argmin(history["error"]))
    assert rows["metric"] == "S2"
    assert rows["epsilon"] == f"{fitted.epsilon_:.4g}, in units of the ground cost"
    assert rows["length of a vector"] == "8"
    assert rows["learned from"] == "20 clouds in 2 dimensions, 4 held out"
    assert rows["training"].startswith("converged" if fitted.converged_ else "not converged")
    assert rows["held-out clouds"].startswith(f"correlation {history['correlation'][best]:.4f}, error")
    assert rows["base"] == fitted.base_.kind_
    share = fitted.base_.report_.nugget_share
    assert rows["nugget"] == f"{'on' if fitted.base_.nugget_ else 'off'}; {share:.0%} of the mean divergence"
    assert rows["decoder"] == "none"
    assert rows["next"] == "model.transform(clouds)"


def test_correlation_is_drawn_look_by_look(fitted, page):
    (drawn,) = [part for name, part in page(fitted._repr_html_()).tags if name == "polyline"]
    heights = [float(pair.split(",")[1]) for pair in drawn["points"].split()]
    correlation = fitted.history_["correlation"]
    assert len(heights) == len(correlation)
    assert np.argmin(heights) == np.argmax(correlation)  # down is up in a drawing


def test_a_loaded_model_shows_the_same(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    assert wh.Wormhole.load(tmp_path / "model")._repr_html_() == fitted._repr_html_()


def test_a_model_saved_without_its_number_of_clouds_is_shown(fitted, page):
    arrays, header = fitted.to_arrays()
    del header["n_clouds_"]
    again = wh.Wormhole.from_arrays(arrays, header)
    assert again.n_clouds_ is None
    assert rows_of(page, again)["learned from"] == "2 dimensions, 4 held out"


def test_too_few_clouds_to_hold_any_out_and_no_training(page):
    model = wh.Wormhole(**{**TINY, "max_steps": 0}, base=None, nugget=True, n_points=5, progress=False).fit(cohort(5))
    shown = page(model._repr_html_())
    rows = dict(row for row in shown.rows if len(row) == 2)
    assert rows["learned from"] == "5 clouds in 2 dimensions, 0 held out"
    assert rows["training clouds"].startswith("correlation")
    assert (rows["base"], rows["nugget"], rows["decoder"]) == ("none", "on", "clouds of 5 points")
    assert "svg" not in {name for name, _ in shown.tags}


def test_looks_that_found_nothing_are_not_drawn(fitted, page):
    empty = History(["encoder"] * 2, [0, 5], [0.0, 1.0], [np.nan] * 2, [np.nan] * 2, [1.0] * 2, [1.0] * 2)
    learned = Learned(fitted._trained, "S2", 0.1, empty, False, 20, 4)
    shown = page(model_html("Wormhole", {}, {}, learned))
    assert ["held-out clouds", "not known"] in shown.rows
    assert "svg" not in {name for name, _ in shown.tags}


def test_names_of_ground_costs_are_text(fitted, page):
    learned = Learned(fitted._trained, "<lambda>", 0.1, History(), False, 20, 4)
    assert ["metric", "<lambda>"] in page(model_html("Wormhole", {"metric": "<i>"}, {"metric": "S2"}, learned)).rows


def test_notebooks_get_text_and_html(fitted):
    for model in (wh.Wormhole(n_components=8), fitted):
        html = model._repr_html_()
        assert model._repr_mimebundle_(include=None, exclude=None) == {"text/plain": repr(model), "text/html": html}
        assert len(html) < 10_000
        colours = re.findall(r'(?:color|fill|stroke|background)[:=]"?(\w+)', html)
        assert {*colours} <= {"currentColor", "inherit", "none"}
        assert not re.search("http|url|<script|<style", html)
    assert repr(wh.Wormhole(n_components=8)) == "Wormhole(n_components=8)"
