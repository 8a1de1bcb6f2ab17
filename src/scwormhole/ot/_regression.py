"""From solved pairs of clouds to an embedding: convex regressions on arrays, NumPy and SciPy only.

Non-negative least squares finds how much each part of what was measured counts, beside what each cloud adds by itself:
the nugget, the sampling noise that no vector can hold. The scaled parts are brought to their principal components, and
a positive semidefinite matrix (``_mahalanobis``) makes the most of these.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._mahalanobis import Array, Blocks, fit_metric, non_negative, own_sums
from ._pool import principal_axes

TOWARDS_FAMILY = 1e-3  # pull of the scales towards one scale for all parts of a kind


class Regression(NamedTuple):
    """A linear map of what was measured, and what each cloud adds by itself."""

    centre: Array  # [p]
    basis: Array  # [p, k] scales times principal axes
    scales: Array  # [p] square roots of the parts' scales
    metric: Array  # [k, k] columns by falling variance
    noise: Array  # [c]
    beside: Array  # [] how much of what lies beside the principal components counts
    nugget: bool

    def embed(self, values: NDArray[np.floating], noise: Array, width: int) -> tuple[Array, Array]:
        """Return vectors and nuggets; what the vectors' width cannot hold goes to the nuggets.

        Two clouds differ in it by nearly the sum of what each has: there are many directions, of little variance each.
        """
        components = self._offset(values) @ self.basis.astype(values.dtype, copy=False)
        full = components @ self.metric.astype(values.dtype, copy=False)
        if not self.nugget:
            return full[..., :width], np.zeros(full.shape[:-1])
        own = (full[..., width:] ** 2).sum(axis=-1) + noise @ self.noise
        return full[..., :width], own + self.beside * self.lost(values, components)

    def lost(self, values: NDArray[np.floating], components: Array) -> Array:
        """Return the square of what lies beside all principal components."""
        scaled = self._offset(values) * self.scales.astype(values.dtype, copy=False)
        square = np.einsum("...p,...p->...", scaled, scaled)
        return np.asarray(np.maximum(square - (components**2).sum(axis=-1), 0))

    def _offset(self, values: NDArray[np.floating]) -> NDArray[Any]:
        return values - self.centre.astype(values.dtype, copy=False)


def regress(
    blocks: Blocks,
    sample: Array,
    groups: NDArray[np.int64],
    families: NDArray[np.int64],
    trust: Array,
    *,
    width: int,
    nugget: bool,
    rng: int,
) -> Regression:
    """Fit scales, principal components and metric.

    Parameters
    ----------
    blocks
        Solved clouds.
    sample
        What was measured of clouds that show the cohort's variance, one row each.
    groups
        Part that each value belongs to, never falling.
    families
        Kind of part that each value belongs to.
    trust
        Share of its scale that each value keeps; the metric makes up for what is taken from the useful ones.
    width
        Most principal components.
    nugget
        Whether a cloud may add something by itself.
    rng
        Seed of the principal components where there are very many values.
    """
    scales = np.sqrt(trust * part_scales(blocks, groups, families, nugget=nugget))
    used = scales > 0
    centre = sample.mean(axis=0)
    basis = np.zeros((len(scales), 0))
    if used.any():
        axes = principal_axes((sample - centre)[:, used] * scales[used], width, rng)
        basis = np.zeros((len(scales), len(axes)))
        basis[used] = axes.T * scales[used, None]
    k = basis.shape[1]
    flat = Regression(centre, basis, scales, np.eye(k), np.zeros(blocks.noise.shape[2]), np.zeros(()), nugget)
    if not used.any() or not np.any((sample - centre) @ basis):
        return flat
    components, _ = flat.embed(blocks.values, blocks.noise, k)
    matrix, noise = fit_metric(blocks._replace(values=components), nugget=nugget)
    values, vectors = np.linalg.eigh(matrix)
    root = vectors * np.sqrt(np.maximum(values, 0))
    # turned so that the first columns hold most of the variance
    turn = principal_axes((sample - centre) @ basis @ root, k, rng).T
    metric = np.zeros((k, k))
    metric[:, : turn.shape[1]] = root @ turn
    return flat._replace(metric=metric, noise=noise)


def part_scales(blocks: Blocks, groups: NDArray[np.int64], families: NDArray[np.int64], *, nugget: bool) -> Array:
    """Return by how much each value's square counts, one scale a part, by non-negative least squares.

    With few pairs the scales stay close to one scale for each kind of part, which is fitted first.

    Parameters
    ----------
    blocks
        Solved clouds.
    groups
        Part that each value belongs to, never falling.
    families
        Kind of part that each value belongs to.
    nugget
        Whether a cloud may add something by itself.
    """
    pairs = blocks.pairs
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    one, other = np.nonzero(pairs)
    # a block at a time: there may be thousands of values
    apart = [np.add.reduceat((values[one] - values[other]) ** 2, starts, axis=1) for values in blocks.values]
    parts = np.concatenate(apart)
    target = blocks.target[:, pairs].reshape(-1)
    if not target.any():
        return np.ones(len(groups))
    own = own_sums(blocks) if nugget else np.zeros((len(parts), 0))
    kinds = families[starts]
    member = (kinds[:, None] == np.unique(kinds)).astype(np.float64)  # [parts, families]
    of_kind, of_own = np.split(non_negative(np.hstack([parts @ member, own]), target), [member.shape[1]])
    prior = np.concatenate([member @ of_kind, of_own])
    scales = non_negative(np.hstack([parts, own]), target, prior, TOWARDS_FAMILY)[: len(starts)]
    return np.repeat(scales, np.diff(starts, append=len(groups)))
