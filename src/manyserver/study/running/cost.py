"""How long points will take, from what stored ones took; at first from a rough guess."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

from manyserver import methods
from manyserver.study.points import Point, Unit
from manyserver.study.running.compute import KERNELS, kernel_cache
from manyserver.study.running.progress import FEWEST, State
from manyserver.study.storage.records import unseal
from manyserver.study.storage.store import Store

__all__ = [
    "Cost",
    "Expected",
    "Left",
    "Name",
    "Timings",
    "expected",
    "job_memory",
    "job_minutes",
    "time_left",
]

Name = tuple[str, str]
"""A unit: its study and its own name."""
START_SECONDS = 1.5
"""Time that the process of a unit takes to start."""
COMPILE_SECONDS = 20.0
"""Time that it takes to compile the kernels of a method."""
MOST_READ = 500
"""Points of other cells that are looked at."""
SAFETY = 3
"""A job may take this many times what is expected before it is stopped and tried again."""


@dataclass(frozen=True)
class Cost:
    """Seconds of CPU time: what is expected, and what the worst of like points would take."""

    typical: float
    worst: float
    guessed: bool = False
    """Whether it rests on no stored point of the method."""


class Timings:
    """Times that points in a store took.

    Parameters
    ----------
    store : Store
        The store.
    kernels : pathlib.Path
        Where numba keeps machine code.
    """

    def __init__(self, store: Store, kernels: Path = KERNELS):
        self.store = store
        self.kernels = kernels
        self._compiled: set[Path] = set()
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

    def overhead(self, units: Iterable[Unit]) -> float:
        """Estimate what units take besides their points: to start, and to compile kernels.

        A kernel that is not kept yet counts for the first unit that needs it, also among those
        that earlier calls have asked for.
        """
        seconds = 0.0
        for unit in units:
            seconds += START_SECONDS
            method = unit.method
            kernel, compiles = kernel_cache(method, self.kernels), methods.load(method).compiles
            if compiles and kernel not in self._compiled and not kernel.exists():
                self._compiled.add(kernel)
                seconds += COMPILE_SECONDS
        return seconds

    def _cell(self, point: Point) -> list["_Timing"]:
        cell = (point.method, point.cell)
        if cell not in self._cells:
            self._cells[cell] = list(self._read(f"{point.method}-*/{point.cell}.jsonl"))
        return self._cells[cell]

    def _method(self, method: str) -> Cost:
        found = islice(self._read(f"{method}-*/*.jsonl"), MOST_READ)
        seconds = [stored.seconds for stored in found]
        if not seconds:
            return Cost(*methods.load(method).seconds, guessed=True)
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


class Expected(NamedTuple):
    """What a unit is to compute."""

    points: int
    """Points that it needs, with those that are stored."""
    method: str
    seconds: float | None
    """Mean time of those that are not, from stored points of the method; None without."""


def expected(unit: Unit, timings: Timings) -> Expected:
    """Say what a unit is to compute, and how long a point takes as far as the store tells."""
    wanted = [point for point in unit.points if not point.left_out]
    found = timings.store.find(wanted)
    costs = [timings.cost(point) for point in wanted if point.id not in found]
    known = bool(costs) and not any(cost.guessed for cost in costs)
    mean = sum(cost.typical for cost in costs) / len(costs) if known else None
    return Expected(len(wanted), unit.method, mean)


class Left(NamedTuple):
    """How much computing is left, as far as it is known."""

    seconds: float
    complete: bool
    """Whether it counts all points that are left."""


def time_left(expected: Mapping[Name, Expected], states: Mapping[Name, State]) -> Left:
    """Estimate the time until all points are computed.

    A point takes as long as those of its unit did, or those of its method in this run, or stored
    ones. Where there are none of these, nothing is known. Compiling is left out.

    Parameters
    ----------
    expected : mapping
        What every unit of the run is to compute.
    states : mapping
        How far those units are that have begun.

    Examples
    --------
    >>> units = {("a", "one"): Expected(12, "x", None), ("a", "two"): Expected(9, "y", None)}
    >>> time_left(units, {("a", "one"): State(total=12, computed=4, seconds=2.0)})
    Left(seconds=4.0, complete=False)
    """
    methods: dict[str, list[State]] = {}
    for unit, state in states.items():
        methods.setdefault(expected[unit].method, []).append(state)
    seconds, complete, workers = 0.0, True, 0
    for unit, wanted in expected.items():
        state = states.get(unit, State())
        points = wanted.points - state.done
        if not points:
            continue
        if unit in states:
            workers += max(1, len(state.running))
        alike = State.sum(methods.get(wanted.method, ()))
        mean = next(
            (one.seconds / one.computed for one in (state, alike) if one.computed >= FEWEST),
            wanted.seconds,
        )
        seconds += points * (mean or 0.0)
        complete = complete and mean is not None
    return Left(seconds / max(1, workers), complete)


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
    minutes = methods.load(unit.method).minutes
    return ceil(minutes + SAFETY * seconds / 60) << (attempt - 1)


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
    method = methods.load(unit.method)
    needed = max((method.memory(point.subject.problem) for point in wanted), default=0.0)
    own = needed * min(threads, len(wanted)) / 1e6
    return ceil(method.memory_mb + own) << (attempt - 1)
