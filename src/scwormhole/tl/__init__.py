"""Embeddings of an AnnData's clouds, and what can be done with them: maps, distances, and clouds decoded from them."""

from ._clouds import clouds
from ._decode import barycenters, decode, interpolate
from ._distances import distances
from ._embed import embed, model, wormhole
from ._embeddability import embeddability
from ._maps import diffmap, umap
from ._neighbors import neighbors

__all__ = [
    "barycenters",
    "clouds",
    "decode",
    "diffmap",
    "distances",
    "embed",
    "embeddability",
    "interpolate",
    "model",
    "neighbors",
    "umap",
    "wormhole",
]
