"""Wormhole, the model users hold: remembers what a fit found. Arrays only, no AnnData; ``train`` does the work."""

import logging
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from importlib.metadata import version
from inspect import signature
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from .clouds import Cloud, PointClouds
from .io import as_plain, read_folder, write_folder
from .ot import BaseFeatures, Embedded, pairwise
from .ot._estimator import Estimator
from .ot._options import as_bytes
from .train import (
    Checkpoints,
    Fitted,
    History,
    Learned,
    Network,
    Recipe,
    Saved,
    Trained,
    embed_shared,
    fit,
    look,
    metric_name,
    model_html,
    read_parameters,
)

KIND, FORMAT = "scwormhole model", 1
SCORED = 128  # clouds that a score is had from
KEPT = ("metric_", "epsilon_", "converged_", "history_", "dim_", "feature_names_in_")  # beside what was trained

logger = logging.getLogger(__name__)


class Wormhole(Estimator):
    """Vectors for clouds, whose squared Euclidean distances are optimal-transport divergences; and back to clouds.

    For two clouds ``((z_i - z_j)**2).sum()``, plus both nuggets where there are any, is about their divergence, in the
    units of the user's points. A transformer learns it from solved pairs, on top of features that need no training
    (:class:`scwormhole.ot.BaseFeatures`); a decoder learns to turn vectors into clouds. Some clouds are held out, in
    whole patches where clouds share points, and decide when training stops and which weights are kept.

    Parameters
    ----------
    metric
        Divergence to learn: ``"S2"``, ``"W2"``, ``"S1"``, ``"W1"``, ``"GW"``, ``"GS"`` or a ground cost, see
        :func:`scwormhole.ot.pairwise`.
    epsilon
        Entropic regularisation: a share of the mean ground cost between clouds (see ``relative_epsilon``).
    relative_epsilon
        ``"mean"`` as said; ``"box"`` for points scaled to [-1, 1], as in the paper; None for the units of the cost.
    n_components
        Length of a vector.
    base
        Features under the transformer: ``"sliced"``, ``"tree"``, ``"invariant"`` (for GW and GS), None for none, or
        ``"auto"``.
    nugget
        Whether each cloud may add something by itself, which is mostly sampling noise; ``"auto"`` finds out.
    metric_dec
        Divergence that decoded clouds are held to; ``"auto"`` is ``"S2"``, and ``"GS"`` for GW and GS. A ground cost of
        your own sees points in your units, here as in ``metric``.
    epsilon_dec
        Its epsilon, read as ``epsilon`` is.
    coeff_dec
        Weight of the decoder's loss, which the encoder receives too; 0 for no decoder. That loss is the mean divergence
        of decoded clouds from what they were, over the mean divergence between clouds.
    n_points
        Points of a decoded cloud; the median size of the cohort by default.
    decode_weights
        Whether decoded points have weights of their own.
    width
        Length of a point's vector in the transformer.
    hidden
        Width of its hidden layers.
    n_blocks
        Number of attention blocks.
    n_heads
        Heads of each.
    n_induced
        Learned vectors through which the points see one another, which is linear in their number; 0 for attention of
        every point to every point, as in the paper. By default 16, and 0 for clouds of about 32 points or fewer, for
        which that is less work.
    norm
        ``"pre"``, or ``"post"`` as in the paper.
    batch_size
        Clouds of a step; all their pairs are learned.
    learning_rate
        Largest learning rate of Adam.
    decay
        How it falls: ``"cosine"`` after a warm-up of 50 steps, or ``"exponential"`` as in the paper.
    clip
        Largest norm of a gradient; None for any, as in the paper.
    patience
        Looks at held-out clouds, of about 30 in a whole training, without a gain after which the learning rate is
        lowered and training then stops. None, as in the paper, takes all of ``max_steps``, encoder and decoder
        together, and never trains the decoder alone.
    max_steps
        Most steps of each phase, encoder and decoder; 1,000 by default.
    max_seconds
        Most seconds that a fit takes, compilation included. Fewer pairs are solved where they would take too long, and
        what cannot end in time is not begun; a step or a compilation that was begun is finished. What is learned then
        depends on how fast the machine is.
    max_points
        Most points of a cloud that the transformer sees in a step, sampled anew each time by weight; it embeds whole
        clouds. 256 by default.
    max_points_ot
        Most points of a cloud in a solved pair; all by default.
    tol
        Relative tolerance of solved pairs.
    n_validation
        Clouds to hold out, at most a fifth of the cohort.
    rotate
        Whether clouds are turned at random in training where the metric does not mind, GW and GS.
    checkpoint
        Folder to keep a checkpoint in while fitting, so that a fit that was killed can be taken up again.
    max_memory
        Most memory for what is under way, in bytes or as text: batches, points that were read from disk, solved pairs.
        The clouds themselves, where they are in memory, the results and the libraries come on top. Of points on disk,
        less is read, and if need be fewer clouds are learned from.
    progress
        Whether to show bars; this one and ``max_memory`` are of effect at once when set on a fitted model, as no other
        parameter is.
    rng
        Seed of everything, from 0 to 2**32 - 1.

    Attributes
    ----------
    metric_
        Divergence that was learned. Of a ground cost of your own a loaded model knows the name only: set ``metric_`` to
        the function to score it.
    epsilon_
        Epsilon in units of the ground cost.
    converged_
        Whether held-out clouds had stopped gaining when training ended; it is False if ``max_steps`` or ``max_seconds``
        ended it before.
    history_
        A list each of phase (encoder, decoder), step, seconds, held-out correlation, held-out error (of divergences
        over their standard deviation; of decoded clouds over the mean divergence between clouds, in ``metric_dec``) and
        losses.
    held_out_
        Positions of the clouds that were held out.
    base_
        The fitted features, or None.
    dim_
        Dimension of the points.
    n_clouds_
        Clouds of the cohort that was fitted.
    feature_names_in_
        Names of the dimensions, such as genes, if they were given.
    n_points_
        Points of a decoded cloud; 0 without a decoder.

    Examples
    --------
    >>> import numpy as np, scwormhole as wh
    >>> rng = np.random.default_rng(0)
    >>> clouds = wh.PointClouds.from_list([rng.normal(size=(20, 2)) * rng.gamma(5.0) for _ in range(40)])
    >>> model = wh.Wormhole(n_components=16, max_steps=30, coeff_dec=0, progress=False).fit(clouds)
    >>> model.transform(clouds).shape
    (40, 16)
    """

    def __init__(
        self,
        metric: Any = "S2",
        *,
        epsilon: float = 0.05,
        relative_epsilon: Literal["mean", "box"] | None = "mean",
        n_components: int = 128,
        base: Literal["auto", "sliced", "tree", "invariant"] | None = "auto",
        nugget: Literal["auto"] | bool = "auto",
        metric_dec: Any = "auto",
        epsilon_dec: float = 0.01,
        coeff_dec: float = 0.01,
        n_points: int | None = None,
        decode_weights: bool = False,
        width: int = Network.width,
        hidden: int = Network.hidden,
        n_blocks: int = Network.n_blocks,
        n_heads: int = Network.n_heads,
        n_induced: int | None = None,
        norm: Literal["pre", "post"] = "pre",
        batch_size: int = Recipe.batch_size,
        learning_rate: float = Recipe.learning_rate,
        decay: Literal["cosine", "exponential"] = "cosine",
        clip: float | None = Recipe.clip,
        patience: int | None = Recipe.patience,
        max_steps: int | None = None,
        max_seconds: float | None = None,
        max_points: int | None = None,
        max_points_ot: int | None = None,
        tol: float = 1e-3,
        n_validation: int = Recipe.n_validation,
        rotate: bool = True,
        checkpoint: str | os.PathLike[str] | None = None,
        max_memory: int | str = "2 GiB",
        progress: bool = True,
        rng: int = 0,
    ) -> None:
        given = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        super().__init__(given)

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """Return the paper's model: a transformer alone, with its sizes, scaling, epsilons and rate, trained plainly.

        The embedding is the mean over the points; Adam without clipping or warm-up takes all steps, encoder and decoder
        together. Of these steps, the weights that were best on held-out clouds are kept.

        Parameters
        ----------
        **changes
            Parameters to set otherwise.
        """
        theirs = {
            "epsilon": 0.1,
            "relative_epsilon": "box",
            "base": None,
            "nugget": False,
            "width": 128,
            "hidden": 512,
            "n_blocks": 3,
            "n_heads": 4,
            "n_induced": 0,
            "norm": "post",
            "batch_size": 16,
            "learning_rate": 1e-4,
            "decay": "exponential",
            "clip": None,
            "patience": None,
            "max_steps": 10_000,
            "max_points": 1 << 20,
            "coeff_dec": 0.1,
        }
        return cls(**{**theirs, **changes})

    def fit(
        self,
        clouds: PointClouds,
        y: None = None,
        *,
        feature_names: Iterable[str] | None = None,
        resume: bool = False,
    ) -> Self:
        """Learn to embed, and to decode, a cohort.

        Parameters
        ----------
        clouds
            The cohort, of at least two clouds.
        y
            Of no effect.
        feature_names
            Names of the dimensions, such as genes, to be kept with the model.
        resume
            Whether to go on from the checkpoint of a fit to the same clouds that was interrupted; it then ends as it
            would have. ``max_steps`` and ``max_seconds`` may be raised: what they had ended then goes on.
        """
        clouds = self._cohort(clouds, fitted=False)
        params = read_parameters(self._params, clouds)
        names = _feature_names(feature_names, clouds.dim)
        checkpoints = Checkpoints(self._params["checkpoint"], params.mark, getattr(self, "_saved", None))
        saved = checkpoints.start(resume=resume)
        self._saved = checkpoints.last

        def keep(saved: Saved) -> None:
            checkpoints.keep(saved)
            self._saved = checkpoints.last

        try:
            found = fit(clouds, params, saved=saved, keep=keep, show=self._params["progress"])
        except KeyboardInterrupt:
            if self._saved is not None:
                step = self._saved.header["step"]
                logger.warning("interrupted; fit(clouds, resume=True) goes on after step %d", step)
            raise
        self._remember(found, clouds)
        self.metric_, self.feature_names_in_ = self._params["metric"], names
        checkpoints.remove()
        return self

    def transform(self, clouds: PointClouds, *, batch_size: int | None = None, out: Any = None) -> Any:
        """Return one vector a cloud.

        All devices of JAX that this process has take part; of several processes (``jax.distributed``) each embeds its
        share of the clouds, and all return all vectors.

        Parameters
        ----------
        clouds
            A cohort of the dimension that was fitted.
        batch_size
            Clouds at a time; by default as many as suit the processor. It changes no number beyond rounding.
        out
            What vectors are written to, block by block, and is returned: a memory map, a zarr array, an HDF5 dataset,
            or anything else of the right shape that rows can be assigned to. By default they are kept in memory.
        """
        if out is None:
            return self.embed(clouds, batch_size=batch_size).z
        wanted = (len(self._cohort(clouds)), self.n_components_)
        if tuple(out.shape) != wanted:
            raise ValueError(
                f"out has shape {tuple(out.shape)}; give an array for {wanted[0]:,} vectors of {wanted[1]} numbers."
            )
        for block, some in self.embed_blocks(clouds, batch_size=batch_size):
            out[block] = some.z
        return out

    def fit_transform(self, clouds: PointClouds, y: None = None) -> NDArray[np.float32]:
        """Fit, and return one vector a cloud.

        Parameters
        ----------
        clouds
            The cohort.
        y
            Of no effect.
        """
        return self.fit(clouds).embed(clouds).z

    def nugget(self, clouds: PointClouds) -> NDArray[np.float32]:
        """Return what each cloud adds by itself to its divergence from any other; zeros where there is no nugget.

        Parameters
        ----------
        clouds
            A cohort of the dimension that was fitted.
        """
        return self.embed(clouds).nugget

    def embed(self, clouds: PointClouds, *, batch_size: int | None = None) -> Embedded:
        """Return vectors and nuggets in one go.

        Parameters
        ----------
        clouds
            A cohort of the dimension that was fitted.
        batch_size
            See :meth:`transform`.
        """
        found = Embedded(
            np.empty((len(self._cohort(clouds)), self.n_components_), np.float32),
            np.empty(len(clouds), np.float32),
        )
        for block, some in self.embed_blocks(clouds, batch_size=batch_size):
            found.z[block], found.nugget[block] = some
        return found

    def embed_blocks(
        self,
        clouds: PointClouds,
        blocks: Sequence[slice] | None = None,
        *,
        batch_size: int | None = None,
        max_memory: int | str | None = None,
    ) -> Iterator[tuple[slice, Embedded]]:
        """Yield vectors and nuggets of a run of clouds at a time, beside where the run is: nothing else is kept.

        Parameters
        ----------
        clouds
            A cohort of the dimension that was fitted.
        blocks
            Runs of clouds to embed, slices with start and stop; by default all of the cohort, 32,768 clouds at a time.
        batch_size
            See :meth:`transform`.
        max_memory
            Most memory for what is under way; the model's own by default.
        """
        trained, clouds = self._fitted(), self._cohort(clouds)
        for block in blocks or ():
            ends = (block.start, block.stop)
            if block.step is not None or None in ends or not 0 <= block.start < block.stop <= len(clouds):
                raise ValueError(f"blocks holds {block}; give slices with start and stop, from 0 to {len(clouds):,}.")
        if batch_size is not None and batch_size < 1:
            raise ValueError(f"batch_size is {batch_size!r}; give a whole number of at least 1.")
        options = {"batch_size": batch_size, "progress": self._params["progress"]}
        memory = as_bytes(self._params["max_memory"] if max_memory is None else max_memory)
        yield from embed_shared(trained, clouds, blocks, max_memory=memory, **options)

    def distances(self, first: PointClouds, second: PointClouds) -> NDArray[np.float32]:
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
        first, second = self._cohort(first), self._cohort(second)
        if len(first) != len(second):
            raise ValueError(
                f"first has {len(first):,} clouds and second {len(second):,}; distances are one to one, so give as "
                "many of both."
            )
        return self.embed(first).paired(self.embed(second), first.shared_mass_with(second))

    def inverse_transform(self, z: ArrayLike) -> PointClouds:
        """Return the clouds that vectors stand for, in the user's units.

        Parameters
        ----------
        z
            Vectors, one row a cloud.
        """
        points, weights = self._fitted().decode(self._vectors(z))
        return PointClouds.from_list(list(points), list(weights) if self._trained.network.weighted else None)

    def barycenter(self, z: ArrayLike, weights: ArrayLike | None = None) -> Cloud:
        """Return the cloud in the middle of clouds, given as vectors: the one that the vectors' mean stands for.

        Parameters
        ----------
        z
            Vectors, one row a cloud.
        weights
            Weights of the clouds, not negative; equal by default.
        """
        z = self._vectors(z)
        share = np.ones(len(z)) if weights is None else np.asarray(weights, np.float64)
        if share.shape != (len(z),) or not np.isfinite(share).all() or share.min() < 0 or not share.sum() > 0:
            raise ValueError(
                f"weights is {weights!r}; give {len(z)} finite numbers, one a vector, not negative and not all zero."
            )
        return self.inverse_transform((share / share.sum() @ z)[None])[0]

    def interpolate(self, z0: ArrayLike, z1: ArrayLike, n: int = 8) -> PointClouds:
        """Return clouds along the way from one to another, both ends included.

        Parameters
        ----------
        z0
            Vector of the first cloud.
        z1
            Vector of the last.
        n
            How many clouds, at least two.
        """
        if n < 2:
            raise ValueError(f"n is {n}; give at least 2, for both ends are included.")
        first, last = (self._vectors(np.asarray(z, np.float32)[None])[0] for z in (z0, z1))
        share = np.linspace(0, 1, n, dtype=np.float32)[:, None]
        return self.inverse_transform((1 - share) * first + share * last)

    def score(self, clouds: PointClouds, y: None = None) -> float:
        """Return the correlation of embedded with solved divergences, over the pairs of the first 128 clouds.

        :func:`scwormhole.metrics.fidelity` tells more.

        Parameters
        ----------
        clouds
            Clouds that were not trained on, if it is to say something of others.
        y
            Of no effect.
        """
        self._fitted()
        embedded = self.embed(clouds := self._cohort(clouds)[: min(SCORED, len(clouds))])
        options = {"epsilon": self.epsilon_, "relative_epsilon": None, "progress": self._params["progress"]}
        true = pairwise(clouds, self.metric_, **options)
        pairs = np.triu_indices(len(clouds), 1)
        return look(embedded.table(clouds.shared_mass())[pairs], true[pairs]).correlation

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the model to a folder: a JSON header and arrays, no code.

        Parameters
        ----------
        folder
            A folder that does not exist.
        overwrite
            Whether a model that is there may be replaced.
        """
        arrays, header = self.to_arrays()
        write_folder(folder, header, arrays, overwrite=overwrite)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """Read a model that was saved; no code is run.

        Parameters
        ----------
        folder
            The folder.
        """
        header, arrays = read_folder(folder, KIND, FORMAT)
        try:
            return cls.from_arrays(arrays, header)
        except ValueError as error:
            raise ValueError(f"{folder} is damaged, or of another version: {error}") from error

    def to_arrays(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the model as arrays and a header that JSON can hold."""
        trained = self._fitted()
        metric = {name: metric_name(self._params[name]) for name in ("metric", "metric_dec")}
        header: dict[str, Any] = {"kind": KIND, "format": FORMAT, "version": version("scwormhole")}
        header |= {"params": {**self._params, **metric, "checkpoint": None}, "trained": trained.header()}
        names = None if self.feature_names_in_ is None else [str(name) for name in self.feature_names_in_]
        header |= {name: getattr(self, name) for name in KEPT}
        header["n_clouds_"] = self.n_clouds_
        header |= {"metric_": metric_name(self.metric_), "feature_names_in_": names}
        return trained.arrays() | {"held_out": self.held_out_}, as_plain(header)

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], header: dict[str, Any]) -> Self:
        """Return the model that :meth:`to_arrays` took apart.

        Parameters
        ----------
        arrays
            Its arrays.
        header
            Its header.
        """
        try:
            model = cls(**_same_names(header["params"], cls()._params))
            model._trained = Trained.of(header["trained"], arrays)
            for name in KEPT:
                setattr(model, name, header[name])
            model.history_ = asdict(History.of(header["history_"]))
            model.held_out_, model.n_clouds_ = arrays["held_out"], header.get("n_clouds_")  # once it was not kept
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"this is no whole model ({type(error).__name__}: {error}); take a copy that is whole, or train again."
            ) from error
        return model

    @property
    def base_(self) -> BaseFeatures | None:
        """The fitted features, or None."""
        return self._fitted().base

    @property
    def n_components_(self) -> int:
        """Length of a vector."""
        return self._fitted().network.n_components

    @property
    def n_points_(self) -> int:
        """Points of a decoded cloud; 0 without a decoder."""
        return self._fitted().network.n_points

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_trained")

    def _repr_html_(self) -> str:
        defaults = {name: given.default for name, given in signature(type(self)).parameters.items()}
        learned = None
        if hasattr(self, "_trained"):
            known = (metric_name(self.metric_), self.epsilon_, History.of(self.history_), self.converged_)
            learned = Learned(self._trained, *known, self.n_clouds_, len(self.held_out_))
        return model_html(type(self).__name__, self._params, defaults, learned)

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        """Return what a notebook shows, in place of scikit-learn's diagram."""
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def _remember(self, found: Fitted, clouds: PointClouds) -> None:
        self._trained, self.epsilon_, self.dim_ = found.trained, found.epsilon, clouds.dim
        self.n_clouds_: int | None = len(clouds)
        self.history_, self.held_out_ = asdict(found.history), found.held_out
        self.converged_ = found.converged
        logger.info("trained: %s", found.advice)
        if not self.converged_ and self._params["max_steps"] != 0:  # who asks for no steps knows
            warnings.warn(f"training has not converged. {found.advice}", ConvergenceWarning, stacklevel=3)

    def _fitted(self) -> Trained:
        if not hasattr(self, "_trained"):
            raise NotFittedError("this Wormhole is not fitted yet; call .fit(clouds) first.")
        return self._trained

    def _cohort(self, clouds: Any, *, fitted: bool = True) -> PointClouds:
        if not isinstance(clouds, PointClouds):
            raise TypeError(
                f"clouds is a {type(clouds).__name__}; give a scwormhole.PointClouds. "
                "A list of arrays becomes one with PointClouds.from_list(arrays)."
            )
        if fitted and self._fitted() and clouds.dim != self.dim_:
            raise ValueError(
                f"clouds have {clouds.dim} dimensions, and the model was fitted in {self.dim_}; give the same "
                "coordinates, in the same order."
            )
        return clouds

    def _vectors(self, z: ArrayLike) -> NDArray[np.float32]:
        network = self._fitted().network
        if not network.n_points:
            raise ValueError("this model has no decoder, as coeff_dec is 0; fit one with coeff_dec above 0.")
        z = np.asarray(z, np.float32)
        if z.ndim != 2 or z.shape[1] != network.n_components or not len(z):
            raise ValueError(
                f"z has shape {z.shape}; give a matrix with at least one row of {network.n_components} numbers, as "
                "transform returns it."
            )
        if not np.isfinite(z).all():
            raise ValueError(
                f"z has numbers that are not finite, first in row {int(np.argwhere(~np.isfinite(z))[0, 0])}; leave "
                "such rows out, or embed their clouds again."
            )
        return z


def _feature_names(names: Iterable[str] | None, dim: int) -> list[str] | None:
    """Return names as plain strings, if there is one a dimension."""
    if names is None:
        return None
    if isinstance(names, str) or len(given := [str(name) for name in names]) != dim:
        found = "one string" if isinstance(names, str) else f"{len(given):,} names"
        raise ValueError(f"feature_names holds {found} for {dim:,} dimensions; give one name a dimension.")
    return given


def _same_names(found: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """Return parameters if they are the ones that this version knows."""
    for names, what in ((found.keys() - known.keys(), "unknown"), (known.keys() - found.keys(), "missing")):
        if names:
            listed = ", ".join(sorted(names))
            raise ValueError(
                f"it is of another version of scwormhole: parameters are {what}, {listed}; install that one"
            )
    return found
