"""Images as clouds of their ink: scikit-learn's digits, MNIST and Fashion-MNIST. Reads files, and may download them."""

import gzip
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from scwormhole.clouds import PointClouds

from ._download import Folder, find
from ._record import Labelled

DIGITS_INK, CLOTHES_INK = 127, 23  # what a pixel is brighter than: clouds of 104 and 356 points on average, the paper's
SIDE = 28
FILES = {"train": "train", "test": "t10k"}
MNIST = (
    ("https://storage.googleapis.com/cvdf-datasets/mnist/", "https://ossci-datasets.s3.amazonaws.com/mnist/"),
    {
        "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    },
)
FASHION_MNIST = (
    (
        "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    ),
    {
        "train-images-idx3-ubyte.gz": "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
        "train-labels-idx1-ubyte.gz": "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
        "t10k-images-idx3-ubyte.gz": "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
        "t10k-labels-idx1-ubyte.gz": "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
    },
)
Files = tuple[tuple[str, ...], dict[str, str]]


def digits() -> Labelled:
    """Return scikit-learn's 1,797 handwritten digits as clouds: pixels with ink, ink as weight.

    Returns
    -------
    The clouds, in pixels, the second axis upwards; and which digit each is.

    Examples
    --------
    >>> import scwormhole as wh
    >>> clouds, labels = wh.datasets.digits()
    >>> len(clouds), clouds.dim, labels[:5].tolist()
    (1797, 2, [0, 1, 2, 3, 4])
    """
    from sklearn.datasets import load_digits

    held = load_digits()
    places = [np.argwhere(image > 0) for image in held.images]
    points = [np.stack([place[:, 1], 7 - place[:, 0]], axis=1).astype(np.float64) for place in places]
    return Labelled(PointClouds.from_list(points, [image[image > 0] for image in held.images]), held.target)


def mnist(folder: Folder = None, *, part: Literal["train", "test"] = "train", threshold: int = DIGITS_INK) -> Labelled:
    """Return MNIST's handwritten digits as clouds of their bright pixels, as in the paper.

    Parameters
    ----------
    folder
        Folder with the four files as they are published, such as ``train-images-idx3-ubyte.gz``. Without one they are
        downloaded once, and checked, into ``SCWORMHOLE_CACHE`` or the system's place for caches.
    part
        ``"train"`` for 60,000 images, ``"test"`` for 10,000.
    threshold
        What a bright pixel is above, 0 to 254.

    Returns
    -------
    The clouds, in [-1, 1] both ways, the second axis upwards; and which digit each is. Images without a bright pixel
    are left out.

    Examples
    --------
    >>> import scwormhole as wh
    >>> clouds, labels = wh.datasets.mnist("data/mnist")  # doctest: +SKIP
    """
    return _bright("mnist", MNIST, folder, part, threshold)


def fashion_mnist(
    folder: Folder = None, *, part: Literal["train", "test"] = "train", threshold: int = CLOTHES_INK
) -> Labelled:
    """Return Fashion-MNIST's pieces of clothing as clouds of their bright pixels.

    Clothes may be dark: at the threshold of the digits a classifier of the black and white images themselves is right
    for 84 in 100, and for 88 at this one, which makes clouds as large as the paper's.

    Parameters
    ----------
    folder
        See :func:`mnist`; the files have the same names.
    part
        ``"train"`` for 60,000 images, ``"test"`` for 10,000.
    threshold
        What a bright pixel is above, 0 to 254.

    Returns
    -------
    The clouds, in [-1, 1] both ways, the second axis upwards; and the class of each, 0 to 9. Images without a bright
    pixel are left out.

    Examples
    --------
    >>> import scwormhole as wh
    >>> clouds, labels = wh.datasets.fashion_mnist("data/fashion_mnist")  # doctest: +SKIP
    """
    return _bright("fashion_mnist", FASHION_MNIST, folder, part, threshold)


def _bright(name: str, files: Files, folder: Folder, part: str, threshold: int) -> Labelled:
    if part not in FILES:
        raise ValueError(f'part is {part!r}; it may be "train" or "test".')
    if not 0 <= threshold < 255:
        raise ValueError(f"threshold is {threshold}; pixels have values up to 255, so give 0 to 254.")
    images = _values(name, f"{FILES[part]}-images-idx3-ubyte.gz", files, folder, shape=(-1, SIDE, SIDE))
    labels = _values(name, f"{FILES[part]}-labels-idx1-ubyte.gz", files, folder, shape=(-1,))
    if len(images) != len(labels):
        raise ValueError(
            f"{name} has {len(images):,} images and {len(labels):,} labels, so its files do not go together; give all "
            "of them as they are published."
        )
    bright = images > threshold
    kept = bright.any((1, 2))
    _, row, column = np.nonzero(bright)
    right, down = (place.astype(np.float32) * 2 / (SIDE - 1) - 1 for place in (column, row))
    points = np.stack([right, -down], axis=1)
    ends = np.cumsum(bright[kept].sum((1, 2)))
    return Labelled(PointClouds.from_list(np.split(points, ends[:-1])), labels[kept])


def _values(name: str, file: str, files: Files, folder: Folder, *, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Return the bytes of an idx file, after a header of four bytes for the kind and four for each length."""
    urls, checksums = files
    path = find(name, file, folder, urls=tuple(url + file for url in urls), sha256=checksums[file])
    try:
        return np.frombuffer(gzip.decompress(path.read_bytes()), np.uint8, offset=4 + 4 * len(shape)).reshape(shape)
    except (OSError, EOFError, ValueError) as error:
        raise ValueError(
            f"{path} is not the file of {name} that it should be ({error}); replace it by the one that is published."
        ) from error
