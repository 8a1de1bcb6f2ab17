"""Fidelity, error, label accuracy and training time of the model on public data, clouds held out of training.

Rows marked P use the paper's scaling and epsilon, rows marked E the default epsilon. The time is that of `fit`, with
compilation, in a process of its own. Nothing is chosen on the test clouds.

    python benchmarks/wormhole.py --data FOLDER [--rows mnist-P ...] [--out docs/benchmarks/wormhole.md]
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import data as real_data
import numpy as np

import scwormhole as wh

PAPER = {"epsilon": 0.1, "relative_epsilon": "box"}


DRAWS = {  # of test clouds, where pairs take long; else ten of 128
    "modelnet-P": {"n_clouds": 64, "n_repeats": 3},
    "modelnet-GS": {"n_clouds": 40, "n_repeats": 3},
}

# name: (what, clouds, parameters, floor of the correlation, seconds)
ROWS = {
    "mnist-P": ("P: MNIST", partial(real_data.images, name="mnist"), PAPER, 0.997, 180),
    "mnist-P-60s": ("P: MNIST, 60 s", partial(real_data.images, name="mnist"), {**PAPER, "max_seconds": 55}, 0.99, 60),
    "fashion-P": ("P: Fashion-MNIST", partial(real_data.images, name="fashion_mnist"), PAPER, 0.999, 300),
    "modelnet-P": ("P: ModelNet10, 1024 points", real_data.modelnet_halves, PAPER, 0.99, 600),
    "modelnet-GS": (
        "P: ModelNet10 turned, GS, 128 to 512 points",
        partial(real_data.modelnet_halves, n_points=(128, 513), turned=True),
        {**PAPER, "metric": "GS"},
        0.98,
        1200,
    ),
    "merfish-P": ("P: MERFISH niches, 155 genes", real_data.merfish_halves, PAPER, 0.985, 180),
    "merfish-E": ("E: MERFISH niches, 155 genes", real_data.merfish_halves, {}, 0.98, 180),
    "merfish-pca-E": ("E: MERFISH niches, 30 PCs", partial(real_data.merfish_halves, n_components=30), {}, 0.985, 180),
    "mnist-E": ("E: MNIST", partial(real_data.images, name="mnist"), {}, 0.995, 180),
    "digits-P": ("P: digits, 300 training clouds", lambda folder: real_data.digits(300), PAPER, 0.99, 60),
}


def worker(row: str, folder: Path, changes: dict) -> dict:
    """Fit one row and measure it."""
    _, load, params, *_ = ROWS[row]
    halves = load(folder)
    model = wh.Wormhole(**{"coeff_dec": 0, "progress": False, **params, **changes})
    start = time.perf_counter()
    model.fit(halves.train)
    seconds = time.perf_counter() - start
    z = model.transform(halves.test)  # compiles
    start = time.perf_counter()
    model.transform(halves.test)
    took = time.perf_counter() - start
    draws = DRAWS.get(row, {})
    f = wh.metrics.fidelity(model, halves.test, n_exact=None if "GS" not in row else 0, **draws)
    accuracy = wh.metrics.label_accuracy(
        model.transform(halves.train), halves.train_labels, test_z=z, test_labels=halves.test_labels
    )
    history = model.history_
    base = None
    if model.base_:
        base = wh.metrics.fidelity(model.base_, halves.test, n_exact=0, **{**draws, "n_repeats": 3}).correlation
    return {
        "seconds": seconds,
        "rate": len(z) / took,
        "fidelity": f.__dict__,
        "base": base,
        "accuracy": accuracy,
        "steps": history["step"][-1],
        "converged": model.converged_,
        "validation": float(np.nanmax(history["correlation"])),
        "history": {name: [round(x, 5) for x in history[name]] for name in ("step", "seconds", "correlation")},
        "nugget": bool(model.base_ and model.base_.nugget_),
        "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("SCWORMHOLE_DATA"), help="folder of public data")
    parser.add_argument("--rows", nargs="+", default=list(ROWS), choices=ROWS)
    parser.add_argument("--out", type=Path, help="Markdown file for the table")
    parser.add_argument("--set", type=json.loads, default={}, help="parameters of the model, as JSON")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.data is None:
        parser.error("give --data FOLDER, or set SCWORMHOLE_DATA")
    if arguments.worker:
        print(json.dumps(worker(arguments.worker, arguments.data, arguments.set)))
        return
    lines = [
        "| cohort | fidelity (floor) | base alone | exact | MSE, scaled | recall at 10 | labels "
        "| seconds (limit) | steps | clouds/s | peak memory |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines), flush=True)
    for row in arguments.rows:
        command = [sys.executable, __file__, "--data", str(arguments.data), "--worker", row]
        command += ["--set", json.dumps(arguments.set)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode:
            line = f"| {ROWS[row][0]} | failed: {run.stderr.strip().splitlines()[-1][:200]} |"
        else:
            line = table_row(row, json.loads(run.stdout.splitlines()[-1]))
        print(line, flush=True)
        lines.append(line)
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text("\n".join(lines) + "\n")


def table_row(row: str, found: dict) -> str:
    """Return one line of the table."""
    what, _, _, floor, limit = ROWS[row]
    f = found["fidelity"]
    shown = lambda value, digits: "" if value is None else f"{value:.{digits}f}"  # noqa: E731
    cells = [
        what + (" (nugget)" if found["nugget"] else ""),
        f"{f['correlation']:.4f} ± {f['correlation_std']:.4f} ({floor})",
        shown(found["base"], 4),
        shown(f["correlation_exact"], 4),
        f"{f['mse']:.1e}",
        f"{f['neighbour_recall']:.2f}",
        shown(found["accuracy"], 3),
        f"{found['seconds']:.0f} ({limit})",
        f"{found['steps']}" + ("" if found["converged"] else " (not converged)"),
        f"{found['rate']:.0f}",
        f"{found['peak_gib']:.1f} GiB",
    ]
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
