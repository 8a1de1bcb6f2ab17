"""Shows a model in a notebook, as HTML: what was set, what was learned and how well. Text only."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from scwormhole.clouds._html import card, facts, folded, line
from scwormhole.clouds._wording import count

from ._history import History
from ._use import Trained


class Learned(NamedTuple):
    """What a fit left behind."""

    trained: Trained
    metric: str
    epsilon: float
    history: History
    converged: bool
    n_clouds: int | None  # None for a model that was saved before it was kept
    n_held_out: int


def model_html(name: str, params: Mapping[str, Any], defaults: Mapping[str, Any], learned: Learned | None) -> str:
    """Return a model as HTML.

    Parameters
    ----------
    name
        Name of the class.
    params
        Its parameters.
    defaults
        What they are by default.
    learned
        What came of a fit, None before it.
    """
    changed = [f"{key}={value!r}" for key, value in params.items() if repr(value) != repr(defaults[key])]
    lists = [
        folded(f"{count(len(changed), 'parameter')} other than by default", changed, shown=learned is None)
        if changed
        else facts([("parameters", "all as by default")]),
        folded("all parameters", (f"{key}={value!r}" for key, value in params.items())),
    ]
    if learned is None:
        return card(f"{name}, not fitted", facts([("next", "model.fit(clouds)")]), *lists)
    looks = learned.history.of_phase("encoder")
    drawing = ""
    if len(looks.step) > 1 and np.isfinite([*looks.correlation, *looks.error]).all():
        drawing = line(looks.step, looks.correlation, int(np.argmin(looks.error)), f"{_on(learned)} correlation")
    return card(f"{name}, fitted", facts(_found(learned, looks)), drawing, *lists)


def _found(learned: Learned, looks: History) -> list[tuple[str, str]]:
    """Return what is worth knowing of a fitted model."""
    trained, network = learned.trained, learned.trained.network
    clouds = "" if learned.n_clouds is None else f"{count(learned.n_clouds, 'cloud')} in "
    ended = "converged" if learned.converged else "not converged; more max_steps or max_seconds may help"
    return [
        ("metric", learned.metric),
        ("epsilon", f"{learned.epsilon:.4g}, in units of the ground cost"),
        ("length of a vector", f"{network.n_components:,}"),
        ("learned from", f"{clouds}{count(len(trained.frame.origin), 'dimension')}, {learned.n_held_out:,} held out"),
        ("training", ended),
        (f"{_on(learned)} clouds", _best(looks)),
        ("base", "none" if trained.base is None else trained.base.kind_),
        ("nugget", _nugget(trained)),
        ("decoder", f"clouds of {count(network.n_points, 'point')}" if network.n_points else "none"),
        ("next", "model.transform(clouds)"),
    ]


def _on(learned: Learned) -> str:
    """Return which clouds looks were at; too small a cohort can spare none."""
    return "held-out" if learned.n_held_out else "training"


def _best(looks: History) -> str:
    """Return how good the weights that were kept are, those of the least error."""
    if not np.isfinite(looks.error).any():
        return "not known"
    at = int(np.nanargmin(looks.error))
    found = {"correlation": looks.correlation[at], "error over standard deviation": looks.error[at]}
    return ", ".join(f"{name} {value:.4f}" for name, value in found.items() if np.isfinite(value))


def _nugget(trained: Trained) -> str:
    """Return whether there is a nugget, and how much of a divergence the base found it to be."""
    state = "on" if trained.nugget else "off"
    if trained.base is None:
        return state
    return f"{state}; {trained.base.report_.nugget_share:.0%} of the mean divergence"
