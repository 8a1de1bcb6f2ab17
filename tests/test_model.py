"""The Wormhole: true to transport, repeatable, taken up again where it was left, kept exactly, sane at the edges."""

import contextlib
import json
import logging
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted

import scwormhole as wh
from scwormhole import io
from scwormhole.train import _fit, _use, read_parameters
from scwormhole.train._parameters import CHOICES, OPTIONAL, POSITIVE, WHOLE

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::scwormhole.ot.TransportWarning"),
]

QUICK = {
    "n_components": 16,
    "width": 16,
    "hidden": 32,
    "n_blocks": 1,
    "n_induced": 4,
    "batch_size": 12,
    "max_steps": 20,
    "progress": False,
}
TINY = {**QUICK, "n_components": 8, "width": 8, "hidden": 8, "n_heads": 1, "batch_size": 6, "max_steps": 10}
ALONE = {**TINY, "coeff_dec": 0}
SEEN = {"phase", "step", "seconds", "correlation", "error", "encoder_loss", "decoder_loss"}


def cohort(n, *, dim=2, rng=0, most=12):
    generator = np.random.default_rng(rng)
    arrays = [
        generator.normal(size=(generator.integers(5, most + 1), dim)) * generator.uniform(0.3, 1.5, dim)
        + 0.5 * generator.normal(size=dim)
        + 3
        for _ in range(n)
    ]
    return wh.PointClouds.from_list(arrays)


def mapped(clouds, change):
    return wh.PointClouds(change(clouds.points), clouds.indptr, clouds.indices, clouds.weights)


def without_seconds(history):
    return repr({name: column for name, column in history.items() if name != "seconds"})


@pytest.fixture(scope="module")
def clouds():
    return cohort(48, most=8)


@pytest.fixture(scope="module")
def others():
    return cohort(30, rng=7, most=8)


@contextlib.contextmanager
def compilations():
    """Count how often the steps are compiled meanwhile."""
    found, logger = [], logging.getLogger("jax._src.interpreters.pxla")
    handler = logging.Handler()
    handler.emit = lambda record: found.append(record.getMessage())
    logger.addHandler(handler)
    propagate, logger.propagate = logger.propagate, False
    count = SimpleNamespace(steps=0)
    try:
        with jax.log_compiles(True):
            yield count
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagate
        count.steps = sum(message.startswith("Compiling jit(run_steps)") for message in found)


@pytest.fixture(scope="module")
def fitting(clouds):
    with compilations() as compiled:
        model = wh.Wormhole(**QUICK).fit(clouds)
    return SimpleNamespace(model=model, compiled=compiled.steps)


@pytest.fixture(scope="module")
def model(fitting):
    return fitting.model


@pytest.fixture(scope="module")
def small():
    return cohort(12, most=8)


@pytest.fixture(scope="module")
def alone(small):
    """A model without a decoder, and how often its steps were compiled."""
    with compilations() as compiled:
        model = wh.Wormhole(**{**ALONE, "max_steps": 40}).fit(small)
    return SimpleNamespace(model=model, compiled=compiled.steps)


def test_new_clouds_are_embedded_as_far_apart_as_transport_says(model, others):
    z = model.transform(others)
    assert z.shape == (30, 16)
    assert z.dtype == np.float32
    assert np.isfinite(z).all()
    found = wh.metrics.fidelity(model, others, n_repeats=1, n_exact=0)
    assert model.score(others) == pytest.approx(found.correlation, abs=1e-4)
    assert found.correlation > 0.9
    assert found.relative_error < 0.2


def test_distances_are_squared_distances_and_nuggets(model, others):
    first, second = others, others[::-1]
    squared = ((model.transform(first) - model.transform(second)) ** 2).sum(1)
    own = model.nugget(first) + model.nugget(second)
    np.testing.assert_allclose(model.distances(first, second), squared + own, rtol=1e-5)
    assert (model.nugget(others) >= 0).all()
    with pytest.raises(ValueError, match=r"30 clouds.*29.*one to one"):
        model.distances(first, others[:29])


