"""The Wormhole's manners: units of both losses, limits, files, scikit-learn, and what hostile users give it."""

import os
import warnings
from functools import partial
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline

import scwormhole as wh
from scwormhole import io
from scwormhole.train import _fit, _loop, read_parameters
from scwormhole.train._parameters import cost_mark
from scwormhole.train._plan import Plan

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::scwormhole.ot.TransportWarning"),
]

TINY = {
    "n_components": 8,
    "width": 8,
    "hidden": 8,
    "n_heads": 1,
    "n_blocks": 1,
    "n_induced": 2,
    "batch_size": 6,
    "max_steps": 10,
    "progress": False,
}
ALONE = {**TINY, "coeff_dec": 0}


def cohort(n, *, dim=2, rng=0, size=6, scale=1.0, dtype=float):
    generator = np.random.default_rng(rng)
    arrays = generator.normal(size=(n, size, dim)) * generator.uniform(0.3, 2, (n, 1, 1)) + generator.normal(
        size=(n, 1, dim)
    )
    return wh.PointClouds.from_list(list((scale * arrays).astype(dtype)))


def mapped(clouds, change):
    return wh.PointClouds(change(clouds.points), clouds.indptr, clouds.indices, clouds.weights)


@pytest.fixture(scope="module")
def small():
    return cohort(12)


@pytest.fixture(scope="module")
def fitted(small):
    return wh.Wormhole(**ALONE).fit(small, feature_names=["Sst", "Pvalb"])


def rules_of(monkeypatch, clouds, **params):
    """Return the losses' rules and the frame of a fit, which then ends."""
    found = {}

    def stop(phases, trained, *args, **options):
        found.update(rules=phases[0].rules, frame=trained.frame, examine=phases[-1].examine, params=trained.params)
        raise KeyboardInterrupt

    monkeypatch.setattr(_fit, "_train", stop)
    with pytest.raises(KeyboardInterrupt):
        wh.Wormhole(**{**TINY, **params}).fit(clouds)
    return SimpleNamespace(**found)


def far(x, y):
    """A cost that minds where points are: only beyond ten from zero does anything cost."""
    return jnp.abs(jnp.maximum(x, 10.0) - jnp.maximum(y, 10.0)).sum()


def near(x, y):
    return jnp.abs(x - y).sum()


@pytest.mark.parametrize(("metric", "metric_dec"), [("S1", "S2"), pytest.param("S2", "S1", marks=pytest.mark.slow)])
def test_the_decoder_is_measured_in_units_of_its_own_metric(monkeypatch, small, metric, metric_dec):
    """Scaling all points changes neither its loss nor its error, whatever the degrees of the two metrics."""
    one, other = (
        rules_of(monkeypatch, some, metric=metric, metric_dec=metric_dec)
        for some in (small, mapped(small, lambda x: 1000 * x))
    )
    assert one.rules.mean_dec == pytest.approx(other.rules.mean_dec, rel=1e-3)
    assert one.rules.epsilon_dec == pytest.approx(other.rules.epsilon_dec, rel=1e-3)
    degree = {"S1": 1, "S2": 2}[metric_dec]
    epsilon = one.rules.epsilon_dec * one.frame.length**degree
    true = wh.ot.pairwise(small, metric_dec, epsilon=epsilon, relative_epsilon=None, progress=False)
    mean = true[~np.eye(12, dtype=bool)].mean()
    assert one.rules.mean_dec * one.frame.length**degree == pytest.approx(mean, rel=0.3)
    assert one.examine(one.params).error == pytest.approx(other.examine(other.params).error, rel=0.02)


