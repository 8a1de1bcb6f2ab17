"""The boundary to AnnData: which slot is read, which is written, and under which name. Imports no room but ``clouds``.

=================  ====================  =============================================================================
made by            slot                  what is in it
=================  ====================  =============================================================================
``pp.niches``      ``obsp[key]``         weights, float32; row ``i`` is the niche of cell ``i``
..                 ``obs[key_size]``     cells of each niche
..                 ``uns[key]``          ``kind`` (``"niches"``) and ``params``
``pp.groups``      ``uns[key]``          ``kind`` (``"groups"``) and ``params``, ``groupby`` among them
``pp.metacells``   ``obs[key]``          metacell of each cell, categorical
..                 ``uns[key]``          ``kind`` (``"metacells"``) and ``params``
``tl.wormhole``    ``obsm[X_key]``       vectors, float32
..                 ``obs[key_nugget]``   what each cloud adds by itself, where there is something
..                 ``uns[key]``          the record: see :func:`write_embedding`
=================  ====================  =============================================================================

Everything written can go to h5ad and zarr: parameters that are None are left out, lists become arrays.
"""

import json
import logging
import os
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from anndata import AnnData
from natsort import natsorted
from numpy.typing import NDArray
from safetensors.numpy import load, save
from scipy import sparse

from .clouds import PointClouds
from .clouds._names import Names
from .clouds._rows import is_backed, is_sparse, read_block, row_chunks
from .clouds._selection import find_positions
from .clouds._wording import count, listed

Slot = Literal["obs", "var", "obsm", "obsp", "layers", "uns"]
Kind = Literal["niches", "groups", "metacells"]
MAKERS: dict[str, str] = {"niches": "wh.pp.niches", "groups": "wh.pp.groups", "metacells": "wh.pp.metacells"}
EMBEDDING = "wormhole"  # the kind of a record that tl.wormhole writes
EMBEDDABILITY = "embeddability"  # the same of tl.embeddability
SHOWN = 20  # keys that an error lists

logger = logging.getLogger(__name__)


class Representation(NamedTuple):
    """What the cells of an AnnData are given by: one row a cell, one name a column."""

    points: Any
    names: list[str]
    genes: bool  # whether columns are the genes of ``var``


class Columns:
    """Points in memory or on disk with some of their columns, in another order; rows are read when asked for.

    Parameters
    ----------
    points
        One row a cell.
    columns
        Which columns.
    """

    def __init__(self, points: Any, columns: NDArray[np.int64]) -> None:
        self._points, self._columns = points, columns
        self.shape, self.dtype = (int(points.shape[0]), len(columns)), points.dtype
        self.format = getattr(points, "format", None)  # sparse on disk, if it is

    def __getitem__(self, rows: Any) -> Any:
        return read_block(self._points[rows])[:, self._columns]


class Cohort(NamedTuple):
    """Clouds of an AnnData, and where they come from."""

    clouds: PointClouds
    key: str
    kind: str
    representation: Representation


def need(adata: AnnData, slot: Slot, key: str, *, hint: str = "") -> Any:
    """Return what is under a key, or say which keys there are.

    Parameters
    ----------
    adata
        Where to look.
    slot
        Its slot.
    key
        The key.
    hint
        What to do where it is missing, a sentence.
    """
    held = getattr(adata, slot)
    if isinstance(key, Hashable) and key in held:
        return held[key]
    raise KeyError(" ".join([f"adata.{slot} has no {key!r}; {known_keys(held, key)}.", hint]).strip())


def known_keys(keys: Iterable[Any], wanted: Any = None) -> str:
    """Return the keys there are in words, those close to what was wanted first."""
    names = [str(key) for key in keys if key is not None]  # None is X among the layers of newer AnnData
    if not names:
        return "it is empty"
    near = get_close_matches(str(wanted), names, n=3, cutoff=0.6)
    ordered = [*near, *(name for name in names if name not in near)]
    rest = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return f"there are {', '.join(map(repr, ordered[:SHOWN]))}{rest}"


def as_adata(data: Any, table_key: str | None = None) -> AnnData:
    """Return an AnnData: what was given, or a table of a SpatialData.

    Parameters
    ----------
    data
        An AnnData, or a SpatialData.
    table_key
        Name of the table in a SpatialData; its only table by default.
    """
    if isinstance(data, AnnData):
        if table_key is not None:
            raise ValueError(f"table_key is {table_key!r}, and adata is an AnnData; it is for a SpatialData only.")
        return data
    tables = getattr(data, "tables", None)
    if not isinstance(tables, Mapping):
        raise TypeError(f"adata is a {type(data).__name__}; give an AnnData, or a SpatialData with its table_key.")
    if table_key is None and len(tables) != 1:
        raise ValueError(
            f"the SpatialData has {count(len(tables), 'table')}, {known_keys(tables)}; say which with table_key."
        )
    name = next(iter(tables)) if table_key is None else table_key
    if name not in tables:
        raise KeyError(f"the SpatialData has no table {name!r}; {known_keys(tables, name)}.")
    table: AnnData = tables[name]
    return table


