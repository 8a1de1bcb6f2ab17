"""The guide's figures, `python docs/figures.py [name ...]`: into docs/guide/figures, all of data that is simulated.

`demo` are those of `python -m scwormhole demo`; it and `radius` take some minutes, the others less.
"""

import argparse
import logging
import shutil
import tempfile
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import scanpy as sc
import umap
from scipy.stats import spearmanr
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import KNeighborsClassifier

import scwormhole as wh
from scwormhole.__main__ import demo as run_demo
from scwormhole.__main__ import tissue as cortex

FOLDER = Path(__file__).parent / "guide" / "figures"
BLUE, ORANGE, GREEN, GREY = "#2f6db3", "#d9742b", "#3f9a5f", "#8a8a8a"
STYLE = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "figure.constrained_layout.use": True,
    "font.size": 10,
    "legend.frameon": False,
}


def tissue(n_cells: int = 4000, *, radius: float = 75.0, rng: int = 0):
    """Return a simulated cortex, normalised, with niches."""
    adata = cortex(n_cells, rng)
    wh.pp.niches(adata, radius=radius, library_key="library")
    return adata


def cohorts() -> dict[str, wh.PointClouds]:
    """Return the two cohorts that choices are shown on: niches in a hundred dimensions, digits in two."""
    return {
        "niches of a cortex": wh.tl.clouds(tissue()),
        "digits": wh.datasets.digits().clouds,
    }


def overview() -> None:
    """Draw the whole idea on one tissue: cells, two niches as clouds, the map of niches."""
    adata = tissue()
    wh.tl.wormhole(adata, max_steps=0, coeff_dec=0, progress=False)
    adata = adata[adata.obs["library"] == adata.obs["library"].cat.categories[0]].copy()
    wh.tl.diffmap(adata)
    places, depth = adata.obsm["spatial"], adata.obs["depth"].to_numpy()
    along = np.abs(places[:, 0] - np.median(places[:, 0]))
    chosen = [int(np.argmin(along / 1000 + np.abs(depth - goal))) for goal in (0.25, 0.8)]
    of_type, types = adata.obs["cell_type"], adata.obs["cell_type"].cat.categories
    colours = dict(zip(types, plt.get_cmap("tab20")(np.arange(len(types))), strict=True))
    sc.pp.pca(adata, n_comps=20)
    sc.pp.neighbors(adata)
    sc.tl.umap(adata, random_state=0)
    shown = adata.obsm["X_umap"]

    fig, axes = plt.subplots(1, 3, figsize=(12, 3.9), width_ratios=[1.25, 1, 1])
    axes[0].scatter(*places.T, c=[colours[name] for name in of_type], s=5, linewidths=0)
    axes[1].scatter(*shown.T, c="#dddddd", s=4, linewidths=0)
    for row, colour in zip(chosen, (BLUE, ORANGE), strict=True):
        members = adata.obsp["niches"][[row]].indices
        axes[0].add_patch(plt.Circle(places[row], 75, fill=False, color=colour, lw=2.2))
        axes[1].scatter(*shown[members].T, c=colour, s=22, edgecolors="white", linewidths=0.5)
    components = adata.obsm["X_wormhole_diffmap"]
    points = axes[2].scatter(components[:, 0], components[:, 1], c=depth, s=5, linewidths=0, cmap="viridis")
    for row, colour in zip(chosen, (BLUE, ORANGE), strict=True):
        axes[2].scatter(*components[row, :2], c=colour, s=90, edgecolors="white", linewidths=1.5)
    fig.colorbar(points, ax=axes[2], label="true depth", shrink=0.8)
    axes[0].set(aspect="equal", title="1. A tissue: cells, and two niches")
    axes[1].set(title="2. Each niche is a cloud of cells", xlabel="UMAP of cells, 1", ylabel="UMAP of cells, 2")
    axes[2].set(title="3. Each cloud becomes a point", xlabel="diffusion component 1", ylabel="component 2")
    for ax in axes:
        ax.set(xticks=[], yticks=[])
    axes[0].axis("off")
    save(fig, "overview")