def test_a_cost_of_the_decoder_sees_the_points_of_the_user(monkeypatch, small):
    """The network sees points around zero of unit size; beyond ten from zero nothing of them would be left."""
    away = mapped(small, lambda x: x + 20)
    for base in ("auto", None):
        own = rules_of(monkeypatch, away, metric_dec=far, base=base)
        plain = rules_of(monkeypatch, away, metric_dec=near, base=base)
        assert own.rules.mean_dec == pytest.approx(plain.rules.mean_dec, rel=1e-3)
        x, y = away.points[:2]
        seen = ((point - own.frame.origin) / own.frame.length for point in (x, y))
        assert float(own.rules.metric_dec(*seen)) == pytest.approx(np.abs(x - y).sum(), rel=1e-4)
        assert own.rules.metric_dec == rules_of(monkeypatch, away, metric_dec=far, base=base).rules.metric_dec


@pytest.mark.slow
@pytest.mark.parametrize("base", ["auto", None])
def test_a_decoder_learns_by_a_cost_that_minds_where_clouds_are(small, base):
    away = mapped(small, lambda x: x + 20)
    params = {**TINY, "max_steps": 60, "learning_rate": 1e-2, "base": base}
    losses = [wh.Wormhole(metric_dec=cost, **params).fit(away).history_["decoder_loss"] for cost in (far, near)]
    np.testing.assert_allclose(losses[0], losses[1], rtol=0.05)
    assert losses[0][-1] < losses[0][1]


@pytest.mark.parametrize(
    ("n", "batch_size"), [(2, 64), *(pytest.param(n, b, marks=pytest.mark.slow) for n in (3, 5, 9) for b in (2, 64))]
)
def test_batches_and_cohorts_of_any_size(monkeypatch, n, batch_size):
    sizes = [1, 3, 9, 20, 2, 1, 6, 40, 5][:n]
    generator = np.random.default_rng(0)
    clouds = wh.PointClouds.from_list([generator.normal(size=(size, 2)) + size for size in sizes])
    found = rules_of(monkeypatch, clouds, batch_size=batch_size, coeff_dec=0)
    assert np.isfinite(found.rules.mean_target)
    assert np.isfinite(found.examine(found.params).error)


@pytest.mark.slow
@pytest.mark.parametrize("n", range(2, 21, 3))
def test_tiny_cohorts(n):
    generator = np.random.default_rng(n)
    clouds = wh.PointClouds.from_list([generator.normal(size=(size, 2)) for size in generator.integers(1, 30, n)])
    model = wh.Wormhole(**{**TINY, "batch_size": 64}).fit(clouds)
    z = model.transform(clouds)
    assert np.isfinite(z).all()
    assert np.isfinite(model.inverse_transform(z).points).all()


def test_parameters_set_later_change_nothing_that_was_fitted(fitted, small):
    score, z = fitted.score(small), fitted.transform(small)
    fidelity = wh.metrics.fidelity(fitted, small, n_repeats=1, n_exact=0)
    kept = fitted.get_params()
    try:
        fitted.set_params(metric="GS", decode_weights=True, n_components=3, nugget=True, epsilon=5.0)
        assert fitted.metric_ == "S2"
        assert fitted.score(small) == score
        np.testing.assert_array_equal(fitted.transform(small), z)
        assert wh.metrics.fidelity(fitted, small, n_repeats=1, n_exact=0) == fidelity
        arrays, header = fitted.to_arrays()
        assert wh.Wormhole.from_arrays(arrays, header).score(small) == score
    finally:
        fitted.set_params(**kept)


@pytest.fixture
def idle(monkeypatch):
    """Steps that change nothing, and so need no compilation: for tests of what is around them."""

    def run_steps(state, feed, rates, *, graph, rules, mesh):
        return state, (np.zeros(len(rates)), np.zeros(len(rates)))

    monkeypatch.setattr(_loop, "run_steps", run_steps)


