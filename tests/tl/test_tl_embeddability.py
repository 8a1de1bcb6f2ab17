"""How well clouds can be embedded: known answers, advice that follows from them, and what an AnnData keeps."""

from dataclasses import replace

import anndata
import numpy as np
import pytest
from scipy.spatial.distance import pdist

import scwormhole as wh
from scwormhole.mds import Embeddability

pytest.importorskip("ot")


def shifted(n=24, size=32, spread=3.0, seed=0):
    """Samples of one distribution, moved about: transport is the distance of means, and Euclidean."""
    rng = np.random.default_rng(seed)
    return wh.PointClouds.from_list([rng.normal(size=(size, 2)) + spread * rng.normal(size=2) for _ in range(n)])


@pytest.fixture(scope="module")
def moved():
    return wh.tl.embeddability(shifted(), epsilons=[0.02, 0.5], progress=False)


@pytest.fixture(scope="module")
def simplex():
    clouds, _ = wh.datasets.simplex()
    return wh.tl.embeddability(clouds, epsilon=0.02, epsilons=[0.1], progress=False)


def test_moved_copies_are_euclidean_wide_as_the_plane_and_told_by_their_means(moved):
    assert moved.least < 0.01
    assert moved.width == 2
    assert (moved.means > 0.99).all()
    assert (moved.halves > 0.95).all()
    assert (moved.exact > 0.99).all()
    assert "distance of means" in " ".join(moved.advice)
    np.testing.assert_array_equal(moved.epsilons, [0.02, 0.05, 0.5])


def test_errors_fall_with_width_to_the_least_and_lie_between_the_bounds(simplex):
    assert simplex.n_clouds == 35
    assert (np.diff(simplex.errors) <= 1e-9).all()
    np.testing.assert_allclose(simplex.errors[-1], simplex.least, rtol=1e-4)
    assert simplex.lower <= simplex.least <= simplex.upper
    assert simplex.negative > 0.01
    assert "Not quite Euclidean" in simplex.advice[0]


def test_numbers_are_those_of_the_solved_table(simplex):
    clouds, _ = wh.datasets.simplex()
    table = wh.ot.pairwise(clouds, epsilon=0.02, progress=False)
    np.fill_diagonal(table, 0)
    table = (table + table.T) / 2
    # the sample is in another order, which the solver's rounding follows
    np.testing.assert_allclose(simplex.eigenvalues, wh.mds.spectrum(np.maximum(table, 0)), atol=2e-4)
    lower, upper = (np.sqrt(bound / (table**2).sum()) for bound in wh.mds.bounds(np.maximum(table, 0)))
    np.testing.assert_allclose([simplex.lower, simplex.upper], [lower, upper], rtol=1e-3)
    exact = wh.ot.pairwise(clouds, solver="exact", progress=False)
    pairs = np.triu_indices(35, 1)
    np.testing.assert_allclose(simplex.exact[0], np.corrcoef(exact[pairs], table[pairs])[0, 1], atol=1e-3)
    means = pdist(np.array([cloud.weights @ cloud.points for cloud in clouds]), "sqeuclidean")
    np.testing.assert_allclose(simplex.means[0], np.corrcoef(means, table[pairs])[0, 1], atol=1e-3)


def test_noise_is_what_two_samples_of_one_distribution_are_apart():
    clouds = shifted(n=30, spread=0.0)
    found = wh.tl.embeddability(clouds, epsilons=[], progress=False)
    # nothing but noise, so all of a divergence is: but for what halves, of half the size, are off a 1 / size law
    assert 0.7 < found.noise < 1.3
    assert np.abs(found.halves).max() < 0.5
    assert "sampling noise, if points are a sample, as cells are: keep the nugget" in found.advice[-1]


def test_a_width_that_noise_asks_for_is_not_advised():
    rng = np.random.default_rng(0)
    clouds = wh.PointClouds.from_list([rng.normal(size=(12, 30)) for _ in range(30)])
    found = wh.tl.embeddability(clouds, epsilons=[], progress=False)
    assert found.width == 29
    assert "No width is told by 30 clouds" in found.advice[1]
    assert "n_components=29" not in str(found)


