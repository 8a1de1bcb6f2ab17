"""Fits and embeds on as many devices or processes as there are; run by ``test_train_devices.py``, not by pytest."""

import os
import sys
import time
import warnings

import jax
import numpy as np


def main(out: str, common: str, process: int, n_processes: int, port: str) -> None:
    if n_processes > 1:
        jax.distributed.initialize(f"localhost:{port}", n_processes, process)
    import scwormhole as wh
    from scwormhole.train import _use

    _use.BLOCK = 16  # several blocks for each process
    rng = np.random.default_rng(0)
    points = [rng.normal(size=(n, 3)) * rng.gamma(3.0) + rng.normal(size=3) for n in rng.choice([4, 7], 70)]
    clouds = wh.PointClouds.from_list(points)
    if process == 1 and "SLOW" in os.environ:  # the other machine solves its first pairs in its own time
        from scwormhole.ot import Targets

        solve = Targets.blocks
        Targets.blocks = lambda self, members: (time.sleep(0.5), solve(self, members))[1]
    seconds = float(os.environ["SECONDS"]) if "SECONDS" in os.environ else None
    sizes = {"n_components": 8, "width": 16, "hidden": 16, "n_blocks": 1, "n_points": 4, "batch_size": 13}
    model = wh.Wormhole(**sizes, max_steps=20, patience=None, max_seconds=seconds, progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(clouds)
    if not os.path.exists(common):
        model.save(common)
    whole, loaded = model.embed(clouds), wh.Wormhole.load(common)
    np.savez(
        f"{out}{process}.npz",
        n_devices=len(jax.devices()),
        z=whole.z,
        nugget=whole.nugget,
        loaded=loaded.transform(clouds),
        alone=loaded.transform(clouds[:1]),
        decoded=np.asarray(model.inverse_transform(whole.z).points),
        error=model.history_["error"],
        step=model.history_["step"],
        **{f"model {name}": array for name, array in model.to_arrays()[0].items()},
    )


if __name__ == "__main__":
    main(*sys.argv[1:3], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
