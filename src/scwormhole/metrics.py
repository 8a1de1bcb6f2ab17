"""How good an embedding is: fidelity to solved transport on held-out clouds, stress, label accuracy."""

import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .clouds import PointClouds
from .model import Wormhole
from .ot import BaseFeatures, pairwise
from .ot._base_fit import squared_distances
from .ot._metrics import as_metric
from .ot._scale import box

__all__ = ["Fidelity", "fidelity", "label_accuracy", "stress"]

NEIGHBOURS = 10
EXACT_PAIRS = 1_000  # solved without regularisation, unless another number is asked for


@dataclass(frozen=True, kw_only=True)
class Fidelity:
    """Agreement of embedded with solved divergences, means over the draws.

    Parameters
    ----------
    correlation
        Pearson correlation, nuggets included.
    correlation_std
        Standard deviation of it over the draws.
    correlation_euclidean
        The same for squared distances of vectors alone.
    correlation_exact
        The same, nuggets included, with unregularised transport, over the pairs solved exactly; None if there are none.
    mse
        Mean squared error in the paper's units: of points scaled to [-1, 1], above three dimensions divided by the
        square root of the dimension.
    relative_error
        Mean absolute error over the mean divergence.
    neighbour_recall
        Share of the ten nearest clouds of each cloud that are among its ten nearest by embedding.
    n_clouds
        Clouds of a draw.
    n_repeats
        Draws.
    """

    correlation: float
    correlation_std: float
    correlation_euclidean: float
    correlation_exact: float | None
    mse: float
    relative_error: float
    neighbour_recall: float
    n_clouds: int
    n_repeats: int


class Tables(NamedTuple):
    """Divergences of all clouds from one another: solved, embedded, and embedded without nuggets."""

    true: NDArray[np.float64]
    predicted: NDArray[np.float64]
    apart: NDArray[np.float64]


def fidelity(
    model: Wormhole | BaseFeatures,
    clouds: PointClouds,
    *,
    n_clouds: int = 128,
    n_repeats: int = 10,
    n_exact: int | None = None,
    progress: bool = False,
    rng: int = 0,
) -> Fidelity:
    """Compare a model with solved pairs, as the paper does: draws of clouds, all pairs of each.

    Parameters
    ----------
    model
        A fitted model.
    clouds
        Clouds that it was not trained on.
    n_clouds
        Clouds of a draw, without repeats.
    n_repeats
        Draws.
    n_exact
        Pairs to solve without regularisation too, which needs POT; 1,000 by default where the metric has an exact
        form and POT is installed, else none.
    progress
        Whether to show bars.
    rng
        Seed of the draws.

    Examples
    --------
    >>> import numpy as np, scwormhole as wh
    >>> rng = np.random.default_rng(0)
    >>> clouds = wh.PointClouds.from_list([rng.normal(size=(20, 2)) * rng.gamma(5.0) for _ in range(60)])
    >>> base = wh.ot.BaseFeatures(n_components=16).fit(clouds[:40])
    >>> bool(wh.metrics.fidelity(base, clouds[40:], n_repeats=2).correlation > 0.95)
    True
    """
    if len(clouds) < 3:
        raise ValueError(f"clouds holds {len(clouds)}; at least three are needed, for pairs to be compared.")
    for name, value, least in (("n_clouds", n_clouds, 3), ("n_repeats", n_repeats, 1), ("n_exact", n_exact or 0, 0)):
        if not (isinstance(value, Integral) and value >= least):
            raise ValueError(f"{name} is {value!r}; give a whole number of at least {least}.")
    metric = model.metric_
    generator = np.random.default_rng(rng)
    count = min(n_clouds, len(clouds))
    scale = paper_scale(clouds, metric)
    rows, exact = [], None
    for repeat in range(n_repeats):
        some = clouds[generator.permutation(len(clouds))[:count]]
        tables = solve_pairs(model, some, progress=progress)
        rows.append(compared(tables, scale))
        if repeat == 0:  # in random order, so that the first of them stand for all
            exact = _exact(some, tables.predicted, metric, n_exact)
    means = np.mean(rows, axis=0)
    return Fidelity(
        correlation=float(means[0]),
        correlation_std=float(np.std([row[0] for row in rows])),
        correlation_euclidean=float(means[1]),
        correlation_exact=exact,
        mse=float(means[2]),
        relative_error=float(means[3]),
        neighbour_recall=float(means[4]),
        n_clouds=count,
        n_repeats=n_repeats,
    )


def stress(z: ArrayLike, divergence: ArrayLike, nugget: ArrayLike | None = None) -> float:
    """Return the sum of squared differences between squared distances of vectors and divergences, over all pairs.

    Parameters
    ----------
    z
        Vectors, one row a cloud.
    divergence
        Divergences, clouds by clouds.
    nugget
        What each cloud adds by itself, if there is something.

    Examples
    --------
    >>> stress([[0.0], [1.0]], [[0.0, 3.0], [3.0, 0.0]])
    8.0
    """
    z, divergence = np.asarray(z, np.float64), np.asarray(divergence, np.float64)
    if divergence.shape != (len(z), len(z)):
        raise ValueError(f"divergence has shape {divergence.shape} for {len(z)} vectors; give clouds by clouds.")
    own = np.zeros(len(z)) if nugget is None else np.asarray(nugget, np.float64)
    found = squared_distances(z) + own[:, None] + own
    np.fill_diagonal(found, 0.0)
    return float(((found - divergence) ** 2).sum())


