"""What a model makes of a study's configuration: points, and how the cube labels them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from manyserver.study.points import Point

__all__ = ["MOST_POINTS", "Gap", "Layout"]

MOST_POINTS = 1_000_000
"""Points of a study."""


@dataclass(frozen=True)
class Gap:
    """A place in the cube at which there is nothing that could be computed.

    Parameters
    ----------
    labels : mapping
        The place, as a point has it, with the name of the method under ``method``.
    status, reason : str
        Why.
    """

    labels: Mapping[str, Any]
    status: str
    reason: str


@dataclass(frozen=True)
class Layout:
    """The points of a study and the axes on which they lie.

    Parameters
    ----------
    points : tuple of Point
        In the order of the axes; a point that does not depend on an axis stands at each of its
        values.
    axes : mapping
        Values of every dimension of the cube that comes before those of a variable, by its name;
        each point has a label for each of them but ``method``. None on ``n_servers`` is the limit.
    coordinates : mapping
        Further coordinates of the cube, as xarray takes them.
    choices : mapping
        Values that an option of figures and fits can have in this study, by name of the option.
    gaps : tuple of Gap
        Places at which there is nothing to compute.
    derived : callable
        Makes further coordinates, which take some time, when the cube is built.
    """

    points: tuple[Point, ...]
    axes: Mapping[str, tuple]
    coordinates: Mapping[str, Any]
    choices: Mapping[str, Sequence[Any]]
    gaps: tuple[Gap, ...] = ()
    derived: Callable[[], Mapping[str, Any]] = dict

    @property
    def inner(self) -> dict[str, int]:
        """Lengths of dimensions of variables that the model gives the coordinates of."""
        own = {name: value for name, value in self.coordinates.items() if name not in self.axes}
        return {name: len(value[1]) for name, value in own.items() if value[0] == name}
