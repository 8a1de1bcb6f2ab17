"""The bound on Gromov-Wasserstein between Gaussians: symmetric, blind to rotations, below what solvers find."""

import numpy as np
import pytest
from scipy.stats import special_ortho_group

import scwormhole as wh
from scwormhole.baselines import GaussianGW


def spectrum(points):
    return np.sort(np.linalg.eigvalsh(np.atleast_2d(np.cov(points.T, bias=True))))[::-1]


def delon(D, E):
    """The bound term by term, the longer spectrum first."""
    D, E = sorted((D, E), key=len, reverse=True)
    cut = D[: len(E)]
    first = 4 * (D.sum() - E.sum()) ** 2 + 4 * (np.sqrt((D**2).sum()) - np.sqrt((E**2).sum())) ** 2
    return first + 4 * ((cut - E) ** 2).sum() + 4 * ((D**2).sum() - (cut**2).sum())


@pytest.mark.parametrize("dim", [1, 2, 5, 30])
def test_is_the_formula_and_sees_no_motion(make_clouds, dim):
    rng = np.random.default_rng(dim)
    clouds = make_clouds(6, dim)
    turn = special_ortho_group.rvs(dim, random_state=rng) if dim > 1 else -np.eye(1)
    moved = wh.PointClouds.from_list([points @ turn + rng.normal(size=dim) for points, _ in clouds])
    model = GaussianGW().fit(clouds)
    found = model.pairwise(clouds)
    for i in range(6):
        for j in range(i):
            np.testing.assert_allclose(found[i, j], delon(spectrum(clouds[i].points), spectrum(clouds[j].points)))
    np.testing.assert_allclose(found, found.T, rtol=1e-9)
    np.testing.assert_allclose(model.distances(clouds, moved), 0, atol=1e-18 * found.max() + 1e-20)
    np.testing.assert_allclose(model.pairwise(clouds, moved), found, rtol=1e-9, atol=1e-12 * found.max())


def test_clouds_of_other_dimensions_lose_what_is_cut():
    rng = np.random.default_rng(0)
    space, plane = rng.normal(size=(30, 3)) * [3, 2, 1], rng.normal(size=(20, 2))
    three, two = (wh.PointClouds.from_list([points, 2 * points]) for points in (space, plane))
    model = GaussianGW().fit(three)
    np.testing.assert_allclose(model.pairwise(three, two)[0, 0], delon(spectrum(space), spectrum(plane)))
    np.testing.assert_allclose(model.pairwise(two, three)[0, 0], delon(spectrum(space), spectrum(plane)))
    flat = wh.PointClouds.from_list([np.pad(plane, ((0, 0), (0, 1)))])
    np.testing.assert_allclose(model.distances(two[:1], flat), 0, atol=1e-20)
    with pytest.raises(ValueError, match="fitted in 2"):
        GaussianGW().fit(two).transform(three)


@pytest.mark.parametrize("scale", [0.3, 1.5])
def test_scaled_gaussians_are_at_the_cost_of_scaling(scale):
    """There the identity is the best coupling, and it costs (1 - s^2)^2 E |x - x'|^4."""
    deviations = np.array([2.0, 1.0, 0.5])
    white = np.concatenate([np.eye(3), -np.eye(3)]) * np.sqrt(3.0)
    clouds = wh.PointClouds.from_list([white * deviations, scale * white * deviations])
    D = deviations**2
    fourth = 4 * D.sum() ** 2 + 8 * (D**2).sum()
    sample = np.random.default_rng(0).normal(size=(2, 200_000, 3)) * deviations
    np.testing.assert_allclose((((sample[0] - sample[1]) ** 2).sum(1) ** 2).mean(), fourth, rtol=0.02)
    np.testing.assert_allclose(GaussianGW().fit(clouds).pairwise(clouds)[0, 1], (1 - scale**2) ** 2 * fourth)


def test_is_below_what_solvers_find_for_gaussian_samples():
    from ot.gromov import gromov_wasserstein2

    white = np.random.default_rng(0).normal(size=(80, 2))
    white = np.linalg.qr(white - white.mean(0))[0] * np.sqrt(80)
    shapes = np.array([[1.0, 1.0], [2.0, 0.5], [1.5, 1.4], [0.4, 0.3]])
    clouds = wh.PointClouds.from_list([white * shape for shape in shapes])
    found = GaussianGW().fit(clouds).pairwise(clouds)
    within = [((points[:, None] - points) ** 2).sum(-1) for points, _ in clouds]
    start = np.eye(80) / 80  # the coupling of Gaussians along their axes
    for i in range(4):
        for j in range(i):
            value = gromov_wasserstein2(within[i], within[j], G0=start, loss_fun="square_loss")
            gaps = shapes[i] ** 2 - shapes[j] ** 2
            assert found[i, j] <= 1.05 * value
            assert value <= 1.1 * (4 * gaps.sum() ** 2 + 8 * (gaps**2).sum())  # what that coupling costs
    ours = wh.ot.distances(clouds[[0]], clouds[[3]], "GW", epsilon=0.02, progress=False)
    np.testing.assert_allclose(ours, found[0, 3], rtol=0.3)  # the same units, but for what entropy adds
