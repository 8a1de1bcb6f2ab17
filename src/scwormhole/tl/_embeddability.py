"""How well clouds can be embedded, before any model: solves a sample. Reads and writes AnnData through ``_adata``."""

import warnings
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from anndata import AnnData
from numpy.typing import NDArray

from scwormhole._adata import EMBEDDABILITY, as_adata, check_free, log_written, plain, read_cohort
from scwormhole.clouds import PointClouds
from scwormhole.mds import Embeddability
from scwormhole.mds._embeddability import euclidean_part
from scwormhole.metrics import EXACT_PAIRS, correlation, has_exact, solve_exactly
from scwormhole.ot import distances, pairwise
from scwormhole.ot._info import TransportWarning
from scwormhole.ot._metrics import METRICS, as_metric

EPSILONS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
EXACT_NUMBERS = 20_000_000  # entries of the cost matrices of the pairs solved exactly, at most
LEAST_TO_SPLIT = 4  # points of a cloud that is split into halves
ROUNDING = 1e-6  # of the mean ground cost: divergences that are all below it are those of clouds that are all one
SAMPLED_WHOLE = 512  # points of a cloud, above which it is solved on a sample of them


def embeddability(
    data: AnnData | PointClouds,
    *,
    n_clouds: int = 100,
    metric: str = "S2",
    epsilon: float = 0.05,
    epsilons: Sequence[float] = EPSILONS,
    max_points: int | None = SAMPLED_WHOLE,
    clouds: str | None = None,
    use_rep: str | None = None,
    layer: str | None = None,
    key_added: str = EMBEDDABILITY,
    table_key: str | None = None,
    progress: bool = True,
    rng: int = 0,
) -> Embeddability:
    """Find out how well clouds can be embedded, so that epsilon, width and nugget are chosen from a picture.

    All pairs of a seeded sample are solved. Their spectrum tells how Euclidean the divergence is, which bounds what any
    embedding can reach; and for a ladder of epsilons it is told how the divergence correlates with exact transport,
    with the plain distance of means (is it still optimal transport?), and with itself between random halves of the same
    clouds (is it signal, or the noise of sampling?). Exact transport is solved for a random subset of the sample only,
    of a thousand pairs, or fewer of large clouds. Draw it with :func:`scwormhole.pl.embeddability`.

    Parameters
    ----------
    data
        Cells with clouds, or a SpatialData with them (see ``table_key``); or clouds.
    n_clouds
        Clouds of the sample; six epsilons take a minute or two for 100 clouds of 100 points.
    metric
        See :func:`scwormhole.ot.pairwise`; not ``"W2"``, ``"W1"`` or ``"GW"``, which have costs from a cloud to itself.
    epsilon
        Regularisation that spectrum and errors are of: a share of the mean ground cost, as in
        :class:`scwormhole.Wormhole`.
    epsilons
        Others to try, for the ladder.
    max_points
        Largest number of points a cloud is solved with; larger ones are sampled.
    clouds
        Name of the clouds in an AnnData; the only ones there are by default.
    use_rep
        Key of ``obsm`` that gives cells their coordinates.
    layer
        Key of ``layers`` that does; X by default.
    key_added
        Name in ``uns``.
    table_key
        Table to use if a SpatialData is given; its only one by default.
    progress
        Whether to show bars once work takes over two seconds.
    rng
        Seed of the sample and of the halves.

    Returns
    -------
    What was found, :class:`scwormhole.mds.Embeddability`, with advice in words. An AnnData has it in

    ``uns[key_added]``
        the same as a dictionary, with ``params``.

    Examples
    --------
    >>> import numpy as np, scwormhole as wh
    >>> rng = np.random.default_rng(0)
    >>> clouds = wh.PointClouds.from_list([rng.normal(size=(30, 2)) + 3 * rng.normal(size=2) for _ in range(20)])
    >>> found = wh.tl.embeddability(clouds, epsilons=[0.1], progress=False)
    >>> found.advice[0]
    'Euclidean for all purposes: the best embedding errs by 0.0%.'
    """
    ladder = _checked(metric, n_clouds, epsilon, epsilons)
    adata = None
    if not isinstance(data, PointClouds):
        adata = as_adata(data, table_key)
        check_free(adata, key_added, EMBEDDABILITY)
        data = read_cohort(adata, clouds, use_rep=use_rep, layer=layer).clouds
    if len(data) < 3:
        raise ValueError(f"there are {len(data)} clouds; at least three are needed, for pairs to be compared.")
    chosen = np.random.default_rng(rng).permutation(len(data))[:n_clouds]
    settings = {"metric": metric, "max_points": max_points, "progress": progress, "rng": rng}
    found = _measure(data[chosen], ladder, epsilon, settings)
    if adata is not None:
        params = {**settings, "n_clouds": n_clouds, "epsilon": epsilon, "epsilons": ladder, "clouds": clouds}
        params |= {"use_rep": use_rep, "layer": layer}
        adata.uns[key_added] = {"kind": EMBEDDABILITY, "params": plain(params), **plain(found.to_dict())}
        log_written(adata, "embeddability", [f"uns[{key_added!r}]"])
    return found


