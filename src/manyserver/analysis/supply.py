"""What a study can feed to a figure or a fit, known before any point is computed.

Every kind of figure and fit has a method ``needs(study, options)``, which yields what it lacks of
such a supply, as words that follow the name of the kind and "needs"; empty words lack nothing.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from pydantic import BaseModel

from manyserver import methods
from manyserver.methods import Role

__all__ = ["Supply"]

AXES = {
    "systems": "system",
    "policies": "policy",
    "jobs": "jobs",
    "rates": ("load", "arrival_rate"),
    "betas": "beta",
}
"""Axes of the labels that an option of a kind chooses from."""
WHERE = {"any": "", "finite": " at finite n_servers", "limit": " at n_servers: limit"}


class Supply:
    """The points of a study that a kind of figure or fit chooses by its options.

    Parameters
    ----------
    model : str
        Name of the model of the study.
    points : iterable of Point
        All points of the study.
    methods : mapping
        Options of the methods of the study, by name.
    axes : mapping
        Values on the axes of the study, by name.
    options : pydantic model
        Options of the kind.
    """

    def __init__(
        self,
        model: str,
        points: Iterable[Any],
        methods: Mapping[str, BaseModel],
        axes: Mapping[str, tuple],
        options: BaseModel,
    ):
        self.model = model
        self.methods = methods
        self.axes = axes
        self.chosen = [point for point in points if _is_chosen(point, options)]

    @property
    def rate_axis(self) -> str:
        """The swept one of load and arrival rate."""
        return "load" if "load" in self.axes else "arrival_rate"

    @property
    def simulates_jobs(self) -> bool:
        """Whether the study has the key ``jobs``."""
        return "jobs" in self.axes

    def names(self, *wanted: str | Role) -> tuple[str, ...]:
        """Return the methods that have one of the wanted names or roles, also if not in use."""
        found = [
            methods.names(self.model, one) if isinstance(one, Role) else (one,) for one in wanted
        ]
        return tuple(dict.fromkeys(name for names in found for name in names))

    def points(
        self,
        *wanted: str | Role,
        at: Literal["any", "finite", "limit"] = "any",
        **options: Any,
    ) -> Iterator[Any]:
        """Yield the chosen points of some methods that will be computed.

        Parameters
        ----------
        *wanted : str or Role
            Names of methods, or their roles.
        at : str, optional
            At which n_servers.
        **options
            Values that options of the method must have.
        """
        names = self.names(*wanted)
        for point in self.chosen:
            limit = point.labels["n_servers"] is None
            if (
                point.method in names
                and not point.left_out
                and at in ("any", "limit" if limit else "finite")
                and all(getattr(self.methods[point.method], k, v) == v for k, v in options.items())
            ):
                yield point

    def lacks(
        self,
        *wanted: str | Role,
        at: Literal["any", "finite", "limit"] = "any",
        **options: Any,
    ) -> str:
        """Say that none of :meth:`points` will be computed; empty if there is one."""
        if next(self.points(*wanted, at=at, **options), None) is not None:
            return ""
        told = [f"{key}: {str(value).lower()}" for key, value in options.items()]
        extra = f" with {' and '.join(told)}" if told else ""
        names = self.names(*wanted)
        text = f"points of the method {' or '.join(names)}{extra}{WHERE[at]}"
        reasons = sorted({p.left_out for p in self.chosen if p.method in names and p.left_out})
        return f"{text}; there are none but {', '.join(reasons)} ones" if reasons else text

    def lacks_jobs(self) -> str:
        """Say that the study has no key ``jobs``; empty if it has."""
        return "" if self.simulates_jobs else "the key jobs"


def _is_chosen(point: Any, options: BaseModel) -> bool:
    for axis, values in getattr(options, "at", {}).items():
        if point.labels[axis] not in map(float, values):
            return False
    for option, axes in AXES.items():
        wanted = getattr(options, option, None)
        for axis in (axes,) if isinstance(axes, str) else axes:
            if wanted is not None and axis in point.labels and point.labels[axis] not in wanted:
                return False
    return True
