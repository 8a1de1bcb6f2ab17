"""Decoded clouds of MNIST: reconstruction, barycenters and interpolations, with figures.

    python benchmarks/decoder.py --data FOLDER [--out docs/benchmarks]

Reconstruction is the divergence of held-out digits from their decoded clouds, over the mean divergence of the cohort. A
barycenter's objective is the mean divergence from the ten digits it is of, compared with POT's free-support barycenter
of the same number of points. An interpolation is straight if the divergence from its first cloud grows as t squared.
"""

import argparse
import os
import time
from pathlib import Path

import data as real_data
import numpy as np

import scwormhole as wh

N_DIGITS = 10


def objective(points: np.ndarray, clouds: wh.PointClouds, epsilon: float) -> float:
    """Return the mean divergence of one cloud from several."""
    one = wh.PointClouds.from_list([points] * len(clouds))
    return float(wh.ot.distances(one, clouds, epsilon=epsilon, relative_epsilon=None, progress=False).mean())


def free_support(clouds: wh.PointClouds, n_points: int) -> np.ndarray:
    """Return POT's free-support barycenter, the best of three starts."""
    import ot

    places = [np.asarray(cloud.points, np.float64) for cloud in clouds]
    masses = [cloud.weights for cloud in clouds]
    best, least = None, np.inf
    for seed in range(3):
        start = np.random.default_rng(seed).permutation(np.concatenate(places))[:n_points]
        found = ot.lp.free_support_barycenter(places, masses, start, numItermax=200)
        value = np.mean(
            [
                ot.emd2(np.full(n_points, 1 / n_points), m, ot.dist(found, p))
                for p, m in zip(places, masses, strict=True)
            ]
        )
        if value < least:
            best, least = found, value
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("SCWORMHOLE_DATA"), help="folder of public data")
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks"), help="folder for the table and figures")
    parser.add_argument("--n-train", type=int, default=None, help="training digits; all by default")
    arguments = parser.parse_args()
    if arguments.data is None:
        parser.error("give --data FOLDER, or set SCWORMHOLE_DATA")
    halves = real_data.images(arguments.data, "mnist", arguments.n_train)
    start = time.perf_counter()
    model = wh.Wormhole(progress=False).fit(halves.train)
    took = time.perf_counter() - start
    epsilon = model.epsilon_ / 5  # sharper than what was trained, for all that is compared
    test, labels = halves.test[:2000], halves.test_labels[:2000]
    z = model.transform(test)
    some = test[:256]
    options = {"epsilon": epsilon, "relative_epsilon": None, "progress": False}
    back = model.inverse_transform(z[:256])
    pairs = wh.ot.pairwise(some, **options)
    mean = pairs[np.triu_indices(len(pairs), 1)].mean()
    share = wh.ot.distances(some, back, **options).mean() / mean
    lines = [
        f"Trained on {len(halves.train):,} digits in {took:.0f} s, clouds of {model.n_points_} points.",
        "",
        f"- Reconstruction of held-out digits: {share:.1%} of the mean divergence between digits.",
    ]
    ratios, middles = [], []
    for digit in range(N_DIGITS):
        of = np.flatnonzero(labels == digit)[:10]
        middle = model.barycenter(z[of]).points
        rival = free_support(test[of], model.n_points_)
        ratios.append(objective(middle, test[of], epsilon) / objective(rival, test[of], epsilon))
        middles.append((middle, rival))
    lines.append(
        f"- Barycenter of ten digits of a class: objective {np.mean(ratios):.3f} times that of POT's free-support "
        f"barycenter, mean over the ten classes ({min(ratios):.3f} to {max(ratios):.3f})."
    )
    bends = []
    for i, j in zip(range(0, 20, 2), range(1, 20, 2), strict=True):
        path = model.interpolate(z[i], z[j], n=9)
        apart = np.sqrt(wh.ot.pairwise(path, **options)[0])
        bends.append(np.abs(apart / apart[-1] - np.linspace(0, 1, 9)).max())
    lines.append(
        f"- Interpolation: the distance from the first cloud departs from a straight line by {np.mean(bends):.1%} of "
        f"its length, mean over ten pairs (worst {max(bends):.1%})."
    )
    print("\n".join(lines))
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "decoder.md").write_text("\n".join(lines) + "\n")
    draw(arguments.out, some, back, middles, model.interpolate(z[0], z[1], n=10))


def draw(out: Path, some: wh.PointClouds, back: wh.PointClouds, middles: list, path: wh.PointClouds) -> None:
    """Draw digits with their decoded clouds, barycenters with POT's, and an interpolation."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = [
        ("digit", [cloud.points for cloud in some[:10]]),
        ("decoded", [cloud.points for cloud in back[:10]]),
        ("barycenter", [middle for middle, _ in middles]),
        ("POT's", [rival for _, rival in middles]),
        ("interpolation", [cloud.points for cloud in path]),
    ]
    figure, axes = plt.subplots(len(rows), 10, figsize=(10, 5.4))
    for row, (name, clouds) in zip(axes, rows, strict=True):
        row[0].set_ylabel(name)
        for axis, points in zip(row, clouds, strict=True):
            axis.scatter(points[:, 1], -points[:, 0], s=3, color="#225588", linewidths=0)
            axis.set(xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), xticks=[], yticks=[], aspect="equal")
    figure.tight_layout(pad=0.3)
    figure.savefig(out / "decoder.png", dpi=110)


if __name__ == "__main__":
    main()
