"""BaseFeatures, the embedding that needs no training: drives what measures clouds, solves pairs and regresses."""

import logging
import operator
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from tqdm.auto import tqdm

from ._base_fit import Embedded, FittedBase
from ._base_fitting import fit_base, n_pairs_for
from ._cohort import Cohort, as_cohort
from ._estimator import Estimator
from ._metrics import GroundCost, as_metric
from ._options import RelativeEpsilon, SolverName
from ._parts import EuclideanParts
from ._pool import stream
from ._targets import Targets
from ._threads import one_thread

Kind = Literal["auto", "sliced", "tree", "invariant"]
Nugget = Literal["auto"] | bool
NEAR_NUMBERS, LEAST_ROWS = 1 << 19, 32  # coordinates, and clouds, that are measured at a time
FORMAT = 3

logger = logging.getLogger(__name__)


class BaseFeatures(Estimator):
    """An embedding of clouds without a neural network: measured, regressed on solved pairs, in seconds.

    ``((z_i - z_j)**2).sum()``, plus both nuggets where there are any, approximates the divergence of two clouds in the
    units of the ground cost. What is measured of a cloud is its mean, its quantile functions along directions and its
    masses on a tree of clusters (for Gromov-Wasserstein, quantiles of the distances within it). Up to 24,000 solved
    pairs decide how it counts: non-negative least squares for the scale of each part, a positive semidefinite matrix
    for their principal components. In up to three dimensions and with a squared Euclidean cost, means and shapes are
    kept apart, as they are in the divergence: the distance of a cloud from its translate is the square of the shift.

    Parameters
    ----------
    kind
        What is measured: ``"sliced"`` is mean and quantiles, ``"tree"`` these and the masses on a tree, ``"invariant"``
        what no rotation changes. ``"auto"`` is invariant for ``"GW"`` and ``"GS"`` and else a tree.
    metric
        See :func:`pairwise`.
    epsilon
        See :func:`pairwise`.
    relative_epsilon
        See :func:`pairwise`.
    n_components
        Length of a vector. A small cohort has fewer components than that, and zeros in the rest.
    nugget
        Whether each cloud may add something by itself, which is mostly sampling noise. ``"auto"`` decides for it if
        that is more than 3 % of the mean divergence.
    n_pairs
        Pairs to solve, about; 24,000 by default, fewer where clouds have many hundred points.
    solver
        See :func:`pairwise`.
    max_points
        See :func:`pairwise`; for the solved pairs only.
    progress
        Whether to show a bar once work takes over two seconds.
    rng
        Seed of all sampling.

    Attributes
    ----------
    kind_
        What is measured.
    metric_
        Divergence that it was fitted to.
    epsilon_
        Epsilon in units of the ground cost.
    nugget_
        Whether there is a nugget.
    report_
        How good the fit is, :class:`BaseReport`.

    Examples
    --------
    >>> import numpy as np, scwormhole as wh
    >>> from scwormhole.ot import BaseFeatures
    >>> rng = np.random.default_rng(0)
    >>> clouds = wh.PointClouds.from_list([rng.normal(size=(20, 2)) * rng.gamma(5.0) for _ in range(30)])
    >>> base = BaseFeatures(n_components=16).fit(clouds)
    >>> base.transform(clouds).shape
    (30, 16)
    """

    def __init__(
        self,
        *,
        kind: Kind = "auto",
        metric: str | GroundCost = "S2",
        epsilon: float = 0.05,
        relative_epsilon: RelativeEpsilon = "mean",
        n_components: int = 128,
        nugget: Nugget = "auto",
        n_pairs: int | None = None,
        solver: SolverName = "auto",
        max_points: int | None = None,
        progress: bool = True,
        rng: int = 0,
    ) -> None:
        super().__init__(
            {
                "kind": kind,
                "metric": metric,
                "epsilon": epsilon,
                "relative_epsilon": relative_epsilon,
                "n_components": n_components,
                "nugget": nugget,
                "n_pairs": n_pairs,
                "solver": solver,
                "max_points": max_points,
                "progress": progress,
                "rng": rng,
            }
        )

    def fit(self, clouds: Cohort, y: None = None) -> "BaseFeatures":
        """Solve some pairs of a cohort, and fit the embedding to them.

        Parameters
        ----------
        clouds
            The cohort, of at least two clouds.
        y
            Of no effect.
        """
        clouds = as_cohort(clouds, "clouds")
        params = self._checked(clouds)
        metric = as_metric(params["metric"])
        n_pairs = params["n_pairs"] or n_pairs_for(clouds, metric)
        settings = ("metric", "epsilon", "relative_epsilon", "solver", "max_points", "rng")
        targets = Targets(clouds, n_pairs=n_pairs, **{name: params[name] for name in settings})
        self.fitted_ = fit_base(
            clouds,
            targets.blocks,
            metric,
            kind=params["kind"],
            n_components=params["n_components"],
            nugget=params["nugget"],
            n_pairs=n_pairs,
            rng=params["rng"],
        )
        targets.warn()
        self.kind_, self.dim_, self.report_ = params["kind"], clouds.dim, self.fitted_.report
        self.epsilon_, self.metric_ = targets.epsilon, params["metric"]
        logger.info("base features: %s, %s", self.kind_, self.report_)
        return self

    @property
    def nugget_(self) -> bool:
        """Whether there is a nugget."""
        return self._fit().regression.nugget

    @property
    def width(self) -> int:
        """Numbers that are held for each point while a batch is measured."""
        return self._fit().parts.width

    @property
    def origin_(self) -> NDArray[np.float64] | None:
        """Point from which clouds' means are taken into the first components as they are; None if they are not."""
        fitted = self._fit()
        return fitted.parts.origin if fitted.pinned and isinstance(fitted.parts, EuclideanParts) else None

    def transform(self, clouds: Cohort) -> NDArray[np.float32]:
        """Return one vector a cloud.

        Parameters
        ----------
        clouds
            A cohort of the dimension that was fitted.
        """
        return self.embed(clouds).z

    def fit_transform(self, clouds: Cohort, y: None = None) -> NDArray[np.float32]:
        """Fit, and return one vector a cloud.

        Parameters
        ----------
        clouds
            The cohort.
        y
            Of no effect.
        """
        return self.fit(clouds).transform(clouds)

    def nugget(self, clouds: Cohort) -> NDArray[np.float32]:
        """Return what each cloud adds by itself to its divergence from any other; zeros where there is no nugget.

        Parameters
        ----------
        clouds
            A cohort of the dimension that was fitted.
        """
        return self.embed(clouds).nugget

    def embed(self, clouds: Cohort) -> Embedded:
        """Return vectors and nuggets in one go.

        Parameters
        ----------
        clouds
            A cohort of the dimension that was fitted.
        """
        fitted, clouds = self._fit(), as_cohort(clouds, "clouds")
        if clouds.dim != self.dim_:
            raise ValueError(
                f"clouds have {clouds.dim} dimensions, and the base was fitted in {self.dim_}; give the same "
                "coordinates, in the same order."
            )
        z = np.empty((len(clouds), fitted.n_components), np.float32)
        nugget = np.empty(len(clouds), np.float32)
        bar = tqdm(total=len(clouds), desc="base features", delay=2, disable=not self._params["progress"])
        with bar, one_thread:
            for batch in stream(clouds, fitted.parts.width):
                some = fitted.embed(batch.points, batch.weights)
                z[batch.index], nugget[batch.index] = (column[: len(batch.index)] for column in some)
                bar.update(len(batch.index))
        return Embedded(z, nugget)

    def features(self, points: NDArray[Any], weights: NDArray[Any]) -> Embedded:
        """Embed a padded batch, on arrays alone, a few clouds at a time: these stay near the processor.

        Clouds of like sizes are taken together, and padded no more than the largest of them needs.

        Parameters
        ----------
        points
            Points, clouds by places by dimensions.
        weights
            Weights, clouds by places; zero on padding.
        """
        fitted, rows = self._fit(), max(LEAST_ROWS, NEAR_NUMBERS // (points.shape[1] * points.shape[2]))
        sizes = points.shape[1] - (weights[:, ::-1] > 0).argmax(axis=1)  # up to the last point
        order = np.argsort(sizes, kind="stable")
        z, nugget = np.empty((len(points), fitted.n_components), np.float32), np.empty(len(points), np.float32)
        for first in range(0, len(points), rows):
            some = order[first : first + rows]
            filled = slice(int(sizes[some].max()))
            z[some], nugget[some] = fitted.embed(points[some, filled], weights[some, filled])
        return Embedded(z, nugget)

    def distances(self, first: Cohort, second: Cohort) -> NDArray[np.float32]:
        """Return the approximate divergence between the clouds of two cohorts, one to one, nuggets included.

        Of the nuggets of two clouds over the same points object, only so much counts as they have no mass in common: a
        cloud is at zero from itself. A copy of it elsewhere is taken for another sample.

        Parameters
        ----------
        first
            A cohort.
        second
            Another of as many clouds.
        """
        if len(first) != len(second):
            raise ValueError(
                f"first has {len(first):,} clouds and second {len(second):,}; distances are one to one, so give as "
                "many of both."
            )
        return self.embed(first).paired(self.embed(second), first.shared_mass_with(second))

    def to_arrays(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return what was fitted as plain arrays, and the rest as a dictionary that JSON can hold.

        A ground cost of your own is kept by its name only, so what is read back embeds but cannot be fitted again.
        """
        arrays, fitted = self._fit().to_arrays()
        params = {**self._params, "metric": as_metric(self._params["metric"]).name}
        own = {"kind": self.kind_, "epsilon": self.epsilon_, "dim": self.dim_}
        return arrays, {"format": FORMAT, "params": params, **own, "fitted": fitted}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], header: dict[str, Any]) -> "BaseFeatures":
        """Undo :meth:`to_arrays`.

        Parameters
        ----------
        arrays
            The arrays.
        header
            The dictionary.
        """
        if header.get("format") != FORMAT:
            raise ValueError(
                f"the header has format {header.get('format')!r}; this version reads format {FORMAT}, so install a "
                "newer one."
            )
        base = cls(**header["params"])
        base.fitted_ = FittedBase.of_arrays(arrays, header["fitted"])
        base.kind_, base.epsilon_, base.dim_ = header["kind"], header["epsilon"], header["dim"]
        base.report_, base.metric_ = base.fitted_.report, header["params"]["metric"]
        return base

    def _checked(self, clouds: Cohort) -> dict[str, Any]:
        """Return the parameters with the kind decided, or say which one is wrong."""
        params = dict(self._params)
        metric = as_metric(params["metric"])
        if params["kind"] not in get_args(Kind):
            raise ValueError(f"kind is {params['kind']!r}; give one of {', '.join(map(repr, get_args(Kind)))}.")
        if params["kind"] == "auto":
            params["kind"] = "invariant" if metric.gromov else "tree"
        if (params["kind"] == "invariant") != metric.gromov:
            suits = "'invariant'" if metric.gromov else "'sliced' or 'tree'"
            raise ValueError(f"kind is {params['kind']!r}, but metric {metric.name!r} wants {suits}; or give 'auto'.")
        if params["nugget"] not in ("auto", True, False):
            raise ValueError(f"nugget is {params['nugget']!r}; give 'auto', True or False.")
        for name in ("n_components", "n_pairs"):
            if params[name] is not None and operator.index(params[name]) < 1:
                raise ValueError(f"{name} is {params[name]}; give at least 1.")
        if len(clouds) < 2:
            raise ValueError("clouds holds a single cloud; at least two are needed, for there must be a pair to solve.")
        return params

    def _fit(self) -> FittedBase:
        if not hasattr(self, "fitted_"):
            raise NotFittedError("these base features are not fitted yet; call .fit(clouds) first.")
        return self.fitted_
