"""Niches: the cells around each cell of a tissue. Writes a graph to AnnData, by ``_adata``'s names."""

import logging
import warnings
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from anndata import AnnData
from numpy.typing import NDArray
from scipy import sparse

from scwormhole._adata import as_adata, check_free, log_written, need, to_write, write_cohort
from scwormhole.clouds._wording import count, listed

from ._graphs import Edges, Neighbours, find_edges, nearest, to_graph, triangulated, within
from ._libraries import cells_of_libraries, check_within_libraries, warn_of_libraries

FEW, MANY = 3, 500  # cells of a median niche beyond which a radius is likely wrong
Weights = Literal["uniform", "gaussian", "stored"]

logger = logging.getLogger(__name__)


class Way(NamedTuple):
    """How neighbours are found: the parameter that says so, its value, and what does it unless the graph exists."""

    by: str
    value: Any
    neighbours: Neighbours | None


def niches(
    adata: AnnData,
    radius: float | Sequence[float] | None = None,
    *,
    n_neighbors: int | None = None,
    delaunay: bool = False,
    connectivities_key: str | None = None,
    spatial_key: str = "spatial",
    library_key: str | None = None,
    include_self: bool = True,
    weights: Weights = "uniform",
    sigma: float | None = None,
    key_added: str = "niches",
    table_key: str | None = None,
    copy: bool = False,
) -> AnnData | None:
    """Take the cells around each cell as its niche, a cloud.

    Give exactly one of ``radius``, ``n_neighbors``, ``delaunay`` and ``connectivities_key``. Niches do not reach from
    one library into another, if you say which column holds libraries. A cell without neighbours keeps itself, with a
    warning; the sizes of niches are logged.

    Parameters
    ----------
    adata
        Cells with positions in ``obsm[spatial_key]``; or a SpatialData, see ``table_key``.
    radius
        All cells no farther than this, in units of the positions. Of several radii each makes niches of its own.
    n_neighbors
        So many nearest cells.
    delaunay
        The cells that a Delaunay triangulation joins to it; at the edge of a tissue these may be far.
    connectivities_key
        The neighbours in a graph that exists: key of ``obsp``, such as squidpy's ``"spatial_connectivities"``.
    spatial_key
        Key of ``obsm`` with positions.
    library_key
        Column of ``obs`` that tells libraries (slides, sections) apart.
    include_self
        Whether a cell belongs to its own niche.
    weights
        ``"uniform"``; ``"gaussian"``, falling with distance; or ``"stored"``, the values in the graph of
        ``connectivities_key``, where a cell weighs as much as its strongest neighbour.
    sigma
        Standard deviation of Gaussian weights; by default half of the radius or, without one, the median distance of
        neighbours.
    key_added
        Name of the niches. With several radii each is appended: ``"niches_50"``.
    table_key
        Table to use if a SpatialData is given; its only one by default.
    copy
        Whether to return a copy with the niches instead of adding them.

    Returns
    -------
    None, or the copy. Adds

    ``obsp[key_added]``
        Weights, float32; row ``i`` is the niche of cell ``i``.
    ``obs[key_added + "_size"]``
        Cells of each niche.
    ``uns[key_added]``
        ``kind`` and ``params``.

    Examples
    --------
    >>> import anndata, numpy as np, scwormhole as wh
    >>> adata = anndata.AnnData(np.ones((6, 2)), obsm={"spatial": np.array([[0, 1, 2, 3, 4, 5], [0] * 6]).T})
    >>> wh.pp.niches(adata, radius=1)
    >>> adata.obsp["niches"][1].indices.tolist()
    [0, 1, 2]
    """
    target = to_write(as_adata(adata, table_key), copy=copy)
    if not target.n_obs:
        raise ValueError("adata has no cells; was it subset by what holds for none?")
    options: dict[str, Any] = {"library_key": library_key, "include_self": include_self, "weights": weights}
    ways = _ways(radius, n_neighbors, delaunay, connectivities_key)
    _check_weights(weights, sigma, connectivities_key)
    positions = np.empty((target.n_obs, 0))  # a graph that exists needs none
    if connectivities_key is None or weights == "gaussian":
        positions, options["spatial_key"] = _positions(target, spatial_key), spatial_key
    named = _named(ways, key_added)
    for name in named:
        check_free(target, name, "niches", ("obsp", name))
    for name, way in named.items():
        edges, stored = _edges(target, way, positions, library_key)
        values, width = stored, None
        if weights == "uniform":
            values = np.ones(len(stored), np.float32)
        elif weights == "gaussian":
            values, width = _gaussian(edges.lengths(positions), sigma, way)
        alone = np.bincount(edges.rows, minlength=target.n_obs) == 0
        own = alone | include_self
        if weights == "stored" and include_self:
            own = np.where(alone, 1, _strongest(edges, values, target.n_obs))
        graph = to_graph(edges, values, own.astype(np.float32))
        sizes, n_alone = np.diff(graph.indptr).astype(np.int64), int(alone.sum())
        _report(sizes, n_alone, name, way)
        target.obsp[name], target.obs[f"{name}_size"] = graph, sizes
        write_cohort(target, name, "niches", {way.by: way.value, **options, "sigma": width, "n_alone": n_alone})
        log_written(target, "niches", [f"obsp[{name!r}]", f"obs[{name + '_size'!r}]", f"uns[{name!r}]"])
    return target if copy else None


