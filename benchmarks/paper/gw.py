"""The paper's figure of Gromov-Wasserstein: turned shapes embedded so that turning does not matter.

    python benchmarks/paper/gw.py --data FOLDER [--quick]

ModelNet10 shapes of 128 to 256 points, each turned at random. Embedded against solved divergences of test shapes, a
UMAP of the test shapes by class, and by how much a vector changes when its shape is turned once more.
"""

import numpy as np
from report import EPSILON, Report, arguments, real_data
from scipy.stats import special_ortho_group

import scwormhole as wh


def main() -> None:
    given = arguments(__doc__)
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from umap import UMAP

    halves = real_data.modelnet_halves(given.data, n_points=(128, 257), turned=True)
    model = wh.Wormhole(metric="GS", **EPSILON, coeff_dec=0, max_steps=0 if given.quick else 100, progress=False)
    model.fit(halves.train)
    z = model.transform(halves.test)
    again = model.transform(turned(halves.test))
    apart = np.linalg.norm(z[:, None] - z[None, :64], axis=-1).mean()
    f = wh.metrics.fidelity(model, halves.test, n_clouds=40, n_repeats=1 if given.quick else 3, n_exact=0)
    report = Report("gw", ["what", "value"], given)
    report.add("fidelity", f"{f.correlation:.4f} ± {f.correlation_std:.4f}")
    report.add(
        "a turn moves a vector, over the mean distance of two",
        f"{np.linalg.norm(again - z, axis=1).mean() / apart:.2%}",
    )
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.5), layout="constrained")
    wh.pl.fidelity(model, halves.test, n_clouds=40, ax=axes[0])
    places = UMAP(random_state=0, n_jobs=1).fit_transform(z)
    for label in np.unique(halves.test_labels):
        some = halves.test_labels == label
        axes[1].scatter(*places[some].T, s=6, label=str(label))
    axes[1].set(xticks=[], yticks=[], title="turned test shapes, UMAP of vectors")
    axes[1].legend(frameon=False, fontsize="x-small", markerscale=2)
    figure.savefig(given.out / "gw.png", dpi=110)


def turned(clouds: wh.PointClouds) -> wh.PointClouds:
    """Return clouds turned at random around the origin."""
    turns = special_ortho_group(3, seed=np.random.default_rng(1)).rvs(len(clouds))
    points = [np.asarray(cloud.points) @ turn for cloud, turn in zip(clouds, turns, strict=True)]
    return wh.PointClouds.from_list(points, [cloud.weights for cloud in clouds])


if __name__ == "__main__":
    main()