def test_steps_are_compiled_once_a_phase(fitting, alone):
    assert alone.compiled == 1
    assert fitting.compiled == 2


def test_steps_are_not_compiled_again_for_the_same_fit(model, clouds):
    with compilations() as compiled:
        wh.Wormhole(**QUICK).fit(clouds)
    assert compiled.steps == 0


def test_one_seed_gives_one_result_to_the_bit(model, clouds, others):
    again = wh.Wormhole(**QUICK).fit(clouds)
    z = model.transform(others)
    np.testing.assert_array_equal(again.transform(others), z)
    np.testing.assert_array_equal(again.inverse_transform(z).points, model.inverse_transform(z).points)
    assert without_seconds(again.history_) == without_seconds(model.history_)


def test_another_seed_gives_another_result(alone, small):
    other = wh.Wormhole(**{**ALONE, "max_steps": 40, "rng": 1}).fit(small)
    assert (other.transform(small) != alone.model.transform(small)).any()


@pytest.mark.parametrize(("phase", "look"), [("encoder", 1), ("encoder", 2), ("decoder", 0), ("decoder", 1)])
def test_interrupted_and_resumed_is_as_if_nothing_had_happened(
    monkeypatch, model, clouds, others, phase, look, interrupt
):
    with monkeypatch.context() as patched:
        interrupt(patched, phase, look)
        half = wh.Wormhole(**QUICK)
        with pytest.raises(KeyboardInterrupt):
            half.fit(clouds)
    with pytest.raises(NotFittedError):
        half.transform(clouds)
    half.fit(clouds, resume=True)
    z = model.transform(others)
    np.testing.assert_array_equal(half.transform(others), z)
    np.testing.assert_array_equal(half.inverse_transform(z).points, model.inverse_transform(z).points)
    assert without_seconds(half.history_) == without_seconds(model.history_)
    assert half.converged_ == model.converged_


@pytest.mark.parametrize("phase", ["encoder", "decoder"])
def test_killed_and_resumed_by_a_new_object(monkeypatch, tmp_path, model, clouds, others, phase, interrupt):
    folder = tmp_path / "checkpoint"
    with monkeypatch.context() as patched:
        interrupt(patched, phase, 1)
        with pytest.raises(KeyboardInterrupt):
            wh.Wormhole(**QUICK, checkpoint=folder).fit(clouds)
    assert folder.is_dir()
    again = wh.Wormhole(**QUICK, checkpoint=str(folder)).fit(clouds, resume=True)
    z = model.transform(others)
    np.testing.assert_array_equal(again.transform(others), z)
    np.testing.assert_array_equal(again.inverse_transform(z).points, model.inverse_transform(z).points)
    assert without_seconds(again.history_) == without_seconds(model.history_)
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_of_another_fit_is_refused(monkeypatch, tmp_path, small, interrupt):
    folder = tmp_path / "checkpoint"
    with monkeypatch.context() as patched:
        interrupt(patched, "encoder", 1)
        with pytest.raises(KeyboardInterrupt):
            wh.Wormhole(**ALONE, checkpoint=folder).fit(small)
    kept = {path.name: path.read_bytes() for path in folder.iterdir()}
    cases = [
        ({}, small[:11], "clouds"),
        ({}, mapped(small, lambda x: x + 1), "clouds"),
        ({"rng": 3}, small, "rng"),
        ({"learning_rate": 0.1, "width": 16}, small, "width, learning_rate"),
        ({"metric": "S1"}, small, "metric"),
    ]
    for params, some, differ in cases:
        with pytest.raises(ValueError, match=rf"another fit; these differ: {differ}\."):
            wh.Wormhole(**{**ALONE, **params}, checkpoint=folder).fit(some, resume=True)
    with pytest.raises(FileExistsError, match="resume=True"):
        wh.Wormhole(**ALONE, checkpoint=folder).fit(small)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == kept


