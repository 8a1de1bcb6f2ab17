"""How time and memory grow: whole tissues end to end, the rate of `transform`, and several devices.

    python benchmarks/scale.py --data FOLDER [--quick] [--only NAME ...] [--work DIR] [--peer peer/bin/python]

Every case runs in a process of its own on a file that another process has made and whose making does not count; the
file is likely in the system's cache. "Whole" is the time of that process as seen from outside, with start, imports and
compilation; peak is all that it ever held, libraries included. "Rest" is whole less stages: start, imports, and the
held-out pairs that are solved for the record. `wh.tl.wormhole` has its defaults everywhere, decoder included.

cortex
    Simulated cortex, 256,000 cells, 254 genes, 64 libraries, sparse in memory, radius 50. Once all of it; once without
    four libraries, on whose niches the fidelity is measured: the model saw none of their cells.
growth
    Simulated sections of 10,000 cells and 300 genes, sparse on disk and opened backed, about 20 cells a niche.
    Exponents are by least squares in logarithms, over all sizes; and between the last two.
hypothalamus
    All slices of Moffitt et al. 2018, types of cells one-hot, radius 50; and some of the slices.
transform
    Niches of one MERFISH slice (radius 50, 155 genes), already in memory, embedded by ours and by the authors' package
    in turns: each a process that waits while the other works, on the same cores. Theirs is its own public `encode`,
    which is not compiled, with its default sizes, on clouds that it has padded before; its model has had three training
    steps of 100 Sinkhorn iterations, which the rate does not depend on. "Compiled" is its encoder in a call that we
    compiled. Ours pads within the time. Rates are medians, the first call of each is left out. The share of sgemm is
    counted as by `machine.py`.
stages
    Where the time of an embedding goes: a simulated tissue on disk, as in `growth`, each stage by the processor time of
    its own thread. The network's is what the process took beside these.
devices
    The same niches, five times over, by processes in turns: one device on one core, two on two, one on two.

`--quick` takes a tenth of the cells or fewer and 20 steps of training: it shows that all works, and no more.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import peer
import tissues

import scwormhole as wh

sys.path.insert(0, str(Path(__file__).parent / "paper"))
from report import Report, real_data, written

OUT = Path(__file__).parents[1] / "docs" / "benchmarks" / "scale"
RADIUS = 50.0
QUICK_STEPS = 20
CORTEX = {"n_cells": 256_000, "n_genes": 254, "n_libraries": 64, "n_held": 4}
QUICK_CORTEX = {"n_cells": 16_000, "n_genes": 254, "n_libraries": 16, "n_held": 2}
SIZES, QUICK_SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000), (2_000, 6_000, 20_000)
STAGES_CELLS, QUICK_STAGES_CELLS = 100_000, 2_000
SLICES, QUICK_SLICES = (27_000, 87_000, 275_000, 874_768), (5_000, 20_000)
N_NICHES, QUICK_NICHES = 6_000, 1_000
TIMES = 5  # that these niches are embedded again by devices: fewer are done before all cores are at work
ROUNDS, QUICK_ROUNDS = 9, 3
STAGES = ("read", "niches", "training", "embedding")
COLUMNS = ["cells", "libraries", "mean niche", *(f"{name}, s" for name in STAGES), "rest, s", "whole, s", "peak, GiB"]
COLUMNS += ["its held-out correlation", "converged"]

PEER = textwrap.dedent(
    """
    import json, sys, time
    import numpy as np
    from wassersteinwormhole import Wormhole
    held = np.load(sys.argv[1])
    clouds = np.split(held["test_points"], np.cumsum(held["test_sizes"])[:-1])
    np.random.seed(0)
    model = Wormhole(clouds, num_sinkhorn_iter=100)  # to look for a number takes minutes; encode needs none
    model.train(training_steps=3)
    import jax
    encoder = jax.jit(lambda pc, w: model.model.bind({"params": model.params}).Encoder(pc, w, deterministic=True))
    def own():
        jax.block_until_ready(model.encode(model.point_clouds, model.weights))
    def compiled():
        pc, w = np.asarray(model.point_clouds), np.asarray(model.weights)
        for first in range(0, len(pc), 256):
            rows = np.minimum(np.arange(first, first + 256), len(pc) - 1)  # one shape, so one compilation
            np.asarray(encoder(pc[rows], w[rows]))
    def timed(call):
        start = time.perf_counter()
        call()
        return time.perf_counter() - start
    own(), compiled()
    print("ready " + json.dumps({"padded": int(model.point_clouds.shape[1])}), flush=True)
    for _ in sys.stdin:
        print("took " + json.dumps({"seconds": timed(own), "compiled": timed(compiled)}), flush=True)
    """
)


# What runs in a process of its own: takes and returns what JSON can hold.


def make(kind: str, **given: Any) -> dict[str, Any]:
    """Make files of data."""
    if kind == "cortex":
        tissues.make_cortex([Path(path) for path in given.pop("files")], **given)
    elif kind == "sections":
        tissues.make_sections(Path(given["path"]), given["n_cells"])
    else:
        return tissues.make_hypothalamus({Path(p): n for p, n in given["files"].items()}, Path(given["folder"]))
    return {}


def tissue(path: str, *, backed: bool, params: dict[str, Any], unseen: str | None = None) -> dict[str, Any]:
    """Embed the niches of a file end to end, and tell the fidelity on another's, if there is one."""
    import anndata

    fits, embeds = watched_fit(), watched_blocks()
    start = time.perf_counter()
    adata = anndata.read_h5ad(path, backed="r" if backed else None)
    read = time.perf_counter()
    wh.pp.niches(adata, radius=RADIUS, library_key="library")
    niches = time.perf_counter()
    model = wh.tl.wormhole(adata, return_model=True, progress=False, **params)
    record = adata.uns["wormhole"]
    (embedding,) = [seconds for n_clouds, seconds in embeds if n_clouds == adata.n_obs]  # not the few held out
    (training,) = fits
    found = {
        "cells": adata.n_obs,
        "libraries": adata.obs["library"].nunique(),
        "mean niche": float(adata.obs["niches_size"].mean()),
        "read": read - start,
        "niches": niches - read,
        "training": training,
        "embedding": embedding,
        "peak": peak(),
        "correlation": float(record["fidelity"]["correlation"]),
        "converged": bool(record["converged"]),
    }
    assert np.isfinite(adata.obsm["X_wormhole"]).all()
    return found if unseen is None else found | {"unseen": unseen_fidelity(model, unseen)}


