"""An AnnData with every slot that figures read, written by hand; figures are drawn without a screen and closed."""

import matplotlib
import numpy as np
import pandas as pd
import pytest
from anndata import AnnData

import scwormhole as wh


@pytest.fixture(autouse=True)
def canvas():
    """Matplotlib as it comes, without a screen."""
    import matplotlib.pyplot as plt

    before = matplotlib.get_backend()
    plt.switch_backend("Agg")
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        yield
    plt.close("all")
    plt.switch_backend(before)


@pytest.fixture
def tissue() -> AnnData:
    """A strip of three layers in two libraries; Pvalb cells alone have a diffusion map."""
    rng = np.random.default_rng(0)
    n = 240
    depth = rng.random(n)
    obs = pd.DataFrame(
        {
            "library": pd.Categorical(np.where(np.arange(n) < n // 2, "one", "two")),
            "layer": pd.Categorical(np.array(["upper", "middle", "deep"])[(3 * depth).astype(int)]),
            "cell_type": np.where(np.arange(n) % 4 == 0, "Pvalb", "other"),
            "depth": depth,
            "batch": np.arange(n) % 2 == 0,
        },
        index=[f"cell{i}" for i in range(n)],
    )
    adata = AnnData(rng.poisson(3 * depth[:, None] * np.ones(4)).astype(np.float32), obs=obs)
    adata.var_names = ["Cux2", "Rorb", "Fezf2", "Mog"]
    adata.obsm["spatial"] = np.stack([300 * rng.random(n), 400 * (1 - depth)], axis=1)
    adata.obsm["X_wormhole_umap"] = np.stack([np.cos(3 * depth), np.sin(3 * depth)], axis=1) * 5
    adata.obsm["X_wormhole_umap"] += rng.normal(size=(n, 2)) / 2
    components = np.stack([depth - 0.5, (depth - 0.5) ** 2, rng.normal(size=n)], axis=1)
    components[obs["cell_type"] == "other"] = np.nan
    adata.obsm["X_wormhole_diffmap"] = components
    steps = [0, 50, 100, 150, 200, 50, 100, 150]
    record = {
        "phase": np.array(["encoder"] * 5 + ["decoder"] * 3),
        "step": np.array(steps),
        "seconds": np.array(steps) / 10,
        "correlation": np.array([0.9, 0.96, 0.975, 0.98, 0.979, np.nan, np.nan, np.nan]),
        "error": np.array([0.5, 0.3, 0.25, 0.21, 0.22, 0.3, 0.12, 0.1]),
    }
    adata.uns["wormhole"] = {"kind": "wormhole", "history": record}
    return adata


@pytest.fixture
def decoded() -> AnnData:
    """Decoded clouds of three groups in eight genes: gene ``j`` is highest in group ``j % 3``."""
    rng = np.random.default_rng(1)
    groups, genes = np.repeat(np.arange(3), 10), np.arange(8)
    values = 2.0 * (genes % 3 == groups[:, None]) * (genes + 1) + rng.random((30, 8))
    obs = pd.DataFrame(
        {"cloud": pd.Categorical(np.array(["upper", "middle", "deep"])[groups], ["upper", "middle", "deep"])},
        index=[f"point{i}" for i in range(30)],
    )
    obs["weight"] = 0.1
    found = AnnData(values.astype(np.float32), obs=obs)
    found.var_names = [f"Gene{j}" for j in genes]
    return found


@pytest.fixture(scope="session")
def solved() -> tuple[wh.ot.BaseFeatures, wh.PointClouds]:
    """A base that is fitted, and clouds that it has not seen."""
    clouds = wh.datasets.gaussians(60, 30, 2, rng=0).clouds
    return wh.ot.BaseFeatures(n_components=16).fit(clouds[:40]), clouds[40:]
