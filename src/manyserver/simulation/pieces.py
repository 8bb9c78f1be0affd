"""Named tuples of arrays by piece, such as replications measure: put together, merged, written.

All arrays begin with the piece. `tails` are averages over a piece, all others are sums. An entry
may be a named tuple again; one with levels has a method ``with_levels``.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, Self, TypeVar, get_type_hints

import numpy as np

from manyserver.statistics.estimates import merge_batches

__all__ = ["Pieces", "joined", "merged", "packed", "part", "unpacked"]

AVERAGED = "tails"


class Pieces(Protocol):
    """What was measured in pieces, a named tuple."""

    @property
    def tails(self) -> np.ndarray:
        """Time average of the queue tails, shape (piece, pool, level)."""

    def with_levels(self, levels: int) -> Self:
        """Cut or pad to a number of levels."""

    def _asdict(self) -> dict[str, Any]: ...


P = TypeVar("P", bound=Pieces)
T = TypeVar("T")


def joined(parts: Sequence[P]) -> P:
    """Put pieces one after another, with levels up to one more than the highest reached."""
    levels = 1 + max(_levels_reached(one.tails) for one in parts)
    return _mapped(
        lambda *arrays: np.concatenate(arrays), *(one.with_levels(levels) for one in parts)
    )


def _levels_reached(tails: np.ndarray) -> int:
    """Return the number of levels, from 0 to the highest that was reached; at least two."""
    return max(2, 1 + int(np.flatnonzero(tails.any(axis=(0, 1)))[-1]))


def part(pieces: P, here: slice) -> P:
    """Return some of the pieces."""
    return _mapped(lambda values: values[here], pieces)


def merged(pieces: P, size: int) -> P:
    """Merge every `size` consecutive pieces into one."""
    sums = _mapped(lambda values: _summed(values, size), pieces)
    merged: P = sums._replace(**{AVERAGED: merge_batches(pieces.tails, size)})  # type: ignore[attr-defined]
    return merged


def _summed(values: np.ndarray, size: int) -> np.ndarray:
    """Add up every `size` consecutive pieces."""
    groups = values.reshape(len(values) // size, size, *values.shape[1:])
    return np.asarray(groups.sum(axis=1, dtype=values.dtype))


def _mapped(work: Callable[..., np.ndarray], *parts: T) -> T:
    """Make a named tuple from the arrays in the same place of others."""
    entries = zip(*parts, strict=True)
    made = (_mapped(work, *some) if isinstance(some[0], tuple) else work(*some) for some in entries)
    return type(parts[0])(*made)


def packed(pieces: Pieces, before: str = "") -> dict[str, np.ndarray]:
    """Write a named tuple as plain arrays, by name."""
    arrays: dict[str, np.ndarray] = {}
    for name, values in pieces._asdict().items():
        nested = isinstance(values, tuple)
        arrays |= packed(values, f"{before}{name}_") if nested else {before + name: values}
    return arrays


def unpacked(kind: type[T], arrays: Mapping[str, np.ndarray], before: str = "") -> T:
    """Read what :func:`packed` wrote of a type of named tuples."""
    entries = get_type_hints(kind).items()
    return kind(
        *(
            arrays[before + name]
            if hint is np.ndarray
            else unpacked(hint, arrays, f"{before}{name}_")
            for name, hint in entries
        )
    )
