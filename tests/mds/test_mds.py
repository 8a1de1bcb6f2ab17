"""Euclidean distance matrices: closed forms, properties of projections, and a general convex solver beside ours."""

import logging
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.spatial.distance import pdist, squareform
from sklearn.metrics import pairwise_distances

from scwormhole import mds

PROJECTIONS = [mds.project_conditional, mds.project_hollow, mds.project_nonnegative]


def euclidean(n=12, dim=3, seed=0):
    return squareform(pdist(np.random.default_rng(seed).normal(size=(n, dim)), "sqeuclidean"))


def anything(n=10, seed=0):
    """A table of divergences that no points have."""
    table = np.random.default_rng(seed).gamma(1.0, size=(n, n))
    return np.tril(table, -1) + np.tril(table, -1).T


def symmetric(n=8, seed=0):
    table = np.random.default_rng(seed).normal(size=(n, n))
    return table + table.T


def inside_cone(table):
    n = len(table)
    centring = np.eye(n) - 1 / n
    return np.linalg.eigvalsh(-centring @ table @ centring).min() >= -1e-9 * np.abs(table).max()


def stress(table, other):
    return ((table - other) ** 2).sum()


seeds = st.integers(0, 2**31)


def test_criterion_is_twice_the_scalar_products_of_centred_points():
    points = np.random.default_rng(0).normal(size=(9, 4))
    points -= points.mean(0)
    found = mds.criterion(pairwise_distances(points, metric="sqeuclidean"))
    np.testing.assert_allclose(found, 2 * points @ points.T, atol=1e-12)


def test_spectrum_falls_and_belongs_to_the_criterion_matrix():
    table = anything()
    values = mds.spectrum(table)
    assert (np.diff(values) <= 0).all()
    np.testing.assert_allclose(values.sum(), np.trace(mds.criterion(table)))
    np.testing.assert_allclose((values**2).sum(), (mds.criterion(table) ** 2).sum())


def test_points_are_euclidean_and_broken_triangles_are_not():
    assert mds.is_euclidean(euclidean())
    assert not mds.is_euclidean(anything())
    assert mds.is_euclidean(np.zeros((3, 3)))


@given(seeds)
@settings(max_examples=25, deadline=None)
def test_lower_bound_is_the_sum_of_squared_negative_eigenvalues_and_below_the_upper(seed):
    table = anything(seed=seed)
    found = mds.bounds(table)
    values = mds.spectrum(table)
    np.testing.assert_allclose(found.lower, (values[values < 0] ** 2).sum(), rtol=1e-9)
    assert found.lower <= found.upper


def test_upper_bound_is_the_papers():
    table = anything()
    values, vectors = np.linalg.eigh(mds.criterion(table))
    lost = values < 0
    shift = (vectors[:, lost] ** 2 * values[lost]).sum(1) / 2
    upper = ((shift[:, None] + shift) ** 2).sum() + (values[lost] ** 2).sum()
    np.testing.assert_allclose(mds.bounds(table).upper, upper, rtol=1e-9)


@pytest.mark.parametrize("project", PROJECTIONS)
@given(seeds)
@settings(max_examples=15, deadline=None)
def test_projections_are_idempotent_and_bring_no_two_tables_farther_apart(project, seed):
    one, other = symmetric(seed=seed), symmetric(seed=seed + 1)
    np.testing.assert_allclose(project(project(one)), project(one), atol=1e-9)
    assert stress(project(one), project(other)) <= stress(one, other) * (1 + 1e-9)


@given(seeds)
@settings(max_examples=15, deadline=None)
def test_the_conditional_projection_is_the_nearest_of_its_set(seed):
    table = symmetric(seed=seed)
    found = mds.project_conditional(table)
    assert inside_cone(found)
    # optimal in a cone: the residual is orthogonal to the point, and at no sharp angle with the cone
    residual = table - found
    np.testing.assert_allclose((residual * found).sum(), 0, atol=1e-8)
    for other in (euclidean(8, seed=seed), mds.project_conditional(symmetric(seed=seed + 2))):
        assert (residual * other).sum() <= 1e-8
    # the means of rows stay, which the sign printed in the paper would not give
    np.testing.assert_allclose(found.mean(0), table.mean(0), atol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_nearest_edm_agrees_with_a_general_convex_solver(seed):
    cvxpy = pytest.importorskip("cvxpy")
    table = anything(7, seed)
    n = len(table)
    centring = np.eye(n) - 1 / n
    unknown = cvxpy.Variable((n, n), symmetric=True)
    rules = [cvxpy.diag(unknown) == 0, unknown >= 0, -centring @ unknown @ centring >> 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the peer's own
        least = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(unknown - table)), rules).solve(solver="CLARABEL")
    found = mds.nearest_edm(table, tol=1e-7, progress=False)
    np.testing.assert_allclose(found.stress, least, rtol=1e-5)
    np.testing.assert_allclose(found.distances, unknown.value, atol=2e-3 * table.max())