def _ways(
    radius: float | Sequence[float] | None, n_neighbors: int | None, delaunay: bool, connectivities_key: str | None
) -> list[Way]:
    """Return how neighbours are found, checked: one way, or one a radius."""
    given = {
        "radius": radius,
        "n_neighbors": n_neighbors,
        "delaunay": delaunay or None,
        "connectivities_key": connectivities_key,
    }
    chosen = [name for name, value in given.items() if value is not None]
    if len(chosen) != 1:
        found = " and ".join(chosen) or "none"
        raise ValueError(f"give exactly one of {', '.join(given)}; {found} was given.")
    if radius is not None:
        radii = np.atleast_1d(np.asarray(radius, np.float64))
        if radii.ndim != 1 or not len(radii) or not (np.isfinite(radii) & (radii > 0)).all():
            raise ValueError(f"radius is {radius}; give a positive number, or several.")
        return [Way("radius", value, within(value)) for value in radii.tolist()]
    if n_neighbors is not None:
        if int(n_neighbors) != n_neighbors or n_neighbors < 1:
            raise ValueError(f"n_neighbors is {n_neighbors}; give a whole number of at least 1.")
        return [Way("n_neighbors", int(n_neighbors), nearest(int(n_neighbors)))]
    return [Way("delaunay", True, triangulated) if delaunay else Way("connectivities_key", connectivities_key, None)]


def _named(ways: list[Way], key_added: str) -> dict[str, Way]:
    """Return the ways by the key that their niches go to."""
    if len(ways) == 1:
        return {key_added: ways[0]}
    named = {f"{key_added}_{way.value:g}": way for way in ways}
    if len(named) < len(ways):
        raise ValueError(f"radius has repeats: {', '.join(f'{way.value:g}' for way in ways)}; give each once.")
    return named


def _check_weights(weights: str, sigma: float | None, connectivities_key: str | None) -> None:
    if weights not in ("uniform", "gaussian", "stored"):
        raise ValueError(f"weights is {weights!r}; 'uniform', 'gaussian' and 'stored' are allowed.")
    if weights == "stored" and connectivities_key is None:
        raise ValueError("weights is 'stored', which is for a graph that exists; give connectivities_key, its key.")
    if sigma is not None and weights != "gaussian":
        raise ValueError(f"sigma is {sigma}, and weights {weights!r}; sigma is for weights='gaussian'.")
    if sigma is not None and not (np.isfinite(sigma) and sigma > 0):
        raise ValueError(f"sigma is {sigma}; give a positive number.")


def _positions(adata: AnnData, key: str) -> NDArray[np.float64]:
    hint = "It should hold positions of cells; give their key with spatial_key."
    held = np.asarray(need(adata, "obsm", key, hint=hint), np.float64)
    if held.ndim != 2 or held.shape[1] > 3:
        raise ValueError(f"adata.obsm[{key!r}] has shape {held.shape}; positions have up to three columns.")
    lost = np.flatnonzero(~np.isfinite(held).all(1))
    if len(lost):
        raise ValueError(
            f"adata.obsm[{key!r}] has no finite position for {count(len(lost), 'cell')}: "
            f"{listed(adata.obs_names[lost[:5]], len(lost))}. Leave these cells out first."
        )
    return held


def _edges(
    adata: AnnData, way: Way, positions: NDArray[np.float64], library_key: str | None
) -> tuple[Edges, NDArray[np.float32]]:
    """Return the edges between cells, none of a cell to itself, with the values of a graph that exists, else ones."""
    libraries = cells_of_libraries(adata, library_key)
    if way.neighbours is not None:
        edges = find_edges(positions, libraries, way.neighbours)
        if library_key is None:
            warn_of_libraries(adata, positions, edges)
        return edges, np.ones(len(edges.rows), np.float32)
    hint = "Build one with squidpy, or give radius."
    graph = sparse.coo_matrix(need(adata, "obsp", way.value, hint=hint))
    other = (graph.row != graph.col) & (graph.data != 0)
    edges = Edges(graph.row[other].astype(np.int64), graph.col[other].astype(np.int64))
    if library_key is not None:
        check_within_libraries(adata, library_key, edges)
    else:
        warn_of_libraries(adata, None, edges)
    return edges, graph.data[other].astype(np.float32)


def _gaussian(lengths: NDArray[np.float64], sigma: float | None, way: Way) -> tuple[NDArray[np.float32], float]:
    """Return weights that fall with distance, and the standard deviation."""
    if sigma is None:
        typical = float(np.median(lengths)) if len(lengths) else 0.0
        sigma = way.value / 2 if way.by == "radius" else typical or 1.0  # one where all neighbours are in one place
    return np.exp(-((lengths / sigma) ** 2) / 2).astype(np.float32), float(sigma)


def _strongest(edges: Edges, values: NDArray[np.float32], n_cells: int) -> NDArray[np.float32]:
    """Return the largest value of each cell's edges, zero where there are none."""
    most = np.zeros(n_cells, np.float32)
    np.maximum.at(most, edges.rows, values)
    return most


def _report(sizes: NDArray[np.int64], n_alone: int, name: str, way: Way) -> None:
    """Log the sizes of niches, and warn where they are not what one wants."""
    low, few, median, many, high = np.percentile(sizes, [0, 5, 50, 95, 100])
    spread = f"{low:g} to {high:g} cells, median {median:g}, nine of ten {few:g} to {many:g}"
    logger.info("%s: %s of %s", name, count(len(sizes), "niche"), spread)
    if n_alone:
        warnings.warn(
            f"{count(n_alone, 'cell')} of {len(sizes):,} have no neighbour; each is a niche by itself. If they should "
            "have some, raise radius or give n_neighbors.",
            stacklevel=3,
        )
    if way.by == "radius" and not FEW <= median <= MANY:
        what = "few: the radius may be too small" if median < FEW else "many: the radius may be too large"
        warnings.warn(
            f"the median niche has {median:g} cells, which is {what} for the units of the positions ({spread}). Give a "
            "radius in these units, or n_neighbors.",
            stacklevel=3,
        )
