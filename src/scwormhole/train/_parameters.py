"""From a user's parameters to the records of this room: checked before any work is done."""

import hashlib
from functools import partial
from numbers import Integral, Real
from types import CodeType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scwormhole.clouds import PointClouds
from scwormhole.clouds._scan import digest
from scwormhole.ot import BaseFeatures
from scwormhole.ot._options import as_bytes

from ._settings import DEGREES, Network, Recipe, Transport

WHOLE = {
    "n_components": 1,
    "n_points": 1,
    "width": 1,
    "hidden": 1,
    "n_blocks": 0,
    "n_heads": 1,
    "n_induced": 0,
    "batch_size": 2,
    "max_steps": 0,
    "max_points": 1,
    "max_points_ot": 1,
    "n_validation": 0,
    "patience": 1,
    "rng": 0,
}
MOST_SOLVING = 1 << 31  # bytes that solving pairs may take; more would not make it quicker
LARGEST_SEED = 2**32 - 1
POSITIVE = ("epsilon", "epsilon_dec", "learning_rate", "clip", "max_seconds", "tol")
OPTIONAL = ("n_points", "n_induced", "max_steps", "max_seconds", "max_points", "max_points_ot", "patience", "clip")
CHOICES = {
    "relative_epsilon": ("mean", "box", None),
    "base": ("auto", "sliced", "tree", "invariant", None),
    "nugget": ("auto", True, False),
    "norm": ("pre", "post"),
    "decode_weights": (True, False),
    "rotate": (True, False),
    "decay": ("cosine", "exponential"),
}
BASES = {False: ("auto", "sliced", "tree", None), True: ("auto", "invariant", None)}  # by whether it is GW or GS
FREE = ("max_steps", "max_seconds", "checkpoint", "progress")  # may change when a fit is taken up again


class Parameters(NamedTuple):
    """What a fit is told."""

    transport: Transport
    network: Network
    recipe: Recipe
    base: BaseFeatures | None
    nugget: bool  # where there is no base to decide
    max_memory: int  # bytes
    mark: dict[str, Any]  # what must be the same for a fit to be taken up again


def read_parameters(params: dict[str, Any], clouds: PointClouds) -> Parameters:
    """Return the records that parameters stand for, or say which of them is wrong.

    Parameters
    ----------
    params
        Parameters of a Wormhole by name.
    clouds
        The cohort it is to be fitted to.
    """
    _check(params)
    params = {name: _plain(name, value) for name, value in params.items()}
    if len(clouds) < 2:
        found = "a single cloud" if len(clouds) else "no cloud"
        raise ValueError(f"clouds holds {found}; at least two are needed, for there must be a pair to learn.")
    gromov = params["metric"] in ("GW", "GS")
    if params["metric_dec"] == "auto":
        params["metric_dec"] = "GS" if gromov else "S2"
    training = ("batch_size", "learning_rate", "decay", "clip", "patience", "max_seconds", "coeff_dec")
    chosen = {name: params[name] for name in ("max_steps", "max_points") if params[name] is not None}
    return Parameters(
        Transport(
            **_some(params, "metric", "epsilon", "relative_epsilon", "metric_dec", "epsilon_dec", "tol"),
            max_points=params["max_points_ot"],
            max_memory=min(as_bytes(params["max_memory"]), MOST_SOLVING),
        ),
        Network(
            **_some(params, "n_components", "width", "hidden", "n_blocks", "n_heads"),
            n_induced=_induced(clouds.sizes) if params["n_induced"] is None else params["n_induced"],
            n_points=(params["n_points"] or int(np.median(clouds.sizes))) if params["coeff_dec"] > 0 else 0,
            weighted=params["decode_weights"],
            post=params["norm"] == "post",
        ),
        Recipe(**_some(params, *training, "n_validation", "rotate", "rng"), **chosen),
        _base(params),
        params["nugget"] is True,
        as_bytes(params["max_memory"]),
        _mark(clouds, params),
    )


def metric_name(metric: Any) -> str:
    """Return the name of a metric, or of the user's own ground cost."""
    return metric if isinstance(metric, str) else getattr(metric, "__name__", "cost")