@pytest.mark.parametrize("seed", range(3))
def test_nearest_edm_agrees_with_dykstra_over_the_three_sets(seed):
    table = anything(9, seed)
    slow, reached = mds.dykstra(table, tol=1e-8)
    assert reached
    found = mds.nearest_edm(table, tol=1e-8, progress=False)
    np.testing.assert_allclose(found.distances, slow, atol=1e-4 * table.max())


def test_dykstra_finds_the_nearest_point_where_alternating_projections_do_not():
    # two half-spaces of 2 x 2 tables: below 1 on average, and the off-diagonal at most the diagonal
    def low(x):
        return x - max(x.mean() - 1, 0)

    def diagonal(x):
        tilt = np.array([[-0.5, 0.5], [0.5, -0.5]])
        return x - max((x * tilt).sum(), 0) * tilt

    def first_entry(x):
        return np.where([[True, False], [False, False]], np.minimum(x, 0), x)

    start = np.array([[4.0, 3.0], [3.0, 0.0]])
    sets = (low, diagonal, first_entry)
    found, reached = mds.dykstra(start, sets)
    assert reached
    plain = start
    for _ in range(2_000):
        for project in sets:
            plain = project(plain)
    for project in sets:
        np.testing.assert_allclose(project(found), found, atol=1e-6)
    assert stress(found, start) < stress(plain, start) - 1e-3


@given(seeds)
@settings(max_examples=15, deadline=None)
def test_nearest_edm_is_euclidean_and_lies_between_the_bounds(seed):
    table = anything(8, seed)
    found = mds.nearest_edm(table, progress=False)
    assert found.converged
    assert mds.is_euclidean(found.distances, rtol=1e-9)
    lower, upper = mds.bounds(table)
    np.testing.assert_allclose(found.bounds, (lower, upper), rtol=1e-9)
    assert lower * (1 - 1e-9) <= found.lower <= found.stress <= upper * (1 + 1e-9)
    assert found.gap <= 1e-4 * found.stress
    np.testing.assert_allclose(found.stress, stress(found.distances, table), rtol=1e-9)


def test_a_euclidean_table_is_its_own_nearest():
    table = euclidean()
    found = mds.nearest_edm(table, progress=False)
    np.testing.assert_allclose(found.distances, table, atol=1e-9)
    assert found.converged
    assert found.n_iter <= 2


@pytest.mark.parametrize("unit", [1e-140, 1e-6, 1e6, 1e140])
def test_units_do_not_matter(unit):
    table = anything()
    one, other = (mds.nearest_edm(table * factor, progress=False) for factor in (1.0, unit))
    np.testing.assert_allclose(other.distances, one.distances * unit, rtol=1e-6, atol=1e-9 * unit)
    np.testing.assert_allclose(other.stress, one.stress * unit**2, rtol=1e-6)
    for found in (other.bounds, mds.bounds(table * unit)):
        np.testing.assert_allclose(found, np.array(one.bounds) * unit**2, rtol=1e-9)


@pytest.mark.parametrize(("unit", "stress"), [(1e-200, 0.0), (1e160, np.inf)])
def test_distances_are_right_where_their_squares_leave_double_precision(unit, stress):
    one, other = (mds.nearest_edm(anything() * factor, progress=False) for factor in (1.0, unit))
    np.testing.assert_allclose(other.distances / unit, one.distances, atol=1e-9)
    assert other.n_iter == one.n_iter
    assert other.stress == stress
    assert mds.bounds(anything() * unit) == (stress, stress)


@pytest.mark.parametrize("seed", range(5))
def test_bounds_of_a_euclidean_table_are_in_order(seed):
    for table in (euclidean(30, seed=seed), euclidean(30, seed=seed) * 1e3):
        lower, upper = mds.bounds(table)
        assert lower <= upper
        first = mds.nearest_edm(table, progress=False).bounds
        assert first.lower <= first.upper


