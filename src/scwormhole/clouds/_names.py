"""Names of clouds, given or counted: touches NumPy arrays of strings and integers only.

A niche is rarely asked for by name, so default names stay integers until someone reads them as strings.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._wording import SHOWN, count, listed


class Names:
    """Unique names of clouds: strings, or integers whose decimal text is the name.

    Parameters
    ----------
    values
        Strings or integers, one a cloud, without repeats.
    """

    __slots__ = ("_lookup", "_text", "values")

    def __init__(self, values: NDArray[Any]) -> None:
        self.values = values
        self._text: NDArray[np.str_] | None = None
        self._lookup: dict[str, int] | None = None

    @classmethod
    def given(cls, names: Iterable[str] | None, n_clouds: int) -> "Names":
        """Return the user's names once they are checked, or numbers where there are none.

        Parameters
        ----------
        names
            Strings without repeats, or None for "0", "1", ...
        n_clouds
            How many clouds there are to name.
        """
        if names is None:
            return cls(np.arange(n_clouds, dtype=np.int64))
        if isinstance(names, str):
            raise TypeError(f"names is the single string {names!r}; give one string a cloud, {n_clouds:,} in all.")
        values = list(names)
        if len(values) != n_clouds:
            raise ValueError(f"names has length {len(values):,} for {count(n_clouds, 'cloud')}; give one name a cloud.")
        strange = [position for position, value in enumerate(values) if not isinstance(value, str)]
        if strange:
            raise TypeError(
                f"names must be strings, but names[{strange[0]}] is {values[strange[0]]!r} of type "
                f"{type(values[strange[0]]).__name__}; convert them with [str(name) for name in names]."
            )
        return cls(distinct(np.array(values, dtype=np.str_)))

    @property
    def counted(self) -> bool:
        """Whether the names are default numbers."""
        return self.values.dtype.kind == "i"

    @property
    def text(self) -> NDArray[np.str_]:
        """The names as strings, made on first use."""
        if self._text is None:
            self._text = self.values.astype(np.str_)
            self._text.flags.writeable = False
        return self._text

    def __len__(self) -> int:
        return len(self.values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Names):
            return NotImplemented
        if self.counted and other.counted:
            return np.array_equal(self.values, other.values)
        return np.array_equal(self.text, other.text)

    __hash__ = None  # type: ignore[assignment]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._positions()

    def take(self, positions: slice | NDArray[np.int64]) -> "Names":
        """Return the names of a selection: a cloud keeps its name wherever it goes."""
        return Names(self.values[positions])

    def find(self, name: str) -> int:
        """Return the position of a name, or say which names are close to it."""
        try:
            return self._positions()[name]
        except KeyError:
            near = get_close_matches(name, self._positions(), n=3, cutoff=0.5)
            known = (
                f"close names are {near}"
                if near
                else f"the names are {listed(map(repr, self.text[:SHOWN].tolist()), len(self))}"
            )
            raise KeyError(f"no cloud is named {name!r}; {known}.") from None

    def label(self, position: int) -> str:
        """Return how an error calls a cloud: by position, and by name where one was given."""
        return f"cloud {position}" if self.counted else f"cloud {position} ({str(self.values[position])!r})"

    def labels(self, positions: NDArray[np.int64], total: int | None = None) -> str:
        """Return how an error calls several clouds, the first few of them by position and name."""
        total = len(positions) if total is None else total
        return listed((self.label(int(position)) for position in positions), total)

    def _positions(self) -> dict[str, int]:
        if self._lookup is None:
            self._lookup = {name: position for position, name in enumerate(self.text.tolist())}
        return self._lookup


def join_names(parts: Sequence[Names]) -> Names:
    """Return the names of clouds put together.

    Numbers that nobody chose are counted anew where they collide; names that somebody gave must differ.

    Parameters
    ----------
    parts
        Names of each cohort.
    """
    if all(part.counted for part in parts):
        numbers = np.concatenate([part.values for part in parts])
        return Names(numbers if len(np.unique(numbers)) == len(numbers) else np.arange(len(numbers), dtype=np.int64))
    return Names(distinct(np.concatenate([part.text for part in parts])))


def distinct(names: NDArray[np.str_]) -> NDArray[np.str_]:
    """Return names that do not repeat, or say which do."""
    repeated = [name for name, times in Counter(names.tolist()).items() if times > 1]
    if repeated:
        raise ValueError(
            f"names must differ, but these occur more than once: {listed(map(repr, repeated), len(repeated))}. "
            "Give every cloud a name of its own, for example by adding the sample it comes from."
        )
    return names
