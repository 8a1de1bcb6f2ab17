"""The positive semidefinite matrix that brings distances closest to solved ones: NumPy and SciPy, nothing at random.

It solves, over matrices ``M`` and coefficients ``c`` of what each cloud adds by itself::

    min_{M >= 0, c >= 0}  mean over pairs (|z_i - z_j|_M^2 + f_ij c . (n_i + n_j) - target_ij)^2 + ridge * |M - M_0|^2

by accelerated projected gradients, where ``f_ij`` is the mass that two clouds do not have in common. That is where a
trained linear layer would end, without steps, batches or seeds.
Pairs come in blocks of clouds all solved with each other, so predictions and gradients are products of small matrices:
the gradient is ``Z' L Z``, with ``L`` the Laplacian of the residuals.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

Array = NDArray[np.float64]

TOWARDS_SCALAR = 1e-2  # pull of the matrix towards a multiple of the identity
MOST_ITERATIONS = 300
TOLERANCE = 1e-5
NEGLIGIBLE = 1e-9  # share of the largest below which a column says nothing


class Blocks(NamedTuple):
    """Clouds of which all pairs in a block are solved."""

    values: Array  # [blocks, m, p] what was measured
    noise: Array  # [blocks, m, c] what a cloud may add by itself
    target: Array  # [blocks, m, m]
    fresh: Array  # [blocks, m, m] mass that two clouds do not have in common: so much of what they add counts

    @property
    def pairs(self) -> NDArray[np.bool_]:
        """Which entries of a block's table are pairs of different clouds, each once."""
        m = self.target.shape[1]
        return np.triu(np.ones((m, m), bool), 1)


def fit_metric(blocks: Blocks, *, nugget: bool) -> tuple[Array, Array]:
    """Return the positive semidefinite matrix that brings vectors closest to the targets, and the noise's coefficients.

    Parameters
    ----------
    blocks
        Vectors, noise and targets.
    nugget
        Whether the noise may count.
    """
    _, m, k = blocks.values.shape
    pairs = blocks.pairs
    coefficients = np.zeros(blocks.noise.shape[2])
    # Halfway between measured and whitened: small components may grow, but not as easily as large ones.
    deviation = blocks.values.reshape(-1, k).std(axis=0)
    level = _rms(blocks.target[:, pairs])
    if not deviation.any() or not level > 0:
        return np.eye(k), coefficients
    unit = np.sqrt(np.maximum(deviation, NEGLIGIBLE * deviation.max()))
    vectors = blocks.values / unit
    size = np.sqrt(_rms(apart(vectors @ vectors.transpose(0, 2, 1))[:, pairs]))
    vectors, unit = vectors / size, unit * size
    own = own_sums(blocks) if nugget else np.zeros((len(blocks.target) * pairs.sum(), 0))
    height = np.where(own.any(axis=0), np.sqrt((own**2).mean(axis=0)), 1.0)
    noise = blocks.noise[:, :, : len(height)] / height
    target = blocks.target * ~np.eye(m, dtype=bool) / level
    plain = apart(blocks.values @ blocks.values.transpose(0, 2, 1))[:, pairs].reshape(-1, 1) / level
    start = non_negative(np.hstack([plain, own / height]), target[:, pairs].reshape(-1))
    matrix, found = _descend(vectors, noise, blocks.fresh, target, start[0] / level * np.diag(unit**2), start[1:])
    coefficients[: len(found)] = level * found / height
    return level * matrix / unit / unit[:, None], coefficients


