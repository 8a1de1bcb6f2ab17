"""Linear optimal transport: clouds seen from a reference cloud (Wang et al. 2013). Drives couplings."""

import warnings
from functools import partial
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from scwormhole.clouds import PointClouds
from scwormhole.ot import TransportWarning
from scwormhole.ot._cohort import Cohort
from scwormhole.ot._exact import Exact
from scwormhole.ot._metrics import METRICS, paired_costs, squared_euclidean
from scwormhole.ot._options import RelativeEpsilon
from scwormhole.ot._pool import draw_points
from scwormhole.ot._scale import as_epsilon
from scwormhole.ot._sinkhorn import solve
from scwormhole.ot._solver import Prepared, centred, fill
from scwormhole.ot._threads import one_thread

from ._blocks import batches, learned_from
from ._checks import check_counts
from ._common import Array, Embedding

Coupling = Literal["exact", "sinkhorn"]
MOST_ROUNDS = 100  # of k-means
MOST_ITERATIONS, TOL = 1000, 1e-3


class LinearOT(Embedding):
    """Each cloud as the map that takes a reference cloud to it: linear optimal transport.

    A cloud is coupled with the reference, and each point of the reference goes to the mean of where its mass goes. The
    vector is these images, each times the root of the reference point's weight. Squared distances of vectors
    approximate the squared W2 distance, and are exact between translates, and on a line for clouds of as many equally
    heavy points as the reference. What mass varies by within one point of the reference is lost, so they may be too
    small; they may be too large where two maps from the reference do not go together.

    Parameters
    ----------
    n_points
        Points of the reference: k-means centres of points of the cohort, each as heavy as its cluster.
    reference
        A reference of your own instead: an array of points, or a tuple of points and weights, such as ``clouds[0]``.
        Points without weight are left out.
    solver
        ``"exact"`` couples by POT's network simplex, ``"sinkhorn"`` by entropic transport in batches.
    epsilon
        See :func:`scwormhole.ot.pairwise`; for ``"sinkhorn"`` only. Small values give sharp maps.
    relative_epsilon
        See :func:`scwormhole.ot.pairwise`.
    rng
        Seed of the reference.

    Attributes
    ----------
    reference_
        Points of the reference.
    weights_
        Their weights.
    solver_
        How clouds are coupled with it.

    Examples
    --------
    >>> import numpy as np, scwormhole as wh
    >>> from scwormhole.baselines import LinearOT
    >>> points = np.random.default_rng(0).normal(size=(30, 2))
    >>> clouds = wh.PointClouds.from_list([points, points + [3.0, 4.0]])
    >>> LinearOT(n_points=8).fit(clouds).pairwise(clouds).round(3)
    array([[ 0., 25.],
           [25.,  0.]])
    """

    def __init__(
        self,
        *,
        n_points: int = 64,
        reference: Any = None,
        solver: Coupling = "exact",
        epsilon: float = 0.01,
        relative_epsilon: RelativeEpsilon = "mean",
        rng: int = 0,
    ) -> None:
        super().__init__(
            {
                "n_points": n_points,
                "reference": reference,
                "solver": solver,
                "epsilon": epsilon,
                "relative_epsilon": relative_epsilon,
                "rng": rng,
            }
        )

    def _fit(self, clouds: Cohort) -> None:
        """Make the reference."""
        params = self._params
        check_counts(params, "n_points")
        if params["solver"] not in get_args(Coupling):
            raise ValueError(f"solver is {params['solver']!r}; give one of {', '.join(map(repr, get_args(Coupling)))}.")
        self.solver_, self.epsilon_ = params["solver"], 0.0
        if self.solver_ == "sinkhorn":
            names = ("epsilon", "relative_epsilon", "rng")
            self.epsilon_ = as_epsilon((clouds,), METRICS["W2"], *(params[name] for name in names))
        if params["reference"] is None:
            with one_thread:
                self.reference_, self.weights_ = _centres(clouds, params["n_points"], params["rng"])
        else:
            self.reference_, self.weights_ = _as_reference(params["reference"], clouds.dim)

    def transform(self, clouds: Cohort) -> NDArray[np.float32]:
        """Return where each reference point goes in each cloud, seen from the reference's mean, by root of weight.

        Parameters
        ----------
        clouds
            A cohort of the dimension that was fitted.
        """
        clouds = self._known(clouds)
        share, late = self.weights_[:, None], 0
        origin = self.weights_ @ self.reference_
        z = np.empty((len(clouds), self.reference_.size), np.float32)
        with one_thread:
            for batch in batches(clouds, max(clouds.dim, 4 * len(share))):
                near, means = centred(*fill(batch.points, batch.weights))
                images, converged = self._images(near, batch.weights)
                late += int((~converged).sum())
                images += (means - origin - (share * images).sum(axis=1))[:, None]
                z[batch.index] = (np.sqrt(share) * images).reshape(len(images), -1)
        if late:
            warnings.warn(
                f"{late:,} of {len(clouds):,} couplings with the reference did not reach the tolerance, and their "
                "vectors are less certain; raise epsilon, or take solver='exact'.",
                TransportWarning,
                stacklevel=2,
            )
        return z

    def _images(self, near: Array, weights: Array) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Means of where the mass of reference points goes in each cloud, and what converged."""
        reference = self.reference_ - self.weights_ @ self.reference_
        if self.solver_ == "exact":
            found = [_exact_images(reference, self.weights_, *cloud) for cloud in zip(near, weights, strict=True)]
            return np.stack([images for images, _ in found]), np.array([good for _, good in found])
        scale = np.sqrt(self.epsilon_)
        images, good = _entropic_images(
            *(np.asarray(part, np.float32) for part in (reference / scale, self.weights_, near / scale, weights))
        )
        return scale * np.asarray(images, np.float64), np.asarray(good)


def _as_reference(given: Any, dim: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return points and weights of a reference of the user's, or say why it is none."""
    try:
        points, weights = given if isinstance(given, tuple) else (given, None)
        points, weights = PointClouds.from_list([points], None if weights is None else [weights])[0]
    except (TypeError, ValueError) as error:
        raise ValueError(
            "reference is not a cloud; give an array of points, one a row, or a tuple of points and weights, such as "
            f"clouds[0]. Read as cloud 0: {error}"
        ) from error
    if points.shape[1] != dim:
        raise ValueError(
            f"reference has {points.shape[1]} dimensions and clouds {dim}; give the same coordinates of both."
        )
    heavy = weights > 0  # a point without mass goes nowhere
    return np.asarray(points[heavy], np.float64), np.asarray(weights[heavy], np.float64)