def transport() -> None:
    """Draw what transport moves between clouds whose means are the same, and between one and itself moved."""
    rng = np.random.default_rng(0)
    ball = rng.normal(size=(40, 2)) * 0.5
    two = np.concatenate([rng.normal(size=(20, 2)) * 0.2 + [1.6, 0], rng.normal(size=(20, 2)) * 0.2 - [1.6, 0]])
    angle = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1) * 1.4
    ball, two, ring = (cloud - cloud.mean(axis=0) for cloud in (ball, two, ring))
    pairs = {
        "one group, two groups": (ball, two),
        "a ball, a ring": (ball, ring),
        "a ball, moved by 2": (ball, ball + np.array([2, 0])),
    }
    fig, axes = plt.subplots(1, 3, figsize=(11, 2.9), sharex=True, sharey=True)
    for ax, (title, (first, second)) in zip(axes, pairs.items(), strict=True):
        clouds = wh.PointClouds.from_list([first, second])
        plan = wh.ot.coupling(clouds[0], clouds[1], solver="exact")
        for i, j in enumerate(plan.argmax(axis=1)):
            ax.plot(*np.stack([first[i], second[j]]).T, color=GREY, lw=0.6, alpha=0.7, zorder=0)
        ax.scatter(*first.T, color=BLUE, s=16)
        ax.scatter(*second.T, color=ORANGE, s=16)
        far = float(wh.ot.pairwise(clouds, progress=False)[0, 1])
        means = float(((first.mean(axis=0) - second.mean(axis=0)) ** 2).sum())
        ax.set(title=title, aspect="equal", xticks=[], yticks=[])
        ax.set_xlabel(f"transport {far:.2f}, squared distance of means {means:.2f}")
        ax.spines[:].set_visible(False)
    save(fig, "transport")


def wormhole() -> None:
    """Draw digits where their vectors lie on a UMAP, as many as have room."""
    digits = wh.datasets.digits()
    z = wh.Wormhole(max_steps=0, coeff_dec=0, progress=False).fit_transform(digits.clouds)
    with warnings.catch_warnings(action="ignore"):  # UMAP: a seed means one thread
        plane = umap.UMAP(min_dist=0.6, random_state=0).fit_transform(z)
    size = 0.02 * np.ptp(plane)
    fig, ax = plt.subplots(figsize=(8, 7))
    drawn: list[int] = []
    for row, place in enumerate(plane):
        if drawn and np.abs(plane[drawn] - place).max(axis=1).min() < 2.2 * size:
            continue
        drawn.append(row)
        points = digits.clouds[row].points
        middle = (points.max(axis=0) + points.min(axis=0)) / 2
        shape = (points - middle) / np.abs(points - middle).max() * size
        colour = plt.get_cmap("tab10")(int(digits.labels[row]))
        ax.scatter(*(shape + place).T, s=2.5, color=colour, linewidths=0)
    ax.set(aspect="equal", title=f"{len(drawn)} of {len(plane):,} digits, each a cloud, drawn where its vector lies")
    ax.axis("off")
    save(fig, "wormhole")


def metric() -> None:
    """Draw divergences and entropic costs against exact transport."""
    fig, axes = plt.subplots(1, 2, figsize=(9, 4))
    for ax, (name, clouds) in zip(axes, cohorts().items(), strict=True):
        sample = clouds[np.random.default_rng(0).choice(len(clouds), 60, replace=False)]
        upper = np.triu_indices(len(sample), 1)
        exact = wh.ot.pairwise(sample, metric="W2", solver="exact", progress=False)[upper]
        for what, colour in (("W2", ORANGE), ("S2", BLUE)):
            found = wh.ot.pairwise(sample, metric=what, progress=False)[upper]
            off, r = np.abs(found - exact).mean() / exact.mean(), np.corrcoef(found, exact)[0, 1]
            label = f'"{what}": off by {off:.0%} of the mean, correlation {r:.3f}'
            ax.scatter(exact, found, s=3, color=colour, alpha=0.5, linewidths=0, label=label)
        most = max(exact.max(), found.max())
        ax.plot([0, most], [0, most], color=GREY, lw=1)
        ax.set(title=name, xlabel="exact transport", ylabel="at the default epsilon")
        ax.legend(markerscale=4, loc="upper left")
    save(fig, "metric")


