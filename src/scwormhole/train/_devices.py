"""The devices that work is spread over: one axis, along the clouds. The only place that knows of several processes.

Embedding needs no exchange, so each process uses the devices it has. Training uses those of all processes: each feeds
the same numbers, and whatever depends on a clock or on a last digit is decided by the first, for all take the same
steps or wait for one another forever.
"""

from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from numpy.typing import NDArray

AXIS = "clouds"
SPLIT, WHOLE = PartitionSpec(AXIS), PartitionSpec()


def own_devices() -> Mesh:
    """Return the devices of this process."""
    return Mesh(np.array(jax.local_devices()), (AXIS,))


def all_devices() -> Mesh:
    """Return the devices of all processes."""
    return Mesh(np.array(jax.devices()), (AXIS,))


def everywhere(tree: Any, mesh: Mesh) -> Any:
    """Put arrays on every device, from host arrays that each process has."""
    whole = NamedSharding(mesh, WHOLE)

    def put(leaf: Any) -> Any:
        array = np.asarray(jax.device_get(leaf))
        return jax.make_array_from_callback(array.shape, whole, lambda index: array[index])

    return jax.tree.map(put, tree)


def spread(part: Any, mesh: Mesh) -> Any:
    """Divide the rows of an array among the devices, within a compiled function; they must be a multiple of them."""
    return jax.lax.with_sharding_constraint(part, NamedSharding(mesh, SPLIT))


def gathered(part: Any, mesh: Mesh) -> Any:
    """Undo :func:`spread`."""
    return jax.lax.with_sharding_constraint(part, NamedSharding(mesh, WHOLE))


def agreed(value: Any) -> Any:
    """Return what the first process has, a number or a tuple of them; without others it is what is given."""
    return value if jax.process_count() == 1 else jax.tree.map(lambda x: x.item(), _from_first(value))


def is_first() -> bool:
    """Return whether this is the first process, which alone writes what all have."""
    return jax.process_index() == 0


def exchanged(rows: NDArray[Any]) -> NDArray[Any]:
    """Return the rows of all processes, as many of each, one process after another."""
    return np.asarray(multihost_utils.process_allgather(rows, tiled=True))


def _from_first(value: Any) -> Any:
    return multihost_utils.broadcast_one_to_all(jax.tree.map(np.asarray, value))
