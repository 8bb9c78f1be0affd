"""Points: one system, one policy, one method; their identities, seeds and units.

What a point is depends on its own parameters alone, never on the study that asks for it nor on
the unit that computes it, so studies share points and a study can be regrouped freely.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

from manyserver.model import System
from manyserver.policies import Policy
from manyserver.study import methods
from manyserver.study.fingerprint import fingerprint

__all__ = ["Point", "Unit", "canonical", "digest", "point_code", "point_seed", "units"]


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


@dataclass(frozen=True)
class Point:
    """One system under one policy, to be computed by one method.

    Parameters
    ----------
    method : str
        Name of the method.
    system : System
        The system.
    policy : Policy
        The policy.
    labels : dict
        What the study calls it: system, policy, n_servers and the axis that is swept.
    options : dict
        Options of the method that differ from their defaults.
    study_seed : int
        Seed of the study.
    left_out : str
        Why the point is never computed, such as ``unstable``; empty if it is.
    """

    method: str
    system: System
    policy: Policy
    labels: dict[str, Any] = field(compare=False)
    options: dict[str, Any] = field(default_factory=dict)
    study_seed: int = 1
    left_out: str = ""

    @cached_property
    def _subject(self) -> dict[str, Any]:
        """What is computed, without how well."""
        pools = [
            {"fraction": str(pool.fraction), "speed": str(pool.speed), "buffer": pool.buffer}
            for pool in self.system.pools
        ]
        return {
            "method": self.method,
            "system": {"n_servers": self.system.n_servers, "pools": pools},
            "policy": {"name": self.policy.name, **self.policy.parameters},
        }

    @cached_property
    def seed(self) -> int | None:
        """Seed of the point; None for a method without random numbers."""
        if not methods.load(self.method).RANDOM:
            return None
        subject = {**self._subject, "arrival_rate": self.system.arrival_rate}
        return point_seed(self.study_seed, canonical(subject))

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """Everything that the result depends on but the code, as plain values."""
        system = {**self._subject["system"], "arrival_rate": self.system.arrival_rate}
        return {**self._subject, "system": system, "options": self.options, "seed": self.seed}

    @cached_property
    def id(self) -> str:
        """Identity of the point: a digest of its parameters."""
        return digest(canonical(self.parameters))

    @cached_property
    def cell(self) -> str:
        """Identity of all points that differ in arrival rate, options and seed alone."""
        return digest(canonical(self._subject))

    @property
    def code(self) -> str:
        """Fingerprint of the code that computes the point."""
        return point_code(self.method, type(self.policy).__module__)


@cache
def point_code(method: str, policy_module: str) -> str:
    """Fingerprint the code of a method together with that of a policy."""
    module = methods.load(method)
    return fingerprint(f"{methods.__name__}.{method}", policy_module, without=module.STARTS_FROM)


@dataclass(frozen=True)
class Unit:
    """The points that one job computes.

    Parameters
    ----------
    name : str
        Name of its file; unique in the study.
    points : tuple of Point
        In the order of the study.
    """

    name: str
    points: tuple[Point, ...]

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


def units(points: Iterable[Point], axes: Sequence[str]) -> list[Unit]:
    """Group points into units: those of one method that agree on some axes.

    Parameters
    ----------
    points : iterable of Point
        All points of a study.
    axes : sequence of str
        Keys of the points' labels.

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
    taken = list(names.values())
    return [
        Unit(
            name if taken.count(name) == 1 else f"{name}_{digest(canonical(group))[:8]}",
            tuple(groups[group]),
        )
        for group, name in names.items()
    ]


def _slug(group: tuple[object, ...], axes: Sequence[str]) -> str:
    method, *values = group
    parts = [str(method)]
    for axis, value in zip(axes, values, strict=True):
        if axis == "n_servers":
            parts.append("limit" if value is None else f"n{value}")
        elif isinstance(value, float):
            parts.append(f"{axis}{value:.12g}")
        else:
            parts.append(re.sub(r"[^A-Za-z0-9.]+", "-", str(value)).strip("-."))
    return "_".join(parts)
