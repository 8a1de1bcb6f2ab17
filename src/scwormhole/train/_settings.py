"""Every knob of transport, network and training, on one screen."""

from dataclasses import dataclass
from typing import Any

from scwormhole.clouds import PointClouds
from scwormhole.ot import Targets

DEGREES = {"S2": 2, "W2": 2, "S1": 1, "W1": 1, "GS": 4, "GW": 4}  # with this power of the coordinates they grow


@dataclass(frozen=True, kw_only=True)
class Transport:
    """Which divergence is learned, and which one decoded clouds are held to."""

    metric: Any
    epsilon: float
    relative_epsilon: Any
    metric_dec: Any
    epsilon_dec: float
    tol: float = 1e-3
    max_points: int | None = None  # of a cloud in a solved pair
    max_memory: int | str = "2 GiB"  # of the solver

    @property
    def gromov(self) -> bool:
        """Whether distances within clouds are compared."""
        return self.metric in ("GW", "GS")

    @property
    def turns(self) -> bool:
        """Whether clouds may be turned at random: neither the encoder's metric nor the decoder's minds."""
        return self.gromov and self.metric_dec in ("GW", "GS")

    @property
    def degree_dec(self) -> int:
        """With this power of the coordinates the decoder's divergence grows; of a cost of one's own it is not known."""
        return DEGREES.get(self.metric_dec, 0)

    def targets(self, clouds: PointClouds, n_pairs: int, rng: int) -> Targets:
        """Return what solves the pairs that the encoder learns."""
        return Targets(
            clouds,
            self.metric,
            epsilon=self.epsilon,
            relative_epsilon=self.relative_epsilon,
            tol=self.tol,
            max_points=self.max_points,
            max_memory=self.max_memory,
            n_pairs=n_pairs,
            rng=rng,
        )

    def decoded(self, clouds: PointClouds, max_points: int | None, rng: int) -> Targets:
        """Return what solves some pairs in the decoder's metric, to know its epsilon and its unit."""
        return Targets(
            clouds,
            self.metric_dec,
            epsilon=self.epsilon_dec,
            relative_epsilon=self.relative_epsilon,
            max_points=max_points,
            max_memory=self.max_memory,
            n_pairs=1,
            rng=rng,
        )


@dataclass(frozen=True, kw_only=True)
class Network:
    """Sizes of encoder and decoder."""

    n_components: int = 128
    width: int = 64
    hidden: int = 128
    n_blocks: int = 2
    n_heads: int = 4
    n_induced: int = 16  # learned vectors between the points in attention; 0 for every point to every point
    n_points: int = 0  # of a decoded cloud; 0 for no decoder
    weighted: bool = False  # decoded points have weights of their own
    post: bool = False  # normalise after each residual, as the paper does


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How the network is trained."""

    batch_size: int = 32
    learning_rate: float = 1e-3
    max_steps: int = 1000
    max_seconds: float | None = None
    max_points: int | None = 256  # points of a cloud that the network sees in a step
    coeff_dec: float = 0.1
    warmup: int = 50
    decay: str = "cosine"  # or "exponential", as in the paper
    patience: int | None = 10  # looks without improvement after which training stops; None for never
    clip: float | None = 1.0  # largest norm of a gradient
    n_validation: int = 128
    rotate: bool = False  # turn clouds at random, for metrics that do not mind
    rng: int = 0
