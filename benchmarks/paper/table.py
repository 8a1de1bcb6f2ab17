"""The paper's Table 1 and its table of errors: every method on the same test clouds, targets and classifier.

    python benchmarks/paper/table.py --data FOLDER [--quick] [--cohorts mnist ...]

All methods are fitted on the same training clouds, and compared with solved divergences at the paper's epsilon on the
same ten draws of 128 test clouds, all pairs. Error is the mean squared one in the paper's units, for methods that aim
at the divergence itself. Labels are told by scikit-learn's MLP on vectors, or by the nearest training clouds where
there are none, as in the paper: 30 for Fréchet and RG, one for DiffusionEMD. What cannot be run says why.
"""

import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from report import EPSILON, Report, arguments, real_data

import scwormhole as wh
from scwormhole import baselines
from scwormhole.metrics import compared, paper_scale

N_TRAIN, N_TEST, N_LABELLED, N_KNN = 20_000, 2_000, 10_000, 2_000
N_DRAWN, DRAWS = 128, 10


class Setting(NamedTuple):
    """A cohort and how it is compared."""

    what: str
    load: Callable[[Any], real_data.Halves]
    params: dict[str, Any]


COHORTS = {
    "mnist": Setting("MNIST", partial(real_data.images, name="mnist", n_train=N_TRAIN), EPSILON),
    "fashion": Setting("Fashion-MNIST", partial(real_data.images, name="fashion_mnist", n_train=N_TRAIN), EPSILON),
    "modelnet": Setting("ModelNet10 (for ModelNet40, ShapeNet)", real_data.modelnet_halves, EPSILON),
    "modelnet-gw": Setting(
        "ModelNet10, turned, GW (for ShapeNet)",
        partial(real_data.modelnet_halves, n_points=(128, 257), turned=True),
        {**EPSILON, "metric": "GS"},
    ),
    "merfish": Setting("MERFISH niches", real_data.merfish_halves, EPSILON),
}


class Vectors:
    """A model of ours as a rival: its table has the nuggets in."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def pairwise(self, clouds: wh.PointClouds) -> np.ndarray:
        return self.model.embed(clouds).table(clouds.shared_mass())

    def transform(self, clouds: wh.PointClouds) -> np.ndarray:
        return self.model.transform(clouds)


# name: (fit, neighbours that tell labels where there are no vectors, whether it aims at the divergence itself)
METHODS: dict[str, tuple[Callable[..., Any], int, bool]] = {
    "Wormhole": (lambda train, p: Vectors(wh.Wormhole(**p, coeff_dec=0, progress=False).fit(train)), 0, True),
    "Wormhole, base alone": (lambda train, p: Vectors(wh.ot.BaseFeatures(**p, progress=False).fit(train)), 0, True),
    "DiffusionEMD": (lambda train, p: baselines.DiffusionEMD().fit(train), 1, False),
    "DWE": (lambda train, p: baselines.DWE(**p, progress=False).fit(train), 0, True),
    "Fréchet": (lambda train, p: baselines.Frechet().fit(train), 30, False),
    "RG": (lambda train, p: baselines.SlicedRegression(**p).fit(train), 30, True),
    "LOT": (lambda train, p: baselines.LinearOT().fit(train), 0, False),
    "sliced": (lambda train, p: baselines.SlicedFeatures(**p).fit(train), 0, True),
    "mean and covariance": (lambda train, p: baselines.Moments().fit(train), 0, False),
}
GROMOV = {
    "Wormhole": METHODS["Wormhole"],
    "Wormhole, base alone": METHODS["Wormhole, base alone"],
    "Gaussian GW bound": (lambda train, p: baselines.GaussianGW().fit(train), 30, False),
}


def main() -> None:
    given = arguments(
        __doc__,
        cohorts={"nargs": "+", "choices": COHORTS, "default": list(COHORTS), "help": "which"},
    )
    columns = [
        "cohort",
        "method",
        "fidelity",
        "MSE, scaled",
        "neighbour recall",
        "labels",
        "fit, s",
        "clouds/s",
        "why not",
    ]
    report = Report("table", columns, given)
    for name in given.cohorts:
        setting = COHORTS[name]
        halves = setting.load(given.data)
        gromov = setting.params.get("metric") == "GS"
        tests, solved = targets(halves.test, setting.params, quick=given.quick, gromov=gromov)
        for method, (fit, k, aims) in (GROMOV if gromov else METHODS).items():
            try:
                report.add(setting.what, method, *measured(fit, k, aims, halves, setting.params, tests, solved), None)
            except (ValueError, MemoryError, NotImplementedError) as error:
                report.add(setting.what, method, *[None] * 6, str(error).splitlines()[0])


def targets(test: wh.PointClouds, params: dict, *, quick: bool, gromov: bool) -> tuple[list, list]:
    """Return draws of test clouds, and all their pairs solved."""
    generator = np.random.default_rng(0)
    count, draws = (40, 3) if gromov else (N_DRAWN, 2 if quick else DRAWS)
    tests = [test[np.sort(generator.choice(len(test), min(count, len(test)), replace=False))] for _ in range(draws)]
    return tests, [wh.ot.pairwise(some, progress=False, **params) for some in tests]


def measured(fit, k: int, aims: bool, halves: real_data.Halves, params: dict, tests: list, solved: list) -> list[Any]:
    """Fit one method and return its row."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that steps ran out is in the docs
        model = fit(halves.train, params)
    took = time.perf_counter() - start
    scale = paper_scale(halves.test, params.get("metric", "S2"))
    rows = []
    for test, true in zip(tests, solved, strict=True):
        found = model.pairwise(test)
        rows.append(compared((true, found, found), scale))
    fidelity, _, mse, _, recall = np.mean(rows, axis=0)
    some = halves.test[:N_TEST]
    start = time.perf_counter()
    if k:
        labels = baselines.knn_labels(
            model.pairwise(some[:500], halves.train[:N_KNN]), halves.train_labels[:N_KNN], k=k
        )
        accuracy = float((labels == halves.test_labels[:500]).mean())
        rate = None
    else:
        z = model.transform(some)
        rate = len(some) / (time.perf_counter() - start)
        train_z, labels = model.transform(halves.train[:N_LABELLED]), halves.train_labels[:N_LABELLED]
        accuracy = wh.metrics.label_accuracy(train_z, labels, test_z=z, test_labels=halves.test_labels[: len(some)])
    return [f"{fidelity:.4f}", f"{mse:.1e}" if aims else None, f"{recall:.2f}", f"{accuracy:.3f}", took, rate]


if __name__ == "__main__":
    main()