def unseen_fidelity(model: wh.Wormhole, path: str) -> dict[str, float]:
    """Return the fidelity of a model on the niches of a file that it has not seen."""
    import anndata

    adata = anndata.read_h5ad(path)
    wh.pp.niches(adata, radius=RADIUS, library_key="library")
    found = wh.metrics.fidelity(model, wh.PointClouds.from_graph(adata.X, adata.obsp["niches"]))
    return {
        name: float(getattr(found, name)) for name in ("correlation", "correlation_std", "correlation_exact", "mse")
    }


def prepare(folder: str, data: str, n_niches: int) -> dict[str, Any]:
    """Save a model of default size and the clouds that it and the authors' are to embed."""
    clouds = real_data.merfish(Path(data), n_niches)
    model = wh.Wormhole(max_steps=10, coeff_dec=0, progress=False).fit(clouds)
    model.save(Path(folder) / "model", overwrite=True)
    peer.save_clouds(Path(folder) / "clouds.npz", test=clouds)
    return {}


def transform(folder: str, data: str, n_niches: int, *, times: int = 1, out: str | None = None) -> None:
    """Embed the same clouds whenever a line arrives, and tell the seconds and the rate of sgemm."""
    import jax
    from machine import encoder_flops, sgemm_rate

    clouds = repeated(real_data.merfish(Path(data), n_niches), times)
    model = wh.Wormhole.load(Path(folder) / "model").set_params(progress=False)
    z = model.transform(clouds)  # compiles
    if out is not None:
        np.save(out, z)
    size = float(clouds.sizes.mean())
    print("ready " + json.dumps({"flops": encoder_flops(model, clouds), "size": size, "devices": jax.device_count()}))
    for _ in sys.stdin:
        start = time.perf_counter()
        model.transform(clouds)
        seconds = time.perf_counter() - start
        print("took " + json.dumps({"seconds": seconds, "sgemm": sgemm_rate()}))


def repeated(clouds: wh.PointClouds, times: int) -> wh.PointClouds:
    """Return the same clouds over and over."""
    ends = np.cumsum(np.tile(clouds.sizes, times))
    return wh.PointClouds(
        clouds.points, np.append(0, ends), np.tile(clouds.indices, times), np.tile(clouds.weights, times)
    )