def test_a_checkpoint_is_of_these_points_and_no_others():
    """Of 60 clouds, whichever one it is that changed."""
    clouds, params = cohort(60), wh.Wormhole(**ALONE).get_params()
    changed = clouds.points.copy()
    changed[clouds.indptr[17]] += 1.0
    one, same, other = (
        read_parameters(params, some).mark for some in (clouds, clouds[:], mapped(clouds, lambda x: changed))
    )
    assert one == same
    assert one != other


def test_a_foreign_folder_is_no_checkpoint(tmp_path, small):
    (tmp_path / "precious").write_text("data")
    with pytest.raises(FileExistsError):
        wh.Wormhole(**ALONE, checkpoint=tmp_path).fit(small)
    with pytest.raises(FileNotFoundError):
        wh.Wormhole(**ALONE, checkpoint=tmp_path).fit(small, resume=True)
    assert (tmp_path / "precious").read_text() == "data"


def test_resuming_a_finished_fit_removes_no_foreign_folder(tmp_path, small):
    (tmp_path / "precious").write_text("data")
    finished = wh.Wormhole(**ALONE).fit(small).set_params(checkpoint=tmp_path)
    with contextlib.suppress(FileExistsError, FileNotFoundError, ValueError):
        finished.fit(small, resume=True)
    assert (tmp_path / "precious").read_text() == "data"


def test_a_new_fit_forgets_the_checkpoint_of_the_last(monkeypatch, small):
    def stop(*args):
        raise KeyboardInterrupt

    model = wh.Wormhole(**ALONE).fit(small)
    with monkeypatch.context() as patched:
        patched.setattr(_fit, "split_clouds", stop)
        with pytest.raises(KeyboardInterrupt):
            model.fit(small[::-1])
    with pytest.warns(UserWarning, match="starts anew"):
        resumed = model.fit(small[::-1], resume=True).transform(small)
    np.testing.assert_array_equal(resumed, wh.Wormhole(**ALONE).fit(small[::-1]).transform(small))


def test_a_finished_fit_leaves_no_checkpoint(tmp_path, alone, small):
    model = wh.Wormhole(**{**ALONE, "max_steps": 40}, checkpoint=tmp_path / "deep" / "checkpoint").fit(small)
    assert list((tmp_path / "deep").iterdir()) == []
    np.testing.assert_array_equal(model.transform(small), alone.model.transform(small))


def test_kept_exactly(model, tmp_path, others):
    model.save(tmp_path / "model")
    again = wh.Wormhole.load(tmp_path / "model")
    z = model.transform(others)
    np.testing.assert_array_equal(again.transform(others), z)
    np.testing.assert_array_equal(again.nugget(others), model.nugget(others))
    np.testing.assert_array_equal(again.inverse_transform(z).points, model.inverse_transform(z).points)
    np.testing.assert_array_equal(again.held_out_, model.held_out_)
    assert repr(again.history_) == repr(model.history_)
    assert again.get_params() == model.get_params()
    for name in ("epsilon_", "converged_", "dim_", "n_points_", "feature_names_in_"):
        assert getattr(again, name) == getattr(model, name)
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == [io.ARRAYS, io.HEADER]


def test_parameters_of_numpy_can_be_kept(tmp_path, small):
    given = {
        "n_components": np.int64(8),
        "rng": np.int32(0),
        "learning_rate": np.float32(1e-3),
        "tol": np.float64(1e-3),
    }
    model = wh.Wormhole(**{**ALONE, **given}, checkpoint=tmp_path / "checkpoint").fit(small)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(wh.Wormhole.load(tmp_path / "model").transform(small), model.transform(small))


def test_no_model_is_overwritten_unasked(alone, tmp_path, small):
    folder = tmp_path / "model"
    alone.model.save(folder)
    with pytest.raises(FileExistsError, match="overwrite=True"):
        alone.model.save(folder)
    alone.model.save(folder, overwrite=True)
    np.testing.assert_array_equal(wh.Wormhole.load(folder).transform(small), alone.model.transform(small))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious").write_text("data")
    with pytest.raises(FileExistsError, match="not a scwormhole model"):
        alone.model.save(tmp_path / "mine", overwrite=True)
    assert (tmp_path / "mine" / "precious").read_text() == "data"


