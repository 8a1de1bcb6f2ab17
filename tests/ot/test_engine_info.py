"""What is told beside distances: shapes, types, honest estimates of error, and warnings that count."""

import warnings

import numpy as np
import pytest

import scwormhole as wh

ARRAYS = ("converged", "iterations", "error", "sampled", "solver")


def unfinished(clouds, metric="S2", **options):
    """Distances that were given up early, and what was said about them."""
    with pytest.warns(wh.ot.TransportWarning) as told:
        found, info = wh.ot.pairwise(clouds, metric, epsilon=1e-3, max_iterations=4, return_info=True, **options)
    return found, info, told


@pytest.mark.parametrize("metric", ["S2", "W2", "S1", "W1", "GS", "GW"])
def test_types_and_shapes(metric, make):
    found, info = wh.ot.pairwise(make(20, 24, 13, 5), metric, return_info=True)
    assert isinstance(info, wh.ot.TransportInfo)
    assert type(found) is np.ndarray
    assert found.dtype == np.float64
    for name in ARRAYS:
        assert type(getattr(info, name)) is np.ndarray
        assert getattr(info, name).shape == (4, 4)
        assert name == "error" or np.array_equal(getattr(info, name), getattr(info, name).T)
    assert info.converged.dtype == bool
    assert info.converged.all()
    assert not info.sampled.any()
    assert np.issubdtype(info.iterations.dtype, np.integer)
    assert (info.iterations[~np.eye(4, dtype=bool)] > 0).all()
    assert np.issubdtype(info.error.dtype, np.floating)
    assert (info.error >= 0).all()
    np.testing.assert_allclose(info.error, info.error.T, rtol=1e-5)
    assert isinstance(info.epsilon, float)
    assert set(info.solver.ravel()) == {"gromov" if metric.startswith("G") else "sinkhorn"}


def test_one_to_one(make):
    found, info = wh.ot.distances(make(20, 24, 13), make(5, 20, 24), return_info=True)
    assert type(found) is np.ndarray
    assert (found.dtype, found.shape) == (np.float64, (3,))
    assert all(getattr(info, name).shape == (3,) for name in ARRAYS)
    assert wh.ot.distances(make(20, 24, 13), make(5, 20, 24)).shape == (3,)


def test_the_exact_solver_has_no_epsilon(make):
    info = wh.ot.pairwise(make(20, 24), "W2", solver="exact", return_info=True)[1]
    assert set(info.solver.ravel()) == {"exact"}
    assert info.epsilon == 0
    assert info.converged.all()
    assert "exact" in repr(info)


@pytest.mark.parametrize("tol", [1e-3, 1e-6])
@pytest.mark.parametrize("metric", ["S2", "W2", "S1", "W1"])
def test_the_estimate_covers_the_error(metric, tol, make, reference):
    """On pairs left at any stage; an estimate may be below the truth by a factor of three, no more."""
    clouds = make(20, 24, 13, 5, rng=11)
    for share in (0.2, 0.01):
        epsilon = share * reference.mean_cost(clouds, metric)
        expected = reference.table(metric, clouds, epsilon)
        for most in (4, 12, 40, 1000):
            with warnings.catch_warnings(action="ignore", category=wh.ot.TransportWarning):
                found, info = wh.ot.pairwise(
                    clouds,
                    metric,
                    epsilon=epsilon,
                    relative_epsilon=None,
                    tol=tol,
                    max_iterations=most,
                    return_info=True,
                )
            # nine digits of the reference, and what single precision rounds in the costs
            rounding = (1e-8 if tol < 1e-4 else 1e-6) * (epsilon + expected.max())
            assert (np.abs(found - expected) <= 3 * info.error + rounding).all()
            within = info.error <= tol * np.abs(found) + rounding
            assert np.array_equal(info.converged, info.converged & within)


@pytest.mark.xfail(reason="at tight tolerances the estimate may be several times too small where clouds hardly differ")
def test_the_estimate_covers_the_error_of_clouds_that_hardly_differ(reference):
    rng = np.random.default_rng(1)
    points = rng.normal(size=(20, 2))
    for jitter in (1.0, 0.3, 0.1):
        clouds = wh.PointClouds.from_list([points, points + jitter * rng.normal(size=(20, 2))])
        found, info = wh.ot.pairwise(clouds, tol=1e-6, max_iterations=20_000, return_info=True)
        low, high = reference.bracket("S2", clouds, info.epsilon, tol=1e-12)
        assert low - 3 * info.error[0, 1] <= found[0, 1] <= high + 3 * info.error[0, 1]