def epsilon() -> None:
    """Draw what a ladder of epsilons does to two cohorts."""
    fig, axes = plt.subplots(1, 2, figsize=(9.5, 3.8), sharey=True)
    for ax, (name, clouds) in zip(axes, cohorts().items(), strict=True):
        found = wh.tl.embeddability(clouds, n_clouds=80, progress=False)
        ax.plot(found.epsilons, found.exact, "o-", color=BLUE, label="with exact transport")
        ax.plot(found.epsilons, found.halves, "o-", color=GREEN, label="between halves of the clouds")
        ax.plot(found.epsilons, found.means, "o-", color=ORANGE, label="with the distance of means")
        ax.axvline(0.05, color=GREY, lw=1, ls=":")
        ax.set(xscale="log", xlabel="epsilon, as a share of the mean cost", title=name, ylim=(0, 1.03))
    axes[0].set_ylabel("correlation of the divergence")
    axes[0].legend(loc="lower left")
    save(fig, "epsilon")


def width() -> None:
    """Draw the error of held-out clouds against the length of vectors."""
    fig, ax = plt.subplots(figsize=(5.6, 3.8))
    widths = [2, 4, 8, 16, 32, 64, 128]
    for (name, clouds), colour in zip(cohorts().items(), (BLUE, ORANGE), strict=True):
        half, errors = len(clouds) // 2, []  # of the cortex, the first half is one library, and the second the other
        for k in widths:
            model = wh.Wormhole(n_components=k, max_steps=0, coeff_dec=0, progress=False).fit(clouds[:half])
            errors.append(wh.metrics.fidelity(model, clouds[half:], n_clouds=100, n_repeats=2).relative_error)
        ax.plot(widths, np.array(errors) * 100, "o-", color=colour, label=name)
    ax.set(
        xscale="log",
        xticks=widths,
        xlabel="n_components",
        ylabel="error of unseen clouds, % of the mean",
        ylim=(0, None),
    )
    ax.set_xticks(widths, [str(k) for k in widths])
    ax.minorticks_off()
    ax.legend()
    save(fig, "width")


def radius() -> None:
    """Draw what the radius does: cells in a niche, and what niches tell of depth and of layers."""
    radii, cells, told, layers = [25, 40, 60, 80, 120, 160, 240, 320], [], [], []
    for r in radii:
        adata = tissue(radius=r)
        with warnings.catch_warnings(action="ignore"):  # the smallest have niches of too few cells, which is the point
            wh.tl.wormhole(adata, max_steps=0, coeff_dec=0, progress=False)
        cells.append(float(np.median(adata.obs["niches_size"])))
        first = (adata.obs["library"] == adata.obs["library"].cat.categories[0]).to_numpy()
        z, layer = adata.obsm["X_wormhole"], adata.obs["layer"].to_numpy()
        layers.append(KNeighborsClassifier(15).fit(z[first], layer[first]).score(z[~first], layer[~first]))
        wh.tl.diffmap(adata, subset=("cell_type", "Pvalb"))
        rows = (adata.obs["cell_type"] == "Pvalb").to_numpy()
        told.append(abs(spearmanr(adata.obsm["X_wormhole_diffmap"][rows, 0], adata.obs["depth"][rows]).statistic))
    fig, axes = plt.subplots(1, 3, figsize=(11, 3.4))
    for ax, values, title, label in (
        (axes[0], cells, "how many cells", "median niche"),
        (axes[1], told, "what Pvalb niches tell of depth", "|Spearman|"),
        (axes[2], layers, "layers of the other slice, told", "share that is right"),
    ):
        ax.plot(radii, values, "o-", color=BLUE)
        ax.set(title=title, xlabel="radius, µm", ylabel=label)
    save(fig, "radius")