@pytest.mark.parametrize("max_points", [16, 48])
def test_noise_is_of_the_points_that_are_solved_with(max_points):
    clouds = shifted(n=30, size=64, spread=0.0)
    found = wh.tl.embeddability(clouds, epsilons=[], max_points=max_points, progress=False)
    assert found.noise > 0.75


def test_points_without_weight_are_not_there():
    rng = np.random.default_rng(0)
    points = [rng.normal(size=(12, 2)) + rng.normal(size=2) for _ in range(10)]
    bare = wh.PointClouds.from_list(points)
    far = wh.PointClouds.from_list(
        [np.concatenate([np.full((20, 2), 9.0), some]) for some in points], [np.repeat([0.0, 1.0], [20, 12])] * 10
    )
    one, other = (wh.tl.embeddability(clouds, epsilons=[], progress=False) for clouds in (bare, far))
    np.testing.assert_allclose(one.noise, other.noise, rtol=1e-2)
    np.testing.assert_allclose(one.halves, other.halves, rtol=1e-2)


def test_exact_transport_is_of_a_random_subset_of_the_cohort(monkeypatch):
    monkeypatch.setattr("scwormhole.tl._embeddability.EXACT_PAIRS", 20)
    rng = np.random.default_rng(0)
    same, others = rng.normal(size=(6, 2)), rng.normal(size=(12, 6, 2)) + rng.normal(size=(12, 1, 2))
    found = wh.tl.embeddability(wh.PointClouds.from_list([same] * 8 + list(others)), epsilons=[], progress=False)
    assert found.exact[0] > 0.9  # the first clouds alone are all one, and have no correlation


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("seed", range(3))
def test_clouds_that_are_all_one_have_neither_noise_nor_advice_on_it(seed, unit):
    points = unit * np.random.default_rng(seed).normal(size=(8, 2))
    found = wh.tl.embeddability(wh.PointClouds.from_list([points] * 5), epsilon=0.5, epsilons=[], progress=False)
    assert found.mean_divergence == 0
    assert np.isnan(found.noise)
    assert "All divergences are zero" in found.advice[-1]
    assert "nan" not in repr(found)
    assert "inf" not in repr(found)


def test_clouds_too_small_to_split_say_so():
    clouds = wh.PointClouds.from_list(list(np.random.default_rng(0).normal(size=(10, 2, 2))))
    found = wh.tl.embeddability(clouds, epsilons=[], progress=False)
    assert np.isnan(found.noise)
    assert np.isnan(found.halves).all()
    assert "too small to be split" in found.advice[-1]
    assert found.best_epsilon == found.epsilon


def test_gromov_wasserstein_has_neither_means_nor_exact():
    found = wh.tl.embeddability(shifted(n=6, size=8), metric="GS", epsilons=[], progress=False)
    assert np.isnan(found.means).all()
    assert np.isnan(found.exact).all()
    assert np.isfinite(found.least)


def test_the_best_epsilon_keeps_transport_and_agrees_between_halves(moved):
    ladder = {"epsilons": np.array([0.01, 0.05, 0.5]), "means": np.array([0.5, 0.6, 0.9]), "epsilon": 0.05}
    found = replace(moved, exact=np.array([0.99, 0.97, 0.6]), halves=np.array([0.5, 0.8, 0.99]), **ladder)
    assert found.best_epsilon == 0.05  # 0.5 agrees better, and is no longer transport
    assert "epsilon=0.05 is a good choice" in " ".join(found.advice)
    finer = replace(found, halves=np.array([0.9, 0.8, 0.99]))
    assert finer.best_epsilon == 0.01
    assert "epsilon=0.01 would agree better" in " ".join(finer.advice)
    hardly = replace(found, halves=np.array([0.805, 0.8, 0.99]))
    assert hardly.best_epsilon == 0.05  # what is hardly better is no reason to change
    coarse = replace(found, exact=np.array([0.6, 0.7, 0.5]))
    assert coarse.best_epsilon == 0.05  # nothing keeps it, so what comes closest
    assert "only 0.700: try smaller ones" in " ".join(coarse.advice)


