"""Training of a Wormhole: the room's menu."""

from ._checkpoint import Checkpoints, Saved
from ._fit import Fitted, fit
from ._held_out import look
from ._history import History
from ._html import Learned, model_html
from ._parameters import Parameters, metric_name, read_parameters
from ._settings import Network, Recipe, Transport
from ._use import Trained, embed_shared

__all__ = [
    "Checkpoints",
    "Fitted",
    "History",
    "Learned",
    "Network",
    "Parameters",
    "Recipe",
    "Saved",
    "Trained",
    "Transport",
    "embed_shared",
    "fit",
    "look",
    "metric_name",
    "model_html",
    "read_parameters",
]