def stages(path: str) -> dict[str, float]:
    """Embed the niches of a file, and tell the seconds of the processor that each stage took."""
    import anndata

    from scwormhole.ot import BaseFeatures
    from scwormhole.train._frame import Frame

    adata = anndata.read_h5ad(path, backed="r")
    wh.pp.niches(adata, radius=RADIUS, library_key="library")
    model = wh.tl.wormhole(adata, return_model=True, max_steps=10, coeff_dec=0, progress=False)  # compiles
    took = {"reading": 0.0, "features": 0.0, "scaling": 0.0}

    def timed(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def found(*args: Any, **options: Any) -> Any:
            start = time.thread_time()
            try:
                return call(*args, **options)
            finally:
                took[name] += time.thread_time() - start

        return found

    def batches(self: wh.PointClouds, *args: Any) -> Iterator[Any]:
        following = timed("reading", partial(next, original(self, *args), None))
        while (batch := following()) is not None:
            yield batch

    original, wh.PointClouds.batches = wh.PointClouds.batches, batches
    BaseFeatures.features = timed("features", BaseFeatures.features)
    Frame.points = timed("scaling", Frame.points)
    start, processor = time.perf_counter(), time.process_time()
    wh.tl.embed(adata, model, key_added="again")
    took["network and rest"] = time.process_time() - processor - sum(took.values())
    return took | {"wall": time.perf_counter() - start, "cells": adata.n_obs}


def watched_fit() -> list[float]:
    """Return a list that the seconds of every fit will be added to."""
    original, took = wh.Wormhole.fit, list[float]()

    def fit(self: wh.Wormhole, *args: Any, **options: Any) -> wh.Wormhole:
        start = time.perf_counter()
        found = original(self, *args, **options)
        took.append(time.perf_counter() - start)
        return found

    wh.Wormhole.fit = fit
    return took


def watched_blocks() -> list[tuple[int, float]]:
    """Return a list that clouds and seconds of every embedding will be added to, by what all embedding goes through."""
    original, took = wh.Wormhole.embed_blocks, list[tuple[int, float]]()

    def embed_blocks(self: wh.Wormhole, *args: Any, **options: Any) -> Iterator[Any]:
        start, n_clouds = time.perf_counter(), 0
        for block, some in original(self, *args, **options):
            n_clouds += block.stop - block.start  # of what was embedded, not of what was asked for
            yield block, some
        took.append((n_clouds, time.perf_counter() - start))

    wh.Wormhole.embed_blocks = embed_blocks
    return took


def peak() -> float:
    """Return the GiB that this process held at most; unlike ru_maxrss, nothing of the process that started it."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 2**20


# How such processes are started.


def in_process(function: Callable[..., Any], **given: Any) -> dict[str, Any]:
    """Run a function in a process of its own, and return what it returned and the seconds of the process."""
    start = time.perf_counter()
    done = subprocess.run(command(function, given), check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.strip().splitlines()[-1]) | {"whole": time.perf_counter() - start}


def command(function: Callable[..., Any], given: dict[str, Any]) -> list[str]:
    """Return the command by which a process of its own runs a function."""
    return [sys.executable, "-u", __file__, "--run", function.__name__, json.dumps(given)]


class Worker:
    """A process that does the same whenever asked, and otherwise waits."""

    def __init__(self, command: list[str], cores: list[int], n_devices: int | None = None) -> None:
        env = dict(os.environ)
        if n_devices is not None:
            env |= {"XLA_FLAGS": f"--xla_force_host_platform_device_count={n_devices}", "JAX_PLATFORMS": "cpu"}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": env}
        with pinned(cores):
            self.process = subprocess.Popen(command, **pipes)
        self.about = self._answer("ready ")

    def ask(self) -> dict[str, float]:
        """Have it done once more."""
        self.process.stdin.write("once more\n")
        self.process.stdin.flush()
        return self._answer("took ")

    def end(self) -> None:
        """Let it go."""
        self.process.stdin.close()
        self.process.wait()

    def _answer(self, word: str) -> dict[str, Any]:
        for line in self.process.stdout:
            if line.startswith(word):
                return json.loads(line.removeprefix(word))
        raise RuntimeError(f"a process ended with {self.process.wait()} and without an answer.")


@contextmanager
def pinned(cores: list[int]) -> Iterator[None]:
    """Let processes that are started here have these cores only."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def in_turns(workers: dict[str, Worker], rounds: int) -> dict[str, dict[str, np.ndarray]]:
    """Return what workers answer in rounds in which each has its turn, by name and figure."""
    answers: dict[str, list[dict[str, float]]] = {name: [] for name in workers}
    for _ in range(rounds):
        for name, worker in workers.items():
            answers[name].append(worker.ask())
    for worker in workers.values():
        worker.end()
    return {name: {key: np.array([row[key] for row in rows]) for key in rows[0]} for name, rows in answers.items()}


# The tables.


class Aims:
    """What was aimed at and what was found, one table for all cases."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.report = Report("aims", ["case", "figure", "aim", "found", "met"], given)
        self.report.keep_others(given.only)

    def add(self, case: str, figure: str, found: float, *, most: float | None = None, least: float | None = None):
        """Add a figure, with the most or the least that it should be, if anything."""
        if most is None and least is None:
            self.report.add(case, figure, None, found, None)
            return
        met = found <= most if least is None else found >= least
        aim = f"<= {most:g}" if least is None else f">= {least:g}"
        self.report.add(case, figure, aim, found, "yes" if met else "no")


def row(found: dict[str, Any]) -> list[Any]:
    """Return a run as cells of a table."""
    rest = found["whole"] - sum(found[name] for name in STAGES)
    ends = [rest, found["whole"], found["peak"], f"{found['correlation']:.3f}", "yes" if found["converged"] else "no"]
    return [found["cells"], found["libraries"], found["mean niche"], *(found[name] for name in STAGES), *ends]


def cortex(given: argparse.Namespace, aims: Aims) -> None:
    sizes = QUICK_CORTEX if given.quick else CORTEX
    stem = f"cortex_{sizes['n_cells']}_{sizes['n_libraries']}_{sizes['n_held']}"
    files = [str(given.work / f"{stem}_{part}.h5ad") for part in ("all", "seen", "unseen")]
    in_process(make, kind="cortex", files=files, **sizes)
    report = Report("cortex", ["run", *COLUMNS, "unseen libraries", "deviation of draws", "unseen, exact"], given)
    found = in_process(tissue, path=files[0], backed=False, params=given.params)
    report.add("all libraries", *row(found), None, None, None)
    tested = in_process(tissue, path=files[1], backed=False, params=given.params, unseen=files[2])
    unseen = [tested["unseen"][name] for name in ("correlation", "correlation_std", "correlation_exact")]
    report.add("some held out, tested on them (in rest)", *row(tested), *unseen)
    aims.add("cortex", "whole, minutes", found["whole"] / 60, most=10)
    aims.add("cortex", "peak, GiB", found["peak"], most=4)
    aims.add("cortex", "fidelity on unseen libraries", unseen[0], least=0.97)


def growth(given: argparse.Namespace, aims: Aims) -> None:
    report = Report("growth", COLUMNS, given)
    runs = []
    for n_cells in QUICK_SIZES if given.quick else SIZES:
        path = given.work / f"sections_{n_cells}.h5ad"
        in_process(make, kind="sections", path=str(path), n_cells=n_cells)
        runs.append(in_process(tissue, path=str(path), backed=True, params=given.params))
        report.add(*row(runs[-1]))
    cells, work, whole, peaks = curves(report.path.with_suffix(".csv"))
    for name, seconds in (("niches and embedding", work), ("whole", whole)):
        aims.add("growth", f"exponent of {name}", exponent(cells, seconds), most=1.1)
        aims.add("growth", f"exponent of {name}, last two", exponent(cells[-2:], seconds[-2:]))
    aims.add("growth", f"peak at {cells[-1]:,.0f} cells, GiB", peaks[-1], most=6)


def hypothalamus(given: argparse.Namespace, aims: Aims) -> None:
    report = Report("hypothalamus", COLUMNS, given)
    sizes = QUICK_SLICES if given.quick else SLICES
    files = {str(given.work / f"hypothalamus_{n_cells}.h5ad"): n_cells for n_cells in sizes}
    in_process(make, kind="hypothalamus", files=files, folder=str(given.data))
    for path in files:
        report.add(*row(in_process(tissue, path=path, backed=False, params=given.params)))
    cells, work, _, peaks = curves(report.path.with_suffix(".csv"))
    aims.add("hypothalamus", f"peak at {cells[-1]:,.0f} cells, GiB", peaks[-1], most=6)
    aims.add("hypothalamus", "exponent of niches and embedding", exponent(cells, work))


def parts(given: argparse.Namespace, aims: Aims) -> None:
    n_cells = QUICK_STAGES_CELLS if given.quick else STAGES_CELLS
    path = given.work / f"sections_{n_cells}.h5ad"
    in_process(make, kind="sections", path=str(path), n_cells=n_cells)
    found = in_process(stages, path=str(path))
    report = Report("stages", ["stage", "microseconds of processor a niche"], given)
    for name in ("reading", "features", "scaling", "network and rest"):
        report.add(name, f"{found[name] / n_cells * 1e6:.0f}")
    report.add("all, by the clock", f"{found['wall'] / n_cells * 1e6:.0f}")


def prepared(given: argparse.Namespace) -> dict[str, Any]:
    """Prepare a model and clouds, and return where they are."""
    where = {"folder": str(given.work), "data": str(given.data), "n_niches": QUICK_NICHES if given.quick else N_NICHES}
    in_process(prepare, **where)
    return where


def rates(given: argparse.Namespace, aims: Aims) -> None:
    where, rounds = prepared(given), QUICK_ROUNDS if given.quick else ROUNDS
    columns = ["way", "cores", "niches", "mean size", "padded to", "rounds", "niches/s", "share of sgemm"]
    report = Report("transform", [*columns, "ours faster (least to most)"], given)
    every = sorted(os.sched_getaffinity(0))
    for cores in [every[:1], every] if len(every) > 1 else [every]:
        rates_on(cores, where, rounds, report, given, aims)


def rates_on(
    cores: list[int], where: dict[str, Any], rounds: int, report: Report, given: argparse.Namespace, aims: Aims
) -> None:
    """Let both packages embed in turns on some cores."""
    n_niches = where["n_niches"]
    script = [given.peer, "-c", PEER, str(given.work / "clouds.npz")]
    workers = {"ours": Worker(command(transform, where), cores), "theirs": Worker(script, cores)}
    about, padded = workers["ours"].about, workers["theirs"].about["padded"]
    found = in_turns(workers, rounds)
    ours, theirs = found["ours"], found["theirs"]
    sgemm = np.median(ours["sgemm"])
    share = about["flops"] / np.median(ours["seconds"]) / sgemm

    def add(name: str, size: Any, seconds: np.ndarray, share: str | None, ratio: str | None) -> None:
        rate = f"{n_niches / np.median(seconds):.0f}"
        report.add(name, len(cores), n_niches, about["size"], size, rounds, rate, share, ratio)

    add("ours, `transform`", "rungs", ours["seconds"], f"{share:.0%} of {sgemm / 1e9:.0f} Gflop/s", None)
    for name, figure in (("its `encode`", "seconds"), ("its encoder, compiled by us", "compiled")):
        add(f"{peer.NAME}, {name}", padded, theirs[figure], None, spread(theirs[figure] / ours["seconds"]))
    on = f"on {len(cores)} core{'s' * (len(cores) > 1)}"
    faster, compiled = (np.median(theirs[figure] / ours["seconds"]) for figure in ("seconds", "compiled"))
    aims.add("transform", f"times faster than `encode`, {on}", faster, least=10)
    aims.add("transform", f"times faster than its encoder compiled, {on}", compiled)
    aims.add("transform", f"share of sgemm, {on}", share)


def devices(given: argparse.Namespace, aims: Aims) -> None:
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        print("devices: left out, for this process may use one core only", flush=True)
        return
    where, rounds = prepared(given), QUICK_ROUNDS if given.quick else ROUNDS
    ways = {"1 device, 1 core": (cores[:1], 1), "2 devices, 2 cores": (cores, 2), "1 device, 2 cores": (cores, 1)}
    workers, vectors = {}, []
    for number, (name, (own, n_devices)) in enumerate(ways.items()):
        out = str(given.work / f"z{number}.npy")
        workers[name] = Worker(command(transform, where | {"times": TIMES, "out": out}), own, n_devices)
        assert workers[name].about["devices"] == n_devices
        vectors.append(np.load(out))
    seconds = {name: answers["seconds"] for name, answers in in_turns(workers, rounds).items()}
    columns = ["way", "niches", "rounds", "niches/s", "faster (least to most)", "largest difference of vectors"]
    report = Report("devices", columns, given)
    first = next(iter(seconds.values()))
    for z, (name, took) in zip(vectors, seconds.items(), strict=True):
        off = float(np.abs(z - vectors[0]).max() / np.abs(vectors[0]).max())
        rate = f"{len(z) / np.median(took):.0f}"
        report.add(name, len(z), rounds, rate, spread(first / took), off)
        if took is not first:
            least = 1.6 if name.startswith("2") else None
            aims.add("devices", f"{name}: times 1 device, 1 core", np.median(first / took), least=least)


def spread(ratio: np.ndarray) -> str:
    """Return the median of ratios, with the least and the most."""
    return f"{np.median(ratio):.2f} ({ratio.min():.2f} to {ratio.max():.2f})"


def curves(file: Path) -> tuple[np.ndarray, ...]:
    """Return cells, seconds of niches and embedding, seconds of the whole, and GiB, from a table."""
    rows = written(file)
    column = {name: np.array([float(line[name]) for line in rows]) for name in COLUMNS[:-1]}
    work = column["niches, s"] + column["embedding, s"]
    return column["cells"], work, column["whole, s"], column["peak, GiB"]


def exponent(cells: np.ndarray, seconds: np.ndarray) -> float:
    """Return the power of the number of cells that time grows with, by least squares in logarithms."""
    return float(np.polyfit(np.log(cells), np.log(seconds), 1)[0])


def draw(out: Path) -> None:
    """Draw seconds and GiB against cells, of the tables that there are."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (times, memory) = plt.subplots(1, 2, figsize=(10, 5))
    for number, name in enumerate(("growth", "hypothalamus")):
        if not (out / f"{name}.csv").exists():
            continue
        label = {"growth": "simulated, on disk"}.get(name, name)
        cells, work, whole, peaks = curves(out / f"{name}.csv")
        for seconds, what, style in ((whole, "whole", "-"), (work, "niches and embedding", "--")):
            power = f"cells^{exponent(cells, seconds):.2f}" if len(cells) > 1 else "one size"
            text = f"{label}: {what}, {power}"
            times.plot(cells, seconds, style, marker="o", color=f"C{number}", label=text)
        power = f"cells^{exponent(cells, peaks):.2f}" if len(cells) > 1 else "one size"
        memory.plot(cells, peaks, marker="o", color=f"C{number}", label=f"{label}, {power}")
    times.set(xscale="log", yscale="log", xlabel="cells", ylabel="seconds")
    memory.set(
        xscale="log", ylim=(0, 1.1 * memory.get_ylim()[1]), xlabel="cells", ylabel="peak memory of the process, GiB"
    )
    for axis in (times, memory):
        axis.legend(frameon=False, fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.12))
    figure.tight_layout()
    figure.savefig(out / "growth.png", dpi=110)
    plt.close(figure)


