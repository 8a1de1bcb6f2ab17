"""Embeds the clouds of an AnnData, by a model trained on them or on others. Reads and writes through ``_adata``."""

import inspect
import logging
import os
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeVar

import numpy as np
from anndata import AnnData

from scwormhole._adata import (
    EMBEDDING,
    Cohort,
    Slot,
    as_adata,
    check_free,
    check_key,
    cloud_adata,
    cohort_over,
    find_cohort,
    graph_of,
    log_written,
    match_genes,
    pack_model,
    read_cohort,
    read_record,
    read_representation,
    to_write,
    unpack_model,
    write_embedding,
)
from scwormhole.clouds import PointClouds
from scwormhole.metrics import compared, paper_scale, solve_pairs
from scwormhole.model import Wormhole
from scwormhole.ot import Embedded
from scwormhole.ot._options import as_bytes

from ._lazy import is_lazy, running_client
from ._store import check_store
from ._values import warn_of_values
from ._vectors import embed_here, embed_there, sampled

PACKAGES = ("anndata", "flax", "jax", "numpy", "ott-jax", "scanpy", "scwormhole")
FIDELITY = ("correlation", "correlation_euclidean", "mse", "relative_error", "neighbour_recall")
FEWEST = 3  # held-out clouds whose pairs can be compared

Function = TypeVar("Function", bound=Callable[..., Any])

logger = logging.getLogger(__name__)


def _shows_parameters_of(cls: type) -> Callable[[Function], Function]:
    """Return a decorator: completion and help then show, in place of ``**params``, whose parameters these are."""

    def shown(function: Function) -> Function:
        signature = inspect.signature(function)
        own = [given for given in signature.parameters.values() if given.kind is not given.VAR_KEYWORD]
        theirs = inspect.signature(cls).parameters.values()
        more = [given.replace(kind=given.KEYWORD_ONLY) for given in theirs if given.name not in signature.parameters]
        function.__dict__["__signature__"] = signature.replace(parameters=own + more)
        return function

    return shown


