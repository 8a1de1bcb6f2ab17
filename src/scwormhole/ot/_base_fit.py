"""What a fitted base is: the records it consists of, how it embeds a padded batch, and how it becomes plain arrays."""

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._invariant import InvariantParts
from ._mahalanobis import Array, both
from ._parts import EuclideanParts, Measured
from ._regression import Regression


class Embedded(NamedTuple):
    """Clouds as vectors: the divergence of two of them is about ``((z_i - z_j)**2).sum() + nugget_i + nugget_j``.

    Clouds that have mass in common, as neighbouring niches do, share their noise: of their nuggets only so much counts
    as they do not have in common.

    Parameters
    ----------
    z
        Vectors, one row a cloud.
    nugget
        What each cloud adds by itself; zeros where there is no nugget.
    """

    z: NDArray[np.float32]
    nugget: NDArray[np.float32]

    def table(self, shared: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the divergences of all clouds from one another.

        Parameters
        ----------
        shared
            Mass that they have in common, clouds by clouds, see :meth:`scwormhole.PointClouds.shared_mass`.
        """
        return np.asarray(squared_distances(self.z) + both(self.nugget.astype(np.float64), 1 - shared))

    def paired(self, other: "Embedded", shared: NDArray[np.floating]) -> NDArray[np.float32]:
        """Return the divergences from other clouds, one to one.

        Parameters
        ----------
        other
            As many clouds.
        shared
            Mass that they have in common, one to one.
        """
        apart = ((self.z - other.z) ** 2).sum(axis=1) + (1 - shared) * (self.nugget + other.nugget)
        return np.asarray(apart, np.float32)


@dataclass(frozen=True, kw_only=True)
class BaseReport:
    """How well the base fits the pairs it was regressed on, and pairs it was not.

    Parameters
    ----------
    n_clouds
        Clouds among which pairs were solved.
    n_pairs
        Pairs that were solved.
    correlation
        Pearson correlation with the divergence, over all these pairs, which were all fitted.
    held_out_correlation
        The same for a fit to three quarters of the clouds, over pairs with the others; None if there are too few.
    held_out_error
        Root mean squared error over the same pairs, relative to their mean divergence.
    nugget_share
        Share of the mean divergence that the nugget takes, found before it was decided whether to keep it.
    """

    n_clouds: int
    n_pairs: int
    correlation: float | None
    held_out_correlation: float | None
    held_out_error: float | None
    nugget_share: float


@dataclass(frozen=True)
class FittedBase:
    """All that is needed to embed a padded batch."""

    parts: EuclideanParts | InvariantParts
    regression: Regression
    degree: int  # with this power of the coordinates the divergence grows
    pinned: bool  # the first values, the mean, go into the vectors as they are
    n_components: int
    report: BaseReport

    def embed(self, points: NDArray[Any], weights: NDArray[Any]) -> Embedded:
        """Embed a padded batch."""
        measured = self.parts.measure(points, weights)
        n_mean = self.parts.n_mean if self.pinned else 0
        noise = own_columns(measured, self.parts.size, self.degree)
        regression = self._single if measured.values.dtype == np.float32 else self.regression
        shape, nugget = regression.embed(measured.values[:, n_mean:], noise, self.n_components - n_mean)
        z = np.zeros((len(points), self.n_components), np.float32)
        z[:, :n_mean] = measured.values[:, :n_mean]
        z[:, n_mean : n_mean + shape.shape[1]] = shape
        return Embedded(z, nugget.astype(np.float32))

    @cached_property
    def _single(self) -> Regression:
        """The regression in single precision, converted once and not for each batch."""
        large = ("centre", "basis", "scales", "metric")
        return self.regression._replace(**{name: getattr(self.regression, name).astype(np.float32) for name in large})

    def to_arrays(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return plain arrays, and what JSON can hold."""
        regression = self.regression._asdict()
        header = {
            "parts": type(self.parts).__name__,
            "nugget": regression.pop("nugget"),
            "degree": self.degree,
            "pinned": self.pinned,
            "n_components": self.n_components,
            "report": asdict(self.report),
        }
        arrays = {f"parts.{name}": array for name, array in self.parts.arrays().items()}
        return arrays | {f"regression.{name}": array for name, array in regression.items()}, header

    @classmethod
    def of_arrays(cls, arrays: dict[str, NDArray[Any]], header: dict[str, Any]) -> "FittedBase":
        """Undo :meth:`to_arrays`."""
        kind = {parts.__name__: parts for parts in (EuclideanParts, InvariantParts)}[header["parts"]]
        own = {name.removeprefix("parts."): array for name, array in arrays.items() if name.startswith("parts.")}
        linear = {name: arrays[f"regression.{name}"] for name in Regression._fields if name != "nugget"}
        return cls(
            parts=kind.of_arrays(own),
            regression=Regression(**linear, nugget=header["nugget"]),
            degree=header["degree"],
            pinned=header["pinned"],
            n_components=header["n_components"],
            report=BaseReport(**header["report"]),
        )


def squared_distances(z: NDArray[Any]) -> NDArray[np.float64]:
    """Return the squared Euclidean distances of rows."""
    z = np.asarray(z, np.float64)
    z = z - z.mean(0)
    square = (z**2).sum(1)
    table = np.maximum(square[:, None] + square - 2 * z @ z.T, 0.0)
    np.fill_diagonal(table, 0.0)
    return np.asarray(table)


def own_columns(measured: Measured, size: NDArray[np.float64], degree: int) -> Array:
    """Return what a cloud may add by itself, as costs: spread, scatter, and one over its number of points."""
    spread, scatter = measured.spread ** (degree / 2), measured.scatter ** (degree / 2)
    return np.stack([spread, scatter, measured.share * size ** (degree / 2), measured.share * spread], axis=-1)
