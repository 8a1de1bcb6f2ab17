"""What the room asks of a cohort of clouds: a protocol, so that it need not know the store behind it."""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


class Batch(Protocol):
    """Clouds side by side, padded with points of weight zero."""

    @property
    def points(self) -> NDArray[Any]: ...  # [b, n, d]
    @property
    def weights(self) -> NDArray[Any]: ...  # [b, n]
    @property
    def index(self) -> NDArray[np.int64]: ...  # [<= b]  # type: ignore[override]


@runtime_checkable
class Cohort(Protocol):
    """A cohort of clouds, of which ``scwormhole.PointClouds`` is one."""

    def __len__(self) -> int: ...
    @property
    def sizes(self) -> NDArray[np.int64]: ...
    @property
    def rungs(self) -> NDArray[np.int64]: ...
    @property
    def dim(self) -> int: ...
    def padded(self, index: Sequence[int] | NDArray[Any], size: int | None = None) -> Batch: ...
    def batches(self, batch_size: int, order: Any = None) -> Iterator[Batch]: ...
    def shared_mass(self, index: Any = None) -> NDArray[np.float64]: ...
    def shared_mass_with(self, other: Any) -> NDArray[np.float64]: ...
    def __getitem__(self, key: Any) -> Any: ...


def as_cohort(clouds: object, name: str) -> Cohort:
    """Return the argument if it is a cohort; say how to make one if it is not."""
    if isinstance(clouds, Cohort):
        return clouds
    raise TypeError(
        f"{name} is a {type(clouds).__name__}; give a scwormhole.PointClouds. "
        "A list of arrays becomes one with PointClouds.from_list(arrays)."
    )
