"""How the model's defaults were found: variations of the network and of the training, with what they cost.

    python benchmarks/defaults.py --data FOLDER [--steps 300] [--out docs/benchmarks/defaults.md]

20,000 training digits of MNIST at the paper's epsilon and the MERFISH niches at the default one, no decoder. What is
compared is the correlation on clouds held out of training, the best of all looks, not on the test clouds. Each
variation takes the same number of steps, and beside it is the processor time of the whole fit, which other jobs on the
machine change little.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import data as real_data
import numpy as np

import scwormhole as wh

VARIATIONS = {
    "the defaults": {},
    "learning rate 3e-4": {"learning_rate": 3e-4},
    "learning rate 3e-3": {"learning_rate": 3e-3},
    "width 32": {"width": 32},
    "width 128, hidden 256": {"width": 128, "hidden": 256},
    "3 blocks": {"n_blocks": 3},
    "full attention": {"n_induced": 0},
    "16 clouds a batch": {"batch_size": 16},
    "64 clouds a batch": {"batch_size": 64},
    "64 points of a cloud": {"max_points": 64},
    "no base": {"base": None},
}
COHORTS = {
    "MNIST": (lambda folder: real_data.images(folder, "mnist", 20_000), {"epsilon": 0.1, "relative_epsilon": "box"}),
    "MERFISH": (real_data.merfish_halves, {}),
}


def worker(cohort: str, variation: str, folder: Path, steps: int) -> dict:
    """Fit one variation and return what was reached on held-out clouds."""
    warnings.simplefilter("ignore")
    load, params = COHORTS[cohort]
    options = {**params, **VARIATIONS[variation], "max_steps": steps, "coeff_dec": 0, "progress": False}
    clouds = load(folder).train
    start = time.process_time()
    history = wh.Wormhole(**options).fit(clouds).history_
    return {"reached": float(np.nanmax(history["correlation"])), "seconds": time.process_time() - start}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("SCWORMHOLE_DATA"), help="folder of public data")
    parser.add_argument("--steps", type=int, default=300, help="steps of a fit")
    parser.add_argument("--out", type=Path, help="Markdown file for the table")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.data is None:
        parser.error("give --data FOLDER, or set SCWORMHOLE_DATA")
    if arguments.worker:
        print(json.dumps(worker(*arguments.worker, arguments.data, arguments.steps)))
        return
    lines = [f"| {' | '.join(['variation', *COHORTS])} |", "|" + "---|" * (1 + len(COHORTS))]
    print("\n".join(lines), flush=True)
    for variation in VARIATIONS:
        cells = [variation]
        for cohort in COHORTS:
            command = [sys.executable, __file__, "--data", str(arguments.data), "--steps", str(arguments.steps)]
            run = subprocess.run([*command, "--worker", cohort, variation], capture_output=True, text=True, check=False)
            if run.returncode:
                cells.append("failed")
                continue
            found = json.loads(run.stdout.splitlines()[-1])
            cells.append(f"{found['reached']:.4f} ({found['seconds']:.0f} s)")
        lines.append(f"| {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    if arguments.out:
        arguments.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