def test_more_steps_go_on_where_the_encoder_was_ended(monkeypatch, small, idle, interrupt):
    """Interrupted in the decoder's phase, and resumed with more steps, both phases take as many."""
    model = wh.Wormhole(**TINY)
    with monkeypatch.context() as patched:
        interrupt(patched, "decoder", 1)
        with pytest.raises(KeyboardInterrupt):
            model.fit(small)
    model.set_params(max_steps=30).fit(small, resume=True)
    steps = {
        phase: [s for s, p in zip(model.history_["step"], model.history_["phase"], strict=True) if p == phase]
        for phase in ("encoder", "decoder")
    }
    assert steps == {"encoder": [0, 10, 20, 30], "decoder": [0, 10, 20, 30]}
    assert np.isfinite(model.transform(small)).all()
    before = model.transform(small)
    model.fit(small, resume=True)  # nothing is left to do
    np.testing.assert_array_equal(model.transform(small), before)


def test_a_fit_that_was_refused_loses_no_checkpoint(monkeypatch, fitted, small, interrupt):
    model = wh.Wormhole(**{**ALONE, "max_steps": 20})
    with monkeypatch.context() as patched:
        interrupt(patched, "encoder", 1)
        with pytest.raises(KeyboardInterrupt):
            model.fit(small)
    with pytest.raises(ValueError, match="another fit; these differ: clouds"):
        model.fit(small[::-1], resume=True)
    with pytest.raises(ValueError, match="feature_names"):
        model.fit(small, feature_names=["a"])
    assert model.fit(small, resume=True).history_["step"] == [0, 10, 20]


def test_without_a_checkpoint_resuming_says_that_it_starts_anew(fitted, small, tmp_path):
    for params in ({}, {"checkpoint": tmp_path / "checkpoint"}):
        with pytest.warns(UserWarning, match=r"no checkpoint in memory.*starts anew"):
            model = wh.Wormhole(**ALONE, **params).fit(small, resume=True)
        np.testing.assert_array_equal(model.transform(small), fitted.transform(small))


