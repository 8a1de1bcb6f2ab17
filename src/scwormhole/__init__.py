"""Optimal transport between very many point clouds: the menu, which loads each room when it is first asked for."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import baselines, datasets, mds, metrics, ot, pl, pp, tl
    from .clouds import Cloud, PointClouds
    from .model import Wormhole

__all__ = ["Cloud", "PointClouds", "Wormhole", "baselines", "datasets", "mds", "metrics", "ot", "pl", "pp", "tl"]
__version__ = version("scwormhole")

_ROOM_OF = {
    "Cloud": "clouds",
    "PointClouds": "clouds",
    "Wormhole": "model",
    "baselines": "baselines",
    "datasets": "datasets",
    "mds": "mds",
    "metrics": "metrics",
    "ot": "ot",
    "pl": "pl",
    "pp": "pp",
    "tl": "tl",
}


if not TYPE_CHECKING:  # or a type checker would take any name for one that is there

    def __getattr__(name: str) -> Any:
        if name not in _ROOM_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")
        room = import_module(f"{__name__}.{_ROOM_OF[name]}")
        value = room if name == _ROOM_OF[name] else getattr(room, name)
        globals()[name] = value  # the next look-up does not come here
        return value


def __dir__() -> list[str]:
    """Return the menu, as completion shows it, without what happens to be imported here."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
