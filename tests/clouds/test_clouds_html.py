"""What a notebook shows of a cohort: true, escaped, small, and made without reading a point."""

import re

import dask.array
import numpy as np

import scwormhole as wh
from scwormhole.clouds import _html

SIZES = np.array([3, 5, 5, 9])


def cohort(sizes=SIZES, **options):
    return wh.PointClouds.from_list([np.ones((size, 2), np.float32) for size in sizes], **options)


def test_it_tells_how_much_there_is_of_what(page):
    shown = page(cohort()._repr_html_())
    rows = dict(row for row in shown.rows if len(row) == 2)
    assert rows == {
        "clouds": "4",
        "size of a cloud": "3 to 9 points, median 5",
        "dimensions": "2",
        "shared points": "22",
        "kept": "float32, dense, in memory",
        "weights": "uniform",
    }
    assert [row for row in shown.rows if len(row) == 3] == [
        ["name", "points", "largest weight"],
        ["0", "3", "0.333"],
        ["1", "5", "0.2"],
        ["2", "5", "0.2"],
        ["3", "9", "0.111"],
    ]


def test_bars_are_numbers_of_clouds(page):
    bars = [part for name, part in page(cohort()._repr_html_()).tags if name == "rect"]
    assert [float(bar["height"]) for bar in bars] == [_html.HEIGHT / 2, _html.HEIGHT, _html.HEIGHT / 2]
    sizes = np.random.default_rng(0).integers(1, 1000, 500)
    bars = [part for name, part in page(_html.bars(sizes, "sizes")).tags if name == "rect"]
    assert 20 <= len(bars) <= _html.MOST_BARS
    assert max(float(bar["x"]) + float(bar["width"]) for bar in bars) <= _html.WIDTH


def test_clouds_of_one_size_and_a_single_cloud_have_no_bars(page):
    for sizes in ([4, 4, 4], [7]):
        shown = page(cohort(sizes)._repr_html_())
        assert "svg" not in {name for name, _ in shown.tags}
        assert ["size of a cloud", f"{sizes[0]} points"] in shown.rows


def test_more_clouds_are_counted(page):
    assert "and 3 more clouds" in page(cohort(range(1, 9))._repr_html_()).text
    assert "and 1 more cloud" in page(cohort(range(1, 7))._repr_html_()).text


def test_names_are_text_and_cut(page):
    names = ["<script>alert('x')</script>", '"&amp;', "n" * 5000]
    html = cohort([1, 2, 3], names=names)._repr_html_()
    assert "<script" not in html
    assert len(html) < 10_000
    shown = page(html)
    assert [row[0] for row in shown.rows if len(row) == 3][1:3] == names[:2]


def test_unequal_weights_are_told(page):
    clouds = cohort([2, 2], weights=[[1, 1], [1, 3]])
    shown = page(clouds._repr_html_())
    assert ["weights", "non-uniform"] in shown.rows
    assert ["1", "2", "0.75"] in shown.rows
    assert "non-uniform weights" in repr(clouds)


def test_weights_are_compared_run_by_run(monkeypatch):
    monkeypatch.setattr("scwormhole.clouds._layout.CLOUDS_AT_ONCE", 2)
    assert cohort([2, 3, 4, 5, 6])._layout.uniform
    assert not cohort([2, 3, 4, 5, 2], weights=[*map(np.ones, (2, 3, 4, 5)), [1, 2]])._layout.uniform


def test_every_container_is_shown(stored, graph, page):
    clouds = wh.PointClouds.from_graph(stored, graph)
    kept = dict(row for row in page(clouds._repr_html_()).rows if len(row) == 2)["kept"]
    known = repr(clouds)
    assert ("sparse" in kept) == ("sparse" in known)
    assert kept.endswith("of dask" if "lazy" in known else "on disk" if "on disk" in known else "in memory")


def test_no_point_is_read(page):
    reads = []

    def block(some):
        reads.append(len(some))
        return some

    lazy = dask.array.from_array(np.eye(6), chunks=(2, 6)).map_blocks(block, dtype=float, meta=np.empty((0, 0)))
    clouds = wh.PointClouds(lazy, [0, 1, 6], [0, 1, 2, 3, 4, 5], np.ones(6))
    reads.clear()  # values are checked when a cohort is made
    assert ["kept", "float64, dense, of dask"] in page(clouds._repr_html_()).rows
    assert reads == []
    lazy[:1].compute()
    assert reads != []  # or they would not have been noticed


def test_very_many_clouds_are_shown_without_naming_them():
    n = 1_000_000
    sizes = np.arange(n) % 3 + 1
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    clouds = wh.PointClouds(
        np.zeros((3, 2)), indptr, np.arange(indptr[-1]) - np.repeat(indptr[:-1], sizes), np.ones(indptr[-1])
    )
    html = clouds._repr_html_()
    assert len(html) < 10_000
    assert "999,995 more clouds" in html
    assert clouds._layout.names._text is None


def test_colours_come_from_the_theme_and_nothing_from_elsewhere():
    html = cohort()._repr_html_()
    assert {*re.findall(r'(?:color|fill|stroke|background)[:=]"?(\w+)', html)} == {"currentColor", "inherit"}
    assert not re.search("http|url|<script|<style", html)