CASES = {"cortex": cortex, "growth": growth, "hypothalamus": hypothalamus, "stages": parts, "transform": rates}
CASES |= {"devices": devices}
ALONE = {function.__name__: function for function in (make, tissue, stages, prepare, transform)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("SCWORMHOLE_DATA"), help="folder of public data")
    parser.add_argument("--quick", action="store_true", help="minutes: fewer cells and steps, other figures")
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES), help="which cases; others stay")
    parser.add_argument("--out", type=Path, default=OUT, help="folder for the results")
    parser.add_argument("--work", type=Path, help="folder for made data, which stays; a temporary one by default")
    parser.add_argument("--peer", default="python", help="interpreter of an environment with the authors' package")
    parser.add_argument("--run", nargs=2, metavar=("FUNCTION", "JSON"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run:
        warnings.simplefilter("once")
        found = ALONE[given.run[0]](**json.loads(given.run[1]))
        print(json.dumps(found), flush=True)
        return
    if given.data is None:
        parser.error("give --data FOLDER, or set SCWORMHOLE_DATA")
    given.data, given.params = Path(given.data), {"max_steps": QUICK_STEPS} if given.quick else {}
    given.out.mkdir(parents=True, exist_ok=True)
    given.began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        given.work = given.work or Path(folder)
        given.work.mkdir(parents=True, exist_ok=True)
        aims = Aims(given)
        for name in given.only:
            given.began = time.perf_counter()
            print(f"{name}:", flush=True)
            CASES[name](given, aims)
            if name in ("growth", "hypothalamus"):
                draw(given.out)


if __name__ == "__main__":
    main()
