"""Clouds taken for Gaussians: closed forms, POT, and a bound on transport."""

import numpy as np
import pytest
from scipy.stats import special_ortho_group

import scwormhole as wh
from scwormhole.baselines import Frechet, knn_labels


def gaussian(cloud):
    points, weights = cloud
    return weights @ points, np.cov(points.T, aweights=weights, bias=True)


@pytest.mark.parametrize("dim", [2, 3, 7])
def test_agrees_with_pot(make_clouds, dim):
    from ot.gaussian import bures_wasserstein_distance

    clouds = make_clouds(8, dim, weighted=True)
    found = Frechet().fit(clouds).pairwise(clouds)
    for i in range(8):
        for j in range(i):
            (m, S), (n, T) = gaussian(clouds[i]), gaussian(clouds[j])
            np.testing.assert_allclose(found[i, j], bures_wasserstein_distance(m, n, S, T) ** 2, rtol=1e-8)
    np.testing.assert_array_equal(found, found.T)
    assert (np.diag(found) == 0).all()


@pytest.mark.parametrize(("dim", "n"), [(1, 6), (2, 9), (5, 40), (40, 6)])
def test_a_translate_is_at_the_square_of_the_shift(dim, n):
    rng = np.random.default_rng(dim)
    points, shift = rng.normal(size=(n, dim)), rng.normal(size=dim)
    clouds = wh.PointClouds.from_list([points, points + shift])
    assert Frechet().fit(clouds).pairwise(clouds)[0, 1] == pytest.approx((shift**2).sum(), rel=1e-9)


@pytest.mark.parametrize("dim", [2, 3, 6])
def test_covariances_that_commute_differ_by_their_deviations(dim):
    rng = np.random.default_rng(dim)
    turn = special_ortho_group.rvs(dim, random_state=rng)
    white = np.concatenate([np.eye(dim), -np.eye(dim)]) * np.sqrt(dim)  # covariance one
    one, other = rng.uniform(0.5, 3, size=(2, dim))
    clouds = wh.PointClouds.from_list([white * one @ turn, white * other @ turn])
    assert Frechet().fit(clouds).distances(clouds[:1], clouds[1:])[0] == pytest.approx(((one - other) ** 2).sum())


@pytest.mark.parametrize("dim", [2, 3, 30])
def test_is_never_above_the_exact_distance(make_clouds, dim):
    clouds = make_clouds(12, dim, weighted=True)
    exact = wh.ot.pairwise(clouds, solver="exact", progress=False)
    found = Frechet().fit(clouds).pairwise(clouds)
    assert (found <= exact + 1e-9).all()
    assert np.corrcoef(found[np.triu_indices(12, 1)], exact[np.triu_indices(12, 1)])[0, 1] > 0.8


def test_few_points_in_many_dimensions_need_no_square_covariance():
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(n, 50)) for n in (3, 5, 80)]  # the last one by its triangle
    clouds = wh.PointClouds.from_list(arrays)
    turn = np.linalg.qr(rng.normal(size=(50, 50)))[0]
    turned = wh.PointClouds.from_list([array @ turn for array in arrays])
    model = Frechet().fit(clouds)
    found = model.pairwise(clouds)
    np.testing.assert_allclose(model.pairwise(turned), found, rtol=1e-9)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        (m, S), (n, T) = gaussian(clouds[i]), gaussian(clouds[j])
        common = np.sqrt(np.maximum(np.linalg.eigvals(S @ T).real, 0)).sum()
        wanted = ((m - n) ** 2).sum() + np.trace(S) + np.trace(T) - 2 * common
        np.testing.assert_allclose(found[i, j], wanted, rtol=1e-4)  # roots of rounded zeros


def test_labels_come_from_the_nearest():
    table = [[0.1, 0.2, 0.3, 0.4, 9.0], [9.0, 0.3, 0.4, 0.2, 0.1]]
    labels = ["a", "b", "b", "c", "c"]
    assert knn_labels(table, labels, k=1).tolist() == ["a", "c"]
    assert knn_labels(table, labels, k=3).tolist() == ["b", "c"]
    assert knn_labels(table, labels, k=4).tolist() == ["b", "c"]  # two of each: the nearest decides
    assert knn_labels(table, labels).tolist() == ["b", "c"]  # all there are


def test_labels_agree_with_scikit_learn():
    from sklearn.neighbors import KNeighborsClassifier

    rng = np.random.default_rng(0)
    train, test, labels = rng.normal(size=(200, 3)), rng.normal(size=(700, 3)), rng.integers(0, 2, 200)
    table = ((test[:, None] - train) ** 2).sum(-1)
    wanted = KNeighborsClassifier(7).fit(train, labels).predict(test)
    np.testing.assert_array_equal(knn_labels(table, labels, k=7), wanted)


@pytest.mark.parametrize(
    ("table", "labels", "k", "message"),
    [
        ([[1.0, 2.0]], ["a"], 1, "one label a column"),
        ([1.0, 2.0], ["a", "b"], 1, "one label a column"),
        ([[1.0, 2.0]], ["a", "b"], 0, "at least 1"),
        ([[1.0, np.nan]], ["a", "b"], 1, "not numbers"),
        ([["1.0", "2.0"]], ["a", "b"], 1, "entries of type <U3; give divergences as numbers"),
        ([[1.0, 2.0]], ["a", None], 1, "do not go together: NoneType, str"),
    ],
)
def test_bad_tables_are_refused(table, labels, k, message):
    with pytest.raises(ValueError, match=message):
        knn_labels(table, labels, k=k)
