"""Figures against pictures of how they should look, words left out.

The tolerance leaves room for other releases of matplotlib. Where a picture is missing the test puts what
was drawn in its place and fails, so that someone looks at it.
"""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.testing.compare import compare_images
from matplotlib.testing.decorators import remove_ticks_and_titles
from matplotlib.text import Text

import scwormhole as wh

BASELINE = Path(__file__).parent / "baseline"
TOLERANCE = 8  # root mean square of 0 to 255
LOOSE = {"barycenters": 20, "interpolation_genes": 20}  # releases round the edges of coloured squares differently


def square(share: float) -> np.ndarray:
    side = np.linspace(-1, 1, 6)
    return np.stack(np.meshgrid(side, side * (1 + share)), axis=-1).reshape(-1, 2)


FIGURES = {
    "umap": lambda tissue, decoded, solved: wh.pl.umap(tissue, color=["layer", "depth"]),
    "diffmap": lambda tissue, decoded, solved: wh.pl.diffmap(tissue, color="depth"),
    "spatial": lambda tissue, decoded, solved: wh.pl.spatial(tissue, library_key="library", scale_bar=100),
    "spatial_layer": lambda tissue, decoded, solved: wh.pl.spatial(tissue, color="layer"),
    "fidelity": lambda tissue, decoded, solved: wh.pl.fidelity(*solved),
    "history": lambda tissue, decoded, solved: wh.pl.history(tissue),
    "clouds": lambda tissue, decoded, solved: wh.pl.clouds(wh.datasets.digits().clouds[:4]),
    "clouds_many_genes": lambda tissue, decoded, solved: wh.pl.clouds(decoded),
    "barycenters": lambda tissue, decoded, solved: wh.pl.barycenters(decoded),
    "interpolation": lambda tissue, decoded, solved: wh.pl.interpolation(
        wh.PointClouds.from_list([square(share) for share in (0, 0.5, 1)])
    ),
    "interpolation_genes": lambda tissue, decoded, solved: wh.pl.interpolation(decoded, n_genes=5),
}


def save(drawn, path) -> Path:
    """Save a figure with its panels and scales side by side, and without words.

    Every release of matplotlib sets words a little differently, and what is beside them moves.
    """
    figure = np.ravel(np.asarray(drawn, dtype=object))[0].figure
    figure.set_layout_engine("none")
    figure.set_size_inches((np.round(5 * figure.get_size_inches()) + 0.01) / 5)  # whole pixels, whoever rounds
    remove_ticks_and_titles(figure)
    for number, axis in enumerate(figure.axes):
        axis.set_axes_locator(None)
        axis.set_position([(number + 0.05) / len(figure.axes), 0.05, 0.9 / len(figure.axes), 0.9])
        if axis.get_legend():
            axis.get_legend().remove()
    for words in figure.findobj(Text):
        words.set_visible(False)
    figure.savefig(path, dpi=50, metadata={"Software": None})
    return path


@pytest.mark.parametrize("name", FIGURES)
def test_figure_looks_as_it_should(name, tissue, decoded, solved, tmp_path):
    actual = save(FIGURES[name](tissue, decoded, solved), tmp_path / f"{name}.png")
    expected = BASELINE / f"{name}.png"
    if not expected.exists():
        expected.write_bytes(actual.read_bytes())
        pytest.fail(f"there was no {expected}; it is there now: look at it")
    assert compare_images(str(expected), str(actual), tol=LOOSE.get(name, TOLERANCE)) is None


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("umap", lambda tissue: tissue.obsm["X_wormhole_umap"].__imul__([-1, 1])),
        ("spatial_layer", lambda tissue: tissue.obsm["spatial"].__imul__([-1, 1])),
        ("history", lambda tissue: tissue.uns["wormhole"]["history"]["correlation"].__isub__(np.arange(8) / 2)),
    ],
)
def test_a_wrong_figure_is_found(name, spoil, tissue, decoded, solved, tmp_path):
    spoil(tissue)
    actual = save(FIGURES[name](tissue, decoded, solved), tmp_path / f"{name}.png")
    assert compare_images(str(BASELINE / f"{name}.png"), str(actual), tol=TOLERANCE) is not None
