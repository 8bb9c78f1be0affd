"""Points: one thing to compute by one method; their identities, seeds and units.

What a point is depends on its own parameters alone, never on the study that asks for it nor on
the unit that computes it, so studies share points and a study can be regrouped freely.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, Protocol

from pydantic import BaseModel

from manyserver import methods
from manyserver.study.config.names import LONGEST, REPEATED
from manyserver.study.fingerprint import fingerprint, module_digests

__all__ = [
    "Point",
    "Subject",
    "Unit",
    "canonical",
    "digest",
    "point_code",
    "point_key",
    "point_name",
    "point_seed",
    "told_options",
    "units",
]


def canonical(value: object) -> str:
    """Write plain values as JSON text that is the same for equal values.

    Examples
    --------
    >>> canonical({"b": 1, "a": [0.1, None]})
    '{"a":[0.1,null],"b":1}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def digest(text: str) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of a text.

    Examples
    --------
    >>> digest("")
    'e3b0c44298fc1c14'
    """
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def point_seed(study_seed: int, subject: str) -> int:
    """Derive the seed of a point from the study's seed and what is simulated.

    It does not depend on the precision nor on the number of replications.

    Examples
    --------
    >>> point_seed(1, "{}") == point_seed(1, "{}") != point_seed(2, "{}")
    True
    """
    return int(digest(f"{study_seed}:{subject}"), 16) >> 1


def told_options(options: BaseModel) -> dict[str, Any]:
    """Return the options of a method that differ from their defaults."""
    # A default is part of the code, which the fingerprint covers; leaving it out here means that
    # a new option with a default changes no point.
    return options.model_dump(exclude_defaults=True)


def point_key(parameters: Mapping[str, Any], code: str) -> str:
    """Return the key under which a point is stored.

    Examples
    --------
    >>> point_key({"seed": 1}, "aa") == point_key({"seed": 1}, "bb")
    False
    """
    return digest(f"{canonical(parameters)}{code}")


class Subject(Protocol):
    """What a point computes, apart from how; each model has its own.

    All values are plain, so that they can be written as JSON.
    """

    @property
    def problem(self) -> methods.Problem:
        """What a method computes."""

    @property
    def parameters(self) -> dict[str, Any]:
        """All that the result depends on."""

    @property
    def seeded(self) -> dict[str, Any]:
        """The same, in the form from which the seed is derived."""

    @property
    def shared(self) -> dict[str, Any]:
        """What points have in common that share a file in the store."""

    @property
    def title(self) -> str:
        """What is told beside the method in the provenance of a cube; may be empty."""

    @property
    def modules(self) -> tuple[str, ...]:
        """Modules whose code the result depends on, but for that of the method."""


@dataclass(frozen=True)
class Point:
    """One thing to compute by one method.

    Parameters
    ----------
    method : str
        Name of the method.
    subject : Subject
        What is computed.
    labels : dict
        What the study calls it: its place on every axis of the cube but the method's.
    options : dict
        Options of the method that differ from their defaults.
    study_seed : int
        Seed of the study.
    left_out : str
        Why the point is never computed, such as ``unstable``; empty if it is.
    """

    method: str
    subject: Subject
    labels: dict[str, Any] = field(compare=False)
    options: dict[str, Any] = field(default_factory=dict)
    study_seed: int = 1
    left_out: str = ""

    @cached_property
    def seed(self) -> int | None:
        """Seed of the point; None for a method without random numbers."""
        if not methods.load(self.method).random:
            return None
        return point_seed(self.study_seed, canonical(self._with_method(self.subject.seeded)))

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """Everything that the result depends on but the code, as plain values."""
        told = {**self.subject.parameters, "options": self.options, "seed": self.seed}
        return self._with_method(told)

    def _with_method(self, values: dict[str, Any]) -> dict[str, Any]:
        return {"method": self.method, **values}

    @cached_property
    def id(self) -> str:
        """Identity of the point: a digest of its parameters."""
        return digest(canonical(self.parameters))

    @cached_property
    def family(self) -> str:
        """Identity of all points that can start from each other's work."""
        method = methods.load(self.method)
        key = method.cache_key(method.options_class(**self.options))
        return self.id if key is None else digest(canonical({**self.parameters, "options": key}))

    @cached_property
    def cell(self) -> str:
        """Identity of all points that differ in rate, options and seed alone."""
        return digest(canonical(self._with_method(self.subject.shared)))

    @property
    def code(self) -> str:
        """Fingerprint of the code that computes the point."""
        return point_code(self.method, *self.subject.modules)

    @cached_property
    def key(self) -> str:
        """Key under which the point is stored: its parameters and its code."""
        return point_key(self.parameters, self.code)

    @property
    def modules(self) -> dict[str, str]:
        """Digest of every module whose code computes the point, by name."""
        method = methods.load(self.method)
        entries = (type(method).__module__, *self.subject.modules)
        return module_digests(*entries, without=method.starts_from)