def to_write(adata: AnnData, *, copy: bool) -> AnnData:
    """Return the AnnData that results go to: the one given, or a copy of it."""
    if adata.isbacked and (copy or adata.is_view):
        asked = "copy=True" if copy else "a view"
        raise ValueError(
            f"adata is backed by a file and {asked} was given, for which all of X would have to be copied; "
            "use adata.copy(filename) or adata.to_memory() first."
        )
    return adata.copy() if copy else adata


def check_key(key: str) -> None:
    """Refuse a name that files cannot hold."""
    if not isinstance(key, str) or not key or "/" in key:
        raise ValueError(f"key_added is {key!r}; give a name, without '/', which splits names in h5ad and zarr.")


def check_free(adata: AnnData, key: str, kind: str, *slots: tuple[Slot, str]) -> None:
    """Refuse a name under which there is something else, so that nothing of the user's is lost.

    Parameters
    ----------
    adata
        Where to write.
    key
        Name of what will be written; its own earlier results may be replaced.
    kind
        What will be written.
    slots
        Slots and their keys that are written besides ``uns[key]``.
    """
    check_key(key)
    if _kind(adata.uns.get(key)) == kind:
        return
    wanted: list[tuple[Slot, str]] = [("uns", key), *slots]
    taken = [f"adata.{slot}[{name!r}]" for slot, name in wanted if name in getattr(adata, slot)]
    if taken:
        raise ValueError(
            f"key_added is {key!r}, and {' and '.join(taken)} would be overwritten, made by something else; give "
            "another key_added, or delete what is there."
        )


def plain(value: Any) -> Any:
    """Return a value as h5ad and zarr can keep it: None left out of mappings, lists as arrays, the rest as text."""
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items() if item is not None}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, bool | int | float | str | np.ndarray):
        return value
    if isinstance(value, list | tuple):
        items = [np.nan if item is None else item for item in value]
        return np.array(items, dtype=np.str_ if any(isinstance(item, str) for item in items) else None)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return str(getattr(value, "__qualname__", value))


def write_cohort(adata: AnnData, key: str, kind: Kind, params: Mapping[str, Any]) -> None:
    """Note in ``uns`` that there are clouds.

    Parameters
    ----------
    adata
        Where to.
    key
        Name of the cohort.
    kind
        What the clouds are.
    params
        How they were made; for groups and metacells ``groupby`` is the column of ``obs`` that holds them.
    """
    adata.uns[key] = {"kind": kind, "params": plain(params)}


def cohorts(adata: AnnData) -> dict[str, str]:
    """Return the keys of all clouds that were made, and what they are."""
    return {key: held["kind"] for key, held in adata.uns.items() if _kind(held) in MAKERS}


def find_cohort(adata: AnnData, key: str | None) -> str:
    """Return a key of clouds that exists: the one given, or the only one there is."""
    known = cohorts(adata)
    if isinstance(key, str) and key in known:
        return key
    if not known:
        wanted = "" if key is None else f" and no {key!r}"
        raise KeyError(f"adata has no clouds yet{wanted}; make them with one of {', '.join(MAKERS.values())}.")
    listed = ", ".join(f"{name!r} ({kind})" for name, kind in known.items())
    if key is not None:
        raise KeyError(f"no clouds are named {key!r}; there are {listed}.")
    if len(known) > 1:
        raise ValueError(f"adata has several clouds: {listed}; say which with clouds=.")
    return next(iter(known))


def read_representation(adata: AnnData, use_rep: str | None, layer: str | None) -> Representation:
    """Return what cells are given by: ``obsm[use_rep]``, ``layers[layer]`` or X.

    Parameters
    ----------
    adata
        Where from.
    use_rep
        Key of ``obsm``, or ``"X"``.
    layer
        Key of ``layers``.
    """
    if use_rep is not None and layer is not None:
        raise ValueError(
            f"use_rep is {use_rep!r} and layer {layer!r}; cells have one representation, so give one of them only."
        )
    if use_rep is not None and use_rep != "X":
        held = need(adata, "obsm", use_rep)
        if isinstance(held, pd.DataFrame):
            return Representation(held.to_numpy(), [str(name) for name in held.columns], False)
        return Representation(held, [f"{use_rep}-{number}" for number in range(held.shape[1])], False)
    points = adata.X if layer is None else need(adata, "layers", layer)
    if points is None:
        raise ValueError("adata has no X; give use_rep, a key of adata.obsm, or layer, a key of adata.layers.")
    return Representation(points, [str(name) for name in adata.var_names], True)


