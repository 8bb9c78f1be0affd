"""Compute a unit: answer its points from the store, compute the others, write its file."""

import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from platform import python_version

from manyserver.study import methods
from manyserver.study.fingerprint import fingerprint
from manyserver.study.points import Point, Unit
from manyserver.study.records import Record, decode, encode, record_of
from manyserver.study.store import Store, replacing
from manyserver.version import __version__

__all__ = [
    "FailedPoints",
    "compute_unit",
    "point_name",
    "read_unit",
    "use_kernel_cache",
    "versions",
]


class FailedPoints(Exception):
    """Raised when points of a unit could not be computed; the others are in the store."""


def versions() -> dict[str, str]:
    """Return the versions of this package, Python and the libraries that compute.

    Examples
    --------
    >>> sorted(versions())
    ['manyserver', 'numba', 'numpy', 'python', 'scipy']
    """
    libraries = {name: version(name) for name in ("numba", "numpy", "scipy")}
    return {"manyserver": __version__, "python": python_version(), **libraries}


def use_kernel_cache(method: str, folder: Path) -> None:
    """Let numba keep the machine code of this version of the code apart from all others.

    Numba does not notice an edit in a module that a compiled function imports, and would run
    stale machine code. It reads the folder when it is imported, so this must come before.
    """
    if "numba" in sys.modules:
        raise RuntimeError("numba is imported too early; its cache cannot be chosen any more")
    module = methods.load(method)
    name = fingerprint(f"{methods.__name__}.{method}", without=module.STARTS_FROM)
    os.environ["NUMBA_CACHE_DIR"] = str(folder.resolve() / name)


def compute_unit(
    unit: Unit, store: Store, output: Path, threads: int = 1, say: Callable[[str], None] = print
) -> None:
    """Write a unit's file, computing only the points that the store does not have.

    Parameters
    ----------
    unit : Unit
        Its points.
    store : Store
        Where points are kept; each is appended as soon as it is computed.
    output : pathlib.Path
        The unit's file: the records of its points in order, but those left out; the same bytes
        whatever was in the store and however many threads there are.
    threads : int, optional
        Points computed at a time.
    say : callable, optional
        Takes lines that tell the progress.

    Raises
    ------
    FailedPoints
        If points could not be computed; the message has a line for each.
    """
    wanted = [point for point in unit.points if not point.left_out]
    found = store.find(wanted)
    work = _Work([point for point in wanted if point.id not in found], store, threads, say)
    found |= work.run()
    if store.damaged:
        lines = "1 damaged line" if store.damaged == 1 else f"{store.damaged} damaged lines"
        say(f"{lines} of the store {'was' if store.damaged == 1 else 'were'} ignored")
    with replacing(output) as temporary:
        temporary.write_text("".join(encode(found[point.id]) for point in wanted))
    skipped = len(unit.points) - len(wanted)
    say(
        f"points: {work.computed} computed, {len(wanted) - work.computed} reused, "
        f"{skipped} left out"
    )


class _Work:
    """The points of a unit that have to be computed."""

    def __init__(self, points: list[Point], store: Store, threads: int, say: Callable[[str], None]):
        self.store = store
        self.threads = threads
        self.say = say
        self.found: dict[str, Record] = {}
        self.failures: list[str] = []
        self.computed = 0
        self.cells: dict[str, dict[str, Point]] = {}
        for point in points:
            self.cells.setdefault(point.cell, {})[point.id] = point
        self.total = sum(len(cell) for cell in self.cells.values())
        self.versions = versions()
        self.start = time.perf_counter()

    def run(self) -> dict[str, Record]:
        """Compute cell by cell, those that another process computes last."""
        waiting = list(self.cells.values())
        wait = False
        while waiting:
            busy = [cell for cell in waiting if not self._compute_cell(cell, wait)]
            wait = len(busy) == len(waiting)
            if wait:
                self.say("waiting for another job that computes the same points")
            waiting = busy
        if self.failures:
            total = f"{len(self.failures)} of {self.total} points failed; the others are kept"
            raise FailedPoints("\n".join([total, *sorted(self.failures)]))
        return self.found

    def _compute_cell(self, cell: dict[str, Point], wait: bool) -> bool:
        with self.store.writing(next(iter(cell.values())), wait) as held:
            if held:
                self.found |= self.store.find(cell.values())
                missing = [point for point in cell.values() if point.id not in self.found]
                self._compute_points(missing)
            return held

    def _compute_points(self, points: list[Point]) -> None:
        with ThreadPoolExecutor(self.threads) as pool:
            # High loads take longest; starting with them lets the threads end together.
            for point in reversed(points):
                pool.submit(self._attempt, point)

    def _attempt(self, point: Point) -> None:
        try:
            seconds = self._compute(point)
        except Exception as error:
            # One point that fails must not cost the others.
            self.failures.append(f"{point_name(point)}: {type(error).__name__}: {error}")
            self.say(f"failed: {self.failures[-1]}")
            return
        self.computed += 1
        done = len(self.found) + len(self.failures)
        left = (time.perf_counter() - self.start) / done * (self.total - done)
        self.say(
            f"{done} of {self.total} points, about {left:.0f} s left; "
            f"{seconds:.2f} s for {point_name(point)}"
        )

    def _compute(self, point: Point) -> float:
        began = time.perf_counter()
        method = methods.load(point.method)
        options = method.Options(**point.options)
        result = method.compute(point.system, point.policy, options, point.seed or 0)
        record = record_of(point, result, self.versions)
        seconds = time.perf_counter() - began
        self.store.append(point, record, round(seconds, 3))
        self.found[point.id] = record
        return seconds


def point_name(point: Point) -> str:
    """Say which point it is, in the words of the study."""
    labels = {key: "limit" if value is None else value for key, value in point.labels.items()}
    return ", ".join([point.method, *(f"{key} {value}" for key, value in labels.items())])


def read_unit(path: Path) -> list[Record]:
    """Read a unit's file.

    Raises
    ------
    ValueError
        If a line is damaged.
    """
    records = []
    with path.open(encoding="utf-8", errors="surrogateescape") as lines:
        for number, line in enumerate(lines, start=1):
            record = decode(line)
            if record is None:
                raise ValueError(f"{path}: line {number} is damaged; delete the file and run again")
            records.append(record)
    return records