def _centres(clouds: Cohort, n: int, rng: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return k-means centres of points of the cohort, and the share of points around each."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    points, origin = draw_points(clouds, learned_from(clouds, rng), centred=False, rng=rng)
    n = min(n, len(points))
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):  # fewer different points than centres
        labels = KMeans(n, n_init=1, max_iter=MOST_ROUNDS, random_state=rng).fit(points).labels_
    kinds, labels, counts = np.unique(labels, return_inverse=True, return_counts=True)
    centres = np.zeros((len(kinds), clouds.dim))
    np.add.at(centres, labels, points.astype(np.float64))
    return centres / counts[:, None] + origin, counts / counts.sum()


def _exact_images(reference: Array, share: Array, points: Array, weights: Array) -> tuple[NDArray[np.float64], bool]:
    real = weights > 0
    solver = Exact(METRICS["W2"])
    one, other = (
        Prepared(p[None], np.asarray(w / w.sum(), np.float64)[None], np.zeros((1, 1)), np.zeros(1))
        for p, w in ((reference, share), (points[real], weights[real].astype(np.float64)))
    )
    plan, converged = solver.plan(one, other)
    return plan @ points[real] / plan.sum(axis=1, keepdims=True), converged


@jax.jit
def _entropic_images(reference: jax.Array, share: jax.Array, points: jax.Array, weights: jax.Array) -> Any:
    """Return the images of the reference in each cloud, in units of the root of epsilon, and what converged."""
    k = len(points)
    product = partial(jnp.einsum, precision=jax.lax.Precision.HIGHEST)
    weights = weights / weights.sum(1, keepdims=True)
    costs = paired_costs(squared_euclidean, jnp.broadcast_to(reference, (k, *reference.shape)), points)
    solution = solve(costs, jnp.broadcast_to(share, (k, len(share))), weights, tol=TOL, max_iterations=MOST_ITERATIONS)
    shares = jax.nn.softmax(jnp.log(weights)[:, None] + solution.g[:, None] - costs, axis=-1)
    return product("kmn,knd->kmd", shares, points), solution.converged
