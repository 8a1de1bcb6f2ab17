"""What every script of this folder has in common: arguments, and results as CSV, Markdown and figures."""

import argparse
import csv
import os
import platform
import sys
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

import scwormhole as wh

sys.path.insert(0, str(Path(__file__).parents[1]))  # what all benchmarks share
import data as real_data

__all__ = ["AS_GIVEN", "EPSILON", "Report", "arguments", "real_data", "solved", "written"]

EPSILON = {"epsilon": 0.1, "relative_epsilon": "box"}  # the paper's, for points in [-1, 1]
AS_GIVEN = {"epsilon": 0.1, "relative_epsilon": None}  # as in the paper's theory, where points are not scaled
OUT = Path(__file__).parents[2] / "docs" / "benchmarks" / "paper"
PACKAGES = ("scwormhole", "jax", "flax", "ott-jax", "pot", "numpy", "scikit-learn")


def arguments(description: str, **more: dict[str, Any]) -> argparse.Namespace:
    """Return what was asked for on the command line.

    Parameters
    ----------
    description
        Docstring of the script.
    more
        Further options by name, with what argparse is to know of each.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("SCWORMHOLE_DATA"), help="folder of public data")
    parser.add_argument("--quick", action="store_true", help="minutes: fewer clouds and steps, other figures")
    parser.add_argument("--out", type=Path, default=OUT, help="folder for the results")
    for name, options in more.items():
        parser.add_argument(f"--{name.replace('_', '-')}", **options)
    given = parser.parse_args()
    if given.data is None:
        parser.error("give --data FOLDER, or set SCWORMHOLE_DATA")
    given.out.mkdir(parents=True, exist_ok=True)
    given.began = time.perf_counter()
    return given


def solved(clouds: wh.PointClouds) -> np.ndarray:
    """Return all pairs at the paper's epsilon in the units of the points, without what rounding leaves."""
    table = np.maximum(wh.ot.pairwise(clouds, progress=False, tol=1e-4, **AS_GIVEN), 0)
    np.fill_diagonal(table, 0)
    return (table + table.T) / 2


def written(path: Path) -> list[dict[str, str]]:
    """Return the rows of an earlier run by column, none if there was none."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


class Report:
    """Rows of one table, written as they come: a CSV to compute with and a Markdown table to read.

    Parameters
    ----------
    name
        Name of the files.
    columns
        Names of the columns.
    given
        What was asked for.
    """

    def __init__(self, name: str, columns: Sequence[str], given: argparse.Namespace) -> None:
        self.path, self.columns, self.given = given.out / name, list(columns), given
        self.rows: list[list[str]] = []

    def keep_others(self, made: Sequence[str]) -> None:
        """Keep the rows of an earlier run that will not be made now, told by their first cell."""
        before = [list(row.values()) for row in written(self.path.with_suffix(".csv"))]
        self.rows = [row for row in before if row[0] not in made]

    def add(self, *row: Any) -> None:
        """Add a row, print it, and write the files anew."""
        self.rows.append([_shown(value) for value in row])
        print(" | ".join(self.rows[-1]), flush=True)
        with self.path.with_suffix(".csv").open("w", newline="") as file:
            csv.writer(file).writerows([self.columns, *self.rows])
        lines = ["| " + " | ".join(self.columns) + " |", "|" + "---|" * len(self.columns)]
        lines += ["| " + " | ".join(row) + " |" for row in self.rows]
        self.path.with_suffix(".md").write_text("\n".join([*lines, "", self.made(), ""]))

    def made(self) -> str:
        """Return on what, by what and in what time it was made."""
        versions = []
        for package in PACKAGES:
            try:
                versions.append(f"{package} {version(package)}")
            except PackageNotFoundError:
                continue
        minutes = (time.perf_counter() - self.given.began) / 60
        kind = "quick run" if self.given.quick else "full run"
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        return (
            f"{kind}, seed 0, {minutes:.0f} min on {cores} cores ({platform.machine()}, no accelerator), Python "
            f"{platform.python_version()}; {', '.join(versions)}."
        )


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return "" if value != value else f"{value:.4g}"
    return str(value)
