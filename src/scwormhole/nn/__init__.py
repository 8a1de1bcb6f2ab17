"""Networks on clouds, in Flax: the room's menu. No transport, no training."""

from ._decoder import Decoder
from ._encoder import Encoder

__all__ = ["Decoder", "Encoder"]
