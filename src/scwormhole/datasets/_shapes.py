"""ModelNet10's shapes as clouds of points on their surface. Reads files, and may download them."""

import zipfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scwormhole.clouds import PointClouds

from ._download import Folder, find
from ._record import Labelled

SAMPLED, MESHES = "modelnet10_1024.npz", "ModelNet10.zip"
URLS = ("http://3dvision.princeton.edu/projects/2014/3DShapeNets/ModelNet10.zip",)
SHA256 = "9d8679435fc07d1d26f13009878db164a7aa8ea5e7ea3c8880e42794b7307d51"


class Mesh(NamedTuple):
    """A surface of triangles."""

    corners: NDArray[np.float64]
    triangles: NDArray[np.int64]


def modelnet10(
    folder: Folder = None,
    *,
    part: Literal["train", "test"] = "train",
    n_points: int = 1024,
    normalize: bool = True,
    rng: int = 0,
) -> Labelled:
    """Return the 4,899 pieces of furniture of ModelNet10 as clouds of points on their surface.

    Parameters
    ----------
    folder
        Folder with ``ModelNet10.zip`` as it is published, or with ``modelnet10_1024.npz``: arrays ``points`` (shapes
        by 1024 by 3), ``label``, ``split`` and ``classes``. Without a folder the first is downloaded once (450 MB),
        and checked, into ``SCWORMHOLE_CACHE`` or the system's place for caches.
    part
        ``"train"`` for 3,991 shapes, ``"test"`` for 908.
    n_points
        Points of a shape, sampled evenly from its surface, or from the 1024 that are stored.
    normalize
        Whether each shape is centred and scaled to [-1, 1]; their own sizes tell nothing.
    rng
        Seed of the sampling.

    Returns
    -------
    The clouds, and the class of each by name.

    Examples
    --------
    >>> import scwormhole as wh
    >>> clouds, labels = wh.datasets.modelnet10("data/modelnet10")  # doctest: +SKIP
    """
    if part not in ("train", "test"):
        raise ValueError(f'part is {part!r}; it may be "train" or "test".')
    if n_points < 1:
        raise ValueError(f"n_points is {n_points}; give at least 1.")
    generator = np.random.default_rng(rng)
    if folder is not None and (Path(folder) / SAMPLED).is_file():
        points, labels = _stored(Path(folder) / SAMPLED, part, n_points, generator)
    else:
        path = find("modelnet10", MESHES, folder, urls=URLS, sha256=SHA256)
        found = [(sample(mesh, n_points, generator), label) for label, mesh in _meshes(path, part)]
        points, labels = np.stack([shape for shape, _ in found]), np.array([label for _, label in found])
    if normalize:
        points = points.astype(np.float64)
        points = points - points.mean(1, keepdims=True)
        points = points / np.abs(points).max((1, 2), keepdims=True)
    return Labelled(PointClouds.from_list(list(points.astype(np.float32))), labels)


def sample(mesh: Mesh, n_points: int, generator: np.random.Generator) -> NDArray[np.float64]:
    """Return points that lie evenly on a surface.

    Parameters
    ----------
    mesh
        The surface.
    n_points
        How many points.
    generator
        Where chance comes from.
    """
    a, b, c = (mesh.corners[mesh.triangles[:, corner]] for corner in range(3))
    area = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    chosen = generator.choice(len(area), n_points, p=area / area.sum())
    u, v = generator.random((2, n_points, 1))
    u, v = np.where(u + v > 1, 1 - u, u), np.where(u + v > 1, 1 - v, v)  # the far half of the parallelogram folds back
    return np.asarray(a[chosen] + u * (b - a)[chosen] + v * (c - a)[chosen])


def read_off(text: str) -> Mesh:
    """Return the mesh that a file in the Object File Format describes.

    Parameters
    ----------
    text
        What the file says; its first line may run into the second, as in some files of ModelNet.
    """
    words = text.removeprefix("OFF").split()
    n_corners, n_faces = int(words[0]), int(words[1])
    corners = np.array(words[3 : 3 + 3 * n_corners], np.float64).reshape(n_corners, 3)
    triangles, at = [], 3 + 3 * n_corners
    for _ in range(n_faces):
        face = [int(word) for word in words[at + 1 : at + 1 + int(words[at])]]
        triangles += [(face[0], second, third) for second, third in pairwise(face[1:])]
        at += 1 + len(face)
    return Mesh(corners, np.array(triangles))


def _meshes(path: Path, part: str) -> Iterator[tuple[str, Mesh]]:
    from tqdm import tqdm

    with zipfile.ZipFile(path) as archive:
        names = sorted(n for n in archive.namelist() if n.endswith(".off") and not n.startswith("__MACOSX"))
        names = [name for name in names if name.split("/")[-2] == part]
        if not names:
            raise ValueError(f"{path} holds no shape of the {part} part; give ModelNet10.zip as it is published.")
        for name in tqdm(names, "ModelNet10", unit="shapes"):
            yield name.split("/")[-3], read_off(archive.read(name).decode("ascii", "replace"))


def _stored(
    path: Path, part: str, n_points: int, generator: np.random.Generator
) -> tuple[NDArray[Any], NDArray[np.str_]]:
    with np.load(path, allow_pickle=False) as held:
        missing = {"points", "label", "split", "classes"} - {*held}
        if missing:
            raise ValueError(
                f"{path} lacks {', '.join(sorted(missing))}; it holds {', '.join(held)}. Give a file with the arrays "
                "points, label, split and classes, or ModelNet10.zip as it is published."
            )
        here = held["split"] == part
        points, labels = held["points"][here], held["classes"][held["label"][here]]
    if n_points > points.shape[1]:
        raise ValueError(
            f"n_points is {n_points}, and {path} holds {points.shape[1]} a shape; give at most so many, or the meshes."
        )
    if n_points < points.shape[1]:
        order = generator.permuted(np.tile(np.arange(points.shape[1]), (len(points), 1)), axis=1)[:, :n_points]
        points = np.take_along_axis(points, order[:, :, None], axis=1)
    return points, labels
