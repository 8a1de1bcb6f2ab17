"""Square brackets: one cloud, some clouds, and clear words for all else."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scwormhole.clouds import Cloud, PointClouds

NAMES = ["ant", "bee", "cat", "dog", "eel"]


def cohort(names=None):
    rng = np.random.default_rng(0)
    return PointClouds.from_list([rng.normal(size=(n, 2)) for n in (3, 1, 4, 1, 5)], names=names)


def same(one, other):
    return np.array_equal(one.points, other.points) and np.array_equal(one.weights, other.weights)


def test_one_cloud():
    clouds = cohort(NAMES)
    assert isinstance(clouds[2], Cloud)
    points, weights = clouds[2]
    assert points.shape == (4, 2)
    assert weights.tolist() == [0.25] * 4
    for key in (-3, np.int64(2), np.array(2), "cat", np.str_("cat")):
        assert same(clouds[key], clouds[2])
    assert [len(cloud.points) for cloud in clouds] == [3, 1, 4, 1, 5]


@pytest.mark.parametrize(
    ("key", "positions"),
    [
        ([0, 4], [0, 4]),
        ([4, 0], [4, 0]),
        (np.array([4, -4], np.int32), [4, 1]),
        (np.array([4, 1], np.uint8), [4, 1]),
        (slice(1, 4), [1, 2, 3]),
        (slice(None, None, 2), [0, 2, 4]),
        (slice(None, None, -1), [4, 3, 2, 1, 0]),
        (slice(-2, 99), [3, 4]),
        ([True, False, False, True, False], [0, 3]),
        (np.array([True, False, False, True, False]), [0, 3]),
        (pd.Series([True, False, False, True, False]), [0, 3]),
        (["dog", "ant"], [3, 0]),
        (np.array(["dog", "ant"]), [3, 0]),
        (pd.Index(["dog", "ant"]), [3, 0]),
    ],
)
def test_some_clouds(key, positions):
    clouds = cohort(NAMES)
    chosen = clouds[key]
    assert isinstance(chosen, PointClouds)
    assert chosen.points is clouds.points
    assert chosen.names.tolist() == [NAMES[position] for position in positions]
    assert all(same(one, clouds[position]) for one, position in zip(chosen, positions, strict=True))
    assert clouds.padded(key).index.tolist() == positions


def test_a_selection_is_not_scanned_again(monkeypatch):
    import scwormhole.clouds._layout as layout

    clouds = cohort()
    monkeypatch.setattr(layout, "check_finite", None)
    assert len(clouds[1:] + clouds[:1]) == 5


@given(st.permutations(range(5)), st.integers(1, 5))
def test_selections_compose(order, length):
    clouds = cohort()
    assert clouds[order][order[:length]] == clouds[[order[position] for position in order[:length]]]


def test_default_names_follow_the_clouds():
    clouds = cohort()[[4, 1]]
    assert clouds.names.tolist() == ["4", "1"]
    assert same(clouds["1"], cohort()[1])
    assert "4" in clouds
    assert "0" not in clouds
    assert 4 not in clouds


ERRORS = {
    "too far": (5, IndexError, "no cloud at position 5: there are 5 clouds, at positions 0 to 4"),
    "too far back": (-6, IndexError, "no cloud at position -6"),
    "some too far": ([0, 7, 9], IndexError, "no cloud at position 7, 9"),
    "unknown name": ("bet", KeyError, r"no cloud is named 'bet'; close names are \['bee'\]"),
    "strange name": ("zzzzzz", KeyError, "no cloud is named 'zzzzzz'; the names are 'ant', 'bee', 'cat', 'dog', 'eel'"),
    "unknown names": (["ant", "doog"], KeyError, r"no cloud is named 'doog'; close names are \['dog'\]"),
    "short mask": ([True, False], IndexError, "the mask has length 2 for 5 clouds; give one value a cloud"),
    "empty mask": ([False] * 5, IndexError, "the selection holds no cloud"),
    "empty list": ([], IndexError, "the selection holds no cloud"),
    "empty slice": (slice(3, 3), IndexError, "the selection holds no cloud"),
    "reals": ([0.0, 1.0], IndexError, r"a key of type float64 \(0.0, 1.0\) does not select clouds; use a position"),
    "real": (1.5, IndexError, r"a key of shape \(\) and type float64 does not select clouds"),
    "tuple": ((0, 1), IndexError, r"\(0, 1\) does not select clouds; .* a list of positions or names"),
    "truth": (True, IndexError, "True does not select clouds"),
    "nothing": (None, IndexError, "does not select clouds"),
    "table": ([[0, 1]], IndexError, r"a key of shape \(1, 2\)"),
    "mixed": ([0, "ant"], IndexError, "mixes names with other things"),
}


@pytest.mark.parametrize(("key", "error", "message"), ERRORS.values(), ids=ERRORS)
def test_errors(key, error, message):
    with pytest.raises(error, match=message):
        cohort(NAMES)[key]


def test_repeats_would_repeat_names():
    clouds = cohort(NAMES)
    with pytest.raises(IndexError, match=r"cloud 1 \('bee'\) more than once.*use .padded\(index\)"):
        clouds[[1, 0, 1]]
    twice = PointClouds.concatenate([clouds[[1]], clouds[[1]]], names=["first", "second"])
    assert same(twice[0], twice[1])
    assert twice.points is clouds.points


def test_names_are_not_made_until_asked():
    clouds = PointClouds(np.eye(2), np.arange(1_000_001), np.zeros(1_000_000, int), np.ones(1_000_000))
    assert clouds[10:20]._layout.names._text is None
    assert clouds._layout.names._text is None
    assert clouds.names[-1] == "999999"


def test_scikit_learn_selects_as_from_an_array():
    """It asks for a shape, and for rows with an ellipsis behind them."""
    clouds, chosen = cohort(), np.array([1, 0])
    assert clouds.shape == (5,)
    assert clouds[chosen, ...] == clouds[chosen]
    with pytest.raises(IndexError, match="does not select clouds"):
        clouds[chosen, 0]
