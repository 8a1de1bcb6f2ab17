"""Regressions find what was planted, and stay sane where there is nothing to find."""

import numpy as np
import pytest

from scwormhole.ot._mahalanobis import Blocks, apart, both, fit_metric, non_negative
from scwormhole.ot._regression import part_scales, regress

GROUPS = np.repeat([0, 1, 2, 3], [3, 4, 2, 5])
FAMILIES = np.repeat([0, 1, 1, 2], [3, 4, 2, 5])


def squared(values):
    return apart(values @ values.transpose(0, 2, 1))


@pytest.fixture(scope="module")
def blocks():
    """Six blocks of 20 clouds with planted scales, and a planted nugget."""
    generator = np.random.default_rng(0)
    values = generator.normal(size=(6, 20, 14))
    noise = generator.random((6, 20, 3))
    scales = np.array([2.0, 0.5, 0.0, 1.5])
    fresh = 1 - np.eye(20) - np.triu(generator.random((20, 20)), 1) / 2
    fresh = np.broadcast_to(np.minimum(fresh, fresh.T), (6, 20, 20))
    target = squared(values * np.sqrt(scales[GROUPS])) + both(noise @ np.array([3.0, 0.0, 1.0]), fresh)
    return Blocks(values, noise, target, fresh), scales


def test_non_negative_least_squares_finds_planted_coefficients():
    columns = np.abs(np.random.default_rng(0).normal(size=(200, 4))) * np.array([1e-3, 1.0, 1e3, 0.0])
    planted = np.array([3e3, 0.0, 2e-3, 0.0])
    np.testing.assert_allclose(non_negative(columns, columns @ planted), planted, rtol=1e-4, atol=1e-4)


def test_non_negative_least_squares_gives_no_weight_to_what_is_not_there():
    assert not non_negative(np.zeros((5, 2)), np.ones(5)).any()
    assert non_negative(np.zeros((5, 0)), np.ones(5)).shape == (0,)
    assert not non_negative(np.ones((5, 1)), -np.ones(5)).any()


def test_the_prior_decides_where_columns_cannot():
    columns = np.ones((10, 2))
    np.testing.assert_allclose(non_negative(columns, np.full(10, 4.0), np.array([3.0, 1.0]), 0.1), [3, 1], rtol=1e-6)


@pytest.mark.parametrize("unit", [1e-5, 1.0, 1e5])
def test_scales_and_nugget_are_found(blocks, unit):
    solved, scales = blocks
    solved = Blocks(solved.values * unit, solved.noise * unit**2, solved.target * unit**2, solved.fresh)
    found = part_scales(solved, GROUPS, FAMILIES, nugget=True)
    np.testing.assert_allclose(found, scales[GROUPS], atol=0.02)


def test_without_pairs_to_speak_of_parts_of_a_kind_are_alike(blocks):
    values, noise = (array[:1, :3] for array in blocks[0][:2])
    solved = Blocks(values, noise, squared(values), 1 - np.eye(3)[None])
    found = part_scales(solved, GROUPS, FAMILIES, nugget=False)
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(
        part_scales(solved._replace(target=np.zeros((1, 3, 3))), GROUPS, FAMILIES, nugget=True), 1
    )


def test_a_planted_metric_and_nugget_are_found():
    generator = np.random.default_rng(1)
    values, noise = generator.normal(size=(12, 24, 6)), generator.random((12, 24, 2))
    root = generator.normal(size=(6, 4))
    planted = np.array([2.0, 0.0])
    fresh = np.broadcast_to(1 - np.eye(24), (12, 24, 24))
    target = squared(values @ root) + both(noise @ planted, fresh)
    matrix, found = fit_metric(Blocks(values, noise, target, fresh), nugget=True)
    assert np.linalg.eigvalsh(matrix).min() > -1e-9
    np.testing.assert_allclose(matrix, root @ root.T, atol=0.05 * np.abs(root @ root.T).max())
    np.testing.assert_allclose(found, planted, atol=0.2)


def test_no_other_metric_is_better():
    generator = np.random.default_rng(2)
    values = generator.normal(size=(4, 16, 3))
    target = squared(values) ** 1.3
    blocks = Blocks(values, np.zeros((4, 16, 1)), target, np.zeros_like(target))
    best, _ = fit_metric(blocks, nugget=False)

    def loss(matrix):
        inner = values @ matrix @ values.transpose(0, 2, 1)
        return ((apart(inner) - target) ** 2).mean()

    for _ in range(50):
        step = generator.normal(size=(3, 3))
        assert loss(best) <= loss(best + 0.1 * step @ step.T) * 1.001
        assert loss(best) <= loss(0.9 * best) * 1.001


def test_nothing_to_fit_is_no_fault():
    zeros = Blocks(np.zeros((1, 4, 3)), np.zeros((1, 4, 2)), *np.ones((2, 1, 4, 4)))
    matrix, noise = fit_metric(zeros, nugget=True)
    np.testing.assert_array_equal(matrix, np.eye(3))
    assert not noise.any()
    found = regress(zeros, np.zeros((4, 3)), np.arange(3), np.arange(3), np.ones(3), width=2, nugget=True, rng=0)
    z, nugget = found.embed(np.ones((2, 3)), np.ones((2, 2)), 2)
    assert np.isfinite(z).all()
    assert np.isfinite(nugget).all()


def test_what_the_width_cannot_hold_goes_to_the_nugget(blocks):
    solved, _ = blocks
    sample = solved.values.reshape(-1, 14)
    found = regress(solved, sample, GROUPS, FAMILIES, np.ones(14), width=14, nugget=True, rng=0)
    full, none_lost = found.embed(sample, np.zeros((120, 3)), 14)
    some, lost = found.embed(sample, np.zeros((120, 3)), 5)
    np.testing.assert_allclose(none_lost, 0, atol=1e-9)
    np.testing.assert_array_equal(some, full[:, :5])
    np.testing.assert_allclose((some**2).sum(1) + lost, (full**2).sum(1))
    variance = full.var(0)
    assert np.all(np.diff(variance) <= 1e-9 * variance[0])