@pytest.mark.parametrize("metric", ["S2", "W2", "S1", "GS", "GW"])
def test_what_did_not_converge_is_counted_and_marked(metric, make):
    clouds = make(20, 24, 13, 5, rng=12)
    found, info, told = unfinished(clouds, metric)
    assert len(told) == 1
    late = ~info.converged
    assert late.any()
    pairs = late[np.triu_indices(len(late), 0 if late.diagonal().any() else 1)]
    assert str(told[0].message).startswith(f"{pairs.sum():,} of {pairs.size:,} distances")
    assert "nan" not in str(told[0].message)
    assert str(tuple(int(i) for i in np.argwhere(late)[0])) in str(told[0].message)
    assert told[0].filename == __file__
    assert np.isfinite(found).all()
    assert not np.isnan(info.error).any()  # infinite where nothing is known yet


def test_what_did_not_converge_is_counted_one_to_one(make):
    first, second = make(20, 24, 13, rng=12), make(24, 13, 20, rng=13)
    with pytest.warns(wh.ot.TransportWarning) as told:
        info = wh.ot.distances(first, second, epsilon=1e-3, max_iterations=4, return_info=True)[1]
    assert str(told[0].message).startswith(f"{(~info.converged).sum()} of 3 distances")
    assert told[0].filename == __file__


def test_self_terms_that_did_not_converge_are_told():
    """Two far Diracs of mass, so that the pair is easy and its self-terms are not."""
    rng = np.random.default_rng(2)
    clouds = wh.PointClouds.from_list([rng.normal(size=(24, 2)), rng.normal(size=(1, 2)) + 100])
    with warnings.catch_warnings(action="ignore", category=wh.ot.TransportWarning):
        options = {"epsilon": 0.02, "relative_epsilon": None, "tol": 1e-9}
        rough, info = wh.ot.pairwise(clouds, max_iterations=4, return_info=True, **options)
        fine = wh.ot.pairwise(clouds, max_iterations=2000, **options)
    off = abs(rough[0, 1] - fine[0, 1])
    assert off <= 3 * info.error[0, 1] + 1e-9 * fine[0, 1]
    assert not info.converged[0, 1] or off <= 1e-8 * fine[0, 1]


def test_nothing_is_nan_in_silence():
    """Costs beyond single precision in units of epsilon either work or are told."""
    clouds = wh.PointClouds.from_list([np.array([[0.0], [1e25]]), np.array([[1.0], [2e25]])])
    with warnings.catch_warnings(record=True, action="always") as told:
        found = wh.ot.pairwise(clouds, "W2", epsilon=1e-3, relative_epsilon=None)
    assert np.isfinite(found).all() or any(issubclass(w.category, wh.ot.TransportWarning) for w in told)


def test_more_iterations_and_a_smaller_tolerance_cost_iterations(make):
    clouds = make(20, 24, 13, 5)
    loose, tight = (wh.ot.pairwise(clouds, tol=tol, return_info=True)[1] for tol in (1e-2, 1e-6))
    used = ~np.eye(4, dtype=bool)
    assert tight.iterations[used].mean() > loose.iterations[used].mean()
    assert (tight.error[used] < loose.error[used]).all()


def test_a_record_cannot_be_changed(make):
    info = wh.ot.pairwise(make(20, 24), return_info=True)[1]
    with pytest.raises(AttributeError):
        info.epsilon = 0.0


def test_calibration_is_what_pairwise_finds(make, reference):
    clouds = make(20, 24, 13, 5)
    found = wh.ot.calibrate(clouds, n_pairs=4)
    distances, info = wh.ot.pairwise(clouds, return_info=True)
    assert found.epsilon == pytest.approx(info.epsilon)
    assert found.mean_cost == pytest.approx(reference.mean_cost(clouds, "S2"))
    assert (found.converged, found.n_pairs, found.tol, found.rng) == (1.0, 4, 1e-3, 0)
    assert found.iterations <= found.most_iterations <= info.iterations.max() + 8
    used = distances[np.triu_indices(4, 1)]
    assert used.min() * 0.999 <= found.mean_distance <= used.max() * 1.001
    moved = np.concatenate([(points - found.shift) * found.factor for points, _ in clouds])
    assert (moved.min(), moved.max()) == (pytest.approx(-1), pytest.approx(1))


def test_calibration_without_a_scale_and_of_few_clouds(make):
    found = wh.ot.calibrate(make(20, 24, dim=5), n_pairs=64, scale=False)
    assert (found.n_pairs, found.factor) == (2, 1.0)
    assert np.array_equal(found.shift, np.zeros(5))
    scaled = wh.ot.calibrate(make(20, 24, dim=5), n_pairs=64)
    assert scaled.factor < 1
    assert scaled.epsilon == found.epsilon
    alone = wh.ot.calibrate(make(20))
    assert (alone.n_pairs, alone.mean_distance) == (1, pytest.approx(0, abs=1e-5))


def test_calibration_tells_what_does_not_converge(make):
    found = wh.ot.calibrate(make(20, 24, 13, 5), epsilon=1e-3, max_iterations=4)
    assert found.converged < 1
