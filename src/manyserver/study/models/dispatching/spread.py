"""Parts of a study that may depend on its axes: systems, policies, job sizes."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Generic, TypeVar

from manyserver.study.config.axes import Axis
from manyserver.study.config.formulas import Number, evaluated, names_in, told
from manyserver.validation import Mistakes

__all__ = ["Axes", "Place", "Spread"]

T = TypeVar("T")
Place = Mapping[str, int]
"""Positions on the axes, by name."""


@dataclass(frozen=True)
class Spread(Generic[T]):
    """One thing, which may be another one at every place on some axes.

    Parameters
    ----------
    dims : tuple of str
        The axes that it depends on.
    made : mapping
        What it is, by its positions on them.
    """

    dims: tuple[str, ...]
    made: Mapping[tuple[int, ...], T]

    def at(self, place: Place) -> T:
        """Return what it is at a place."""
        return self.made[tuple(place[dim] for dim in self.dims)]

    def __iter__(self) -> Iterator[T]:
        return iter(self.made.values())


class Axes:
    """The axes of numbers of a study.

    Parameters
    ----------
    given : mapping
        Values on the axes that every study has, by name; their order is that of the cube.
    own : mapping
        The axes of the study's own, by name.
    """

    def __init__(self, given: Mapping[str, tuple], own: Mapping[str, Axis]):
        self.own = own
        self.fixed = tuple(given)
        free = {name: axis.values for name, axis in own.items() if axis.along is None}
        self.values: dict[str, tuple] = {**free, **given}

    def used(self, *values: object) -> frozenset[str]:
        """Return the names of the study's own axes that occur in plain values."""
        return names_in(list(values), self.own)

    def places(self, dims: Iterable[str]) -> Iterator[dict[str, int]]:
        """Yield all places on some axes: a single one, of no axis, if there are none."""
        names = tuple(dims)
        for where in product(*(range(len(self.values[name])) for name in names)):
            yield dict(zip(names, where, strict=True))

    def dims(self, *values: object) -> tuple[str, ...]:
        """Return the axes on which formulas in plain values depend, in the cube's order."""
        used = {self.own[name].along or name for name in self.used(*values)}
        return tuple(name for name in self.values if name in used)

    def dims_of(self, *spreads: Spread[Any]) -> tuple[str, ...]:
        """Return the axes on which any of some things depends, in the cube's order."""
        used = {dim for spread in spreads for dim in spread.dims}
        return tuple(name for name in self.values if name in used)

    def numbers(self, place: Place) -> dict[str, Number]:
        """Return the numbers that the names of those axes stand for on which a place is told."""
        along = {name: axis.along or name for name, axis in self.own.items()}
        return {
            name: self.own[name].values[place[dim]] for name, dim in along.items() if dim in place
        }

    def labels(self, place: Place) -> dict[str, Any]:
        """Return what the cube calls a place, by the names of the axes."""
        return {name: as_label(self.values[name][where]) for name, where in place.items()}

    def spread(
        self, key: str, value: Any, make: Callable[[Any], T], mistakes: Mistakes
    ) -> Spread[T] | None:
        """Make a thing at all places on the axes that its formulas depend on.

        Parameters
        ----------
        key : str
            Where the study tells it.
        value : object
            Plain values, with formulas.
        make : callable
            Makes the thing of plain values; a ValueError, TypeError or OSError is a mistake.
        mistakes : Mistakes
            What is wrong is added here.

        Returns
        -------
        Spread or None
            None if it cannot be made everywhere.
        """
        dims = self.dims(value)
        made = {}
        for place in self.places(dims):
            numbers = self.numbers(place)
            try:
                made[tuple(place.values())] = make(evaluated(value, numbers) if dims else value)
            except (ValueError, TypeError, OSError) as error:
                where = told(value, numbers)
                mistakes.add(key, f"{error} ({where})" if where else error)
                return None
        return Spread(dims, made)


def as_label(value: Number | int | None) -> float | int | None:
    """Return what the cube calls a value of an axis: a float for a ratio."""
    return value if value is None or type(value) is int else float(value)
