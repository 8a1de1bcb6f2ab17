"""What a notebook shows of a data set: its arrays in a line each, and its clouds."""

import numpy as np

import scwormhole as wh


def test_labels_are_counted(page):
    clouds = wh.PointClouds.from_list([np.eye(2)] * 3)
    record = wh.datasets.Labelled(clouds, np.array(["<b>", "a", "a"]))
    shown = page(record._repr_html_())
    assert ["labels", "3, <U3, 2 different: <b>, a"] in shown.rows
    assert ["clouds", "3"] in shown.rows


def test_gaussians_are_not_written_out(page):
    html = wh.datasets.gaussians(n_clouds=10)._repr_html_()
    assert len(html) < 10_000
    assert {"means": "10 x 8, float64", "covariances": "10 x 8 x 8, float64"}.items() <= dict(
        row for row in page(html).rows if len(row) == 2
    ).items()