def test_no_half_a_model(alone, tmp_path, monkeypatch):
    def fail(*args):
        raise OSError("disk full")

    monkeypatch.setattr(io, "save_file", fail)
    with pytest.raises(OSError, match="disk full"):
        alone.model.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def damaged(header, change):
    found = json.loads(header.read_text())
    change(found)
    header.write_text(json.dumps(found))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda header: header.update(kind="scwormhole checkpoint"), "not a scwormhole model"),
        (lambda header: header.update(format=99), "newer scwormhole"),
        (lambda header: header.pop("format"), "no format"),
        (lambda header: header.pop("params"), "damaged"),
        (lambda header: header.pop("history_"), "damaged"),
        (lambda header: header["params"].update(unknown=1), "damaged"),
        (lambda header: header["trained"]["network"].update(hidden=9), "damaged"),
        (lambda header: header["trained"]["network"].update(n_blocks=3), "damaged"),
        (lambda header: header.update(trained=None), "damaged"),
        (lambda header: header["trained"].update(base=[]), "damaged"),
    ],
)
def test_a_model_that_is_not_right_is_refused(alone, tmp_path, change, message):
    alone.model.save(tmp_path / "model")
    damaged(tmp_path / "model" / io.HEADER, change)
    with pytest.raises(ValueError, match=message):
        wh.Wormhole.load(tmp_path / "model")


@pytest.mark.parametrize("name", [io.ARRAYS, io.HEADER])
def test_a_model_that_is_missing_or_truncated_is_refused(alone, tmp_path, name):
    with pytest.raises(FileNotFoundError, match="is not there"):
        wh.Wormhole.load(tmp_path / "model")
    alone.model.save(tmp_path / "model")
    part = tmp_path / "model" / name
    part.write_bytes(part.read_bytes()[:-50])
    with pytest.raises(ValueError, match="is damaged"):
        wh.Wormhole.load(tmp_path / "model")
    part.unlink()
    with pytest.raises(FileNotFoundError, match=f"has no {name}"):
        wh.Wormhole.load(tmp_path / "model")


def test_translation_moves_the_first_components_and_nothing_else(model, others):
    shift = np.array([0.7, -1.3])
    one, other = model.embed(others), model.embed(mapped(others, lambda x: x + shift))
    np.testing.assert_allclose(other.z[:, :2] - one.z[:, :2], np.tile(shift, (30, 1)), atol=1e-5)
    np.testing.assert_allclose(other.z[:, 2:], one.z[:, 2:], atol=2e-5)
    np.testing.assert_allclose(other.nugget, one.nugget, atol=2e-5)


def test_order_of_points_and_split_points_change_nothing(model, others):
    generator = np.random.default_rng(0)
    arrays, weights = [], []
    for points, mass in others:
        order = generator.permutation(len(points))
        arrays.append(np.concatenate([points[order], points[order[:1]]]))
        halved = np.append(mass[order], mass[order[0]] / 2)
        halved[0] /= 2
        weights.append(halved)
    z = model.transform(others)
    found = model.transform(wh.PointClouds.from_list(arrays, weights))
    np.testing.assert_allclose(found, z, atol=1e-4 * np.abs(z).max())


@pytest.mark.parametrize("batch_size", [1, 3, 64])
def test_the_same_whatever_the_batch_size(model, others, batch_size):
    z = model.transform(others)
    np.testing.assert_allclose(model.transform(others, batch_size=batch_size), z, atol=1e-5 * np.abs(z).max())
    np.testing.assert_allclose(model.transform(others[4:5])[0], z[4], atol=1e-5 * np.abs(z).max())


