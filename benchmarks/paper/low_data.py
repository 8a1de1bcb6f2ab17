"""Fidelity against the number of training clouds: Wormhole, the paper's network, and regression on sliced distances.

    python benchmarks/paper/low_data.py --data FOLDER [--quick]

MNIST at the paper's epsilon, tested on all pairs of 128 test digits, ten draws, the same for every method and size.
`paper()` has as many seconds as `Wormhole()` took, but at least a minute.
"""

import time
import warnings

import numpy as np
from report import EPSILON, Report, arguments, real_data

import scwormhole as wh

SIZES = (30, 100, 300, 1_000, 3_000)
N_DRAWN, DRAWS = 128, 10


def main() -> None:
    given = arguments(__doc__)
    halves = real_data.images(given.data, "mnist", max(SIZES))
    generator = np.random.default_rng(0)
    draws = [
        np.sort(generator.choice(len(halves.test), N_DRAWN, replace=False)) for _ in range(2 if given.quick else DRAWS)
    ]
    tests = [halves.test[some] for some in draws]
    solved = [wh.ot.pairwise(test, progress=False, **EPSILON) for test in tests]
    report = Report("low_data", ["training clouds", "method", "fidelity", "standard deviation", "fit, s"], given)
    curves: dict[str, list[tuple[int, float]]] = {}
    for size in SIZES[: 2 if given.quick else None]:
        train = halves.train[:size]
        seconds = 60.0
        for name, make in METHODS.items():
            start = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # paper() does not converge in its time
                model = make(train, seconds)
            took = time.perf_counter() - start
            if name == "Wormhole":
                seconds = max(seconds, took)
            found = [_agreement(model, test, true) for test, true in zip(tests, solved, strict=True)]
            report.add(size, name, float(np.mean(found)), float(np.std(found)), took)
            curves.setdefault(name, []).append((size, float(np.mean(found))))
    draw(given.out / "low_data.png", curves)


METHODS = {
    "Wormhole": lambda train, _: wh.Wormhole(**EPSILON, coeff_dec=0, progress=False).fit(train),
    "Wormhole, base alone": lambda train, _: wh.ot.BaseFeatures(**EPSILON, progress=False).fit(train),
    "Wormhole.paper()": lambda train, seconds: wh.Wormhole.paper(max_seconds=seconds, progress=False).fit(train),
    "RG": lambda train, _: wh.baselines.SlicedRegression(**EPSILON).fit(train),
}


def _agreement(model, test: wh.PointClouds, true: np.ndarray) -> float:
    found = model.embed(test).table(test.shared_mass()) if hasattr(model, "embed") else model.pairwise(test)
    pairs = np.triu_indices(len(test), 1)
    return float(np.corrcoef(found[pairs], true[pairs])[0, 1])


def draw(file, curves: dict[str, list[tuple[int, float]]]) -> None:
    """Draw what is missing to a correlation of one."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(6, 4))
    for name, curve in curves.items():
        sizes, values = np.array(curve).T
        axis.plot(sizes, 1 - values, marker="o", label=name)
    axis.set(xscale="log", yscale="log", xlabel="training clouds", ylabel="1 - correlation, test clouds")
    axis.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(file, dpi=110)


if __name__ == "__main__":
    main()
