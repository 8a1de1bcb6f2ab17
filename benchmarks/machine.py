"""Floating-point operations a second of a training step and of `transform`, as a share of the machine's own sgemm.

Both run on all cores. Counted are the products of matrices in the transformer, on points as they are: padding, base
features, normalisation, exponentials and solved targets take time and count for nothing. A step is three times the
pass forward. Rates are the median of several runs, and sgemm is measured between them.

    python benchmarks/machine.py --data FOLDER [--out docs/benchmarks/machine.md]
"""

import argparse
import os
import time
import warnings
from pathlib import Path

import data as real_data
import numpy as np

import scwormhole as wh

REPEATS = 7
N_TRAIN, N_STEPS = 10_000, 150


def sgemm_rate() -> float:
    """Return the floating-point operations a second of a product of two large matrices."""
    matrix = np.random.default_rng(0).random((2048, 2048), np.float32)
    matrix @ matrix
    start = time.perf_counter()
    for _ in range(5):
        matrix @ matrix
    return 5 * 2 * 2048**3 / (time.perf_counter() - start)


def encoder_flops(model: wh.Wormhole, clouds: wh.PointClouds) -> float:
    """Return the floating-point operations of the transformer on clouds as they are, padding not counted."""
    network = model._trained.network
    width, hidden, induced = network.width, network.hidden, network.n_induced
    sizes = clouds.sizes.astype(float)
    seen = 2 * induced if induced else sizes
    point = network.n_blocks * (2 * (4 * width**2 + 2 * width * hidden) + 4 * seen * width) + 2 * clouds.dim * width
    return float((sizes * point).sum())


def measured(clouds: wh.PointClouds, test: wh.PointClouds, params: dict) -> list[str]:
    """Return what a cohort makes of the machine, as cells of a table."""
    model = wh.Wormhole(coeff_dec=0, progress=False, max_steps=N_STEPS, **params)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few steps do not converge, and need not
        model.fit(clouds)
    history = model.history_
    step, at = (np.array(history[name], float) for name in ("step", "seconds"))
    paces = (np.diff(at) / np.diff(step))[1:]
    batch = model.get_params()["batch_size"]
    step_flops = 3 * encoder_flops(model, clouds) * batch / len(clouds)
    model.transform(test)  # compiles
    times, rates = [], []
    for _ in range(REPEATS):
        start = time.perf_counter()
        model.transform(test)
        times.append(time.perf_counter() - start)
        rates.append(sgemm_rate())
    rate, took, pace = np.median(rates), np.median(times), np.median(paces)
    flops = encoder_flops(model, test)
    return [
        f"{test.sizes.mean():.0f}",
        f"{rate / 1e9:.0f}",
        f"{step_flops / 1e9:.1f}",
        f"{pace * 1e3:.0f} ms",
        f"{step_flops / pace / rate:.0%}",
        f"{flops / len(test) / 1e6:.1f}",
        f"{len(test) / took:.0f}",
        f"{flops / took / rate:.0%}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("SCWORMHOLE_DATA"), help="folder of public data")
    parser.add_argument("--out", type=Path, help="Markdown file for the table")
    arguments = parser.parse_args()
    if arguments.data is None:
        parser.error("give --data FOLDER, or set SCWORMHOLE_DATA")
    digits, niches = real_data.images(arguments.data, "mnist", N_TRAIN), real_data.merfish_halves(arguments.data)
    paper = {"epsilon": 0.1, "relative_epsilon": "box"}
    cohorts = {
        "MNIST": (digits.train, digits.test, {}),
        "MNIST, `paper()`'s network": (
            digits.train,
            digits.test,
            {"width": 128, "hidden": 512, "n_blocks": 3, "n_induced": 0},
        ),
        "MERFISH niches": (niches.train, niches.test, {}),
    }
    lines = [
        "| cohort | mean size | sgemm, Gflop/s | step, Gflop | step | share of sgemm "
        "| transform, Mflop a cloud | clouds/s | share of sgemm |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines), flush=True)
    for name, (train, test, params) in cohorts.items():
        lines.append("| " + " | ".join([name, *measured(train, test, {**paper, **params})]) + " |")
        print(lines[-1], flush=True)
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
