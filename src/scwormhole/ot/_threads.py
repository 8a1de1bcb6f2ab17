"""One thread for matrix products while many small ones are made: threads that wait for one another cost more.

The limit holds for the whole process, and embeddings are computed in several threads of ours at once. Whoever came
first sets it and whoever leaves last lifts it: limits that overlap and each put back what they found would leave the
user's own work on one core.
"""

from threading import Lock
from typing import Any

from threadpoolctl import threadpool_limits


class _OneThread:
    def __init__(self) -> None:
        self._lock, self._inside = Lock(), 0
        self._limits: Any = None

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._limits = threadpool_limits(1)

    def __exit__(self, *raised: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limits.restore_original_limits()


one_thread = _OneThread()
