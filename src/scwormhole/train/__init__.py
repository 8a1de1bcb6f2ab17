"""Training of a Wormhole: the room's menu."""

from ._checkpoint import Saved
from ._fit import Fitted, fit
from ._frame import Frame
from ._loop import History
from ._settings import Network, Recipe, Transport
from ._use import Trained, define

__all__ = ["Fitted", "Frame", "History", "Network", "Recipe", "Saved", "Trained", "Transport", "define", "fit"]