def label_accuracy(
    train_z: ArrayLike, train_labels: ArrayLike, *, test_z: ArrayLike, test_labels: ArrayLike, rng: int = 0
) -> float:
    """Return how often a classifier on vectors is right: scikit-learn's MLP as it comes, as in the paper.

    Parameters
    ----------
    train_z
        Vectors to learn from.
    train_labels
        Their labels.
    test_z
        Vectors to be classified.
    test_labels
        Their labels.
    rng
        Seed.

    Examples
    --------
    >>> import numpy as np
    >>> labels = np.arange(200) % 2
    >>> z = labels[:, None] + np.random.default_rng(0).normal(size=(200, 1)) / 10
    >>> label_accuracy(z[:100], labels[:100], test_z=z[100:], test_labels=labels[100:])
    1.0
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    train_z, test_z = np.asarray(train_z, np.float64), np.asarray(test_z, np.float64)
    # one factor for all components: the classifier's rates are made for numbers of about one
    size = np.sqrt(((train_z - train_z.mean(0)) ** 2).mean()) or 1.0
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):  # its rounds are part of the recipe
        classifier = MLPClassifier(random_state=rng).fit((train_z - train_z.mean(0)) / size, train_labels)
    return float(classifier.score((test_z - train_z.mean(0)) / size, test_labels))


def solve_pairs(model: Wormhole | BaseFeatures, clouds: PointClouds, *, progress: bool = False) -> Tables:
    """Return the divergences of all pairs, as a model has them and solved."""
    embedded = model.embed(clouds)
    true = pairwise(clouds, model.metric_, epsilon=model.epsilon_, relative_epsilon=None, progress=progress)
    return Tables(true, embedded.table(clouds.shared_mass()), squared_distances(embedded.z))


def paper_scale(clouds: PointClouds, metric: Any) -> float:
    """Return what brings divergences to the paper's units; one for a ground cost of the user's."""
    degree = as_metric(metric).degree
    return 1.0 if degree is None else box((clouds,))[1] ** degree


def compared(tables: Tables, scale: float) -> tuple[float, float, float, float, float]:
    """Return correlation, that without nuggets, scaled squared error, relative error and recall of neighbours."""
    pairs = np.triu_indices(len(tables.true), 1)
    wanted, found, near = (table[pairs] for table in tables)
    return (
        correlation(found, wanted),
        correlation(near, wanted),
        float((((found - wanted) * scale) ** 2).mean()),
        float(np.abs(found - wanted).mean() / wanted.mean()) if wanted.mean() > 0 else 0.0,
        _recall(tables.predicted, tables.true),
    )


def correlation(found: NDArray[Any], wanted: NDArray[Any]) -> float:
    """Return Pearson's correlation, NaN where there is none."""
    if not found.std() > 0 or not wanted.std() > 0:
        return float("nan")
    return float(np.corrcoef(found, wanted)[0, 1])


def _recall(predicted: NDArray[Any], true: NDArray[Any]) -> float:
    k = min(NEIGHBOURS, len(true) - 1)
    nearest = []
    for table in (predicted, true):
        table = table.copy()
        np.fill_diagonal(table, np.inf)
        nearest.append(np.argsort(table, axis=1, kind="stable")[:, :k])
    return float(np.mean([len(np.intersect1d(a, b)) / k for a, b in zip(*nearest, strict=True)]))


def has_exact(metric: Any) -> bool:
    """Return whether unregularised transport can be had: POT solves all but Gromov-Wasserstein."""
    return not as_metric(metric).gromov and find_spec("ot") is not None


def solve_exactly(clouds: PointClouds, metric: Any, *, n_pairs: float, **settings: Any) -> NDArray[np.float64]:
    """Return unregularised transport between the first clouds, as many as make so many pairs.

    They stand for all if clouds are in random order. As the first, they are solved on the same samples of their points.
    """
    count = min(len(clouds), int((1 + np.sqrt(1 + 8 * n_pairs)) / 2))
    return np.asarray(pairwise(clouds[:count], metric, solver="exact", **settings), np.float64)


def _exact(clouds: PointClouds, predicted: NDArray[Any], metric: Any, n_exact: int | None) -> float | None:
    """Return the correlation with exact transport over so many pairs; None for fewer than three."""
    wanted = (EXACT_PAIRS if has_exact(metric) else 0) if n_exact is None else n_exact
    if wanted < 3:
        return None
    exact = solve_exactly(clouds, metric, n_pairs=wanted, progress=False)
    pairs = np.triu_indices(len(exact), 1)
    return correlation(predicted[pairs], exact[pairs])
