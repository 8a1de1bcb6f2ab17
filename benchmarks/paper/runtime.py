"""The paper's figure of run time: seconds to the table of all pairs against the number of MNIST clouds.

    python benchmarks/paper/runtime.py --data FOLDER [--quick] [--methods ...]

Solvers: POT's exact network simplex, OTT's Sinkhorn (`vmap` over padded pairs, kernel mode, each self-term once), OTT's
low-rank Sinkhorn, and ours (`ot.pairwise`). A solver works on as many clouds as take about a minute, and its time for
more is extrapolated from that of its last pairs, which is marked. Wormhole is timed with training, embedding and the
table of squared distances, 2^12 rows at a time; "base alone" is what it starts from, without training the network, and
"trained before" is without fitting anything. Compilation is included everywhere. Fidelity is over three draws of 128
digits that no cohort has. Wormhole is fitted at every second size; between sizes curves are straight on logarithmic
axes, which is how it is found where two of them cross.
"""

import time
import warnings

import numpy as np
from report import EPSILON, Report, arguments, real_data

import scwormhole as wh

SIZES = tuple(2**power for power in range(6, 17))
FIRST = (8, 16)  # to know how fast a solver is
ENOUGH = 60.0  # seconds after which a solver is extrapolated
ROWS = 1 << 12


def main() -> None:
    names = [*SOLVERS, "Wormhole"]
    given = arguments(__doc__, methods={"nargs": "+", "choices": names, "default": names, "help": "which; others stay"})
    halves = real_data.images(given.data, "mnist")
    clouds = wh.PointClouds.concatenate([halves.train, halves.test])
    sizes, unseen = SIZES[: 4 if given.quick else None], clouds[max(SIZES) :]
    columns = ["method", "clouds", "seconds", "measured", "fidelity"]
    report = Report("runtime", columns, given)
    report.keep_others([*given.methods, *([BASE, WHOLE, TRAINED] if "Wormhole" in given.methods else [])])

    def add(name: str, size: int, seconds: float, *, measured: bool = True, fidelity: float | None = None) -> None:
        report.add(name, size, seconds, "yes" if measured else "extrapolated", fidelity)

    for name in (method for method in SOLVERS if method in given.methods):
        done: list[tuple[float, float]] = []  # pairs and seconds
        for size in (*FIRST, *sizes):
            pairs = size * (size - 1) / 2
            if len(done) >= len(FIRST):
                (less, before), (more, last) = done[-2:]
                ahead = last + (pairs - more) * max(last - before, 0.0) / (more - less)  # compilation counts once
                if ahead > ENOUGH:
                    add(name, size, ahead, measured=False)
                    continue
            start = time.perf_counter()
            SOLVERS[name](clouds[:size])
            done.append((pairs, time.perf_counter() - start))
            if size in sizes:
                add(name, size, done[-1][1])
    for size in sizes[::2] if "Wormhole" in given.methods else ():
        for name, model in (
            (BASE, wh.ot.BaseFeatures(**EPSILON, progress=False)),
            (WHOLE, wh.Wormhole(**EPSILON, coeff_dec=0, progress=False)),
        ):
            fit, rest = timed(model, clouds[:size])
            fidelity = wh.metrics.fidelity(model, unseen, n_repeats=3, n_exact=0).correlation
            add(name, size, fit + rest, fidelity=fidelity)
        add(TRAINED, size, rest, fidelity=fidelity)
    curves: dict[str, list[tuple[int, float, bool]]] = {}
    for name, size, seconds, measured, _ in report.rows:
        curves.setdefault(name, []).append((int(size), float(seconds), measured == "yes"))
    crossings = Report("crossover", ["slower than Wormhole from", "training included", "base alone"], given)
    for name in (method for method in SOLVERS if method in curves):
        crossings.add(name, *(crossing(curves[name], curves[ours]) for ours in (WHOLE, BASE)))
    draw(given.out / "runtime.png", curves)


def crossing(slower: list[tuple[int, float, bool]], faster: list[tuple[int, float, bool]]) -> str:
    """Return the number of clouds at which one curve passes another, on logarithmic axes."""
    (sizes, seconds), others = (np.log([point[:2] for point in curve]).T for curve in (slower, faster))
    lead = seconds - np.interp(sizes, *others)
    above = np.flatnonzero(lead > 0)
    if not len(above):
        return f"more than {slower[-1][0]:,}"
    after = above[0]
    if after == 0:
        return f"{slower[0][0]:,} or fewer"
    share = lead[after - 1] / (lead[after - 1] - lead[after])
    return f"{np.exp(sizes[after - 1] + share * (sizes[after] - sizes[after - 1])):,.0f}"


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
WHOLE, BASE, TRAINED = "Wormhole, training included", "Wormhole's base alone", "Wormhole, trained before"


def timed(model, clouds: wh.PointClouds) -> tuple[float, float]:
    """Return seconds of the fit, and of embedding and of the table."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that steps ran out
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
        last = int(np.flatnonzero(measured).max(initial=0))
        (line,) = axis.plot(sizes[: last + 1], seconds[: last + 1], marker="o", label=name)
        axis.plot(sizes[last:], seconds[last:], linestyle="--", color=line.get_color())
    axis.set(xscale="log", yscale="log", xlabel="clouds", ylabel="seconds to all pairs")
    axis.set_xscale("log", base=2)
    axis.legend(frameon=False, fontsize="small")
    figure.tight_layout()
    figure.savefig(file, dpi=110)


if __name__ == "__main__":
    main()