def _descend(
    vectors: Array, noise: Array, fresh: Array, target: Array, first: Array, own: Array
) -> tuple[Array, Array]:
    """Accelerated projected gradients, restarted where they overshoot."""
    n_blocks, m, k = vectors.shape
    flat = vectors.reshape(-1, k)
    n_pairs = n_blocks * m * (m - 1) / 2
    ridge = TOWARDS_SCALAR / k

    def predicted(matrix: Array, own: Array) -> Array:
        inner = (flat @ matrix).reshape(vectors.shape) @ vectors.transpose(0, 2, 1)
        return apart(inner) + both(noise @ own, fresh)

    def gradient(residual: Array) -> tuple[Array, Array]:
        degree = residual.sum(axis=2)
        laplacian = degree[:, :, None] * vectors - residual @ vectors
        counted = (fresh * residual).sum(axis=2)
        return flat.T @ laplacian.reshape(-1, k) / n_pairs, np.einsum("bmc,bm->c", noise, counted) / n_pairs

    curvature = _largest_curvature(predicted, gradient, k, noise.shape[2]) + ridge
    matrix, at_matrix, at_own, momentum = first, first, own, 1.0
    for _ in range(MOST_ITERATIONS):
        slope, own_slope = gradient(predicted(at_matrix, at_own) - target)
        new = _nearest_psd(at_matrix - (slope + ridge * (at_matrix - first)) / curvature)
        new_own = np.maximum(at_own - own_slope / curvature, 0)
        step, own_step = new - matrix, new_own - own
        if ((at_matrix - new) * step).sum() + (at_own - new_own) @ own_step > 0:
            momentum, at_matrix, at_own = 1.0, new, new_own
        else:
            following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            push = (momentum - 1) / following
            momentum, at_matrix, at_own = following, new + push * step, new_own + push * own_step
        matrix, own = new, new_own
        if np.linalg.norm(step) <= TOLERANCE * np.linalg.norm(new):
            break
    return matrix, own


def apart(inner: Array) -> Array:
    """Return squared distances from inner products; zero from a cloud to itself."""
    square = np.einsum("...ii->...i", inner)
    table = square[..., :, None] + square[..., None, :] - 2 * inner
    return np.asarray(table * ~np.eye(inner.shape[-1], dtype=bool))


def both(own: Array, fresh: Array) -> Array:
    """Return what two clouds add by themselves, ``[..., m]``, as far as they do not have it in common."""
    return np.asarray(fresh * (own[..., :, None] + own[..., None, :]))


def non_negative(columns: Array, target: Array, prior: Array | None = None, pull: float = 0.0) -> Array:
    """Return non-negative least squares coefficients, drawn towards a prior.

    Parameters
    ----------
    columns
        Columns to add up, one row an observation. One that is nearly zero everywhere gets the coefficient zero.
    target
        What they are to add up to.
    prior
        Coefficients that would be right if nothing were known; zeros by default.
    pull
        Strength of the prior, in observations of one column each, as a share of all observations.
    """
    size = np.sqrt((columns**2).mean(axis=0))
    used = size > NEGLIGIBLE * max(size.max(initial=0.0), np.finfo(float).tiny)
    out = np.zeros(columns.shape[1])
    if not used.any():
        return out
    scaled = columns[:, used] / size[used]
    expected = np.zeros(used.sum()) if prior is None else prior[used] * size[used]
    strength = np.sqrt((pull + 1e-12) * len(target))  # the least of it, so that columns may be alike
    stacked = np.concatenate([scaled, strength * np.eye(used.sum())])
    # a square problem with the same solution, far smaller where there are thousands of pairs
    q, r = np.linalg.qr(stacked)
    rotated = q.T @ np.concatenate([target, strength * expected])
    out[used] = nnls(r, rotated, maxiter=30 * len(r))[0] / size[used]
    return out


def own_sums(blocks: Blocks) -> Array:
    """Return what both clouds of each pair add by themselves, pairs by columns."""
    one, other = np.nonzero(blocks.pairs)
    added = (blocks.noise[:, one] + blocks.noise[:, other]) * blocks.fresh[:, one, other, None]
    return np.asarray(added.reshape(-1, blocks.noise.shape[2]))


def _rms(values: Array) -> float:
    return float(np.sqrt((values**2).mean()))


def _nearest_psd(matrix: Array) -> Array:
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.maximum(values, 0)) @ vectors.T)


def _largest_curvature(
    predicted: Callable[[Array, Array], Array], gradient: Callable[[Array], tuple[Array, Array]], k: int, n_own: int
) -> float:
    """Return the largest curvature of the loss, by power iteration, and a little more."""
    matrix, own, largest = np.eye(k) / k, np.ones(n_own), 1.0
    for _ in range(20):
        slope, own_slope = gradient(predicted(matrix, own))
        largest = float(np.sqrt((slope**2).sum() + (own_slope**2).sum())) or 1.0
        matrix, own = slope / largest, own_slope / largest
    return 1.05 * largest