def _checked(metric: str, n_clouds: int, epsilon: float, epsilons: Sequence[float]) -> NDArray[np.float64]:
    """Return the ladder, rising, with the epsilon asked for among its steps."""
    if not as_metric(metric).debiased:
        debiased = ", ".join(repr(name) for name, known in METRICS.items() if known.debiased)
        raise ValueError(
            f"metric is {metric!r}, whose regularised costs from a cloud to itself are not zero and would be taken for "
            f"noise; give one of {debiased}."
        )
    if not (isinstance(n_clouds, Integral) and n_clouds >= 3):
        raise ValueError(f"n_clouds is {n_clouds!r}; give a whole number of at least 3, for pairs to be compared.")
    ladder = np.unique(np.append(np.asarray(epsilons, np.float64), epsilon))
    if not (np.isfinite(ladder) & (ladder > 0)).all():
        raise ValueError(f"epsilon is {epsilon} and epsilons are {list(epsilons)}; give positive numbers.")
    return ladder


def _measure(
    sample: PointClouds, ladder: NDArray[np.float64], epsilon: float, settings: dict[str, Any]
) -> Embeddability:
    metric = as_metric(settings["metric"])
    upper = np.triu_indices(len(sample), 1)
    apart = None if metric.gromov else _between_means(sample)[upper]
    halves = _halves(sample, settings["rng"])
    exact = _exact(sample, settings)
    found: dict[str, Any] = {"exact": [], "means": [], "halves": []}
    noise, main = np.nan, np.zeros((len(sample), len(sample)))
    for step in ladder:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", TransportWarning)
            table, info = pairwise(sample, epsilon=float(step), return_info=True, **settings)
        if step == epsilon:
            main = np.maximum(np.asarray(table, np.float64), 0)
            np.fill_diagonal(main, 0)
            if main.max() <= ROUNDING * info.epsilon / step:
                main[:] = 0
            for warning in told:
                warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
        values = table[upper]
        found["exact"].append(np.nan if exact is None else _agreement(table, exact))
        found["means"].append(np.nan if apart is None else correlation(values, apart))
        if halves is None:
            found["halves"].append(np.nan)
            continue
        same = {**settings, "epsilon": info.epsilon, "relative_epsilon": None}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TransportWarning)  # told for the whole clouds
            one, other = (pairwise(half, **same) for half in halves)
            if step == epsilon:
                noise = _noise(halves, main[upper].mean(), same)
        found["halves"].append(_agreement(one, other))
    found = {name: np.array(values) for name, values in found.items()}
    found |= euclidean_part(main, progress=settings["progress"])
    return Embeddability(metric=metric.name, epsilon=float(epsilon), noise=noise, epsilons=ladder, **found)


def _between_means(sample: PointClouds) -> NDArray[np.float64]:
    means = np.array([cloud.weights @ np.asarray(cloud.points, np.float64) for cloud in sample])
    return np.asarray(((means[:, None] - means) ** 2).sum(axis=-1))


def _agreement(table: NDArray[Any], other: NDArray[Any]) -> float:
    """Return the correlation over the pairs of clouds that two tables both have: the first ones."""
    pairs = np.triu_indices(min(len(table), len(other)), 1)
    return correlation(table[pairs], other[pairs])


def _noise(halves: tuple[PointClouds, PointClouds], mean: float, settings: dict[str, Any]) -> float:
    """Return the share of a mean divergence that is sampling noise, from how far halves of one cloud are apart."""
    if mean <= 0:
        return float("nan")
    apart = np.maximum(distances(*halves, **settings), 0)
    # noise falls with the points solved with: a half has half of its cloud's, but for large clouds, which are sampled
    most = settings["max_points"] or np.inf
    whole = halves[0].sizes + halves[1].sizes
    share = np.minimum(whole / 2, most) / np.minimum(whole, most)
    return min(1.0, float((apart * share).mean() / mean))


def _halves(sample: PointClouds, rng: int) -> tuple[PointClouds, PointClouds] | None:
    """Return two random halves of each cloud that has points enough; None if fewer than three have."""
    generator = np.random.default_rng(rng)
    parts: tuple[list[Any], list[Any]] = ([], [])
    for cloud in sample:
        points, weights = np.asarray(cloud.points), np.asarray(cloud.weights)
        held = np.flatnonzero(weights > 0)  # a half of points without weight would be none
        if len(held) < LEAST_TO_SPLIT:
            continue
        for part, some in zip(parts, np.array_split(generator.permutation(held), 2), strict=True):
            part.append((points[some], weights[some]))
    if len(parts[0]) < 3:
        return None
    first, second = (PointClouds.from_list(*map(list, zip(*part, strict=True))) for part in parts)
    return first, second


def _exact(sample: PointClouds, settings: dict[str, Any]) -> NDArray[np.float64] | None:
    """Return unregularised transport between the first clouds, which are in random order, if it can be had."""
    if not has_exact(settings["metric"]):
        return None
    sizes = np.minimum(sample.sizes, settings["max_points"] or sample.sizes.max())
    wanted = np.clip(EXACT_NUMBERS / sizes.astype(float).mean() ** 2, 20, EXACT_PAIRS)
    return solve_exactly(sample, n_pairs=wanted, **settings)
