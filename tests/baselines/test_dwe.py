"""DWE: it learns the divergences of tiny clouds, the same twice, and refuses what is no image."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import scwormhole as wh
from scwormhole.baselines import DWE
from scwormhole.baselines._convolutions import ConvolutionalNetworks

PAIRS = np.triu_indices(24, 1)


def blobs(n=24, dim=2, seed=0):
    rng = np.random.default_rng(seed)
    points = [
        rng.uniform(-1, 1, dim) + rng.uniform(0.1, 0.5, dim) * rng.normal(size=(rng.integers(6, 13), dim))
        for _ in range(n)
    ]
    return wh.PointClouds.from_list(points, [rng.uniform(0.5, 1, len(p)) for p in points])


def small(**params):
    return DWE(
        **{"side": 10, "n_components": 16, "n_channels": 4, "batch_size": 16, "max_steps": 300, "progress": False}
        | params
    )


@pytest.fixture(scope="module")
def clouds():
    return blobs()


@pytest.fixture(scope="module")
def model(clouds):
    return small().fit(clouds)


def test_learns_the_pairs_it_was_trained_on(model, clouds):
    exact = wh.ot.pairwise(clouds, progress=False)[PAIRS]
    found = model.pairwise(clouds)[PAIRS]
    assert np.corrcoef(found, exact)[0, 1] > 0.9
    assert abs(found.mean() / exact.mean() - 1) < 0.2  # in the user's units
    assert model.epsilon_ > 0


def test_losses_fall(model):
    history = model.history_
    assert history["step"] == [50, 100, 150, 200, 250, 300]
    assert history["encoder_loss"][-1] < 0.2 * history["encoder_loss"][0]
    assert history["decoder_loss"][-1] < history["decoder_loss"][0]
    assert model.n_steps_ == 300


def test_the_same_seed_gives_the_same_to_the_bit(clouds):
    one, same, other = (small(max_steps=40, rng=seed).fit(clouds) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.transform(clouds), same.transform(clouds))
    assert one.history_["encoder_loss"] == same.history_["encoder_loss"]
    assert np.abs(one.transform(clouds) - other.transform(clouds)).max() > 1e-3


def test_decodes_histograms(model, clouds):
    decoded = model.inverse_transform(model.transform(clouds))
    assert decoded.shape == (24, 100)
    assert model.inverse_transform(np.zeros((0, 16))).shape == (0, 100)
    np.testing.assert_allclose(decoded.sum(1), 1, rtol=1e-5)
    true = model.grid_.transform(clouds)
    means = decoded @ model.grid_.centres_, true @ model.grid_.centres_
    assert np.corrcoef(means[0][:, 0], means[1][:, 0])[0, 1] > 0.8


def test_diracs_are_farther_the_more_they_move():
    places = np.stack([np.arange(10), np.zeros(10)], axis=1)
    clouds = wh.PointClouds.from_list(list(places[:, None]))
    table = small(max_steps=400).fit(clouds).pairwise(clouds)
    assert (np.diff(table[0]) > 0).all()
    assert (np.diff(table[:, -1]) < 0).all()


def test_a_cloud_is_a_distribution(model, clouds):
    z = model.transform(clouds)
    both = [(np.repeat(c.points, 2, 0)[::-1], np.repeat(c.weights, 2)[::-1]) for c in clouds]
    split = wh.PointClouds.from_list([p for p, _ in both], [w for _, w in both])
    np.testing.assert_allclose(model.transform(split), z, atol=1e-5 * np.abs(z).max())
    np.testing.assert_array_equal(model.transform(clouds[[7, 3]]), z[[7, 3]])


def test_tables_and_pairs_agree(model, clouds):
    z = model.transform(clouds).astype(float)
    table = model.pairwise(clouds)
    np.testing.assert_allclose(table[3, 5], ((z[3] - z[5]) ** 2).sum(), rtol=1e-6)
    np.testing.assert_allclose(model.distances(clouds[:4], clouds[4:8]), table[range(4), range(4, 8)], rtol=1e-5)


def test_three_dimensions():
    clouds = blobs(12, dim=3)
    model = small(side=6, max_steps=60).fit(clouds)
    assert model.history_["encoder_loss"][-1] < model.history_["encoder_loss"][0]
    assert model.inverse_transform(model.transform(clouds)).shape == (12, 216)


def test_networks_see_all_of_a_grid_that_cannot_be_halved_twice():
    from flax import nnx

    networks = ConvolutionalNetworks((5, 7), 6, n_channels=2, hidden=8, scale=1.0, rngs=nnx.Rngs(0))
    ends = np.zeros((3, 35), np.float32)
    ends[[0, 1], [0, 34]] = 1
    z = np.asarray(networks.encode(ends))
    assert np.abs(z[0] - z[2]).max() > 1e-4
    assert np.abs(z[1] - z[2]).max() > 1e-4
    assert networks.decode(z).shape == (3, 35)


def test_time_is_kept(clouds):
    model = small(max_steps=10**6, max_seconds=0.001)
    with pytest.warns(ConvergenceWarning, match="no step"):
        model.fit(clouds)
    assert model.n_steps_ == 0
    assert model.transform(clouds).shape == (24, 16)


def test_bad_input_is_refused(model, clouds):
    with pytest.raises(ValueError, match="grids are for 2 and 3"):
        small().fit(blobs(dim=20))
    with pytest.raises(ValueError, match="at least two"):
        small().fit(clouds[:1])
    with pytest.raises(TypeError, match="PointClouds"):
        small().fit([np.eye(2)])
    with pytest.raises(ValueError, match="batch_size is 1; give a whole number of at least 2"):
        small(batch_size=1).fit(clouds)
    with pytest.raises(ValueError, match="learning_rate is -1"):
        small(learning_rate=-1).fit(clouds)
    failing = small(learning_rate=1e30, max_steps=6)
    with pytest.raises(FloatingPointError, match="lower learning_rate"):
        failing.fit(clouds)
    with pytest.raises(NotFittedError, match="not fitted"):
        failing.transform(clouds)
    with pytest.raises(NotFittedError, match="not fitted"):
        clone(model).transform(clouds)
    with pytest.raises(NotFittedError, match="not fitted"):
        clone(model).inverse_transform(np.zeros((1, 16)))
    with pytest.raises(ValueError, match="vectors of 16 numbers"):
        model.inverse_transform(np.zeros((1, 3)))
    with pytest.raises(ValueError, match="z has 16 entries that are no finite numbers"):
        model.inverse_transform(np.full((1, 16), np.nan))
    with pytest.raises(ValueError, match="fitted in 2"):
        model.transform(blobs(3, dim=3))
