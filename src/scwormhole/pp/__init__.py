"""Clouds of an AnnData: niches of cells, groups such as patients, and metacells."""

from ._groups import groups
from ._metacells import metacells
from ._niches import niches

__all__ = ["groups", "metacells", "niches"]