@cache
def point_code(method: str, *modules: str) -> str:
    """Fingerprint the code of a method together with that of other modules."""
    known = methods.load(method)
    return fingerprint(type(known).__module__, *modules, without=known.starts_from)


@dataclass(frozen=True)
class Unit:
    """The points that one job computes.

    Parameters
    ----------
    name : str
        Its method and the name of its file, as ``METHOD/NAME``; unique in the study.
    points : tuple of Point
        In the order of the study.
    """

    name: str
    points: tuple[Point, ...]

    @property
    def method(self) -> str:
        """Name of the method that computes them."""
        return self.name.partition("/")[0]

    @property
    def n_wanted(self) -> int:
        """Number of points that are to be computed."""
        return sum(not point.left_out for point in self.points)

    @property
    def summary(self) -> str:
        """Number of points and a short digest of their identities."""
        plural = "" if len(self.points) == 1 else "s"
        ids = ",".join(f"{point.id}{'-' if point.left_out else ''}" for point in self.points)
        return f"{len(self.points)} point{plural} #{digest(ids)[:8]}"

    @property
    def code(self) -> str:
        """Short digest of the code that computes the points."""
        return f"code #{digest(','.join(sorted({point.code for point in self.points})))[:8]}"


def units(points: Iterable[Point], axes: Sequence[str], most: int | None = None) -> list[Unit]:
    """Group points into units: those of one method that agree on some axes.

    Parameters
    ----------
    points : iterable of Point
        All points of a study.
    axes : sequence of str
        Keys of the points' labels.
    most : int, optional
        Points in a unit; larger ones are split into parts, each with points of all kinds.

    Returns
    -------
    list of Unit
        In the order of their first points.
    """
    groups: dict[tuple[object, ...], list[Point]] = {}
    for point in points:
        group = (point.method, *(point.labels[axis] for axis in axes))
        groups.setdefault(group, []).append(point)
    names = {group: _slug(group, axes) for group in groups}
    # On some file systems, names that differ in case alone are one file.
    taken = Counter((method, slug.lower()) for (method, *_), slug in names.items())
    found: list[Unit] = []
    for group, slug in names.items():
        plain = (
            taken[group[0], slug.lower()] == 1
            and len(slug) <= LONGEST
            and not REPEATED.search(slug)
        )
        name = slug if plain else f"{slug[: LONGEST - 9]}_{digest(canonical(group))[:8]}"
        found += _parts(Unit(f"{group[0]}/{name}", tuple(groups[group])), most)
    return found


def _parts(unit: Unit, most: int | None) -> list[Unit]:
    count = 1 if most is None else -(-len(unit.points) // most)
    if count == 1:
        return [unit]
    # Neighbours differ in load, and so in cost; dealing them out makes parts alike.
    return [Unit(f"{unit.name}_part{i + 1}", unit.points[i::count]) for i in range(count)]


def _slug(group: tuple[object, ...], axes: Sequence[str]) -> str:
    parts = []
    for axis, value in zip(axes, group[1:], strict=True):
        if axis == "n_servers":
            parts.append("limit" if value is None else f"n{value}")
        elif isinstance(value, float):
            parts.append(f"{axis}{value:.12g}")
        else:
            parts.append(re.sub(r"[^A-Za-z0-9.]+", "-", str(value)).strip("-."))
    return "_".join(parts) or "all"


def point_name(point: Point) -> str:
    """Say which point it is, in the words of the study."""
    labels = {key: "limit" if value is None else value for key, value in point.labels.items()}
    return ", ".join([point.method, *(f"{key} {value}" for key, value in labels.items())])
