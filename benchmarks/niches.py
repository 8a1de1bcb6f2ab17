"""Niches of a large tissue: wh.pp.niches against squidpy's own graph builders, the same graph, in turn.

    python benchmarks/niches.py [--n-cells 250000] [--out docs/benchmarks/niches.md]

Positions are simulated, about as dense as cells in a section of brain. Both write their graph to the same AnnData;
squidpy writes distances too, as it always does. Times are medians over rounds in which both take turns. Memory is what
a process of its own held above what it had before, at most, looked at every five milliseconds.
"""

import argparse
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import anndata
import numpy as np

SPACING = 12.5  # of cells, in micrometres
WAYS = {
    "radius 28": ({"radius": 28.0}, "spatial_neighbors_radius", {"radius": 28.0}),
    "radius 50": ({"radius": 50.0}, "spatial_neighbors_radius", {"radius": 50.0}),
    "16 nearest": ({"n_neighbors": 16}, "spatial_neighbors_knn", {"n_neighs": 16}),
    "Delaunay": ({"delaunay": True}, "spatial_neighbors_delaunay", {}),
}


def tissue(n_cells: int, n_libraries: int) -> anndata.AnnData:
    """Return cells without genes, in libraries one upon the other."""
    rng = np.random.default_rng(0)
    side = SPACING * np.sqrt(n_cells / n_libraries)
    adata = anndata.AnnData(np.zeros((n_cells, 1), np.float32), obsm={"spatial": rng.uniform(0, side, (n_cells, 2))})
    adata.obs["library"] = np.array([f"section {i}" for i in range(n_libraries)])[np.arange(n_cells) % n_libraries]
    adata.obs["library"] = adata.obs["library"].astype("category")
    return adata


def build(adata: anndata.AnnData, who: str, way: str, library_key: str | None) -> None:
    """Build one graph, a cell in its own niche."""
    options, name, theirs = WAYS[way]
    if who == "scwormhole":
        import scwormhole as wh

        wh.pp.niches(adata, library_key=library_key, **options)
    else:
        import squidpy as sq

        getattr(sq.gr, name)(adata, library_key=library_key, set_diag=True, **theirs)


def peak(who: str, way: str, arguments: argparse.Namespace) -> float:
    """Return the megabytes that one build takes at most, measured by a process of its own."""
    command = [sys.executable, __file__, "--n-cells", str(arguments.n_cells), "--n-libraries"]
    command += [str(arguments.n_libraries), "--only", who, way]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def measure_peak(arguments: argparse.Namespace) -> None:
    """Print the megabytes that one build takes at most."""
    import psutil

    who, way = arguments.only
    library_key = "library" if arguments.n_libraries > 1 else None
    build(tissue(1000, arguments.n_libraries), who, way, library_key)  # what is loaded once does not count
    adata = tissue(arguments.n_cells, arguments.n_libraries)
    process, most, done = psutil.Process(), [], threading.Event()

    def watch() -> None:
        while not done.wait(0.005):
            most.append(process.memory_info().rss)

    before = process.memory_info().rss
    watcher = threading.Thread(target=watch)
    watcher.start()
    build(adata, who, way, library_key)
    done.set()
    watcher.join()
    print((max([*most, process.memory_info().rss]) - before) / 2**20)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n-cells", type=int, default=250_000)
    parser.add_argument("--n-libraries", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, help="file for the table")
    parser.add_argument("--only", nargs=2, metavar=("WHO", "WAY"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.only:
        measure_peak(arguments)
        return
    library_key = "library" if arguments.n_libraries > 1 else None
    adata = tissue(arguments.n_cells, arguments.n_libraries)
    lines = [
        f"{arguments.n_cells:,} cells in {arguments.n_libraries} section(s), {arguments.rounds} rounds.",
        "",
        "| graph | median niche | ours, s | squidpy's, s | ratio (least to most) | ours, MB | squidpy's, MB | same |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for way in WAYS:
        took: dict[str, list[float]] = {"scwormhole": [], "squidpy": []}
        for _ in range(arguments.rounds + 1):
            for who, seconds in took.items():
                start = time.perf_counter()
                build(adata, who, way, library_key)
                seconds.append(time.perf_counter() - start)
        ours, theirs = (np.array(seconds[1:]) for seconds in took.values())  # the first round compiles and imports
        ratio = ours / theirs
        same = (adata.obsp["niches"] != adata.obsp["spatial_connectivities"]).nnz == 0
        row = [
            way,
            f"{np.median(adata.obs['niches_size']):g}",
            f"{np.median(ours):.2f}",
            f"{np.median(theirs):.2f}",
            f"{np.median(ratio):.2f} ({ratio.min():.2f} to {ratio.max():.2f})",
            *(f"{peak(who, way, arguments):.0f}" for who in took),
            "yes" if same else "no",
        ]
        lines.append(f"| {' | '.join(row)} |")
        print(lines[-1], flush=True)
    table = "\n".join(lines) + "\n"
    print(table)
    if arguments.out is not None:
        arguments.out.write_text(table, "utf-8")


if __name__ == "__main__":
    main()