@pytest.mark.parametrize("noise", [1e-3, 1e-7, 1e-9])
def test_the_gap_is_closed_however_near_to_euclidean(noise):
    table = euclidean() * (1 + noise * symmetric(12))
    found = mds.nearest_edm(table, progress=False)
    assert found.converged
    assert 0 < found.gap < 1e-4 * found.stress
    assert found.stress < noise**2 * 4 * (table**2).sum()


def test_more_steps_are_never_worse():
    stresses = []
    for steps in range(1, 7):  # at the fifth the climb passes a table that is worse than the fourth
        with pytest.warns(UserWarning, match="stopped after"):
            stresses.append(mds.nearest_edm(anything(), max_iter=steps, tol=1e-6, progress=False).stress)
    assert (np.diff(stresses) <= 0).all()


def test_records_can_be_compared():
    one, other = (mds.nearest_edm(anything(), progress=False) for _ in range(2))
    assert one == one
    assert one != other


def test_a_bar_waits_for_two_seconds(capsys):
    mds.nearest_edm(anything(), progress=True)
    assert capsys.readouterr().err == ""


def test_embedding_has_the_distances_of_the_nearest_table():
    found = mds.nearest_edm(anything(), progress=False)
    z = found.embedding()
    np.testing.assert_allclose(squareform(pdist(z, "sqeuclidean")), found.distances, atol=1e-6)
    assert found.embedding(3).shape == (10, 3)


def test_classical_mds_gives_points_back_up_to_a_motion():
    points = np.random.default_rng(0).normal(size=(15, 3))
    table = pairwise_distances(points, metric="sqeuclidean")
    z = mds.classical_mds(table)
    assert z.shape == (15, 3)
    np.testing.assert_allclose(pairwise_distances(z, metric="sqeuclidean"), table, atol=1e-9)
    np.testing.assert_allclose(z.mean(0), 0, atol=1e-12)
    assert (np.diff((z**2).sum(0)) <= 0).all()
    np.testing.assert_array_equal(mds.classical_mds(table, 5)[:, 3:], 0)
    np.testing.assert_allclose(mds.classical_mds(table, 2), z[:, :2])


def test_classical_mds_at_full_width_has_just_the_stress_of_the_upper_bound():
    table = anything()
    found = stress(squareform(pdist(mds.classical_mds(table), "sqeuclidean")), table)
    np.testing.assert_allclose(found, mds.bounds(table).upper, rtol=1e-9)


def test_classical_mds_is_worse_than_the_nearest_table():
    table = anything()
    z = mds.classical_mds(table)
    assert stress(squareform(pdist(z, "sqeuclidean")), table) > mds.nearest_edm(table, progress=False).stress


def test_too_few_steps_are_told_with_the_gap():
    with pytest.warns(UserWarning, match="stopped after 2 decompositions.*raise max_iter"):
        found = mds.nearest_edm(anything(20), max_iter=2, tol=1e-9, progress=False)
    assert not found.converged
    assert found.n_iter == 2
    assert found.gap > 0


def test_large_tables_tell_their_cost_beforehand(caplog, monkeypatch):
    monkeypatch.setattr("scwormhole.mds._nearest.SLOW_FROM", 10)
    mds.nearest_edm(anything(), progress=False)
    assert "decompositions" in caplog.text
    assert caplog.records[0].levelno == logging.WARNING  # which is seen where nobody has set up logging


def test_rounding_is_put_right_with_a_warning():
    table = euclidean()
    table[0, 1] += 1e-7
    with pytest.warns(UserWarning, match="not quite symmetric"):
        found = mds.criterion(table)
    np.testing.assert_array_equal(found, found.T)


@pytest.mark.parametrize(
    "use", [mds.criterion, mds.spectrum, mds.is_euclidean, mds.bounds, mds.classical_mds, mds.nearest_edm]
)
def test_the_warning_points_to_the_users_file(use):
    table = euclidean()
    table[0, 1] += 1e-7
    with pytest.warns(UserWarning, match="not quite symmetric") as told:
        use(table)
    assert told[0].filename == __file__


@pytest.mark.parametrize(("row", "column", "words"), [(0, 1, "symmetric"), (2, 2, "hollow")])
@pytest.mark.parametrize("outlier", [1.0, 1e6])
def test_what_passes_as_rounding_is_a_share_of_ordinary_entries(row, column, words, outlier):
    table = euclidean()
    table[4, 5] = table[5, 4] = table[4, 5] * outlier
    for miss, passes in ((1e-6, True), (1e-3, False)):
        off = table.copy()
        off[row, column] += miss
        with pytest.warns(UserWarning, match="rounding") if passes else pytest.raises(ValueError, match=f"not {words}"):
            mds.criterion(off)


