"""The paper's Table 1 and its table of errors: every method on the same test clouds, targets and classifier.

    python benchmarks/paper/table.py --data FOLDER [--peer peer/bin/python] [--quick] [--cohorts mnist ...]

Each cohort is run in a process of its own on a core of its own, and has its own files; `table.md` puts all of them side
by side with what the paper prints. All methods are fitted on the same training clouds, and compared with solved
divergences at the paper's epsilon on the same draws of test clouds, all pairs. Error is the mean squared one in the
paper's units, for methods that aim at the divergence itself. Labels are told by scikit-learn's MLP on vectors, and by
the ten nearest of 2,000 training clouds for methods with and without vectors, if they can be had in five minutes.
Methods that are trained by steps, the authors' package among them, have as long as `Wormhole()` took, and two minutes
at least. What cannot be run says why.
"""

import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np
from report import EPSILON, Report, arguments, real_data, written

import scwormhole as wh
from scwormhole import baselines
from scwormhole.metrics import Tables, compared, paper_scale
from scwormhole.ot._solver import squared_gaps

N_TRAIN, N_TEST, N_LABELLED = 20_000, 2_000, 10_000
N_NEAR, N_ASKED, NEAREST = 2_000, 500, 10  # clouds of known label, clouds to be labelled, those that vote
MOST_COMPARING = 300.0  # seconds to compare them, above which a method without vectors tells no labels
LEAST = 120.0  # seconds that trained rivals have at least


class Setting(NamedTuple):
    """A cohort and how it is compared."""

    what: str
    load: Callable[[Path], real_data.Halves]
    draws: tuple[int, int] = (10, 128)  # draws, clouds of a draw
    metric: str = "S2"
    seconds: float | None = None  # time for Wormhole, where pairs are slow
    printed: dict[str, tuple[float | None, ...]] = {}  # by the paper: correlation, error, labels  # noqa: RUF012


COHORTS = {
    "mnist": Setting(
        "MNIST",
        partial(real_data.images, name="mnist", n_train=N_TRAIN),
        printed={
            "Wormhole": (0.98, 2.57e-5, 0.98),
            "DiffusionEMD": (0.845, None, 0.84),
            "DWE": (0.92, 1.63e-4, 0.97),
            "Fréchet": (0.86, None, 0.49),
        },
    ),
    "fashion": Setting(
        "Fashion-MNIST",
        partial(real_data.images, name="fashion_mnist", n_train=N_TRAIN),
        printed={
            "Wormhole": (0.99, 1.41e-5, 0.87),
            "DiffusionEMD": (0.97, None, 0.77),
            "DWE": (0.98, 1.88e-4, 0.87),
            "Fréchet": (0.99, None, 0.73),
        },
    ),
    "modelnet": Setting(
        "ModelNet10 (paper: ModelNet40)",
        real_data.modelnet_halves,
        draws=(3, 64),
        seconds=200,
        printed={
            "Wormhole": (0.99, 8.89e-5, 0.86),
            "DiffusionEMD": (0.85, None, 0.69),
            "DWE": (0.97, 3.52e-4, 0.78),
            "Fréchet": (0.95, None, 0.61),
        },
    ),
    "turned": Setting(
        "ModelNet10, turned, Gromov-Wasserstein (paper: ShapeNet)",
        partial(real_data.modelnet_halves, n_points=(128, 257), turned=True),
        draws=(3, 40),
        metric="GS",
        seconds=400,
        printed={"Wormhole": (0.98, 2.28e-3, 0.82), "Gaussian GW bound": (0.68, None, 0.16)},
    ),
    "merfish": Setting(
        "MERFISH niches, 155 genes (paper: another tissue)",
        real_data.merfish_halves,
        printed={"Wormhole": (0.97, 6.94e-3, 0.98)},
    ),
    "codex": Setting(
        "CODEX niches, 29 proteins (paper: SeqFISH)",
        real_data.codex_halves,
        printed={"Wormhole": (0.98, 9.90e-4, 0.97)},
    ),
    "pancreas": Setting(
        "Pancreas metacells, 2,000 genes (paper: COVID atlas)",
        real_data.pancreas_halves,
        printed={"Wormhole": (0.98, 3.80e-5, 0.96)},
    ),
    "covid": Setting(
        "COVID metacells, 50 components (paper: all genes)",
        real_data.covid_halves,
        printed={"Wormhole": (0.98, 3.80e-5, 0.96)},
    ),
}


