"""Figures of embeddings, tissues, trainings and decoded clouds; each function returns Axes and changes no data."""

from ._clouds import clouds
from ._embeddability import embeddability, spectrum
from ._expression import barycenters, interpolation
from ._maps import diffmap, spatial, umap
from ._training import fidelity, history

__all__ = [
    "barycenters",
    "clouds",
    "diffmap",
    "embeddability",
    "fidelity",
    "history",
    "interpolation",
    "spatial",
    "spectrum",
    "umap",
]
