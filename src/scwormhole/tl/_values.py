"""What values of genes look like, from a sample of cells: warns where they are not what is usual. Changes nothing."""

import warnings
from typing import Any

import numpy as np

from scwormhole.clouds._rows import read_block

SAMPLED = 1000  # cells that are looked at
LOGGED = 30.0  # above this no value is a logarithm of counts
USUAL = "Usual are logarithms of counts of equal depth (scanpy's pp.normalize_total and pp.log1p), or use_rep='X_pca'."


def warn_of_values(points: Any, layer: str | None, rng: int) -> None:
    """Warn of raw counts, of negative values, and of values that no logarithm was taken of.

    Parameters
    ----------
    points
        Cells by genes, in memory or on disk.
    layer
        Key of ``layers`` that they are from; X by default.
    rng
        Seed of the sample.
    """
    n = int(points.shape[0])
    rows = np.sort(np.random.default_rng(rng).permutation(n)[:SAMPLED])
    block = read_block(points[rows])
    values = np.asarray(block.data if hasattr(block, "indptr") else block).ravel()
    values = values[np.isfinite(values)]
    if not len(values):
        return
    low, high = float(values.min()), float(values.max())
    if low < 0:
        said = f"has negative values, down to {low:.3g}; were genes scaled? Then noise counts as much as signal."
    elif high > 1 and (values == np.round(values)).all():
        said = f"looks like raw counts, up to {high:g}: distances would mostly tell the depth of cells."
    elif high > LOGGED:
        said = f"has values up to {high:.3g}; without a logarithm a few genes would make up all distances."
    else:
        return
    where = "adata.X" if layer is None else f"adata.layers[{layer!r}]"
    warnings.warn(f"{where} {said} {USUAL}", stacklevel=3)