class Vectors:
    """A model of ours as a rival: its table has the nuggets in."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def pairwise(self, first: wh.PointClouds, second: wh.PointClouds | None = None) -> np.ndarray:
        if second is not None:
            return squared_gaps(*(self.transform(part).astype(np.float64) for part in (first, second)))
        return self.model.embed(first).table(first.shared_mass())

    def transform(self, clouds: wh.PointClouds) -> np.ndarray:
        return self.model.transform(clouds)


class Authors:
    """The authors' package as a rival: every cloud it will be asked for is embedded when it is fitted."""

    def __init__(
        self, given: Any, tests: list, shown: "Asked", train: wh.PointClouds, seconds: float, *, metric: str, **_: Any
    ) -> None:
        from peer import trained

        if given.peer is None:
            raise ValueError("give --peer, the Python of an environment that has it")
        asked = [*tests, shown.test, shown.train]
        every = wh.PointClouds.concatenate(asked)
        low, high = train.points.min(), train.points.max()
        width = (high - low) / 2 * (1 if every.dim <= 3 else every.dim**0.5)
        train, every = (boxed(clouds, (low + high) / 2, width) for clouds in (train, every))
        found = trained(given.peer, train, every, seconds, metric=metric, patience=seconds + given.patience)
        self.steps, self.rate, ends = len(found.steps), found.rate, np.cumsum([len(part) for part in asked])
        self.found = {
            id(part): z for part, z in zip(asked, np.split(found.z.astype(np.float64), ends[:-1]), strict=True)
        }
        for part, whole in ((shown.asked, shown.test), (shown.near, shown.train)):
            self.found[id(part)] = self.found[id(whole)][: len(part)]

    def pairwise(self, first: wh.PointClouds, second: wh.PointClouds | None = None) -> np.ndarray:
        return squared_gaps(self.found[id(first)], self.found[id(first if second is None else second)])

    def transform(self, clouds: wh.PointClouds) -> np.ndarray:
        return self.found[id(clouds)]


class Method(NamedTuple):
    """How a rival is fitted, whether it has vectors for the MLP, and whether it aims at the divergence itself."""

    fit: Callable[..., Any]
    vectors: bool = True
    aims: bool = True


OURS = {
    "Wormhole": Method(lambda train, seconds, **p: Vectors(wh.Wormhole(**p, coeff_dec=0, progress=False).fit(train))),
    "base alone": Method(lambda train, seconds, **p: Vectors(wh.ot.BaseFeatures(**p, progress=False).fit(train))),
}
AUTHORS = "authors' package"
RIVALS = {
    "DiffusionEMD": Method(lambda train, seconds, **p: baselines.DiffusionEMD().fit(train), vectors=False, aims=False),
    "DWE": Method(lambda train, seconds, **p: baselines.DWE(**p, max_seconds=seconds, progress=False).fit(train)),
    "Fréchet": Method(lambda train, seconds, **p: baselines.Frechet().fit(train), vectors=False, aims=False),
    "RG": Method(lambda train, seconds, **p: baselines.SlicedRegression(**p).fit(train), vectors=False),
    "LOT": Method(lambda train, seconds, **p: baselines.LinearOT().fit(train), aims=False),
    "sliced": Method(lambda train, seconds, **p: baselines.SlicedFeatures(**p).fit(train)),
    "mean and covariance": Method(lambda train, seconds, **p: baselines.Moments().fit(train), aims=False),
}
GROMOV_RIVALS = {"Gaussian GW bound": Method(lambda train, seconds, **p: baselines.GaussianGW().fit(train), aims=False)}
COLUMNS = ["method", "fidelity", "standard deviation", "MSE, scaled", "recall of ten neighbours", "labels, MLP"]
COLUMNS += ["labels, neighbours", "fit, s", "clouds/s", "steps", "why not"]


