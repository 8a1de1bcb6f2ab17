"""The paper's figure of run time: seconds to the table of all pairs against the number of MNIST clouds.

    python benchmarks/paper/runtime.py --data FOLDER [--quick]

Solvers: POT's exact network simplex, OTT's Sinkhorn (`vmap` over padded pairs, kernel mode, each self-term once), OTT's
low-rank Sinkhorn, and ours (`ot.pairwise`). A solver works on as many clouds as take about a minute, and its time for
more is extrapolated from its pairs a second, which is marked. Wormhole is timed with training, embedding and the table
of squared distances, 2^14 rows at a time; "trained before" is without training. Compilation is included everywhere.
"""

import time
import warnings

import numpy as np
from report import EPSILON, Report, arguments, real_data

import scwormhole as wh

SIZES = tuple(2**power for power in range(6, 17))
ENOUGH = 60.0  # seconds after which a solver is extrapolated
ROWS = 1 << 14


def main() -> None:
    given = arguments(__doc__)
    halves = real_data.images(given.data, "mnist")
    clouds = wh.PointClouds.concatenate([halves.train, halves.test])
    sizes = SIZES[: 4 if given.quick else None]
    report = Report("runtime", ["method", "clouds", "seconds", "measured"], given)
    curves: dict[str, list[tuple[int, float, bool]]] = {}
    for name, solve in SOLVERS.items():
        pace = None
        for size in sizes:
            pairs = size * (size - 1) / 2
            if pace is not None and pace * pairs > ENOUGH:
                seconds, measured = pace * pairs, False
            else:
                start = time.perf_counter()
                solve(clouds[:size])
                seconds, measured = time.perf_counter() - start, True
                pace = seconds / pairs
            report.add(name, size, seconds, "yes" if measured else "extrapolated")
            curves.setdefault(name, []).append((size, seconds, measured))
    for size in sizes:
        fit, rest = wormhole(clouds[:size])
        for name, seconds in (("Wormhole, training included", fit + rest), ("Wormhole, trained before", rest)):
            report.add(name, size, seconds, "yes")
            curves.setdefault(name, []).append((size, seconds, True))
    whole = {size: seconds for size, seconds, _ in curves["Wormhole, training included"]}
    for name in SOLVERS:
        first = next((size for size, seconds, _ in curves[name] if seconds > whole[size]), None)
        report.add(f"{name}: slower than Wormhole with training from", first, None, None)
    draw(given.out / "runtime.png", curves)


def exact(clouds: wh.PointClouds) -> None:
    wh.ot.pairwise(clouds, solver="exact", progress=False)


def low_rank(clouds: wh.PointClouds) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wh.ot.pairwise(clouds, solver="low_rank", progress=False, **EPSILON)


def ours(clouds: wh.PointClouds) -> None:
    wh.ot.pairwise(clouds, progress=False, **EPSILON)


def ott(clouds: wh.PointClouds) -> None:
    from ot_engine import ott as kernel

    arrays = [np.asarray(cloud.points) for cloud in clouds]
    kernel(arrays, 0.1, 1e-3, lse=False)(np.stack(np.triu_indices(len(clouds), 1), axis=1))


SOLVERS = {"POT, exact": exact, "OTT, Sinkhorn": ott, "OTT, low rank": low_rank, "scwormhole, ot.pairwise": ours}


def wormhole(clouds: wh.PointClouds) -> tuple[float, float]:
    """Return seconds of training, and of embedding and of the table."""
    model = wh.Wormhole(**EPSILON, coeff_dec=0, progress=False)
    start = time.perf_counter()
    model.fit(clouds)
    fitted = time.perf_counter()
    z = model.transform(clouds)
    square = (z**2).sum(1)
    for first in range(0, len(z), ROWS):
        square[first : first + ROWS, None] + square - 2 * z[first : first + ROWS] @ z.T
    return fitted - start, time.perf_counter() - fitted


def draw(file, curves: dict[str, list[tuple[int, float, bool]]]) -> None:
    """Draw seconds against clouds; what is extrapolated is dashed."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(7, 4.5))
    for name, curve in curves.items():
        sizes, seconds, measured = (np.array(part) for part in zip(*curve, strict=True))
        last = int(np.flatnonzero(measured).max())
        (line,) = axis.plot(sizes[: last + 1], seconds[: last + 1], marker="o", label=name)
        axis.plot(sizes[last:], seconds[last:], linestyle="--", color=line.get_color())
    axis.set(xscale="log", yscale="log", xlabel="clouds", ylabel="seconds to all pairs")
    axis.set_xscale("log", base=2)
    axis.legend(frameon=False, fontsize="small")
    figure.tight_layout()
    figure.savefig(file, dpi=110)


if __name__ == "__main__":
    main()
