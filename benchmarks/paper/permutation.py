"""The paper's check that the order of points does not matter, and ours that splitting points and batches do not either.

    python benchmarks/paper/permutation.py --data FOLDER [--quick]

A model trained on MNIST embeds the same test digits with points in another order, with every point split into two of
half its weight, one cloud at a time, and as they are; what is told is the largest difference, over the largest number.
"""

import numpy as np
from report import EPSILON, Report, arguments, real_data

import scwormhole as wh


def main() -> None:
    given = arguments(__doc__)
    halves = real_data.images(given.data, "mnist", 2_000)
    test = halves.test[: 100 if given.quick else 1_000]
    models = {
        "Wormhole()": wh.Wormhole(**EPSILON, coeff_dec=0, max_steps=100, progress=False),
        "Wormhole.paper()": wh.Wormhole.paper(coeff_dec=0, max_steps=100, progress=False),
    }
    report = Report("permutation", ["model", "change", "largest difference of a vector's numbers"], given)
    for name, model in models.items():
        z = model.fit(halves.train).transform(test)
        changes = {
            "points in another order": model.transform(changed(test, shuffled)),
            "every point split in two": model.transform(changed(test, split)),
            "one cloud at a time": np.concatenate([model.transform(test[i : i + 1]) for i in range(20)]),
        }
        for what, other in changes.items():
            report.add(name, what, f"{np.abs(other - z[: len(other)]).max() / np.abs(z).max():.1e}")


def changed(clouds: wh.PointClouds, change) -> wh.PointClouds:
    generator = np.random.default_rng(0)
    parts = [change(np.asarray(cloud.points), np.asarray(cloud.weights), generator) for cloud in clouds]
    return wh.PointClouds.from_list([points for points, _ in parts], [weights for _, weights in parts])


def shuffled(points, weights, generator):
    order = generator.permutation(len(points))
    return points[order], weights[order]


def split(points, weights, generator):
    return np.repeat(points, 2, axis=0), np.repeat(weights / 2, 2)


if __name__ == "__main__":
    main()
