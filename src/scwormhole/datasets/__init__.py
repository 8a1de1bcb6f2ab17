"""Data to try things on: tissues and clouds simulated with known answers, and public data from a folder or a cache."""

from ._cortex import cortex
from ._images import digits, fashion_mnist, mnist
from ._patients import patients
from ._record import Gaussians, Labelled
from ._shapes import modelnet10
from ._simulated import gaussians, simplex

__all__ = [
    "Gaussians",
    "Labelled",
    "cortex",
    "digits",
    "fashion_mnist",
    "gaussians",
    "mnist",
    "modelnet10",
    "patients",
    "simplex",
]