def test_divergences_are_in_the_units_of_the_points(alone, small):
    large = mapped(small, lambda x: 1000 * x)
    scaled = wh.Wormhole(**{**ALONE, "max_steps": 40}).fit(large)
    assert scaled.epsilon_ == pytest.approx(1e6 * alone.model.epsilon_, rel=1e-6)
    near, far = alone.model.distances(small[:6], small[6:]), scaled.distances(large[:6], large[6:])
    np.testing.assert_allclose(far, 1e6 * near, rtol=1e-2)
    np.testing.assert_allclose(scaled.transform(large), 1e3 * alone.model.transform(small), rtol=1e-2, atol=5.0)


def test_decoded_clouds_are_in_the_units_and_the_place_of_the_cohort(model, clouds):
    z = model.transform(clouds)
    decoded = model.inverse_transform(z)
    assert len(decoded) == len(clouds)
    assert set(decoded.sizes) == {model.n_points_} == {int(np.median(clouds.sizes))}
    means = np.array([cloud.weights @ cloud.points for cloud in decoded])
    true = np.array([cloud.weights @ cloud.points for cloud in clouds])
    np.testing.assert_allclose(means, true, atol=1e-3)
    train_on = np.concatenate([clouds[i].points for i in np.setdiff1d(np.arange(48), model.held_out_)])
    reach = 0.1 * np.ptp(train_on, axis=0)
    far = model.inverse_transform(np.concatenate([z + 100, z - 100]))
    for found in (decoded.points, far.points):
        assert (found >= train_on.min(0) - reach - 1e-6).all()
        assert (found <= train_on.max(0) + reach + 1e-6).all()
    np.testing.assert_allclose(far.points.max(0), train_on.max(0) + reach, rtol=1e-6)


def test_barycenters(model, clouds):
    z = model.transform(clouds)[:5]
    expected = model.inverse_transform(z.astype(np.float64).mean(0)[None])[0]
    np.testing.assert_allclose(model.barycenter(z).points, expected.points, atol=1e-4)
    np.testing.assert_allclose(
        model.barycenter(z, [0, 0, 2, 0, 0]).points, model.inverse_transform(z[2:3])[0].points, atol=1e-4
    )


@pytest.mark.parametrize("weights", [[1, 1], [1, -1, 1], [0, 0, 0], [1, np.nan, 1], [1, np.inf, 1], [[1, 1, 1]]])
def test_weights_of_a_barycenter_must_be_weights(model, clouds, weights):
    with pytest.raises(ValueError, match=r"weights is \[.*\]; give 3 finite numbers"):
        model.barycenter(model.transform(clouds)[:3], weights)


def test_interpolation_has_both_ends(model, clouds):
    z = model.transform(clouds)
    way = model.interpolate(z[0], z[1], n=5)
    assert len(way) == 5
    ends = model.inverse_transform(z[:2])
    np.testing.assert_allclose(way[0].points, ends[0].points, atol=1e-4)
    np.testing.assert_allclose(way[4].points, ends[1].points, atol=1e-4)
    means = np.array([cloud.points.mean(0) for cloud in way])
    np.testing.assert_allclose(np.diff(means, axis=0), np.tile((means[4] - means[0]) / 4, (4, 1)), atol=1e-3)
    with pytest.raises(ValueError, match="at least 2"):
        model.interpolate(z[0], z[1], n=1)


@pytest.mark.parametrize(
    "z",
    [np.zeros(16), np.zeros((2, 15)), np.zeros((0, 16)), np.full((1, 16), np.nan), np.full((1, 16), np.inf)],
    ids=["flat", "short", "none", "nan", "inf"],
)
def test_vectors_must_be_vectors(model, z):
    with pytest.raises(ValueError, match=r"^z has"):
        model.inverse_transform(z)
    with pytest.raises(ValueError, match=r"^z has"):
        model.barycenter(z)


