"""Puts numbers and lists into words for errors and for ``repr``: touches text only."""

from collections.abc import Iterable
from itertools import islice

SHOWN = 5


def count(number: int, noun: str) -> str:
    """Return a number with its noun, as in ``1 cloud`` or ``25,412 points``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def listed(items: Iterable[object], total: int) -> str:
    """Return the first few items and how many more there are, so that a million faults still fit in one line."""
    shown = [str(item) for item in islice(items, SHOWN)]
    rest = total - len(shown)
    return ", ".join(shown) + (f" and {rest:,} more" if rest > 0 else "")