def read_cohort(
    adata: AnnData, key: str | None = None, *, use_rep: str | None = None, layer: str | None = None
) -> Cohort:
    """Return the clouds that ``pp`` made; points are not copied, and stay sparse or on disk.

    Parameters
    ----------
    adata
        Where from.
    key
        Name of the clouds; the only one there is by default.
    use_rep
        Key of ``obsm`` that holds the points.
    layer
        Key of ``layers`` that holds them; X by default.
    """
    key = find_cohort(adata, key)
    representation = read_representation(adata, use_rep, layer)
    return Cohort(cohort_over(adata, key, representation.points), key, adata.uns[key]["kind"], representation)


def match_genes(representation: Representation, genes: Sequence[str]) -> Representation:
    """Return a representation whose columns are these genes, in this order, or say which are missing.

    Parameters
    ----------
    representation
        Cells by genes of ``var``.
    genes
        Names of the genes wanted; others are left out.
    """
    if representation.names == list(genes):
        return representation
    index = pd.Index(representation.names)
    wanted = index.isin(genes)
    if index[wanted].has_duplicates:
        raise ValueError(
            f"adata.var_names has {index[wanted][index[wanted].duplicated()][0]!r}, a gene of the model, more than "
            "once; use adata.var_names_make_unique()."
        )
    columns = index.get_indexer(list(genes))
    missing = [gene for gene, column in zip(genes, columns, strict=True) if column < 0]
    if missing:
        raise ValueError(
            f"adata lacks {len(missing):,} of the {count(len(genes), 'gene')} that the model was trained on: "
            f"{listed(missing, len(missing))}. In adata.var_names {known_keys(representation.names, missing[0])}. "
            "If genes only have other names, give adata.var_names those that the model knows; if they were not "
            "measured, train a model on the genes that both data have."
        )
    columns = columns.astype(np.int64)
    points = representation.points
    stored = is_backed(points) and not hasattr(points, "compute")  # dask takes columns without reading
    return Representation(Columns(points, columns) if stored else points[:, columns], list(genes), True)


def cohort_over(adata: AnnData, key: str, points: Any) -> PointClouds:
    """Return the clouds of a key over points of any kind, one row a cell.

    Parameters
    ----------
    adata
        Where the clouds are.
    key
        Their name.
    points
        One row a cell: expression, components, or positions.
    """
    return PointClouds.from_graph(points, *graph_of(adata, key))


def graph_of(adata: AnnData, key: str) -> tuple[Any, list[str] | None]:
    """Return which cells the clouds of a key hold, with which weights, clouds by cells; and the names of groups."""
    if adata.uns[key]["kind"] == "niches":
        cut = cut_niches(adata, key)
        if len(cut):
            raise ValueError(
                f"{count(len(cut), 'niche')} of {adata.n_obs:,} in adata.obsp[{key!r}] miss cells that were there when "
                f"they were made, first {adata.obs_names[cut[0]]!r}: adata was subset since. Make them again with "
                "wh.pp.niches, or embed first and subset then."
            )
        return adata.obsp[key], None
    params = adata.uns[key]["params"]
    labels = need(adata, "obs", params["groupby"], hint=f"{key!r} was made from it; make the clouds again.")
    return memberships(labels, min_cells=int(params.get("min_cells", 1)))


def cut_niches(adata: AnnData, key: str) -> NDArray[np.int64]:
    """Return the niches that miss cells which were there when they were made, as adata was subset since."""
    graph = need(adata, "obsp", key, hint="Run wh.pp.niches(adata) again.")
    sizes = need(adata, "obs", f"{key}_size", hint="Run wh.pp.niches(adata) again.").to_numpy()
    return np.flatnonzero(np.diff(sparse.csr_array(graph).indptr) != sizes)


def categorical(labels: "pd.Series[Any]") -> "pd.Series[Any]":
    """Return labels as categories; those of text in the order that AnnData gives them when it writes a file."""
    if isinstance(labels.dtype, pd.CategoricalDtype):
        return labels
    levels = labels.dropna().unique()
    if pd.api.types.infer_dtype(levels) != "string":
        return labels.astype("category")
    return pd.Series(pd.Categorical(labels, categories=natsorted(levels)), index=labels.index, name=labels.name)