def test_without_a_decoder(alone, small):
    z = alone.model.transform(small)
    for use in (alone.model.inverse_transform, alone.model.barycenter, lambda z: alone.model.interpolate(z[0], z[1])):
        with pytest.raises(ValueError, match="coeff_dec"):
            use(z)
    assert alone.model.n_points_ == 0
    assert not any("decoder" in name for name in alone.model._trained.arrays())
    assert set(alone.model.history_["phase"]) == {"encoder"}


def test_history_tells_of_every_look(model):
    history = model.history_
    assert set(history) == SEEN
    assert {len(column) for column in history.values()} == {6}
    assert history["phase"] == ["encoder"] * 3 + ["decoder"] * 3
    assert history["step"] == [0, 10, 20] * 2
    assert (np.diff(history["seconds"]) > 0).all()
    assert min(history["correlation"][:3]) > 0.8
    assert np.isfinite(history["error"]).all()


def test_fitted_attributes(model, clouds):
    check_is_fitted(model)
    assert model.dim_ == 2
    assert model.epsilon_ > 0
    assert isinstance(model.converged_, bool)
    assert model.base_.kind_ == "tree"
    assert len(model.held_out_) == len(clouds) // 5
    assert "Wormhole(" in repr(model)
    assert "n_components=16" in repr(model)


def test_fit_transform_is_fit_and_transform(alone, small):
    found = wh.Wormhole(**{**ALONE, "max_steps": 40}).fit_transform(small)
    np.testing.assert_array_equal(found, alone.model.transform(small))


def cubed(x, y):
    return (jnp.abs(x - y) ** 3).sum()


@pytest.mark.parametrize(
    "metric", ["S1", "GS", cubed, *(pytest.param(name, marks=pytest.mark.slow) for name in ("W2", "W1", "GW"))]
)
def test_every_metric(metric, small, tmp_path):
    model = wh.Wormhole(metric, **ALONE).fit(small)
    z = model.transform(small)
    assert np.isfinite(z).all()
    assert np.isfinite(model.nugget(small)).all()
    assert np.ptp(z) > 0
    assert model.history_["correlation"][-1] > 0.5
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(wh.Wormhole.load(tmp_path / "model").transform(small), z)


def test_rotations_are_nothing_to_gromov(small):
    model = wh.Wormhole("GS", **ALONE).fit(small)
    turn = np.array([[0.0, 1.0], [-1.0, 0.0]])
    base, turned = model.base_.transform(small), model.base_.transform(mapped(small, lambda x: x @ turn))
    np.testing.assert_allclose(turned, base, atol=1e-3 * np.abs(base).max())


@pytest.mark.slow
def test_a_metric_of_the_decoder_apart(small):
    model = wh.Wormhole(metric_dec="W1", decode_weights=True, n_points=3, **TINY).fit(small)
    decoded = model.inverse_transform(model.transform(small))
    assert set(decoded.sizes) == {3}
    assert np.isfinite(decoded.points).all()
    assert all(cloud.weights.sum() == pytest.approx(1) for cloud in decoded)


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["GW", "GS", cubed])
def test_decoders_of_other_metrics(metric, small):
    model = wh.Wormhole(metric, **TINY).fit(small)
    assert np.isfinite(model.inverse_transform(model.transform(small)).points).all()


def test_the_paper():
    params = wh.Wormhole.paper(rng=3).get_params()
    theirs = {"width": 128, "hidden": 512, "n_blocks": 3, "n_heads": 4, "norm": "post", "base": None, "nugget": False}
    theirs |= {"epsilon": 0.1, "epsilon_dec": 0.01, "relative_epsilon": "box", "batch_size": 16, "learning_rate": 1e-4}
    theirs |= {"decay": "exponential", "max_steps": 10_000, "coeff_dec": 0.1, "n_components": 128, "rng": 3}
    assert {name: params[name] for name in theirs} == theirs
    assert wh.Wormhole.paper(width=64).get_params()["width"] == 64


