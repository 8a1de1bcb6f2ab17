"""Fits and embeds on as many devices or processes as there are; run by ``test_train_devices.py``, not by pytest."""

import os
import sys
import warnings

import jax
import numpy as np


def main(out: str, process: int, n_processes: int, port: str) -> None:
    if n_processes > 1:
        jax.distributed.initialize(f"localhost:{port}", n_processes, process)
    import scwormhole as wh
    from scwormhole.train import _use

    _use.BLOCK = 16  # several blocks for each process
    rng = np.random.default_rng(0)
    sizes = rng.integers(3, 20, 90)
    clouds = wh.PointClouds.from_list([rng.normal(size=(n, 3)) * rng.gamma(3.0) + rng.normal(size=3) for n in sizes])
    seconds = float(os.environ["SECONDS"]) if "SECONDS" in os.environ else None
    model = wh.Wormhole(n_components=8, width=16, hidden=16, max_steps=20, batch_size=13, max_seconds=seconds)
    model.set_params(progress=False, n_points=8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(clouds)
    whole = model.embed(clouds)
    untrained = wh.Wormhole(n_components=8, max_steps=0, coeff_dec=0, progress=False).fit(clouds)
    np.savez(
        f"{out}{process}.npz",
        n_devices=len(jax.devices()),
        z=whole.z,
        nugget=whole.nugget,
        untrained=untrained.transform(clouds),
        alone=model.transform(clouds[:1]),
        decoded=np.asarray(model.inverse_transform(whole.z).points),
        error=model.history_["error"],
        step=model.history_["step"],
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