def memberships(labels: "pd.Series[Any]", *, min_cells: int = 1) -> tuple[sparse.csr_array, list[str]]:
    """Return which cells each level holds, levels by cells, and the names of levels.

    Parameters
    ----------
    labels
        One a cell; cells without one belong to no level.
    min_cells
        Levels of fewer cells are left out.
    """
    levels = categorical(labels).cat
    codes = levels.codes.to_numpy().astype(np.int64)
    kept = np.flatnonzero(np.bincount(codes[codes >= 0], minlength=len(levels.categories)) >= max(1, min_cells))
    row = np.full(len(levels.categories) + 1, -1, np.int64)  # the last is for cells without a label
    row[kept] = np.arange(len(kept))
    rows, cells = row[codes], np.arange(len(codes))
    member = rows >= 0
    graph = sparse.csr_array((np.ones(member.sum()), (rows[member], cells[member])), shape=(len(kept), len(codes)))
    return graph, [str(levels.categories[position]) for position in kept]


def write_embedding(
    adata: AnnData, key: str, vectors: Any, nugget: NDArray[Any], record: Mapping[str, Any]
) -> list[str]:
    """Write vectors, nuggets and the record of a model, and return the slots that were written.

    Parameters
    ----------
    adata
        One row a cloud.
    key
        Name of the embedding.
    vectors
        One row a cloud, float32, in memory or of dask.
    nugget
        What each cloud adds by itself; written where any is above zero.
    record
        ``params``, ``rng``, ``source`` (``clouds``, ``kind``, ``use_rep``, ``layer``), ``names`` of the coordinates,
        ``fidelity``, ``held_out``, ``history``, ``versions``, ``converged``, ``epsilon`` and ``model``.
    """
    slots = [f"obsm[{'X_' + key!r}]", f"uns[{key!r}]"]
    adata.obsm[f"X_{key}"] = vectors
    if np.any(nugget > 0):
        adata.obs[f"{key}_nugget"] = np.asarray(nugget, np.float32)
        slots.insert(1, f"obs[{key + '_nugget'!r}]")
    elif f"{key}_nugget" in adata.obs:  # of an earlier model
        del adata.obs[f"{key}_nugget"]
    adata.uns[key] = {"kind": EMBEDDING, **plain(record)}
    return slots


def read_record(adata: AnnData, key: str = EMBEDDING, *, kind: str = EMBEDDING) -> dict[str, Any]:
    """Return the record that ``tl.wormhole`` or ``tl.embeddability`` wrote to ``uns``, or say which there are."""
    held = adata.uns.get(key)
    if _kind(held) == kind:
        record: dict[str, Any] = held
        return record
    known = [name for name, other in adata.uns.items() if _kind(other) == kind]
    there = f"; {known_keys(known, key)}" if known else ""
    what = "embedding" if kind == EMBEDDING else kind
    apart = ""
    if kind == EMBEDDING and {"groups", "metacells"} & {*cohorts(adata).values()}:
        apart = " Of groups and metacells it is in the AnnData that wh.tl.wormhole returned."
    raise KeyError(f"adata.uns has no {what} {key!r}{there}. Run wh.tl.{kind}(adata) first, or give its key.{apart}")


def read_embedding(adata: AnnData, key: str = EMBEDDING) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the vectors of the rows of an AnnData, and their nuggets, zero where there are none."""
    read_record(adata, key)
    vectors = np.asarray(need(adata, "obsm", f"X_{key}", hint="Run wh.tl.wormhole(adata) again."), np.float32)
    name = f"{key}_nugget"
    nugget = adata.obs[name].to_numpy(np.float32) if name in adata.obs else np.zeros(adata.n_obs, np.float32)
    return vectors, nugget


def find_rows(adata: AnnData, which: Any) -> NDArray[np.int64]:
    """Return the positions of rows that are given by name, by position or by a mask, or say what is wrong with them."""
    rows = find_positions(which, Names(adata.obs_names.to_numpy().astype(np.str_)))
    named = isinstance(which, str) or (np.ndim(which) == 1 and len(which) and isinstance(next(iter(which)), str))
    repeated = adata.obs_names[rows][adata.obs_names.duplicated(keep=False)[rows]]
    if named and len(repeated):
        raise ValueError(
            f"several rows are named {repeated[0]!r}; use adata.obs_names_make_unique(), or give positions or a mask."
        )
    return rows


def pack_model(arrays: Mapping[str, NDArray[Any]], header: Mapping[str, Any]) -> dict[str, Any]:
    """Return a model's arrays and header as ``uns`` can hold them: the bytes of safetensors, and one line of JSON."""
    packed = save({name: np.asarray(array, order="C") for name, array in arrays.items()})
    return {"header": json.dumps(header), "arrays": np.frombuffer(packed, np.uint8)}