@_shows_parameters_of(Wormhole)
def wormhole(
    adata: AnnData,
    *,
    clouds: str | None = None,
    use_rep: str | None = None,
    layer: str | None = None,
    key_added: str = EMBEDDING,
    table_key: str | None = None,
    copy: bool = False,
    return_model: bool = False,
    store: str | os.PathLike[str] | None = None,
    rng: int = 0,
    **params: Any,
) -> AnnData | Wormhole | tuple[AnnData, Wormhole] | None:
    """Train a Wormhole on the clouds of an AnnData, and write one vector a cloud.

    Niches are one a cell, so their vectors go to ``adata``. Groups and metacells come back as a new AnnData with one
    row a cloud; ``adata`` stays as it is.

    Parameters
    ----------
    adata
        Cells with clouds, by :func:`scwormhole.pp.niches`, :func:`~scwormhole.pp.groups` or
        :func:`~scwormhole.pp.metacells`; or a SpatialData, see ``table_key``. It may be backed by a file, of which X is
        then read a batch at a time.
    clouds
        Name of the clouds; the only ones there are by default.
    use_rep
        Key of ``obsm`` that gives cells their coordinates.
    layer
        Key of ``layers`` that does; X by default. Sparse matrices stay sparse.
    key_added
        Name of the embedding.
    table_key
        Table to use if a SpatialData is given; its only one by default.
    copy
        Whether to return a copy with the embedding of niches instead of adding it.
    return_model
        Whether to return the model, too.
    store
        Folder for a zarr store that vectors go to as they are made, for more of them than memory holds; ``obsm`` then
        has them as an array of dask. A run that was interrupted goes on where it was when it is called again, after the
        training; :func:`embed` needs none.
    rng
        Seed of everything.
    **params
        Parameters of :class:`scwormhole.Wormhole`, such as ``n_components``, ``max_steps`` and ``max_seconds``.

    Returns
    -------
    For niches None, or the copy; for groups and metacells the new AnnData, with the columns of ``obs`` that are
    constant within each cloud, ``n_points``, and the mean of each cloud's cells as X. With ``return_model`` the model,
    after the AnnData if there is one. The AnnData with one row a cloud has

    ``obsm["X_" + key_added]``
        Vectors, float32: squared distances between them are divergences of clouds.
    ``obs[key_added + "_nugget"]``
        What each cloud adds to its divergence from any other by itself, if the model has a nugget.
    ``uns[key_added]``
        ``params``, ``rng``, ``source`` (which clouds and coordinates), ``names`` of the coordinates, ``fidelity`` to
        solved transport between held-out clouds, their pairs in ``held_out``, ``history``, ``versions``,
        ``converged``, ``epsilon``, and the ``model`` as arrays.

    Examples
    --------
    >>> import anndata, numpy as np, scwormhole as wh
    >>> rng = np.random.default_rng(0)
    >>> adata = anndata.AnnData(rng.gamma(2.0, size=(60, 3)), obsm={"spatial": rng.uniform(size=(60, 2))})
    >>> wh.pp.niches(adata, n_neighbors=5)
    >>> wh.tl.wormhole(adata, n_components=8, max_steps=0, progress=False)  # no training, to be quick
    >>> adata.obsm["X_wormhole"].shape
    (60, 8)
    """
    adata = as_adata(adata, table_key)
    _check_params(params)
    cohort = read_cohort(adata, clouds, use_rep=use_rep, layer=layer)
    target = _target(adata, cohort, key_added, copy=copy)
    check_store(store, len(cohort.clouds))
    if cohort.representation.genes:
        warn_of_values(cohort.representation.points, layer, rng)
    genes = cohort.representation.names if cohort.representation.genes else None
    trained = Wormhole(**params, rng=rng).fit(cohort.clouds, feature_names=genes)
    record = _record(trained, cohort, use_rep, layer) | _held_out(trained, cohort.clouds)
    vectors = _embedded(trained, adata, cohort, _client(cohort.representation.points, cohort.kind), store)
    made = _written(target, vectors, cohort, key_added, record)
    found = made if copy or made is not target else None
    if not return_model:
        return found
    return trained if found is None else (found, trained)