def test_the_paper_fits_clouds_of_many_sizes_and_advises_more_steps():
    small = cohort(12, most=12)
    sizes = {"n_components": 8, "width": 8, "hidden": 8, "n_heads": 1, "n_blocks": 1, "max_steps": 10, "coeff_dec": 0}
    with pytest.warns(ConvergenceWarning, match="max_steps"):
        model = wh.Wormhole.paper(**sizes, learning_rate=0.02, progress=False).fit(small)
    assert model.base_ is None
    assert not model.converged_
    assert np.isfinite(model.transform(small)).all()
    np.testing.assert_array_equal(model.nugget(small), 0)
    points = np.concatenate([cloud.points for cloud in small])
    assert model.epsilon_ == pytest.approx(0.1 * (np.ptp(points) / 2) ** 2, rel=1e-5)


def test_parameters_in_and_out():
    model = wh.Wormhole("S1", n_components=7, nugget=True)
    assert model.get_params()["n_components"] == 7
    assert clone(model).get_params() == model.get_params()
    assert clone(model) is not model
    assert model.set_params(n_components=9).get_params()["n_components"] == 9
    with pytest.raises(ValueError, match=r"no parameter colour; there are metric, epsilon"):
        model.set_params(colour=1)
    assert repr(wh.Wormhole()) == "Wormhole()"
    assert repr(wh.Wormhole("S1", rng=2)) == "Wormhole(metric='S1', rng=2)"


def test_a_clone_is_not_fitted(model, clouds):
    fresh = clone(model)
    uses = [
        lambda: fresh.transform(clouds),
        lambda: fresh.nugget(clouds),
        lambda: fresh.embed(clouds),
        lambda: fresh.distances(clouds, clouds),
        lambda: fresh.inverse_transform(np.zeros((1, 16))),
        lambda: fresh.barycenter(np.zeros((1, 16))),
        lambda: fresh.interpolate(np.zeros(16), np.ones(16)),
        lambda: fresh.score(clouds),
        lambda: fresh.save("nowhere"),
        lambda: fresh.base_,
        lambda: fresh.n_points_,
        lambda: check_is_fitted(fresh),
    ]
    for use in uses:
        with pytest.raises(NotFittedError):
            use()


BAD = [
    *((name, value) for name, least in WHOLE.items() for value in (least - 1, least + 0.5, "3", True, [3])),
    *((name, None) for name in WHOLE if name not in OPTIONAL),
    *((name, value) for name in POSITIVE for value in (0, -1.0, np.nan, np.inf, "1", True)),
    *((name, None) for name in POSITIVE if name not in OPTIONAL),
    *((name, value) for name in CHOICES for value in ("nonsense", 7)),
    *(("coeff_dec", value) for value in (-1, np.nan, np.inf, "1", None)),
    *((name, value) for name in ("metric", "metric_dec") for value in ("S3", None, 2, ["S2"])),
    ("metric", "auto"),
    ("n_heads", 3),
    ("decode_weights", "no"),
    ("rotate", "no"),
]


@pytest.mark.parametrize(("name", "value"), BAD, ids=[f"{name}={value!r}" for name, value in BAD])
def test_a_parameter_that_is_wrong_is_named(small, name, value, monkeypatch):
    monkeypatch.setattr(_fit, "split_clouds", lambda *args: pytest.fail("work was begun"))
    with pytest.raises(ValueError, match=name):
        wh.Wormhole(**{**ALONE, "width": 8, name: value}).fit(small)


@pytest.mark.parametrize(("metric", "base"), [("S2", "invariant"), ("GS", "sliced"), ("GW", "tree")])
def test_a_base_that_does_not_suit_the_metric(small, metric, base):
    with pytest.raises(ValueError, match=base):
        wh.Wormhole(metric, base=base, **ALONE).fit(small)


def test_no_cohort(model, small):
    arrays = [np.zeros((3, 2)), np.ones((3, 2))]
    with pytest.raises(TypeError, match=r"list.*PointClouds.from_list"):
        wh.Wormhole(**ALONE).fit(arrays)
    with pytest.raises(TypeError, match=r"list.*PointClouds.from_list"):
        model.transform(arrays)
    with pytest.raises(ValueError, match="at least two"):
        wh.Wormhole(**ALONE).fit(small[:1])
    with pytest.raises(ValueError, match=r"3 dimensions.*fitted in 2"):
        model.transform(cohort(3, dim=3))


