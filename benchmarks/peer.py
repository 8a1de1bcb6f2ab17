"""The authors' package, trained for some time in a process of its own, as its pins conflict with ours.

python3 -m venv peer && peer/bin/pip install wassersteinwormhole==0.3.7
"""

import json
import subprocess
import tempfile
import textwrap
from pathlib import Path
from typing import NamedTuple

import numpy as np

from scwormhole import PointClouds

NAME = "wassersteinwormhole 0.3.7"

SCRIPT = textwrap.dedent(
    """
    import json, resource, sys, time
    import numpy as np
    began = time.perf_counter()
    source, out, seconds, metric, n_rated = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4], int(sys.argv[5])
    held = np.load(source)
    def clouds(part):
        ends = np.cumsum(held[part + "_sizes"])[:-1]
        return np.split(held[part + "_points"], ends)
    from wassersteinwormhole import Wormhole
    train, test = clouds("train"), clouds("test")
    model = Wormhole(train, point_clouds_test=test, dist_func_enc=metric, eps_enc=0.1, eps_dec=0.01)
    constructed = time.perf_counter() - began
    import jax
    steps, curve = [], []
    original = model.train_step
    class Enough(Exception):
        pass
    def step(state, pc, weights, key):
        if time.perf_counter() - began > seconds:
            raise Enough
        start = time.perf_counter()
        result = original(state, pc, weights, key)
        jax.block_until_ready(result)
        steps.append(time.perf_counter() - start)
        curve.append([time.perf_counter() - began, float(result[1][1][2])])
        model.params = result[0].params
        return result
    model.train_step = step
    try:
        model.train()
    except Enough:
        pass
    start = time.perf_counter()
    model.encode(model.point_clouds_test[:n_rated], model.weights_test[:n_rated])
    rate = n_rated / (time.perf_counter() - start)
    # all of them by a compiled call of our own, which is kinder than the package's
    encode = jax.jit(lambda pc, w: model.model.bind({"params": model.params}).Encoder(pc, w, deterministic=True))
    z = []
    for first in range(0, len(test), 64):
        pc, w = (np.asarray(a[first : first + 64]) for a in (model.point_clouds_test, model.weights_test))
        more = 64 - len(pc)
        pc, w = (np.concatenate([a, np.repeat(a[-1:], more, 0)]) for a in (pc, w))
        z.append(np.asarray(encode(pc, w))[: 64 - more])
    np.save(out, np.concatenate(z))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    print(json.dumps({"constructed": constructed, "steps": steps, "rate": rate, "peak": peak, "curve": curve}))
    """
)


class Peer(NamedTuple):
    """What came of the package."""

    z: np.ndarray  # one vector a test cloud
    constructed: float  # seconds before the first step
    steps: list[float]  # seconds of each
    rate: float  # test clouds a second by its own encode, a first call
    peak: float  # GiB
    curve: list[list[float]]  # seconds since the start, correlation on the batch


def trained(
    python: str,
    train: PointClouds,
    test: PointClouds,
    seconds: float,
    *,
    metric: str = "S2",
    n_rated: int = 200,
    patience: float | None = None,
) -> Peer:
    """Train the package for some seconds, construction and compilation included, and embed test clouds.

    Parameters
    ----------
    python
        Interpreter of an environment that has the package.
    train
        Clouds to train on.
    test
        Clouds to embed.
    seconds
        After how long no further step begins.
    metric
        Name of the distance.
    n_rated
        Clouds by which its own encode is timed.
    patience
        Seconds after which it is stopped, finished or not.
    """
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "clouds.npz", Path(folder) / "z.npy"
        save_clouds(source, train=train, test=test)
        found = run(python, SCRIPT, source, out, seconds, metric, min(n_rated, len(test)), patience=patience)
        return Peer(z=np.load(out), **found)


def save_clouds(path: Path, **parts: PointClouds) -> None:
    """Write cohorts as arrays that any process can read."""
    arrays = {}
    for name, clouds in parts.items():
        arrays[f"{name}_points"] = np.concatenate([np.asarray(cloud.points, np.float32) for cloud in clouds])
        arrays[f"{name}_sizes"] = clouds.sizes
    np.savez(path, **arrays)


def run(python: str, script: str, *arguments: object, patience: float | None = None) -> dict:
    """Run a script in a process of its own, and return what it printed last."""
    command = [python, "-c", script, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=patience)
    if done.returncode:
        raise RuntimeError(done.stderr[-3000:])
    return json.loads(done.stdout.strip().splitlines()[-1])
