"""The authors' package and ours on the same MNIST clouds and machine: time per step, fidelity after equal time, memory.

Their pins conflict with ours, so their package needs an environment of its own:

    python3 -m venv peer && peer/bin/pip install wassersteinwormhole==0.3.7
    python benchmarks/against_paper.py --data FOLDER --peer peer/bin/python [--seconds 300] [--out FILE]

Both train on the same digits, each in a process of its own, for the same time, construction and compilation included.
`Wormhole.paper()` is our implementation of their network, batch and losses, decoder included. Fidelity is the Pearson
correlation with the Sinkhorn divergence at the paper's epsilon over all pairs of 128 test digits, ten draws.
"""

import argparse
import os
import sys
import tempfile
import textwrap
from pathlib import Path

import data as real_data
import numpy as np
from peer import NAME, run, save_clouds, trained

N_TRAIN, N_TEST = 10_000, 1_000
EPSILON = 0.1
GOAL = 0.98

OURS = textwrap.dedent(
    """
    import json, resource, sys, time
    import numpy as np
    began = time.perf_counter()
    source, out, seconds, kind = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4]
    import scwormhole as wh
    held = np.load(source)
    def clouds(part):
        ends = np.cumsum(held[part + "_sizes"])[:-1]
        return wh.PointClouds.from_list(np.split(held[part + "_points"], ends))
    train, test = clouds("train"), clouds("test")
    options = {"max_seconds": seconds - 5, "progress": False, "rng": 0}
    if kind == "paper":
        model = wh.Wormhole.paper(**options)
    else:
        model = wh.Wormhole(epsilon=0.1, relative_epsilon="box", coeff_dec=0.01 if kind == "decoder" else 0, **options)
    import warnings
    warnings.simplefilter("ignore")
    model.fit(train)
    history = model.history_
    rows = [row for row, phase in enumerate(history["phase"]) if phase == "encoder"]
    step, at = (np.array(history[name])[rows] for name in ("step", "seconds"))
    per_step = np.diff(at)[1:].sum() / max(1, np.diff(step)[1:].sum())
    start = time.perf_counter()
    z = model.transform(test)
    encode = time.perf_counter() - start
    np.save(out, z)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    curve = [[float(a), float(b), int(c)] for a, b, c in zip(at, np.array(history["correlation"])[rows], step)]
    print(json.dumps({"first": float(at[0]), "per_step": float(per_step), "n_steps": int(step[-1]),
                      "rate": len(z) / encode, "peak": peak, "curve": curve}))
    """
)


