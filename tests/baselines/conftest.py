"""Clouds that the rivals are tried on."""

import numpy as np
import pytest

import scwormhole as wh


def mixtures(n_clouds, dim, *, n_points=24, weighted=False, rng=0):
    """Clouds of three clusters in different shares, stretched and shifted, of different sizes."""
    generator = np.random.default_rng(rng)
    centres = 2 * np.random.default_rng(99).normal(size=(3, dim))
    arrays, weights = [], []
    for _ in range(n_clouds):
        size = int(generator.integers(n_points // 2, n_points + 1))
        kinds = generator.choice(3, size=size, p=generator.dirichlet(np.ones(3)))
        noise = generator.uniform(0.3, 1.0, size=dim) * generator.normal(size=(len(kinds), dim))
        arrays.append(centres[kinds] + noise + generator.normal(size=dim))
        weights.append(generator.uniform(0.2, 1.0, size=len(kinds)))
    return wh.PointClouds.from_list(arrays, weights if weighted else None)


@pytest.fixture(scope="session")
def make_clouds():
    return mixtures