def _check(params: dict[str, Any]) -> None:
    for name, least in WHOLE.items():
        if not _is_number(params[name], Integral, name) or (params[name] is not None and params[name] < least):
            raise ValueError(f"{name} is {params[name]!r}; give a whole number of at least {least}.")
    for name in POSITIVE:
        if not _is_number(params[name], Real, name) or (params[name] is not None and not params[name] > 0):
            raise ValueError(f"{name} is {params[name]!r}; give a number above 0.")
    if not _is_number(params["coeff_dec"], Real, "coeff_dec") or params["coeff_dec"] < 0:
        raise ValueError(f"coeff_dec is {params['coeff_dec']!r}; give a number of at least 0; 0 is for no decoder.")
    for name, allowed in CHOICES.items():
        if not any(params[name] is choice or params[name] == choice for choice in allowed):
            raise ValueError(f"{name} is {params[name]!r}; give one of {', '.join(map(repr, allowed))}.")
    for name in ("metric", "metric_dec"):
        known = {*DEGREES, *(("auto",) if name == "metric_dec" else ())}
        if not callable(params[name]) and not (isinstance(params[name], str) and params[name] in known):
            raise ValueError(f"{name} is {params[name]!r}; give one of {', '.join(sorted(known))}, or a ground cost.")
    gromov = params["metric"] in ("GW", "GS")
    if params["base"] not in BASES[gromov]:
        suits = ", ".join(map(repr, BASES[gromov]))
        metric = metric_name(params["metric"])
        raise ValueError(f"base is {params['base']!r}, which does not go with metric {metric!r}; give one of {suits}.")
    as_bytes(params["max_memory"])
    if params["rng"] > LARGEST_SEED:
        raise ValueError(f"rng is {params['rng']}; give a whole number from 0 to {LARGEST_SEED}.")
    if params["width"] % params["n_heads"]:
        raise ValueError(
            f"width {params['width']} is not a multiple of n_heads {params['n_heads']}; change one of them."
        )


def _induced(sizes: NDArray[np.int64]) -> int:
    """Return the learned vectors that attention goes through by default: none where points see no more without them."""
    seen = (sizes.astype(float) ** 2).sum() / sizes.sum()  # points of the cloud of a point, on average
    return 0 if seen <= 2 * Network.n_induced else Network.n_induced


def _is_number(value: Any, kind: Any, name: str) -> bool:
    """Return whether a value is a finite number of a kind, or left open where that is allowed."""
    if value is None:
        return name in OPTIONAL
    return isinstance(value, kind) and not isinstance(value, bool) and bool(np.isfinite(float(value)))


def _plain(name: str, value: Any) -> Any:
    """Return a number as Python's own, which JSON can hold."""
    if value is None or isinstance(value, str):
        return value
    return int(value) if name in WHOLE else float(value) if name in (*POSITIVE, "coeff_dec") else value


def _some(params: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: params[name] for name in names}


def _base(params: dict[str, Any]) -> BaseFeatures | None:
    if params["base"] is None:
        return None
    return BaseFeatures(
        kind=params["base"],
        max_points=params["max_points_ot"],
        **_some(params, "metric", "n_components", "nugget", "rng", "progress"),
    )


def _mark(clouds: PointClouds, params: dict[str, Any]) -> dict[str, Any]:
    own = {name: value for name, value in params.items() if name not in FREE}
    for name in ("metric", "metric_dec"):
        own[name] = own[name] if isinstance(own[name], str) else cost_mark(own[name])
    return {"clouds": digest(clouds), **own}


def cost_mark(cost: Any) -> str:
    """Return what a ground cost of the user's is known by again: its name, and a digest of its code and its values."""
    found = hashlib.blake2b(digest_size=8)
    for part in _code(cost):
        found.update(part)
    return f"{metric_name(cost)} {found.hexdigest()}"


def _code(value: Any) -> list[bytes]:
    """Return all that a function does, as bytes: its code, its defaults and what it holds from outside."""
    if isinstance(value, CodeType):
        return [
            value.co_code,
            repr(value.co_names).encode(),
            *(part for item in value.co_consts for part in _code(item)),
        ]
    if isinstance(value, partial):
        return [part for item in (value.func, *value.args, *sorted(value.keywords.items())) for part in _code(item)]
    if isinstance(value, tuple | list):
        return [part for item in value for part in _code(item)]
    code = getattr(value, "__code__", None)
    if code is not None:
        held = [cell.cell_contents for cell in value.__closure__ or ()]
        return [part for item in (code, value.__defaults__, held) for part in _code(item)]
    if hasattr(value, "__array__"):
        return [np.asarray(value).tobytes()]
    if callable(value):
        inside = sorted(vars(value).items()) if hasattr(value, "__dict__") else []
        return [part for item in (getattr(type(value).__call__, "__code__", None), inside) for part in _code(item)]
    return [repr(value).encode()]