def fidelity(z: np.ndarray, test, epsilon: float) -> float:
    """Return the correlation with solved divergences over ten draws of 128 clouds."""
    import scwormhole as wh

    generator, found = np.random.default_rng(0), []
    for _ in range(10):
        some = np.sort(generator.choice(len(test), 128, replace=False))
        true = wh.ot.pairwise(test[some], epsilon=epsilon, relative_epsilon=None, progress=False)
        pairs = np.triu_indices(128, 1)
        apart = ((z[some][:, None] - z[some]) ** 2).sum(-1)
        found.append(np.corrcoef(apart[pairs], true[pairs])[0, 1])
    return float(np.mean(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("SCWORMHOLE_DATA"), help="folder of public data")
    parser.add_argument("--peer", required=True, help="Python of an environment with wassersteinwormhole")
    parser.add_argument("--seconds", type=float, default=300, help="time each may take")
    parser.add_argument("--out", type=Path, help="Markdown file for the table")
    arguments = parser.parse_args()
    if arguments.data is None:
        parser.error("give --data FOLDER, or set SCWORMHOLE_DATA")
    halves = real_data.images(arguments.data, "mnist", N_TRAIN)
    test = halves.test[:N_TEST]
    folder = Path(tempfile.mkdtemp())
    save_clouds(folder / "clouds.npz", train=halves.train, test=test)
    source, seconds = folder / "clouds.npz", arguments.seconds
    lines = [
        "| | before the first step, s | seconds a step | steps | fidelity | clouds/s to embed | peak memory |",
        "|---|---|---|---|---|---|---|",
    ]
    peer = trained(arguments.peer, halves.train, test, seconds, n_rated=N_TEST)
    per_step = float(np.median(peer.steps[1:])) if len(peer.steps) > 1 else float("nan")
    lines.append(
        f"| {NAME} | {peer.constructed:.0f} | {per_step:.2f} | {len(peer.steps)} "
        f"| {fidelity(peer.z, test, EPSILON):.4f} | {peer.rate:.0f} | {peer.peak:.1f} GiB |"
    )
    print("\n".join(lines), flush=True)
    curves = {f"{NAME} (training batches)": smoothed(np.array(peer.curve))}
    kinds = {"paper": "Wormhole.paper()", "decoder": "Wormhole()", "plain": "Wormhole(coeff_dec=0)"}
    reached: dict[str, tuple[float, int] | None] = {}
    n_steps = 0  # of the same network as the peer's
    for kind, name in kinds.items():
        ours = run(sys.executable, OURS, source, folder / "ours.npy", seconds, kind)
        z = np.load(folder / "ours.npy")
        lines.append(
            f"| {name} | {ours['first']:.0f} | {ours['per_step']:.3f} ({per_step / ours['per_step']:.0f} times faster) "
            f"| {ours['n_steps']} | {fidelity(z, test, EPSILON):.4f} | {ours['rate']:.0f} | {ours['peak']:.1f} GiB |"
        )
        print(lines[-1], flush=True)
        curves[f"{name} (held-out clouds)"] = np.array(ours["curve"])[:, :2]
        n_steps = ours["n_steps"] if kind == "paper" else n_steps
        reached[kind] = next(((at, step) for at, value, step in ours["curve"] if value >= GOAL), None)
    lines += ["", *time_to_goal(reached, n_steps, peer.constructed, per_step)]
    print("\n".join(lines[-2:]))
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text("\n".join(lines) + "\n")
        draw(arguments.out.with_suffix(".png"), curves)


def time_to_goal(reached: dict, n_steps: int, constructed: float, per_step: float) -> list[str]:
    """Return in words how long each takes to the goal; the peer's steps are taken from ours of the same network."""
    if reached["plain"] is None:
        return [f"`Wormhole(coeff_dec=0)` did not reach a held-out correlation of {GOAL}."]
    ours = reached["plain"][0]
    said = f"`Wormhole(coeff_dec=0)` passes a held-out correlation of {GOAL} after {ours:.0f} s, compilation included. "
    if reached["paper"] is None:
        peer, more = constructed + n_steps * per_step, "more than "
        said += f"`Wormhole.paper()` has not reached it after {n_steps} steps. "
    else:
        seconds, step = reached["paper"]
        peer, more = constructed + step * per_step, ""
        said += f"`Wormhole.paper()` needs {step} steps, {seconds:.0f} s. "
    said += f"As many would take the peer {peer:.0f} s (extrapolated), "
    return [said + f"{more}{peer / ours:.0f} times as long as ours."]


def smoothed(curve: np.ndarray, window: int = 8) -> np.ndarray:
    """Return running means of a noisy curve."""
    if len(curve) < window:
        return curve
    kernel = np.full(window, 1 / window)
    return np.stack([np.convolve(column, kernel, "valid") for column in curve.T], 1)


def draw(file: Path, curves: dict[str, np.ndarray]) -> None:
    """Draw what was missing to a correlation of one over time."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(7, 4))
    for name, curve in curves.items():
        axis.plot(curve[:, 0], 1 - curve[:, 1], label=name)
    axis.set(xlabel="seconds, construction and compilation included", ylabel="1 - correlation", yscale="log")
    axis.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(file, dpi=110)


if __name__ == "__main__":
    main()
