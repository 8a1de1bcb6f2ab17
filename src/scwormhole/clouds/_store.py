"""PointClouds, the cohort everything else works on: touches its own arrays, and files in ``save`` and ``load`` only."""

import operator
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._archive import read_layout, write_layout
from ._builders import graph_layout, group_layout, list_layout
from ._html import clouds_html
from ._layout import Layout, assemble, join, load, same_clouds, select
from ._padding import PaddedBatch, pad, rung_batches, rungs
from ._points import as_points
from ._reader import Reader, source_of
from ._rows import Points, float_dtype, take_rows, whereabouts
from ._selection import find_clouds, find_positions
from ._sharing import shared_pairs, shared_table
from ._wording import count


class Cloud(NamedTuple):
    """One cloud, dense and in memory.

    Parameters
    ----------
    points
        Points, one row each.
    weights
        Weights of the points, which sum to one.

    Examples
    --------
    >>> import numpy as np
    >>> points, weights = PointClouds.from_list([np.eye(2)])[0]
    >>> weights
    array([0.5, 0.5])
    """

    points: NDArray[Any]
    weights: NDArray[np.float64]


class PointClouds:
    """A cohort of point clouds: a sparse matrix of weights, clouds by points, over points that are stored once.

    Cloud ``i`` holds the points ``indices[indptr[i]:indptr[i + 1]]`` with the weights at the same places. Niches share
    their cells, so a cohort costs as much as its points and its weights, however many clouds a point belongs to; points
    that are sparse or on disk stay so. Most cohorts are built with :meth:`from_list`, :meth:`from_groups` or
    :meth:`from_graph`.

    Parameters
    ----------
    points
        Matrix with one row a point: NumPy, SciPy sparse, a memory map, an HDF5 or zarr array, AnnData's backed sparse
        matrix, or dask. Integers are read as float64 and half precision as float32.
    indptr
        Where each cloud starts in ``indices``, and at last where the last one ends.
    indices
        Rows of ``points``, cloud after cloud.
    weights
        Weights beside ``indices``, not negative; every cloud's are scaled to sum to one.
    names
        Names of the clouds, without repeats; "0", "1", ... by default.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(8.0).reshape(4, 2)
    >>> clouds = PointClouds(X, [0, 2, 5], [0, 1, 1, 2, 3], np.ones(5))
    >>> clouds
    PointClouds: 2 clouds of 2 to 3 points (median 2.5) in 2 dimensions, over 4 shared points (float64), uniform weights
    >>> clouds[1].points[0]
    array([2., 3.])
    """

    __slots__ = ("_layout",)
    __hash__ = None  # type: ignore[assignment]
    _layout: Layout

    def __init__(
        self,
        points: Any,
        indptr: ArrayLike,
        indices: ArrayLike,
        weights: ArrayLike,
        names: Iterable[str] | None = None,
    ) -> None:
        self._layout = assemble(as_points(points), indptr, indices, weights, names)

    @classmethod
    def from_list(
        cls,
        arrays: Iterable[Any],
        weights: Iterable[ArrayLike] | None = None,
        names: Iterable[str] | None = None,
    ) -> "PointClouds":
        """Build a cohort from one array a cloud, put together in memory; sparse if all arrays are.

        Parameters
        ----------
        arrays
            Matrices with one row a point and the same columns, dense or sparse.
        weights
            One vector a cloud, in any unit; equal weights by default.
        names
            One string a cloud; "0", "1", ... by default.

        Examples
        --------
        >>> import numpy as np
        >>> clouds = PointClouds.from_list([np.zeros((3, 2)), np.ones((5, 2))], names=["origin", "one"])
        >>> clouds["one"].points.shape
        (5, 2)
        """
        return cls._of(list_layout(arrays, weights, names))

    @classmethod
    def from_groups(cls, X: Any, labels: Any, weights: ArrayLike | None = None) -> "PointClouds":
        """Build a cohort with one cloud for every level of a labelling, such as patients; ``X`` is not copied.

        Parameters
        ----------
        X
            Points, as for :class:`PointClouds`.
        labels
            One label a point: an array, a list, a pandas Series or Categorical. Clouds are named after the levels, in
            the order of the categories (those without points are left out) or sorted.
        weights
            One number a point, in any unit; equal weights by default.

        Examples
        --------
        >>> import numpy as np
        >>> clouds = PointClouds.from_groups(np.eye(4), ["b", "a", "b", "b"])
        >>> clouds.names, clouds.sizes
        (array(['a', 'b'], dtype='<U1'), array([1, 3]))
        """
        return cls._of(group_layout(X, labels, weights))

    @classmethod
    def from_graph(cls, X: Any, graph: Any, names: Iterable[str] | None = None) -> "PointClouds":
        """Build a cohort whose clouds are the rows of a graph over the points, such as niches; ``X`` is not copied.

        Parameters
        ----------
        X
            Points, as for :class:`PointClouds`.
        graph
            SciPy sparse matrix, clouds by points. Stored values are weights in any unit: zeros are dropped, duplicates
            added up.
        names
            One string a row; "0", "1", ... by default.

        Examples
        --------
        >>> import numpy as np
        >>> from scipy.sparse import csr_array
        >>> clouds = PointClouds.from_graph(np.eye(3), csr_array([[1, 3, 0], [0, 1, 1]]))
        >>> clouds[0].weights
        array([0.25, 0.75])
        """
        return cls._of(graph_layout(X, graph, names))

    @classmethod
    def concatenate(cls, cohorts: Sequence["PointClouds"], names: Iterable[str] | None = None) -> "PointClouds":
        """Put the clouds of several cohorts together; cohorts over the same points object go on sharing it.

        Parameters
        ----------
        cohorts
            Cohorts of one dimension. Different points are stacked in memory, with a warning where they were on disk.
        names
            One string a cloud. By default clouds keep their names, which must then differ; default numbers that collide
            are counted anew.

        Examples
        --------
        >>> import numpy as np
        >>> a = PointClouds.from_list([np.zeros((3, 2))], names=["a"])
        >>> b = PointClouds.from_list([np.ones((5, 2))], names=["b"])
        >>> PointClouds.concatenate([a, b]).sizes, (a + b).names
        (array([3, 5]), array(['a', 'b'], dtype='<U1'))
        """
        cohorts = list(cohorts)
        if not cohorts:
            raise ValueError("there is nothing to concatenate: cohorts has length 0; give at least one.")
        for position, cohort in enumerate(cohorts):
            if not isinstance(cohort, PointClouds):
                raise TypeError(
                    f"cohorts[{position}] is a {type(cohort).__name__}; only PointClouds can be concatenated."
                )
        return cls._of(join([cohort._layout for cohort in cohorts], names))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "PointClouds":
        """Read a cohort that :meth:`save` wrote, into memory.

        Parameters
        ----------
        path
            The file. Files that are damaged, of another kind or of a newer version are refused.

        Examples
        --------
        >>> import tempfile, os, numpy as np
        >>> clouds = PointClouds.from_list([np.eye(2)])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     clouds.save(os.path.join(folder, "clouds.npz"))
        ...     PointClouds.load(os.path.join(folder, "clouds.npz")) == clouds
        True
        """
        return cls._of(read_layout(path))

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the cohort to one ``.npz`` file, which appears only when it is complete; no pickle.

        Points on disk are copied in chunks and never held in memory as a whole.

        Parameters
        ----------
        path
            File to write, exactly as given.
        overwrite
            Whether an existing file may be replaced.

        Examples
        --------
        >>> import tempfile, os, numpy as np
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     PointClouds.from_list([np.eye(2)]).save(os.path.join(folder, "clouds.npz"))
        ...     os.listdir(folder)
        ['clouds.npz']
        """
        write_layout(path, self._layout, overwrite=overwrite)

    def to_memory(self) -> "PointClouds":
        """Return the same clouds over points in memory: only those that are in some cloud, sparse where they were.

        Examples
        --------
        >>> import dask.array, numpy as np
        >>> clouds = PointClouds(dask.array.from_array(np.eye(4)), [0, 1, 3], [0, 2, 3], np.ones(3))
        >>> clouds.to_memory().points.shape
        (3, 4)
        """
        return self._of(load(self._layout))

    @contextmanager
    def reading(self, n_bytes: int) -> Iterator[None]:
        """Keep up to so many bytes of points that were read from disk, for a while.

        Parameters
        ----------
        n_bytes
            Bytes, as they are stored; a run of rows at least is kept. Otherwise it is 32 MiB.

        Examples
        --------
        >>> import dask.array, numpy as np
        >>> clouds = PointClouds(dask.array.from_array(np.eye(4)), [0, 1, 3], [0, 2, 3], np.ones(3))
        >>> with clouds.reading(1 << 20):
        ...     clouds[1].points.shape
        (2, 4)
        """
        points = self._layout.points
        with points.keeping(n_bytes) if isinstance(points, Reader) else nullcontext():
            yield

    @property
    def unread_bytes(self) -> int:
        """Bytes that the points of these clouds would take in memory, about; 0 if they are there."""
        points = self._layout.points
        if not isinstance(points, Reader):
            return 0
        held = np.zeros(self.n_points, bool)
        held[self.indices] = True
        grown = max(1.0, self.dtype.itemsize / points.dtype.itemsize)  # whole numbers become floating-point ones
        return int(held.sum() * points.row_bytes * grown)

    @property
    def points(self) -> Points:
        """Points of all clouds, stored once, where they were given: in memory, sparse or on disk."""
        return source_of(self._layout.points)

    @property
    def indptr(self) -> NDArray[np.int64]:
        """Where each cloud starts in ``indices``, and at last where the last one ends."""
        return self._layout.indptr

    @property
    def indices(self) -> NDArray[np.int64]:
        """Rows of ``points``, cloud after cloud."""
        return self._layout.indices

    @property
    def weights(self) -> NDArray[np.float64]:
        """Weights beside ``indices``; each cloud's sum to one."""
        return self._layout.weights

    @property
    def names(self) -> NDArray[np.str_]:
        """Names of the clouds."""
        return self._layout.names.text

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of points of each cloud."""
        return self._layout.sizes

    @property
    def rungs(self) -> NDArray[np.int64]:
        """Padded size of each cloud, see :func:`scwormhole.clouds.ladder`."""
        return rungs(self._layout.sizes)

    @property
    def shape(self) -> tuple[int]:
        """Number of clouds, as scikit-learn asks for it: with a shape, a cohort can be split for cross-validation."""
        return (len(self),)

    @property
    def dim(self) -> int:
        """Number of dimensions."""
        return int(self.points.shape[1])

    @property
    def n_points(self) -> int:
        """Number of shared points, those of no cloud included."""
        return int(self.points.shape[0])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Floating type in which points are read."""
        return float_dtype(self.points.dtype)

    def padded(self, index: Any, size: int | None = None) -> PaddedBatch:
        """Return some clouds as one dense batch; places beyond a cloud's size hold zeros that weigh nothing.

        Parameters
        ----------
        index
            Clouds, as in square brackets; repeats are allowed.
        size
            Places for points; the rung of the largest cloud, :func:`ladder`, by default.

        Examples
        --------
        >>> import numpy as np
        >>> clouds = PointClouds.from_list([np.ones((3, 2)), np.ones((9, 2))])
        >>> clouds.padded([0, 1]).points.shape
        (2, 12, 2)
        >>> clouds.padded([0]).weights.round(2)
        array([[0.33, 0.33, 0.33, 0.  ]])
        """
        return pad(self._layout, find_positions(index, self._layout.names), size)

    def batches(self, batch_size: int, order: Any = None) -> Iterator[PaddedBatch]:
        """Go through the clouds in batches of one shape a rung, so a compiled consumer compiles at most once a rung.

        Every batch has exactly ``batch_size`` rows; where a rung runs out of clouds the last one is repeated, and
        ``index`` is shorter: only its ``len(index)`` first rows count.

        Parameters
        ----------
        batch_size
            Rows of every batch.
        order
            Clouds to go through, as in square brackets, and their order within a rung; all of them by default.

        Examples
        --------
        >>> import numpy as np
        >>> clouds = PointClouds.from_list([np.ones((n, 2)) for n in (3, 9, 4, 10, 11)])
        >>> [(batch.points.shape, batch.index.tolist()) for batch in clouds.batches(2)]
        [((2, 4, 2), [0, 2]), ((2, 12, 2), [1, 3]), ((2, 12, 2), [4])]
        """
        if operator.index(batch_size) < 1:
            raise ValueError(f"batch_size is {batch_size}; at least one cloud a batch is needed.")
        return rung_batches(self._layout, find_positions(order, self._layout.names), operator.index(batch_size))

    def shared_mass(self, index: Any = None) -> NDArray[np.float64]:
        """Return the mass that clouds have in common, clouds by clouds: ``sum_p min(a_p, b_p)`` over the points.

        Parameters
        ----------
        index
            Clouds, as in square brackets; all of them by default, for which the table is as large as that.

        Examples
        --------
        >>> import numpy as np
        >>> clouds = PointClouds(np.eye(4), [0, 2, 4, 5], [0, 1, 1, 2, 3], np.ones(5))
        >>> clouds.shared_mass()
        array([[1. , 0.5, 0. ],
               [0.5, 1. , 0. ],
               [0. , 0. , 1. ]])
        """
        return shared_table(self._layout, find_positions(index, self._layout.names))

    def shared_mass_with(self, other: "PointClouds") -> NDArray[np.float64]:
        """Return the mass that the clouds of two cohorts have in common, one to one.

        Points are the same if both cohorts are over one points object; equal coordinates alone do not count.

        Parameters
        ----------
        other
            A cohort of as many clouds.

        Examples
        --------
        >>> import numpy as np
        >>> clouds = PointClouds(np.eye(4), [0, 2, 4, 5], [0, 1, 1, 2, 3], np.ones(5))
        >>> clouds[:2].shared_mass_with(clouds[1:])
        array([0.5, 0. ])
        """
        if len(self) != len(other):
            raise ValueError(
                f"there are {len(self):,} clouds here and {len(other):,} in other; they go one to one, so give as many."
            )
        return shared_pairs(self._layout, other._layout)

    def __len__(self) -> int:
        return len(self._layout.names)

    @overload
    def __getitem__(self, key: int | str) -> Cloud: ...  # type: ignore[overload-overlap]  # a str is a sequence too

    @overload
    def __getitem__(
        self, key: slice | Sequence[int] | Sequence[str] | Sequence[bool] | NDArray[Any]
    ) -> "PointClouds": ...

    def __getitem__(self, key: Any) -> "Cloud | PointClouds":
        found = find_clouds(key, self._layout.names)
        if not isinstance(found, int):
            return self._of(select(self._layout, found))
        places = slice(self.indptr[found], self.indptr[found + 1])
        return Cloud(take_rows(self._layout.points, self.indices[places]), self.weights[places].copy())

    def __iter__(self) -> Iterator[Cloud]:
        return (self[position] for position in range(len(self)))

    def __contains__(self, name: object) -> bool:
        return name in self._layout.names

    def __add__(self, other: object) -> "PointClouds":
        return self.concatenate([self, other]) if isinstance(other, PointClouds) else NotImplemented

    def __eq__(self, other: object) -> bool:
        return same_clouds(self._layout, other._layout) if isinstance(other, PointClouds) else NotImplemented

    def __repr__(self) -> str:
        sizes = self.sizes
        low, high = int(sizes.min()), int(sizes.max())
        spread = count(high, "point") if low == high else f"{low:,} to {high:,} points (median {np.median(sizes):,g})"
        return (
            f"PointClouds: {count(len(self), 'cloud')} of {spread} in {count(self.dim, 'dimension')}, over "
            f"{count(self.n_points, 'shared point')} ({', '.join([str(self.dtype), *whereabouts(self.points)])}), "
            f"{'uniform' if self._layout.uniform else 'non-uniform'} weights"
        )

    def _repr_html_(self) -> str:
        return clouds_html(self._layout)

    @classmethod
    def _of(cls, layout: Layout) -> "PointClouds":
        """Wrap arrays that are known to be sound, so that a selection is not scanned again."""
        clouds = cls.__new__(cls)
        clouds._layout = layout
        return clouds
