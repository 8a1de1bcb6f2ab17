"""The demonstration, ``python -m scwormhole demo``: handwritten digits as clouds, embedded, checked and drawn.

The one place of the package that prints.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import scwormhole as wh

TRAINED, HELD_OUT = 600, 128


def main(arguments: list[str] | None = None) -> None:
    """Read the command line and run what it asks for."""
    parser = argparse.ArgumentParser(prog="python -m scwormhole", description="Optimal transport between many clouds.")
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("demo", help="embed scikit-learn's digits as clouds, and draw what comes out")
    command.add_argument("--out", type=Path, default=Path("demo"), help="folder for the figures (default: demo)")
    command.add_argument("--rng", type=int, default=0, help="seed (default: 0)")
    options = parser.parse_args(arguments)
    demo(options.out, options.rng)


def digits() -> tuple[wh.PointClouds, NDArray[np.int64]]:
    """Return scikit-learn's digits as clouds, ink as weight, and what they show."""
    from sklearn.datasets import load_digits

    images, labels = load_digits().images, load_digits().target
    points = [np.argwhere(image > 0).astype(np.float64) for image in images]
    ink = [image[image > 0] for image in images]
    return wh.PointClouds.from_list(points, weights=ink), labels


def demo(out: Path, rng: int) -> None:
    """Embed the digits, compare held-out ones with the transport solved pair by pair, and draw both."""
    from sklearn.neighbors import KNeighborsClassifier

    clouds, labels = digits()
    print(clouds)
    order = np.random.default_rng(rng).permutation(len(clouds))
    train, test = order[:TRAINED], order[TRAINED : TRAINED + HELD_OUT]

    start = time.perf_counter()
    features = wh.ot.BaseFeatures(rng=rng).fit(clouds[train])
    embedding = features.transform(clouds)
    embedded = time.perf_counter() - start

    start = time.perf_counter()
    solved, info = wh.ot.pairwise(clouds[test], return_info=True)
    took = time.perf_counter() - start
    nugget = features.nugget(clouds[test])
    gaps = ((embedding[test][:, None] - embedding[test]) ** 2).sum(-1) + nugget[:, None] + nugget
    pairs = np.triu_indices(len(test), 1)
    agreement = float(np.corrcoef(solved[pairs], gaps[pairs])[0, 1])
    neighbours = KNeighborsClassifier(5).fit(embedding[train], labels[train])
    accuracy = float(neighbours.score(np.delete(embedding, train, 0), np.delete(labels, train)))

    out.mkdir(parents=True, exist_ok=True)
    _draw(out, clouds, labels, embedding, solved[pairs], gaps[pairs], agreement)
    print(f"{len(pairs[0]):,} pairs of held-out digits solved by Sinkhorn in {took:.1f} s: {info}")
    print(f"all {len(clouds):,} digits embedded in {embedded:.1f} s, {embedding.shape[1]} dimensions")
    print(f"correlation of embedded with solved distances, held-out digits: {agreement:.3f}")
    print(f"held-out digits whose five nearest neighbours name them right: {accuracy:.1%}")
    print(f"figures: {', '.join(str(path) for path in sorted(out.glob('*.png')))}")


def _draw(
    out: Path,
    clouds: wh.PointClouds,
    labels: NDArray[np.int64],
    embedding: NDArray[Any],
    solved: NDArray[np.float64],
    gaps: NDArray[np.float64],
    agreement: float,
) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 5), layout="constrained")
    axes = figure.add_subplot(xlabel="solved by Sinkhorn", ylabel="embedded", aspect="equal")
    axes.scatter(solved, gaps, s=3, alpha=0.3, linewidths=0, rasterized=True)
    axes.axline((0, 0), slope=1, color="black", linewidth=0.8)
    axes.set_title(f"squared distances of held-out digits, r = {agreement:.3f}")
    figure.savefig(out / "distances.png", dpi=150)

    figure = Figure(figsize=(6, 5), layout="constrained")
    axes = figure.add_subplot(xticks=[], yticks=[])
    flat = _flat(embedding)
    dots = axes.scatter(flat[:, 0], flat[:, 1], c=labels, cmap="tab10", vmin=-0.5, vmax=9.5, s=6, linewidths=0)
    figure.colorbar(dots, ax=axes, ticks=range(10), label="digit")
    axes.set_title(f"{len(clouds):,} digits: UMAP of their embedding")
    figure.savefig(out / "map.png", dpi=150)


def _flat(embedding: NDArray[Any]) -> NDArray[Any]:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a seeded UMAP says that it runs on one core
        from umap import UMAP

        flat: NDArray[Any] = UMAP(random_state=0, n_jobs=1).fit_transform(embedding)
    return flat


if __name__ == "__main__":
    main()
