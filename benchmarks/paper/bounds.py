"""The paper's table of bounds: least stress, its bounds, Wormhole's stress and classical scaling's, on three cohorts.

    python benchmarks/paper/bounds.py --data FOLDER [--quick] [--cohorts Simplex ...]

Simplex: 35 clouds of four points; Gaussians: 128 clouds of 512 points in eight dimensions; MNIST: 256 digits. All pairs
are solved at epsilon 0.1 in the units of the points, which gives the numbers that the paper prints for the simplex, and
stress is the sum of squared errors over the whole table. All clouds are trained on, none is held out: the question is
how near training comes to the best that vectors can do. No nugget, as the bounds are for vectors alone. Batches hold
all clouds or half of them, as a batch of twice the clouds has four times the pairs.
"""

import time
import warnings

from report import AS_GIVEN, Report, arguments, real_data, solved

import scwormhole as wh

FITS = {
    "Simplex": {"max_steps": 2_000, "batch_size": 35},
    # full-rank features, which a small network need only turn
    "Gaussians": {
        "max_steps": 4_000,
        "batch_size": 128,
        "max_points": 512,
        "learning_rate": 0.003,
        **{"width": 16, "hidden": 64, "n_blocks": 1, "n_heads": 2},
    },
    "MNIST": {"max_steps": 3_000, "batch_size": 128},
}
PAPER = {  # lower, upper, PGD, Wormhole, cMDS as printed
    "Simplex": (0.765, 6.369, 1.117, 1.420, 7.134),
    "Gaussians": (0.129, 2.552, 0.168, 0.401, 2.681),
    "MNIST": (0.042, 0.616, 0.058, 0.100, 0.657),
}


def main() -> None:
    given = arguments(__doc__, cohorts={"nargs": "+", "choices": FITS, "default": list(FITS), "help": "which"})
    cohorts = {
        "Simplex": wh.datasets.simplex().clouds,
        "Gaussians": wh.datasets.gaussians().clouds,
        "MNIST": real_data.mnist(given.data, 256),
    }
    columns = [
        "cohort",
        "clouds",
        "lower",
        "PGD",
        "Wormhole",
        "Wormhole / PGD",
        "cMDS",
        "upper",
        "gap of PGD",
        "PGD, steps",
    ]
    columns += ["PGD, s", "Wormhole, s", "smallest eigenvalue", "the paper: lower, PGD, Wormhole, cMDS"]
    report = Report("bounds", columns, given)
    report.keep_others(given.cohorts)
    for name in given.cohorts:
        clouds = cohorts[name]
        table = solved(clouds)
        start = time.perf_counter()
        nearest = wh.mds.nearest_edm(table, progress=False)
        climbed = time.perf_counter() - start
        model, trained = fitted(clouds, FITS[name], quick=given.quick)
        z = model.transform(clouds)
        stress = wh.metrics.stress(z, table)
        classical = wh.metrics.stress(wh.mds.classical_mds(table), table)
        lower, _, pgd, wormhole, cmds = PAPER[name]
        report.add(
            name,
            len(clouds),
            nearest.bounds.lower,
            nearest.stress,
            stress,
            stress / nearest.stress,
            classical,
            nearest.bounds.upper,
            nearest.gap,
            nearest.n_iter,
            climbed,
            trained,
            float(wh.mds.spectrum(table)[-1]),
            f"{lower}, {pgd}, {wormhole}, {cmds}",
        )


def fitted(clouds: wh.PointClouds, how: dict, *, quick: bool) -> tuple[wh.Wormhole, float]:
    """Train on all of a small cohort, and return how long it took."""
    how = {**how, "max_steps": how["max_steps"] // (10 if quick else 1)}
    model = wh.Wormhole(**AS_GIVEN, nugget=False, coeff_dec=0, n_validation=0, patience=None, progress=False, **how)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that all steps were taken, as asked
        model.fit(clouds)
    return model, time.perf_counter() - start


if __name__ == "__main__":
    main()