def main() -> None:
    given = arguments(
        __doc__,
        cohorts={"nargs": "+", "choices": COHORTS, "default": list(COHORTS), "help": "which"},
        methods={"nargs": "+", "help": "which; all by default, and the rows of others stay"},
        seconds={"type": float, "help": "what trained rivals have at least"},
        patience={"type": float, "default": 900.0, "help": "seconds more for the authors' package to finish and embed"},
        peer={"help": "Python of an environment with wassersteinwormhole"},
    )
    if len(given.cohorts) == 1:
        cohort(given.cohorts[0], given)
    else:
        apart(given)
    side_by_side(given.out)


def apart(given: Any) -> None:
    """Run each cohort in a process of its own, as many at a time as there are cores, each on one."""
    options = ["--data", given.data, "--out", given.out, *["--quick"] * given.quick]
    options += ["--patience", given.patience]
    options += ["--peer", given.peer] if given.peer else []
    options += ["--methods", *given.methods] if given.methods else []
    options += ["--seconds", given.seconds] if given.seconds else []
    cores = SimpleQueue[int]()
    for core in sorted(os.sched_getaffinity(0)):
        cores.put(core)

    def run(name: str) -> None:
        core = cores.get()
        command = [sys.executable, __file__, *map(str, options), "--cohorts", name]
        try:
            subprocess.run(command, check=True, preexec_fn=lambda: os.sched_setaffinity(0, [core]))
        finally:
            cores.put(core)

    with ThreadPoolExecutor(cores.qsize()) as pool:
        list(pool.map(run, given.cohorts))