def test_rounding_of_a_large_entry_passes_beside_small_ones():
    table = euclidean()
    table[4, 5], table[5, 4] = 1e6, 1e6 * (1 + 1e-6)
    with pytest.warns(UserWarning, match="rounding"):
        mds.criterion(table)


@pytest.mark.parametrize("small", [1e-3, 1e-300])
def test_negative_entries_are_held_against_ordinary_ones(small):
    table = euclidean() * small
    table[4, 5] = table[5, 4] = 1e6 * small
    table[0, 1] = table[1, 0] = -1e-2 * small
    with pytest.raises(ValueError, match="negative entries"):
        mds.criterion(table)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (np.array([[0, 1j], [1j, 0]]), "divergences holds complex128"),
        (np.ma.masked_equal([[0.0, 1.0], [1.0, 0.0]], 1), "masked array"),
        (np.zeros((2, 2), "datetime64[s]"), r"holds datetime64\[s\]"),
        ([["0", "1"], ["1", "0"]], "holds <U1"),
        (sparse.csr_array(np.eye(2)), "sparse csr_array"),
    ],
)
def test_what_does_not_hold_real_numbers_is_refused(table, words):
    with pytest.raises(TypeError, match=words):
        mds.criterion(table)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (np.zeros((2, 3)), r"shape \(2, 3\)"),
        (np.zeros(4), r"shape \(4,\)"),
        (np.zeros((1, 1)), "at least two clouds"),
        (np.array([[0, np.nan], [np.nan, 0]]), "2 entries that are not finite, the first in row 0, column 1"),
        ([[0.0, 1.0], [1.0]], "rows of different lengths"),
        (np.array([[0, 1.0], [2.0, 0]]), "not symmetric: entries differ by 1 in row 0, column 1"),
        (np.array([[0, 1.0], [1.0, 3.0]]), "not hollow.*row 1, column 1.*'S2', 'S1' or 'GS', or solver='exact'"),
        (np.array([[0, -1.0], [-1.0, 0]]), "negative entries"),
    ],
)
@pytest.mark.parametrize("use", [mds.criterion, mds.bounds, mds.classical_mds, mds.nearest_edm])
def test_what_is_not_a_table_of_divergences_is_refused(use, table, words):
    with pytest.raises(ValueError, match=words):
        use(table)


def test_bad_settings_are_refused():
    with pytest.raises(ValueError, match="tol is 2"):
        mds.nearest_edm(anything(), tol=2)
    with pytest.raises(ValueError, match="max_iter is 0"):
        mds.nearest_edm(anything(), max_iter=0)
    with pytest.raises(ValueError, match=r"max_iter is 2\.5; give a whole number"):
        mds.nearest_edm(anything(), max_iter=2.5)
    for wrong in (0, 2.0):
        with pytest.raises(ValueError, match=f"n_components is {wrong}"):
            mds.classical_mds(anything(), wrong)
    for wrong in (-1, np.nan):
        with pytest.raises(ValueError, match=f"rtol is {wrong}"):
            mds.is_euclidean(anything(), rtol=wrong)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"table": [[0.0, 1.0], [2.0, 0.0]]}, "not symmetric"),
        ({"tol": -1}, "tol is -1"),
        ({"max_iter": 0}, "max_iter is 0"),
        ({"projections": ()}, "projections is empty"),
    ],
)
def test_bad_settings_of_dykstra_are_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        mds.dykstra(**{"table": anything(), **changes})


def test_dykstra_tells_when_it_has_not_arrived():
    with pytest.warns(UserWarning, match="stopped after 2 rounds.*raise max_iter"):
        _, reached = mds.dykstra(anything(), max_iter=2)
    assert not reached


@pytest.mark.parametrize("project", PROJECTIONS)
@pytest.mark.parametrize(
    ("table", "words"), [(np.zeros((3, 2)), r"shape \(3, 2\)"), ([[0, np.nan], [np.nan, 0]], "2 entries.*not finite")]
)
def test_projections_want_square_tables_of_numbers(project, table, words):
    with pytest.raises(ValueError, match=words):
        project(table)


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_the_conditional_projection_wants_symmetry_in_any_units(unit):
    with pytest.raises(ValueError, match="not symmetric"):
        mds.project_conditional(unit * np.array([[0.0, 1.0], [9e3, 0.0]]))
    mds.project_conditional(unit * np.array([[0.0, 1.0], [1 + 1e-9, 0.0]]))