def embed(
    adata: AnnData,
    model: Wormhole | AnnData,
    *,
    key: str = EMBEDDING,
    clouds: str | None = None,
    use_rep: str | None = None,
    layer: str | None = None,
    key_added: str = EMBEDDING,
    table_key: str | None = None,
    copy: bool = False,
    store: str | os.PathLike[str] | None = None,
    max_memory: int | str | None = None,
) -> AnnData | None:
    """Embed the clouds of an AnnData by a model that was trained on others: query mapping.

    Genes are matched by name: their order may differ, and genes that the model does not know are left out. For a model
    of principal components or the like, project the new cells on the same components first.

    Cells may be in memory, in a file (backed) or of dask: they are read a run of rows at a time. Niches over an array
    of dask are embedded by the workers of its client, if there is one.

    Parameters
    ----------
    adata
        Cells with clouds; or a SpatialData, see ``table_key``.
    model
        The model, or an AnnData that :func:`wormhole` wrote one to.
    key
        Name of the embedding in that AnnData.
    clouds
        Name of the clouds in ``adata``; the only ones there are by default.
    use_rep
        Key of ``obsm`` that gives cells their coordinates. By default the one that the model's AnnData names.
    layer
        Key of ``layers`` that does, likewise.
    key_added
        Name of the embedding.
    table_key
        Table to use if a SpatialData is given; its only one by default.
    copy
        Whether to return a copy with the embedding of niches instead of adding it.
    store
        Folder for a zarr store that vectors go to as they are made, for more of them than memory holds; ``obsm`` then
        has them as an array of dask. A run that was interrupted goes on where it was when it is called again.
    max_memory
        Most memory for what is under way, see :class:`scwormhole.Wormhole`; the model's own by default. With dask, of
        each thread of a worker.

    Returns
    -------
    For niches None, or the copy; for groups and metacells a new AnnData with one row a cloud. The slots are those of
    :func:`wormhole`, without ``fidelity`` and ``held_out``: nothing was held out.

    Examples
    --------
    >>> import anndata, numpy as np, scwormhole as wh
    >>> rng = np.random.default_rng(0)
    >>> tissue = anndata.AnnData(rng.gamma(2.0, size=(120, 3)), obsm={"spatial": rng.uniform(size=(120, 2))})
    >>> old, new = tissue[:60].copy(), tissue[60:, ::-1].copy()
    >>> for adata in (old, new):
    ...     wh.pp.niches(adata, n_neighbors=5)
    >>> wh.tl.wormhole(old, n_components=8, max_steps=0, progress=False)  # no training, to be quick
    >>> wh.tl.embed(new, old)
    >>> new.obsm["X_wormhole"].shape
    (60, 8)
    """
    adata = as_adata(adata, table_key)
    if isinstance(model, AnnData):
        source = read_record(model, key)["source"]
        if use_rep is None and layer is None:
            use_rep, layer = source.get("use_rep"), source.get("layer")
        model = _model(model, key)
    elif not isinstance(model, Wormhole):
        raise TypeError(f"model is a {type(model).__name__}; give a fitted Wormhole, or an AnnData that has one.")
    if max_memory is not None:
        as_bytes(max_memory)
    name = find_cohort(adata, clouds)
    representation = read_representation(adata, use_rep, layer)
    known = getattr(model, "feature_names_in_", None)
    if known is not None:
        if not representation.genes:
            raise ValueError(f"the model was trained on {len(known):,} genes; leave out use_rep, {use_rep!r}.")
        representation = match_genes(representation, known)
    kind = adata.uns[name]["kind"]
    client = _client(representation.points, kind)
    # with a client it is the workers who read, and only which cells a niche has is looked at here
    points = representation.points if client is None else np.zeros((adata.n_obs, 1), np.float32)
    cohort = Cohort(cohort_over(adata, name, points), name, kind, representation)
    target = _target(adata, cohort, key_added, copy=copy)
    check_store(store, len(cohort.clouds))
    if representation.genes and not is_lazy(representation.points):  # of dask, some rows take as long as all of them
        warn_of_values(representation.points, layer, 0)
    record = _record(model, cohort, use_rep, layer)
    vectors = _embedded(model, adata, cohort, client, store, max_memory)
    made = _written(target, vectors, cohort, key_added, record)
    return made if copy or made is not target else None


def model(adata: AnnData, *, key: str = EMBEDDING) -> Wormhole:
    """Return the model that an AnnData carries, fitted; a file that was written and read again has it too.

    Parameters
    ----------
    adata
        What :func:`wormhole` or :func:`embed` wrote to.
    key
        Name of the embedding.

    Examples
    --------
    >>> import anndata, numpy as np, scwormhole as wh
    >>> rng = np.random.default_rng(0)
    >>> adata = anndata.AnnData(rng.gamma(2.0, size=(60, 3)), obsm={"spatial": rng.uniform(size=(60, 2))})
    >>> wh.pp.niches(adata, n_neighbors=5)
    >>> wh.tl.wormhole(adata, n_components=8, max_steps=0, progress=False)  # no training, to be quick
    >>> wh.tl.model(adata).dim_
    3
    """
    return _model(adata, key)


def _model(adata: AnnData, key: str) -> Wormhole:
    return Wormhole.from_arrays(*unpack_model(adata, key))


