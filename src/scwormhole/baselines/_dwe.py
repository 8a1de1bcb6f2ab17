"""DWE: histograms on a grid embedded by a convolutional network that is trained on pairs. The estimator.

After Courty, Flamary and Ducoffe 2018; with all pairs of a batch compared, as by the model that it is a rival of.
"""

import logging
import warnings
from functools import partial
from typing import Any, Literal

import jax
import numpy as np
from flax import nnx
from jax import Array
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from scwormhole.ot import Targets
from scwormhole.ot._cohort import Cohort
from scwormhole.ot._metrics import GroundCost
from scwormhole.ot._options import RelativeEpsilon
from scwormhole.train._plan import Clock

from ._blocks import batches
from ._checks import check_amounts, check_counts
from ._common import Embedding
from ._convolutions import ConvolutionalNetworks
from ._grid import Grid
from ._siamese import GROUP, TURNS, Pairs, train

HIDDEN = 256  # width of the dense layers
ROWS = 64  # clouds that the network sees at a time

logger = logging.getLogger(__name__)


class DWE(Embedding):
    """Deep Wasserstein embedding: a convolutional network on histograms, trained on solved pairs.

    Squared Euclidean distances of vectors approximate the divergence, in the user's units. The loss is their mean
    squared error over the squared mean divergence, and ``coeff`` times the Kullback-Leibler divergence of decoded
    histograms from what they were. In two and three dimensions only.

    Parameters
    ----------
    side
        See :class:`Grid`.
    box
        See :class:`Grid`.
    metric
        See :func:`scwormhole.ot.pairwise`.
    epsilon
        See :func:`scwormhole.ot.pairwise`.
    relative_epsilon
        See :func:`scwormhole.ot.pairwise`.
    n_components
        Length of a vector.
    n_channels
        Channels of the finest convolutions; coarser ones have twice as many.
    batch_size
        Clouds of a step, all of whose pairs are compared.
    coeff
        Weight of the decoder's loss.
    learning_rate
        Adam's learning rate at the start; it falls exponentially to a hundredth.
    max_steps
        Steps to train for.
    max_seconds
        Time for the whole fit, compilation included. The learning rate then falls with time, and a fit cannot be
        repeated to the bit.
    progress
        Whether to show a bar once work takes over two seconds.
    rng
        Seed of weights and batches.

    Attributes
    ----------
    grid_
        The :class:`Grid`.
    epsilon_
        Epsilon in units of the ground cost.
    n_steps_
        Steps that were taken.
    history_
        Lists ``"step"``, ``"seconds"``, ``"encoder_loss"`` and ``"decoder_loss"``; losses are means over 50 steps.

    Examples
    --------
    >>> import numpy as np, scwormhole as wh
    >>> from scwormhole.baselines import DWE
    >>> rng = np.random.default_rng(0)
    >>> clouds = wh.PointClouds.from_list([rng.normal(size=(20, 2)) * rng.gamma(5.0) for _ in range(30)])
    >>> model = DWE(side=8, n_components=16, max_steps=2).fit(clouds)
    >>> z = model.transform(clouds)
    >>> z.shape, model.inverse_transform(z).shape
    ((30, 16), (30, 64))
    """

    def __init__(
        self,
        *,
        side: int | None = None,
        box: tuple[float, float] | None = None,
        metric: str | GroundCost = "S2",
        epsilon: float = 0.05,
        relative_epsilon: RelativeEpsilon = "mean",
        n_components: int = 128,
        n_channels: int = 16,
        batch_size: int = 32,
        coeff: float = 0.01,
        learning_rate: float = 1e-3,
        max_steps: int = 10_000,
        max_seconds: float | None = None,
        progress: bool = True,
        rng: int = 0,
    ) -> None:
        super().__init__(
            {
                "side": side,
                "box": box,
                "metric": metric,
                "epsilon": epsilon,
                "relative_epsilon": relative_epsilon,
                "n_components": n_components,
                "n_channels": n_channels,
                "batch_size": batch_size,
                "coeff": coeff,
                "learning_rate": learning_rate,
                "max_steps": max_steps,
                "max_seconds": max_seconds,
                "progress": progress,
                "rng": rng,
            }
        )

    def _fit(self, clouds: Cohort) -> None:
        """Train on a cohort."""
        clock, params = Clock(), self._params
        check_counts(params, "n_components", "n_channels")
        check_counts(params, "batch_size", least=2)
        check_counts(params, "max_steps", least=0)
        check_amounts(params, "coeff", "learning_rate", *["max_seconds"] * (params["max_seconds"] is not None))
        size = min(params["batch_size"], len(clouds))
        # with limited time it is not known how many pairs there will be, but not all of them are solved at once
        groups = max(1, -(-params["max_steps"] // (GROUP * TURNS))) if params["max_seconds"] is None else 1
        transport = {name: params[name] for name in ("metric", "epsilon", "relative_epsilon", "rng")}
        targets = Targets(clouds, n_pairs=groups * GROUP * size * (size - 1) // 2, **transport)
        grid = Grid(side=params["side"], box=params["box"]).fit(clouds)
        pairs = Pairs(clouds, grid, targets, size, params["rng"])
        networks = ConvolutionalNetworks(
            grid.shape_,
            params["n_components"],
            n_channels=params["n_channels"],
            hidden=HIDDEN,
            scale=pairs.mean_square**-0.5,
            rngs=nnx.Rngs(params["rng"]),
        )
        self._graph, weights = nnx.split(networks)
        self._weights, self.history_, self.n_steps_ = train(
            weights,
            pairs,
            graph=self._graph,
            clock=clock,
            show=params["progress"],
            **{name: params[name] for name in ("coeff", "learning_rate", "max_steps", "max_seconds")},
        )
        self.grid_, self.epsilon_, self.unit_ = grid, targets.epsilon, pairs.mean**0.5
        if not self.n_steps_:
            message = "DWE took no step, so its vectors mean nothing; raise max_steps or max_seconds."
            warnings.warn(message, ConvergenceWarning, stacklevel=3)
        targets.warn(stacklevel=3)
        logger.info("DWE: %d steps in %.0f seconds", self.n_steps_, clock.elapsed())

    def transform(self, clouds: Cohort) -> NDArray[np.float32]:
        """Return one vector a cloud.

        Parameters
        ----------
        clouds
            A cohort of the dimension that was fitted.
        """
        clouds = self._known(clouds)
        z = np.empty((len(clouds), self._weights["vector"]["bias"][...].size), np.float32)
        for batch in batches(clouds, max(clouds.dim, self.grid_.n_voxels_ // int(clouds.rungs.min()))):
            z[batch.index] = self._applied("encode", self.grid_.histograms(batch.points, batch.weights))
        return z * np.float32(self.unit_)

    def inverse_transform(self, z: ArrayLike) -> NDArray[np.float32]:
        """Return the histograms that vectors stand for, each of mass one, on the voxels of ``grid_``.

        Parameters
        ----------
        z
            Vectors, one a row.
        """
        k = self._fitted()._weights["vector"]["bias"][...].size
        z = np.asarray(z, np.float32)
        if z.ndim != 2 or z.shape[1] != k:
            raise ValueError(f"z has shape {z.shape}; give vectors of {k} numbers, one a row.")
        if not np.isfinite(z).all():
            raise ValueError(
                f"z has {(~np.isfinite(z)).sum():,} entries that are no finite numbers; give vectors as transform "
                "returns them."
            )
        return np.exp(self._applied("decode", z / np.float32(self.unit_)))

    def _applied(self, way: Literal["encode", "decode"], rows: NDArray[Any]) -> NDArray[np.float32]:
        """Apply a network to rows, as many at a time as it is compiled for."""
        found = []
        for first in range(0, max(len(rows), 1), ROWS):  # at least once: no rows have a width too
            some = rows[first : first + ROWS].astype(np.float32)
            filled = np.pad(some, ((0, ROWS - len(some)), (0, 0)))
            found.append(np.asarray(_apply(self._weights, filled, graph=self._graph, way=way))[: len(some)])
        return np.concatenate(found)


@partial(jax.jit, static_argnames=("graph", "way"))
def _apply(weights: Any, rows: Array, *, graph: Any, way: str) -> Array:
    found: Array = getattr(nnx.merge(graph, weights), way)(rows)
    return found