def held_out() -> None:
    """Draw fidelity as it looks by each way of holding niches out."""
    adata = tissue()
    clouds = wh.tl.clouds(adata)
    first = np.flatnonzero(adata.obs["library"] == adata.obs["library"].cat.categories[0])
    drawn = np.random.default_rng(0).permutation(first)
    splits = {
        "niches learned from": (first, first),
        "at random, same library": (drawn[: len(drawn) // 2], drawn[len(drawn) // 2 :]),
        "another library": (first, np.setdiff1d(np.arange(len(clouds)), first)),
    }
    fig, axes = plt.subplots(1, 3, figsize=(11, 3.8), sharex=True, sharey=True)
    for ax, (name, (train, test)) in zip(axes, splits.items(), strict=True):
        model = wh.Wormhole(max_steps=0, coeff_dec=0, progress=False).fit(clouds[train])
        sample = clouds[np.random.default_rng(1).choice(test, 100, replace=False)]
        upper = np.triu_indices(len(sample), 1)
        solved = wh.ot.pairwise(sample, epsilon=model.epsilon_, relative_epsilon=None, progress=False)[upper]
        embedded = model.embed(sample).table(sample.shared_mass())[upper]
        ax.scatter(solved, embedded, s=3, color=BLUE, alpha=0.4, linewidths=0)
        ax.plot([0, solved.max()], [0, solved.max()], color=GREY, lw=1)
        error = np.abs(embedded - solved).mean() / solved.mean()
        ax.set(title=name, xlabel="solved")
        ax.text(0.04, 0.9, f"r = {np.corrcoef(solved, embedded)[0, 1]:.3f}, error {error:.1%}", transform=ax.transAxes)
    axes[0].set_ylabel("embedded")
    save(fig, "held_out")


def cost() -> None:
    """Draw clouds of phases by the squared difference, and by a cost that closes the circle."""
    import jax.numpy as jnp

    def around(x, y):
        return 2 - 2 * jnp.cos(x[0] - y[0])

    rng = np.random.default_rng(0)
    middles = np.sort(rng.uniform(0, 2 * np.pi, 200))
    arrays = [((middle + rng.normal(size=(30, 1)) * 0.4) % (2 * np.pi)) for middle in middles]
    clouds = wh.PointClouds.from_list(arrays)
    fig, axes = plt.subplots(1, 2, figsize=(9, 4))
    for ax, (title, how) in zip(axes, {'metric="S2"': "S2", "metric=around": around}.items(), strict=True):
        z = wh.mds.classical_mds(wh.ot.pairwise(clouds, metric=how, progress=False), 2)
        points = ax.scatter(*z.T, c=middles, cmap="twilight", s=18, linewidths=0)
        ax.set(title=title, aspect="equal", xticks=[], yticks=[])
    fig.colorbar(points, ax=axes, label="middle of the cloud, radians", shrink=0.8)
    save(fig, "cost")


def demo() -> None:
    """Copy the figures of the demonstration."""
    with tempfile.TemporaryDirectory() as folder:
        run_demo(Path(folder), n_cells=4000, rng=0)
        for path in Path(folder).glob("*.png"):
            shutil.copy(path, FOLDER / path.name)


def save(fig, name: str) -> None:
    fig.savefig(FOLDER / f"{name}.png", dpi=110)
    plt.close(fig)


FIGURES = {
    made.__name__: made
    for made in (overview, transport, wormhole, metric, epsilon, width, radius, held_out, cost, demo)
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[*FIGURES, []], help="all by default")
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore", ConvergenceWarning)  # no steps were asked for: features alone are quick
    plt.switch_backend("Agg")
    plt.rcParams.update(STYLE)
    FOLDER.mkdir(exist_ok=True)
    for name in parser.parse_args().names or FIGURES:
        FIGURES[name]()


if __name__ == "__main__":
    main()