def _check_params(params: dict[str, Any]) -> None:
    known = Wormhole().get_params()
    unknown = sorted(params.keys() - known.keys())
    if unknown:
        raise TypeError(f"no parameter {', '.join(unknown)}; those of scwormhole.Wormhole are {', '.join(known)}.")


def _target(adata: AnnData, cohort: Cohort, key: str, *, copy: bool) -> AnnData:
    """Return the AnnData that vectors of niches go to, where their name must be free, or that others are made from."""
    if cohort.kind != "niches":
        check_key(key)
        return adata
    slots: list[tuple[Slot, str]] = [] if key == EMBEDDING else [("obsm", f"X_{key}")]
    check_free(adata, key, EMBEDDING, *slots)
    return to_write(adata, copy=copy)


def _record(trained: Wormhole, cohort: Cohort, use_rep: str | None, layer: str | None) -> dict[str, Any]:
    """Return what ``uns`` keeps of any embedding."""
    source = {"clouds": cohort.key, "kind": cohort.kind, "use_rep": use_rep, "layer": layer}
    params = trained.get_params()
    return {
        "params": params,
        "rng": params["rng"],
        "source": source | {"n_clouds": len(cohort.clouds)},
        "names": np.array(cohort.representation.names, dtype=object),
        "history": trained.history_,
        "versions": {name: found for name in PACKAGES if (found := _version(name)) is not None},
        "converged": bool(trained.converged_),
        "epsilon": float(trained.epsilon_),
        "model": pack_model(*trained.to_arrays()),
    }


def _held_out(trained: Wormhole, clouds: PointClouds) -> dict[str, Any]:
    """Return how the model does on the clouds that were held out, and their pairs."""
    positions = trained.held_out_
    if len(positions) < FEWEST:
        logger.info("%d clouds were held out, too few to tell the fidelity", len(positions))
        return {}
    some, params = clouds[positions], trained.get_params()
    tables = solve_pairs(trained, some, progress=params["progress"])
    found = dict(zip(FIDELITY, compared(tables, paper_scale(some, params["metric"])), strict=True))
    logger.info("held-out clouds: correlation %.3f", found["correlation"])
    one, other = np.triu_indices(len(some), 1)
    named = zip(("solved", "embedded", "euclidean"), tables, strict=True)
    pairs: dict[str, Any] = {name: table[one, other].astype(np.float32) for name, table in named}
    pairs |= {"clouds": positions, "first": positions[one], "second": positions[other]}
    return {"fidelity": found | {"n_clouds": len(some)}, "held_out": pairs}


def _client(points: Any, kind: str) -> Any:
    """Return the client whose workers embed niches over an array of dask, None if there is none or they are not."""
    return running_client() if kind == "niches" and is_lazy(points) else None


def _embedded(
    trained: Wormhole,
    adata: AnnData,
    cohort: Cohort,
    client: Any,
    store: str | os.PathLike[str] | None,
    max_memory: int | str | None = None,
) -> Embedded:
    """Embed clouds here, or by the workers of a client."""
    points = cohort.representation.points
    if cohort.kind != "niches" or not is_lazy(points):
        return embed_here(trained, cohort.clouds, store, max_memory=max_memory)
    graph = graph_of(adata, cohort.key)[0]
    if client is None:
        return embed_here(trained, cohort.clouds, store, known_by=lambda: sampled(points, graph), max_memory=max_memory)
    return embed_there(client, trained, points, graph, store, max_memory=max_memory)


def _written(target: AnnData, found: Embedded, cohort: Cohort, key: str, record: dict[str, Any]) -> AnnData:
    """Write an embedding to where it belongs, and return that."""
    vectors, nugget = found
    made = target
    if cohort.kind == "niches":
        record["source"]["made"] = target.uns[cohort.key]["params"]
    else:
        made = cloud_adata(target, cohort, layer=record["source"]["layer"])
    log_written(made, f"{len(vectors):,} clouds embedded", write_embedding(made, key, vectors, nugget, record))
    return made


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
