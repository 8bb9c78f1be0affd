"""How long points will take, from what stored ones took; at first from a rough guess."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from math import ceil
from typing import Any, NamedTuple

from manyserver.study import methods
from manyserver.study.points import Point, Unit
from manyserver.study.records import unseal
from manyserver.study.store import Store

__all__ = ["Cost", "Timings", "job_memory", "job_minutes"]

GUESSED_SECONDS = {"simulation": 10.0, "exact": 10.0}
"""Time of a point of a method without stored timings."""
GUESS = 2.0
"""The same, for other methods."""
MOST_READ = 500
"""Points of other cells that are looked at."""
START_MINUTES = 3
"""What a job may need to start, compile and write."""
SAFETY = 3
"""A job may take this many times what is expected before it is stopped and tried again."""
MEMORY = 1500
"""Megabytes of a job, besides those for each server of a large simulation."""


@dataclass(frozen=True)
class Cost:
    """Seconds of CPU time: what is expected, and what the worst of like points would take."""

    typical: float
    worst: float


class Timings:
    """Times that points in a store took.

    Parameters
    ----------
    store : Store
        The store.
    """

    def __init__(self, store: Store):
        self.store = store
        self._cells: dict[tuple[str, str], list[_Timing]] = {}
        self._methods: dict[str, Cost] = {}

    def cost(self, point: Point) -> Cost:
        """Estimate one point: from itself under other code, its cell, its method, or a guess."""
        alike = self._cell(point)
        for stored in alike:
            if stored.parameters == point.parameters:
                return Cost(stored.seconds, stored.seconds)
        if alike:
            scaled = [stored.seconds * _scale(stored, point.options) for stored in alike]
            return Cost(sum(scaled) / len(scaled), max(scaled))
        if point.method not in self._methods:
            self._methods[point.method] = self._method(point.method)
        return self._methods[point.method]

    def _cell(self, point: Point) -> list["_Timing"]:
        cell = (point.method, point.cell)
        if cell not in self._cells:
            self._cells[cell] = list(self._read(f"{point.method}-*/{point.cell}.jsonl"))
        return self._cells[cell]

    def _method(self, method: str) -> Cost:
        found = islice(self._read(f"{method}-*/*.jsonl"), MOST_READ)
        seconds = [stored.seconds for stored in found]
        if not seconds:
            guess = GUESSED_SECONDS.get(method, GUESS)
            return Cost(guess, guess)
        return Cost(sum(seconds) / len(seconds), max(seconds))

    def _read(self, pattern: str) -> Iterable["_Timing"]:
        for file in sorted(self.store.folder.glob(pattern)):
            for line in file.read_text(errors="surrogateescape").splitlines():
                content = unseal(line)
                if content is not None and "seconds" in content:
                    yield _Timing(
                        content["parameters"], content["seconds"], _precision(content["values"])
                    )


class _Timing(NamedTuple):
    """What a stored point took, and the precision that it has."""

    parameters: dict[str, Any]
    seconds: float
    precision: float | None


def _precision(values: dict[str, Any]) -> float | None:
    value, half_width = values.get("sojourn_mean"), values.get("sojourn_mean_half_width")
    return half_width / value if value and half_width else None


def _scale(stored: _Timing, new: dict[str, Any]) -> float:
    """Ratio of the lengths of two simulations; 1 where the options do not tell."""
    old = stored.parameters["options"]
    if stored.precision and "precision" in new:
        # The shortest run is often better than what was asked for.
        return max(1.0, float((stored.precision / new["precision"]) ** 2))
    if "horizon" in old and "horizon" in new:
        return float(new["horizon"] / old["horizon"])
    return 1.0


def job_minutes(unit: Unit, store: Store, threads: int, attempt: int) -> int:
    """Return the time limit of a job; every further attempt has twice as long.

    Parameters
    ----------
    unit : Unit
        What it computes.
    store : Store
        Has points that need not be computed, and tells what others took.
    threads : int
        Points computed at a time.
    attempt : int
        1 for the first.
    """
    wanted = [point for point in unit.points if not point.left_out]
    found, timings = store.find(wanted), Timings(store)
    costs = [timings.cost(point).worst for point in wanted if point.id not in found]
    # No more threads than points help, and none helps the longest of them.
    seconds = max([sum(costs) / threads, *costs])
    return ceil(START_MINUTES + SAFETY * seconds / 60) << (attempt - 1)


def job_memory(unit: Unit, threads: int, attempt: int) -> int:
    """Return the megabytes of a job; every further attempt has twice as many.

    Parameters
    ----------
    unit : Unit
        What it computes.
    threads : int
        Points computed at a time.
    attempt : int
        1 for the first.
    """
    wanted = [point for point in unit.points if not point.left_out]
    needed = (
        methods.memory(point.method, *point.subject.arguments, **point.subject.keywords)
        for point in wanted
    )
    own = max(needed, default=0.0) * min(threads, len(wanted)) / 1e6
    return ceil(MEMORY + own) << (attempt - 1)