@pytest.mark.parametrize("n", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_very_few_clouds(small, n):
    model = wh.Wormhole(**ALONE).fit(small[:n])
    assert np.isfinite(model.transform(small)).all()
    assert len(model.held_out_) == 0
    true = wh.ot.distances(small[:1], small[1:2], epsilon=model.epsilon_, relative_epsilon=None, progress=False)
    np.testing.assert_allclose(model.distances(small[:1], small[1:2]), true, rtol=0.1)


@pytest.mark.parametrize("base", ["auto", None])
def test_no_steps(small, base):
    model = wh.Wormhole(**{**ALONE, "base": base, "max_steps": 0}).fit(small)
    assert model.history_["step"] == [0]
    assert not model.converged_
    z = model.transform(small)
    assert np.isfinite(z).all()
    if base:
        np.testing.assert_allclose(z, model.base_.transform(small), rtol=1e-6, atol=1e-6)


def test_no_blocks(small):
    assert np.isfinite(wh.Wormhole(**{**ALONE, "n_blocks": 0}).fit(small).transform(small)).all()


@pytest.mark.slow
def test_large_clouds_are_sampled_in_steps_and_embedded_whole(small):
    model = wh.Wormhole(**ALONE, max_points=4, max_points_ot=4).fit(small)
    assert model._trained.network.n_components == 8
    z = model.transform(small)
    np.testing.assert_array_equal(model.transform(small), z)
    assert np.isfinite(z).all()


@pytest.mark.parametrize(
    "block", [slice(None), slice(None, 3), slice(0, 999), slice(-3, -1), slice(2, 2), slice(0, 4, 2)]
)
def test_blocks_that_are_none_are_told(model, clouds, block):
    with pytest.raises(ValueError, match="give slices with start and stop, from 0 to"):
        next(model.embed_blocks(clouds, [block]))


def test_a_batch_of_nothing_is_told(model, clouds):
    with pytest.raises(ValueError, match="batch_size is 0; give a whole number of at least 1"):
        model.transform(clouds, batch_size=0)


def test_large_clouds_are_worked_on_by_fewer_threads(model, clouds, monkeypatch):
    needed = _use.WORK_SHARE * model._trained._bytes(int(clouds.rungs.max()), clouds.dtype.itemsize, 1)
    monkeypatch.setattr(_use, "workers", lambda: 64)
    expected = model.transform(clouds)
    found = np.concatenate([some.z for _, some in model.embed_blocks(clouds, max_memory=needed)])
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="Raise it, or make clouds of fewer points"):
        next(model.embed_blocks(clouds, max_memory=needed - 1))


def test_looks_at_held_out_clouds_keep_to_the_memory(clouds, monkeypatch):
    given, original = [], _use.Trained.embed

    def watched(self, *args, **options):
        given.append(options["max_memory"])
        return original(self, *args, **options)

    monkeypatch.setattr(_use.Trained, "embed", watched)
    wh.Wormhole(max_memory="100 MiB", **TINY).fit(clouds)
    assert set(given) == {100 * 2**20}


def test_parameters_are_attributes_as_in_scikit_learn():
    model = wh.Wormhole(n_components=7)
    assert (model.n_components, model.metric) == (7, "S2")
    model.n_components = 9
    assert model.get_params()["n_components"] == 9
    assert "max_steps" in dir(model)
    assert callable(model.nugget)  # the method of that name comes first
    with pytest.raises(AttributeError, match=r"nugget is a method too; set the parameter by set_params\(nugget="):
        model.nugget = True
    with pytest.raises(AttributeError, match="'Wormhole' object has no attribute 'n_component'"):
        model.n_component  # noqa: B018
    assert not hasattr(model, "epsilon_")