def test_a_choice_is_good_only_if_nothing_speaks_against_it(moved):
    parts = {"epsilons": np.array([0.05, 0.5]), "halves": np.array([0.8, 0.9]), "means": np.array([0.6, 0.6])}
    good = replace(moved, exact=np.array([0.99, 0.6]), epsilon=0.05, **parts)
    assert "is a good choice" in repr(good)
    assert "is a good choice" not in repr(replace(good, means=np.array([0.999, 0.999])))
    assert "is a good choice" not in repr(replace(good, halves=np.full(2, np.nan)))
    assert "is a good choice" not in repr(replace(good, exact=np.array([0.94, 0.6])))
    far = replace(good, epsilon=0.5)  # halves agree better there than at what is advised
    assert "epsilon=0.05 would be closer to exact transport (correlation 0.990 against 0.600)" in repr(far)
    assert "agree better" not in repr(far)
    for found in (good, far, replace(good, halves=np.full(2, np.nan)), replace(good, exact=np.full(2, np.nan))):
        assert "nan" not in repr(found)


def test_records_can_be_compared(moved):
    assert moved == moved
    assert moved != replace(moved)


def test_it_is_seeded_and_takes_a_sample():
    clouds = shifted(n=24)
    one, same, other = (
        wh.tl.embeddability(clouds, n_clouds=10, epsilons=[], progress=False, rng=rng) for rng in (1, 1, 2)
    )
    assert one.n_clouds == 10
    np.testing.assert_array_equal(one.eigenvalues, same.eigenvalues)
    assert one.noise == same.noise
    assert not np.array_equal(one.eigenvalues, other.eigenvalues)


@pytest.fixture
def tissue():
    rng = np.random.default_rng(0)
    adata = anndata.AnnData(rng.gamma(2.0, size=(60, 3)), obsm={"spatial": rng.uniform(size=(60, 2))})
    wh.pp.niches(adata, n_neighbors=6)
    return adata


def test_an_anndata_keeps_it_through_a_file(tissue, tmp_path):
    found = wh.tl.embeddability(tissue, n_clouds=12, epsilons=[0.2], progress=False)
    tissue.write_h5ad(tmp_path / "tissue.h5ad")
    back = anndata.read_h5ad(tmp_path / "tissue.h5ad").uns["embeddability"]
    assert back["params"]["n_clouds"] == 12
    assert list(back["advice"]) == list(found.advice)
    again = Embeddability.from_dict(back)
    for name, value in found.to_dict().items():
        if name != "advice":
            np.testing.assert_array_equal(getattr(again, name), value)
    assert repr(again) == repr(found)


def test_it_overwrites_its_own_and_nothing_else(tissue):
    tissue.uns["mine"] = {"a": 1}
    with pytest.raises(ValueError, match="would be overwritten"):
        wh.tl.embeddability(tissue, key_added="mine", progress=False)
    for _ in range(2):
        wh.tl.embeddability(tissue, n_clouds=5, epsilons=[], progress=False)
    assert tissue.uns["mine"] == {"a": 1}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"n_clouds": 2}, "n_clouds is 2"),
        ({"n_clouds": 3.5}, r"n_clouds is 3\.5; give a whole number"),
        ({"metric": "W2"}, "metric is 'W2'.*give one of 'S2', 'S1', 'GS'"),
        ({"metric": "GW"}, "metric is 'GW'"),
        ({"epsilon": -1.0}, "epsilon is -1"),
        ({"epsilons": [0.0]}, "give positive numbers"),
        ({"metric": "S3"}, "S3"),
    ],
)
def test_bad_settings_are_refused_before_any_work(changes, words):
    with pytest.raises(ValueError, match=words):
        wh.tl.embeddability(shifted(n=5), progress=False, **changes)


def test_too_few_clouds_are_refused():
    with pytest.raises(ValueError, match="there are 2 clouds"):
        wh.tl.embeddability(shifted(n=2), progress=False)
