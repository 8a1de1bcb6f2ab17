"""Figures of embeddings, tissues, trainings and decoded clouds; each function returns Axes and changes no data."""

from ._clouds import clouds
from ._expression import barycenters, interpolation
from ._maps import diffmap, spatial, umap
from ._training import fidelity, history

__all__ = ["barycenters", "clouds", "diffmap", "fidelity", "history", "interpolation", "spatial", "umap"]