def cohort(name: str, given: Any) -> None:
    """Run all methods on one cohort."""
    setting = COHORTS[name]
    halves = setting.load(given.data)
    params = {**EPSILON, "metric": setting.metric}
    n_draws, count = (2, 40) if given.quick else setting.draws
    generator = np.random.default_rng(0)
    if count >= len(halves.test):
        n_draws, count = 1, len(halves.test)
    tests = [halves.test[np.sort(generator.choice(len(halves.test), count, replace=False))] for _ in range(n_draws)]
    solved = [wh.ot.pairwise(test, progress=False, **params) for test in tests]
    shown = Asked(halves, N_LABELLED // (10 if given.quick else 1))
    sizes = halves.train.sizes
    print(
        f"{setting.what}: {len(halves.train)} + {len(halves.test)} clouds of {np.median(sizes):.0f} points", flush=True
    )
    methods = {**OURS, AUTHORS: None, **(GROMOV_RIVALS if setting.metric == "GS" else RIVALS)}
    report = Report(f"table_{name}", COLUMNS, given)
    asked = given.methods or list(methods)
    report.keep_others(asked)
    seconds = given.seconds or LEAST / (2 if given.quick else 1)
    for method in asked:
        kind = methods[method] or Method(partial(Authors, given, tests, shown), aims=False)
        limit = seconds if given.quick else setting.seconds
        more = {"max_seconds": limit} if method == "Wormhole" else {}
        start = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that steps ran out is in the docs
                model = kind.fit(halves.train, seconds, **params, **more)
            took = time.perf_counter() - start
            scale = paper_scale(halves.test, setting.metric) if kind.aims else None
            report.add(method, *measured(model, kind, tests, solved, scale, shown, took), None)
        except (ValueError, MemoryError, RuntimeError, subprocess.TimeoutExpired) as error:
            took = time.perf_counter() - start
            late = isinstance(error, subprocess.TimeoutExpired)
            why = f"not done in {took:.0f} s" if late else " ".join(str(error).split())[-200:]
            report.add(method, *[None] * 9, why)
        if method == "Wormhole":
            seconds = max(seconds, took)


class Asked:
    """Clouds whose labels are known and asked for: many for the MLP, fewer for neighbours."""

    def __init__(self, halves: real_data.Halves, n_labelled: int) -> None:
        generator, self.labels, parts = np.random.default_rng(1), {}, []
        for clouds, labels, counts in (
            (halves.test, halves.test_labels, (N_TEST, N_ASKED)),
            (halves.train, halves.train_labels, (n_labelled, min(n_labelled, N_NEAR))),
        ):
            order = generator.permutation(len(clouds))
            for count in counts:
                parts.append(clouds[order[:count]])
                self.labels[id(parts[-1])] = labels[order[:count]]
        self.test, self.asked, self.train, self.near = parts

    def of(self, part: wh.PointClouds) -> np.ndarray:
        return self.labels[id(part)]


def measured(model, kind: Method, tests: list, solved: list, scale: float | None, shown: Asked, took: float) -> list:
    """Return the row of a fitted method."""
    rows, start = [], time.perf_counter()
    for test, true in zip(tests, solved, strict=True):
        found = model.pairwise(test)
        rows.append(compared(Tables(true, found, found), scale or 1.0))
    fidelity, _, mse, _, recall = np.mean(rows, axis=0)
    spread, near, far, rate = np.std([row[0] for row in rows]), None, None, None
    pace = (time.perf_counter() - start) / sum(len(test) ** 2 / 2 for test in tests)
    if kind.vectors or pace * len(shown.asked) * len(shown.near) < MOST_COMPARING:
        labels = baselines.knn_labels(model.pairwise(shown.asked, shown.near), shown.of(shown.near), k=NEAREST)
        near = float((labels == shown.of(shown.asked)).mean())
    if kind.vectors:
        start = time.perf_counter()
        z = model.transform(shown.test)
        rate = getattr(model, "rate", len(z) / (time.perf_counter() - start))
        far = wh.metrics.label_accuracy(
            model.transform(shown.train), shown.of(shown.train), test_z=z, test_labels=shown.of(shown.test)
        )
    steps = getattr(model, "steps", getattr(model, "n_steps_", None))
    if isinstance(model, Vectors) and isinstance(model.model, wh.Wormhole):
        steps = max(model.model.history_["step"], default=0)
    shown_as = [f"{fidelity:.4f}", f"{spread:.4f}", None if scale is None else f"{mse:.1e}", f"{recall:.2f}"]
    return [*shown_as, *(None if found is None else f"{found:.3f}" for found in (far, near)), took, rate, steps]


def boxed(clouds: wh.PointClouds, middle: float, width: float) -> wh.PointClouds:
    """Return clouds in the paper's box."""
    points = ((clouds.points - middle) / width).astype(np.float32)
    return wh.PointClouds(points, clouds.indptr, clouds.indices, clouds.weights)


def side_by_side(folder: Path) -> None:
    """Put all cohorts that were run side by side, methods by cohorts, with what the paper prints."""
    found = {name: {row["method"]: row for row in written(folder / f"table_{name}.csv")} for name in COHORTS}
    found = {name: rows for name, rows in found.items() if rows}
    lines = []
    for title, column, place in (
        ("Fidelity, Pearson correlation", "fidelity", 0),
        ("Mean squared error, scaled", "MSE, scaled", 1),
        ("Labels, MLP on vectors", "labels, MLP", 2),
        ("Labels, ten neighbours", "labels, neighbours", None),
    ):
        lines += [f"**{title}**", "", "| method | " + " | ".join(name for name in found) + " |"]
        lines.append("|---|" + "---|" * len(found))
        for method in [*OURS, AUTHORS, *RIVALS, *GROMOV_RIVALS]:
            cells = [found[name].get(method, {}).get(column, "") for name in found]
            if place is not None:
                printed = [COHORTS[name].printed.get(method, (None,) * 3)[place] for name in found]
                cells = [c if p is None else f"{c} ({p:g})" for c, p in zip(cells, printed, strict=True)]
            if any(cells):
                lines.append(f"| {method} | " + " | ".join(cells) + " |")
        lines.append("")
    for method in [*OURS, AUTHORS, *RIVALS, *GROMOV_RIVALS]:
        missed = {name: rows[method]["why not"].split(",")[0] for name, rows in found.items() if method in rows}
        said = "; ".join(f"{name}: {why}" for name, why in missed.items() if why)
        lines += [f"- {method} was not had for {said}."] if said else []
    (folder / "table.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