def test_every_point_marks_a_cohort():
    """Of more clouds than one would care to look at, dense, sparse or on disk, whichever point it is."""
    generator = np.random.default_rng(0)
    points = generator.normal(size=(6000, 2))
    indptr, indices = np.arange(0, 6001, 2), np.arange(6000)
    changed = points.copy()
    changed[2751, 1] = np.nextafter(changed[2751, 1], 9)
    params = wh.Wormhole(**ALONE).get_params()

    def mark(points, rows=indices):
        return read_parameters(
            params, wh.PointClouds(points, indptr[: len(rows) // 2 + 1], rows, np.ones(len(rows)))
        ).mark

    assert mark(points) == mark(points.copy())
    assert mark(points) != mark(changed)
    assert mark(sparse.csr_matrix(points)) == mark(sparse.csr_matrix(points.copy()))
    assert mark(sparse.csr_matrix(points)) != mark(sparse.csr_matrix(changed))
    assert mark(points, indices[:2000]) == mark(changed, indices[:2000])
    assert mark(points, indices[2740:2760]) != mark(changed, indices[2740:2760])


def test_a_cost_is_marked_by_what_it_does():
    def power(p):
        def cost(x, y):
            return (jnp.abs(x - y) ** p).sum()

        return cost

    def cost(x, y, p=3):
        return (jnp.abs(x - y) ** p).sum()

    def other(x, y, p=4):
        return (jnp.abs(x - y) ** p).sum()

    other.__name__ = "cost"

    class Scaled:
        def __init__(self, by):
            self.by = by

        def __call__(self, x, y):
            return self.by * ((x - y) ** 2).sum()

    costs = [power(2), power(3), cost, other, partial(cost, p=5), partial(cost, p=6), Scaled(1), Scaled(2)]
    costs += [power(np.arange(2.0)), power(np.arange(2.0) + 1), power(lambda: 1), power(lambda: 2), np.add]
    marks = [cost_mark(cost) for cost in costs]
    assert len(set(marks)) == len(marks)
    assert marks[0] == cost_mark(power(2))
    assert marks[0].startswith("cost ")


@pytest.mark.slow
@pytest.mark.parametrize("coeff_dec", [0, 0.01])
def test_a_fit_ends_in_time(coeff_dec):
    """Without a limit this fit takes far longer; compilation cannot be interrupted, hence the margin."""
    generator = np.random.default_rng(0)
    clouds = wh.PointClouds.from_list([generator.normal(size=(150, 2)) * generator.gamma(5) for _ in range(600)])
    clock = _fit.Clock()
    model = wh.Wormhole(coeff_dec=coeff_dec, max_steps=100_000, max_seconds=30, progress=False).fit(clouds)
    assert clock.elapsed() < 60
    assert not model.converged_


def test_limited_time_solves_fewer_pairs(monkeypatch, small, interrupt):
    """What was planned is kept with the checkpoint: a faster machine must not fit another base when it resumes."""
    plans = []

    def plan(*args, **options):
        plans.append(options["seconds"])
        return Plan(base_pairs=20, looked_at=2, pairs=30)

    monkeypatch.setattr(_fit, "make_plan", plan)
    whole = wh.Wormhole(**ALONE, max_seconds=1000).fit(small)
    assert whole.base_.get_params()["n_pairs"] == 20
    assert whole.base_.report_.n_pairs <= 120
    half = wh.Wormhole(**ALONE, max_seconds=1000)
    with monkeypatch.context() as patched:
        interrupt(patched, "encoder", 1)
        with pytest.raises(KeyboardInterrupt):
            half.fit(small)
    assert len(plans) == 2
    half.fit(small, resume=True)
    assert len(plans) == 2
    np.testing.assert_array_equal(half.base_.transform(small), whole.base_.transform(small))


def test_a_plan_follows_the_clock(small):
    params = read_parameters(wh.Wormhole(**ALONE).get_params(), small)
    strata = _fit._strata(small, np.arange(12), params.recipe)
    long, short = (_fit.make_plan(small, params.transport, strata, seconds=seconds, rng=0) for seconds in (1e4, 0.0))
    assert short == Plan(100, 8, 0)
    assert long.base_pairs > 1000
    assert long.looked_at > 100
    assert long.pairs > 1000


def test_feature_names_are_kept(fitted, small, tmp_path):
    fitted.save(tmp_path / "model")
    assert wh.Wormhole.load(tmp_path / "model").feature_names_in_ == fitted.feature_names_in_ == ["Sst", "Pvalb"]
    for names, found in ((["a"], "1 names"), ("ab", "one string"), (np.array(["a", "b", "c"]), "3 names")):
        with pytest.raises(ValueError, match=f"feature_names holds {found} for 2 dimensions"):
            wh.Wormhole(**ALONE).fit(small, feature_names=names)


def test_a_header_of_other_parameters_is_refused(fitted):
    arrays, header = fitted.to_arrays()
    params = header["params"]
    with pytest.raises(ValueError, match=r"another version of scwormhole: parameters are unknown, colour"):
        wh.Wormhole.from_arrays(arrays, {**header, "params": {**params, "colour": 1}})
    fewer = {name: value for name, value in params.items() if name not in ("rng", "width")}
    with pytest.raises(ValueError, match=r"parameters are missing, rng, width"):
        wh.Wormhole.from_arrays(arrays, {**header, "params": fewer})


def test_what_is_beside_a_model_stays(fitted, tmp_path, small):
    folder = tmp_path / "model"
    fitted.save(folder)
    (folder / "notes.txt").write_text("precious")
    fitted.save(folder, overwrite=True)
    assert (folder / "notes.txt").read_text() == "precious"
    np.testing.assert_array_equal(wh.Wormhole.load(folder).transform(small), fitted.transform(small))
    (tmp_path / "file").write_text("data")
    with pytest.raises(FileExistsError, match="is a file"):
        fitted.save(tmp_path / "file", overwrite=True)


def test_what_is_beside_a_checkpoint_stays(monkeypatch, tmp_path, small, interrupt):
    folder = tmp_path / "checkpoint"
    with monkeypatch.context() as patched:
        interrupt(patched, "encoder", 1)
        with pytest.raises(KeyboardInterrupt):
            wh.Wormhole(**ALONE, checkpoint=folder).fit(small)
    (folder / "notes.txt").write_text("precious")
    wh.Wormhole(**ALONE, checkpoint=folder).fit(small, resume=True)
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]


def test_a_full_disk_ends_no_training(monkeypatch, tmp_path, fitted, small):
    def full(*args):
        raise OSError("no space left on device")

    monkeypatch.setattr(io, "save_file", full)
    with pytest.warns(UserWarning, match=r"goes on without a checkpoint on disk: .*no space left") as told:
        model = wh.Wormhole(**{**ALONE, "max_steps": 20}, checkpoint=tmp_path / "checkpoint").fit(small)
    assert sum("without a checkpoint" in str(one.message) for one in told) == 1
    assert os.listdir(tmp_path) == []
    assert np.isfinite(model.transform(small)).all()
    with pytest.raises(OSError, match="no space left"):
        fitted.save(tmp_path / "model")
    assert os.listdir(tmp_path) == []


def test_the_range_of_decoded_points_is_that_of_all_training_clouds(monkeypatch):
    """Of 700 clouds one holds the least and one the largest; a point that weighs nothing does not count."""
    generator = np.random.default_rng(0)
    arrays = list(generator.uniform(size=(700, 3, 2)))
    frames = []
    for make in (np.asarray, sparse.csr_matrix):
        for place in range(0, 700, 100):
            changed = list(arrays)
            changed[place] = arrays[place] + [[0, 0], [50, 0], [0, -70]]
            weights = np.ones((700, 3))
            clouds = wh.PointClouds.from_list([make(a) for a in changed], weights)
            frames.append(_fit.frame_of(clouds, degree=2, mean_divergence=1.0, origin=None, box=None, rng=0))
            points = np.concatenate(changed)
            np.testing.assert_allclose(frames[-1].low, points.min(0))
            np.testing.assert_allclose(frames[-1].high, points.max(0))


def split_in_two(clouds):
    """Split the first point of each cloud in two of half its weight."""
    arrays = [np.concatenate([cloud.points, cloud.points[:1]]) for cloud in clouds]
    weights = [np.concatenate([[w[0] / 2], w[1:], [w[0] / 2]]) for _, w in clouds]
    return wh.PointClouds.from_list(arrays, weights)


@pytest.mark.parametrize("size", [128, 256])
def test_a_point_split_across_a_rung_changes_nothing(fitted, size):
    """128 points are padded to 128, and 129 to 192; no sample is drawn of a large cloud either."""
    clouds = cohort(3, size=size, rng=5)
    z = fitted.transform(clouds)
    np.testing.assert_allclose(fitted.transform(split_in_two(clouds)), z, atol=1e-4 * np.abs(z).max())


def test_scikit_learn_splits_a_cohort(small):
    untrained = wh.Wormhole(**{**ALONE, "max_steps": 0})
    scores = cross_val_score(untrained, small, cv=KFold(2, shuffle=True, random_state=0))
    assert scores.shape == (2,)
    assert (scores > 0.3).all()
    search = GridSearchCV(untrained, {"n_components": [1, 8]}, cv=2).fit(small)
    assert search.best_estimator_.transform(small).shape == (12, search.best_params_["n_components"])


def test_a_pipeline(fitted, small):
    pipeline = make_pipeline(wh.Wormhole(**ALONE), KMeans(2, n_init=1, random_state=0)).fit(small)
    assert set(pipeline.predict(small)) == {0, 1}
    assert "Wormhole" in pipeline._repr_html_()
    assert "Wormhole" in fitted._repr_html_()


@pytest.mark.parametrize("coeff_dec", [0, 0.1])
@pytest.mark.parametrize(("base", "place", "spread"), [("auto", 3, 1), ("auto", 1e6, 1), (None, 3, 1), ("auto", 1, 0)])
def test_clouds_that_are_all_one_warn_and_are_at_zero(base, place, spread, coeff_dec):
    clouds = wh.PointClouds.from_list([spread * np.random.default_rng(0).normal(size=(6, 2)) + place] * 12)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.warns(UserWarning, match="All clouds are the same"):
            model = wh.Wormhole(**{**TINY, "coeff_dec": coeff_dec, "base": base}).fit(clouds)
    assert model.converged_
    z = model.transform(clouds)
    assert np.isfinite(z).all()
    np.testing.assert_allclose(z, z[:1].repeat(12, 0), atol=1e-6)
    np.testing.assert_allclose(model.distances(clouds[:6], clouds[6:]), 0, atol=1e-6)
    if coeff_dec:
        assert np.isfinite(model.inverse_transform(z).points).all()


@pytest.mark.parametrize("rng", [0, *(pytest.param(rng, marks=pytest.mark.slow) for rng in (1, 2))])
def test_copies_of_one_cloud_and_a_few_others(rng):
    """Two batches of copies do not mean that all clouds are the same."""
    copies = [np.random.default_rng(0).normal(size=(6, 2))] * 60
    clouds = wh.PointClouds.from_list([*copies, *(copy + 1 for copy in copies[:4])])
    model = wh.Wormhole(**{**ALONE, "max_steps": 0, "rng": rng}).fit(clouds)
    np.testing.assert_allclose(model.distances(clouds[:4], clouds[60:]), 2, rtol=0.05)


def test_errors_come_before_any_work(monkeypatch, small):
    monkeypatch.setattr(_fit, "split_clouds", lambda *args: pytest.fail("work was begun"))
    for params, message in (
        ({"rng": 2**32}, r"rng is 4294967296; give a whole number from 0 to 4294967295"),
        (
            {"base": "sliced", "metric": "GW"},
            r"base is 'sliced', which does not go with metric 'GW'; give one of 'auto', 'inv",
        ),
        (
            {"base": "invariant"},
            r"base is 'invariant', which does not go with metric 'S2'; give one of 'auto', 'sliced'",
        ),
        ({"base": "invariant", "metric": near}, r"base is 'invariant', which does not go with metric 'near'"),
        ({"patience": 0}, "patience is 0"),
        ({"clip": 0}, "clip is 0"),
    ):
        with pytest.raises(ValueError, match=message):
            wh.Wormhole(**{**ALONE, **params}).fit(small)
    with pytest.raises(ValueError, match="clouds holds a single cloud; at least two"):
        wh.Wormhole(**ALONE).fit(small[:1])


def test_the_largest_seed(small):
    assert np.isfinite(wh.Wormhole(**{**ALONE, "max_steps": 0, "rng": 2**32 - 1}).fit(small).transform(small)).all()


def test_the_paper_is_trained_plainly(small, idle):
    """No clipping, no warm-up, no stop before the last step, no decoder alone, points in the paper's box."""
    sizes = {"n_components": 8, "width": 8, "hidden": 8, "n_heads": 1, "n_blocks": 1, "max_steps": 20}
    model = wh.Wormhole.paper(**sizes, progress=False).fit(small)
    assert model.history_["phase"] == ["encoder"] * 3
    assert model.history_["step"][-1] == 20
    frame = model._trained.frame
    points, _ = frame.points(small.padded(np.setdiff1d(np.arange(12), model.held_out_)))
    assert points.min() == pytest.approx(-1, abs=1e-5)
    assert points.max() == pytest.approx(1, abs=1e-5)
    recipe = read_parameters(wh.Wormhole.paper().get_params(), small).recipe
    assert (recipe.clip, recipe.patience) == (None, None)
    assert recipe.max_points > 10**6


# of one shape as far as can be, so that what one of them compiles serves all
HOSTILE = {
    "weights of zero": lambda g: wh.PointClouds.from_list(
        list(g.normal(size=(12, 6, 2))), [[1, 0, 2, 0, 0, 1]] * 6 + [[0, 0, 0, 3, 0, 0]] * 6
    ),
    "whole weights": lambda g: wh.PointClouds.from_list(list(g.normal(size=(12, 6, 2))), [np.arange(1, 7)] * 12),
    "points twice": lambda g: wh.PointClouds.from_list(list(np.repeat(g.normal(size=(12, 2, 2)), 3, 1))),
    "sparse": lambda g: wh.PointClouds.from_list([sparse.random(6, 2, 0.5, random_state=i) for i in range(12)]),
    "halves": lambda g: cohort(12, dtype=np.float16),
    "integers": lambda g: wh.PointClouds.from_list(list(g.integers(0, 9, size=(12, 6, 2)))),
    "huge": lambda g: cohort(12, scale=1e6),
    "far away": lambda g: mapped(cohort(12), lambda x: x + 1e6),
    "tiny": lambda g: cohort(12, scale=1e-6),
    "flat": lambda g: mapped(cohort(12), lambda x: x * [1, 0]),
    "same means": lambda g: wh.PointClouds.from_list([s * np.array([[1.0, 0], [-1, 0]] * 3) for s in range(1, 13)]),
    "two of them": lambda g: wh.PointClouds.from_list([np.zeros((6, 2)), np.ones((6, 2))] * 6),
}
OTHER_SHAPES = {
    "single points": lambda g: wh.PointClouds.from_list(list(g.normal(size=(12, 1, 2)))),
    "one dimension": lambda g: cohort(12, dim=1),
    "many dimensions": lambda g: cohort(12, dim=300, size=5),
}


@pytest.mark.parametrize("name", [*HOSTILE, *(pytest.param(name, marks=pytest.mark.slow) for name in OTHER_SHAPES)])
def test_hostile_cohorts(name):
    clouds = {**HOSTILE, **OTHER_SHAPES}[name](np.random.default_rng(0))
    model = wh.Wormhole(**ALONE).fit(clouds)
    z, own = model.embed(clouds)
    assert np.isfinite(z).all()
    assert (own >= 0).all()
    true = wh.ot.pairwise(clouds, epsilon=model.epsilon_, relative_epsilon=None, progress=False)
    pairs = np.triu_indices(len(clouds), 1)
    found = model.embed(clouds).table(clouds.shared_mass())
    assert np.corrcoef(found[pairs], true[pairs])[0, 1] > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("name", [*HOSTILE, *OTHER_SHAPES])
def test_hostile_cohorts_are_decoded(name):
    clouds = {**HOSTILE, **OTHER_SHAPES}[name](np.random.default_rng(0))
    model = wh.Wormhole(**TINY).fit(clouds)
    decoded = model.inverse_transform(model.transform(clouds))
    assert np.isfinite(decoded.points).all()
    assert np.isfinite(model.history_["error"]).all()


@pytest.mark.parametrize(("n_components", "dim"), [(1, 2), (2, 2), pytest.param(2, 3, marks=pytest.mark.slow)])
def test_few_components(n_components, dim):
    clouds = cohort(12, dim=dim)
    model = wh.Wormhole(**{**ALONE, "n_components": n_components, "max_steps": 0}).fit(clouds)
    assert model.transform(clouds).shape == (12, n_components)
    assert model.score(clouds) > 0.3


def test_a_number_that_is_none_in_one_far_cloud():
    arrays = list(np.random.default_rng(0).normal(size=(2000, 2, 2)))
    arrays[1777][1, 0] = np.nan
    with pytest.raises(ValueError, match="1777"):
        wh.PointClouds.from_list(arrays)


def test_interrupts_leave_a_fitted_model_as_it_was(monkeypatch, small, interrupt):
    model = wh.Wormhole(**ALONE).fit(small)
    z = model.transform(small)
    with monkeypatch.context() as patched:
        interrupt(patched, "encoder", 1)
        with pytest.raises(KeyboardInterrupt):
            model.fit(small[::-1])
    np.testing.assert_array_equal(model.transform(small), z)