def unpack_model(adata: AnnData, key: str = EMBEDDING) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Return the arrays and the header of the model that ``uns`` holds: what ``Wormhole.from_arrays`` takes."""
    held = read_record(adata, key)["model"]
    return load(np.asarray(held["arrays"], np.uint8).tobytes()), json.loads(str(held["header"]))


def cloud_adata(adata: AnnData, cohort: Cohort, *, layer: str | None = None) -> AnnData:
    """Return a new AnnData with one row a cloud, for clouds that share no cells.

    X is the mean of a cloud's cells, over all genes, or over the coordinates where there are no genes. ``obs`` has the
    columns that are constant within every cloud, with their colours, and ``n_points``.

    Parameters
    ----------
    adata
        Where the cells are.
    cohort
        Clouds of its cells.
    layer
        Key of ``layers`` that means are of; X by default.
    """
    clouds, means_of = cohort.clouds, cohort.representation
    if layer is not None or adata.X is not None:
        means_of = read_representation(adata, None, layer)
    first = clouds.indices[clouds.indptr[:-1]]
    kept = [name for name in adata.obs if _constant(adata.obs[name], clouds)]
    obs = adata.obs[kept].iloc[first].set_axis(pd.Index(clouds.names.astype(object)), axis=0)
    obs["n_points"] = clouds.sizes
    var = adata.var.copy() if means_of.genes else pd.DataFrame(index=means_of.names)
    made = AnnData(_means(clouds, means_of.points), obs=obs, var=var)
    made.uns |= {f"{name}_colors": adata.uns[f"{name}_colors"] for name in kept if f"{name}_colors" in adata.uns}
    return made


def point_adata(clouds: PointClouds, names: Sequence[str], columns: Sequence[str], uns: Mapping[str, Any]) -> AnnData:
    """Return decoded clouds as an AnnData with one row a point.

    Parameters
    ----------
    clouds
        The clouds.
    names
        Their names, in order.
    columns
        Names of the coordinates.
    uns
        Where they come from.
    """
    if len(set(names)) < len(names):
        raise ValueError(
            f"{Counter(names).most_common(1)[0][0]!r} is asked for more than once; give each name "
            "once, and if rows of adata share names, use adata.obs_names_make_unique()."
        )
    owner = np.repeat(np.arange(len(clouds)), clouds.sizes)
    place = np.arange(len(owner)) - clouds.indptr[owner]
    labels = pd.Categorical.from_codes(owner, categories=pd.Index([str(name) for name in names]))
    index = pd.Index([f"{names[i]}-{j}" for i, j in zip(owner.tolist(), place.tolist(), strict=True)], dtype=object)
    obs = pd.DataFrame({"cloud": labels, "weight": clouds.weights}, index=index)
    var = pd.DataFrame(index=pd.Index(list(columns), dtype=object))
    return AnnData(np.asarray(clouds.points, np.float32), obs=obs, var=var, uns=plain(uns))


def log_written(adata: AnnData, what: str, slots: Iterable[str]) -> None:
    """Say what was added where, as scanpy does."""
    logger.info("%s: added\n    %s", what, "\n    ".join(f"adata.{slot}" for slot in slots))


def _kind(held: Any) -> Any:
    return held.get("kind") if isinstance(held, Mapping) else None


def _constant(column: "pd.Series[Any]", clouds: PointClouds) -> bool:
    """Return whether a column has one value within every cloud."""
    codes = pd.factorize(column)[0]
    first = clouds.indices[clouds.indptr[:-1]]
    return bool((codes[clouds.indices] == np.repeat(codes[first], clouds.sizes)).all())


def _means(clouds: PointClouds, points: Any) -> Any:
    """Return the mean of each cloud over points of any kind, sparse where these are, reading them in chunks."""
    weights = sparse.csr_array((clouds.weights, clouds.indices, clouds.indptr), shape=(len(clouds), clouds.n_points))
    columns: Any = weights.tocsc()
    total: Any = 0
    for start, block in row_chunks(points):
        total = columns[:, start : start + block.shape[0]] @ block + total
    return sparse.csr_matrix(total).astype(np.float32) if is_sparse(total) else np.asarray(total, np.float32)
