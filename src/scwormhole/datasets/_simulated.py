"""The paper's two simulated cohorts, whose transport is far from Euclidean. NumPy only."""

from itertools import product

import numpy as np

from scwormhole.clouds import PointClouds

from ._record import Gaussians, Labelled

CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])  # the paper prints (1, 0) twice
PARTS = 4  # masses are multiples of a quarter
REACH = 3.0  # the samples of all Gaussians fill [-3, 3]


def simplex(*, noise: float = 0.01, rng: int = 0) -> Labelled:
    """Return the paper's 35 clouds of four points on the corners of a square, whose transport is not Euclidean.

    Every way to put masses of 0, 1/4, ..., 1 on the four corners is a cloud: a corner with mass 3/4 is there three
    times. A little noise then parts points that coincide.

    Parameters
    ----------
    noise
        Standard deviation of what is added to each coordinate; the paper does not tell its own.
    rng
        Seed of the noise.

    Returns
    -------
    The clouds; as label of each the masses of (0, 0), (1, 0), (0, 1) and (1, 1).

    Examples
    --------
    >>> import scwormhole as wh
    >>> clouds, masses = wh.datasets.simplex()
    >>> clouds
    PointClouds: 35 clouds of 4 points in 2 dimensions, over 140 shared points (float64), uniform weights
    >>> masses[1]
    array([0.  , 0.  , 0.25, 0.75])
    """
    if not noise >= 0:
        raise ValueError(f"noise is {noise}; give a standard deviation, 0 for none.")
    counts = np.array([c for c in product(range(PARTS + 1), repeat=len(CORNERS)) if sum(c) == PARTS])
    places = np.stack([np.repeat(CORNERS, c, axis=0) for c in counts])
    places = places + noise * np.random.default_rng(rng).normal(size=places.shape)
    return Labelled(PointClouds.from_list(list(places)), counts / PARTS)


def gaussians(n_clouds: int = 128, n_points: int = 512, dim: int = 8, *, rng: int = 0) -> Gaussians:
    """Return samples of random Gaussians, as in the paper, with means and covariances.

    Means are standard normal, covariances the product of a standard normal matrix with its transpose; one factor and
    one shift bring all samples into [-3, 3]. Between two Gaussians the transport is known: W2 squared is
    ``|m - n|**2 + trace(S + T - 2 * sqrtm(sqrtm(S) @ T @ sqrtm(S)))``.

    Parameters
    ----------
    n_clouds
        Number of Gaussians.
    n_points
        Points sampled from each.
    dim
        Dimension.
    rng
        Seed.

    Returns
    -------
    The clouds, and means and covariances in the same units.

    Examples
    --------
    >>> import scwormhole as wh
    >>> clouds, means, covariances = wh.datasets.gaussians(n_clouds=16, n_points=100)
    >>> clouds.dim, means.shape, float(abs(clouds.points).max())
    (8, (16, 8), 3.0)
    """
    for name, value in (("n_clouds", n_clouds), ("n_points", n_points), ("dim", dim)):
        if value < 1:
            raise ValueError(f"{name} is {value}; give at least 1.")
    generator = np.random.default_rng(rng)
    means = generator.normal(size=(n_clouds, dim))
    roots = generator.normal(size=(n_clouds, dim, dim))
    points = means[:, None] + generator.normal(size=(n_clouds, n_points, dim)) @ roots.transpose(0, 2, 1)
    low, high = points.min(), points.max()
    factor, shift = 2 * REACH / (high - low), (high + low) / 2
    points = np.clip((points - shift) * factor, -REACH, REACH)  # rounding may leave the box
    return Gaussians(
        PointClouds.from_list(list(points)), (means - shift) * factor, factor**2 * roots @ roots.transpose(0, 2, 1)
    )
