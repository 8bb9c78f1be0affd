"""Compute a unit: answer its points from the store, compute the others, write its file."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from platform import python_version

from manyserver import methods
from manyserver.study.points import Point, Unit, point_code, point_name
from manyserver.study.running.progress import Progress, State
from manyserver.study.storage.kept import Kept
from manyserver.study.storage.records import Record, failed_record, record_of
from manyserver.study.storage.store import Store, WriteError
from manyserver.study.storage.unit_file import write_unit
from manyserver.version import __version__

__all__ = [
    "KERNELS",
    "compiling_told",
    "compute_unit",
    "kernel_cache",
    "use_kernel_cache",
    "versions",
]


KERNELS = Path(".cache/numba")
"""Where numba keeps machine code, in the folder of a project."""


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
    stale machine code. It reads the folder when it is imported, so this must come before. Nothing
    is done for a method that has nothing compiled.
    """
    if not methods.load(method).compiles:
        return
    if "numba" in sys.modules:
        raise RuntimeError("numba is imported too early; its cache cannot be chosen any more")
    os.environ["NUMBA_CACHE_DIR"] = str(kernel_cache(method, folder))


def kernel_cache(method: str, folder: Path) -> Path:
    """Return where numba keeps the machine code of this version of the code of a method."""
    return folder.resolve() / point_code(method)


@contextmanager
def compiling_told(method: str, progress: Progress) -> Iterator[None]:
    """Say when numba compiles, if a method has something compiled."""
    if not methods.load(method).compiles:
        yield
        return
    # Imported here because it takes a second, and reads its settings when it is imported.
    from numba.core import event

    class Listener(event.Listener):  # type: ignore[misc]
        """What a kernel calls is compiled while it is."""

        def __init__(self) -> None:
            self.depth, self.lock = 0, threading.Lock()

        def _count(self, change: int) -> None:
            with self.lock:
                self.depth += change
                if self.depth == (change > 0):
                    progress.compiling(change > 0)

        def on_start(self, event: object) -> None:
            self._count(1)

        def on_end(self, event: object) -> None:
            self._count(-1)

    listener = Listener()
    event.register("numba:compile", listener)
    try:
        yield
    finally:
        event.unregister("numba:compile", listener)


def compute_unit(
    unit: Unit,
    store: Store,
    output: Path,
    threads: int = 1,
    say: Callable[[str], None] = print,
    state: Path | None = None,
) -> State:
    """Write a unit's file, computing only the points that the store does not have.

    Parameters
    ----------
    unit : Unit
        Its points.
    store : Store
        Where points are kept; each is appended as soon as it is computed.
    output : pathlib.Path
        The unit's file: the records of its points in order, but those left out; the same bytes
        whatever was in the store and however many threads there are. A point that could not be
        computed has the status ``failed`` and a reason, and is not put into the store.
    threads : int, optional
        Points computed at a time.
    say : callable, optional
        Takes lines that tell the progress.
    state : pathlib.Path, optional
        File in which others can read the progress.

    Returns
    -------
    State
        What became of the points.

    Raises
    ------
    WriteError
        If the disk is full, say.
    """
    wanted = [point for point in unit.points if not point.left_out]
    progress = Progress(say, state)
    work = _Work(wanted, store, threads, progress)
    progress.begin(len(wanted), len(work.found), len(unit.points) - len(wanted))
    found = work.run()
    if store.damaged:
        lines = "1 damaged line" if store.damaged == 1 else f"{store.damaged} damaged lines"
        say(f"{lines} of the store {'was' if store.damaged == 1 else 'were'} ignored")
    write_unit(output, unit, (found[point.id] for point in wanted))
    progress.end()
    return progress.state


class _Work:
    """The points of a unit, found in the store or still to be computed."""

    def __init__(self, points: list[Point], store: Store, threads: int, progress: Progress):
        self.store = store
        self.threads = threads
        self.progress = progress
        self.found = store.find(points)
        self.missing = {point.key: point for point in points if point.id not in self.found}
        self.versions = versions()
        self.stopped: WriteError | None = None

    def run(self) -> dict[str, Record]:
        """Compute what is missing, last what another process computes at the moment."""
        # High loads take longest; starting with them lets the threads end together.
        missing = list(reversed(self.missing.values()))
        if not missing:
            return self.found
        with compiling_told(missing[0].method, self.progress):
            busy = self._attempt_all(missing, wait=False)
            if busy:
                self.progress.say("waiting for another job that computes the same points")
                self._attempt_all(busy, wait=True)
        return self.found

    def _attempt_all(self, points: list[Point], wait: bool) -> list[Point]:
        """Settle points; return those that another process has claimed."""
        with ThreadPoolExecutor(self.threads) as pool:
            settled = list(pool.map(lambda point: self._attempt(point, wait), points))
        if self.stopped:
            raise self.stopped
        return [point for point, done in zip(points, settled, strict=True) if not done]

    def _attempt(self, point: Point, wait: bool) -> bool:
        """Settle one point; whether that was possible."""
        if self.stopped:
            return True
        name = point_name(point)
        try:
            with self.store.claim(point, wait) as claimed:
                if claimed:
                    self._take_news(point)
                    if point.id in self.found:
                        self.progress.found(name)
                    else:
                        self._compute(point, name)
                return claimed
        except WriteError as error:
            self.stopped = error
        except Exception as error:
            # One point that fails must not cost the others.
            self.found[point.id] = failed_record(point, error, self.versions)
            self.progress.failed(name, self.found[point.id].notes["reason"])
        return True

    def _take_news(self, point: Point) -> None:
        for record in self.store.news(point):
            if record.key in self.missing:
                self.found[self.missing[record.key].id] = record

    def _compute(self, point: Point, name: str) -> None:
        self.progress.start(name)
        began, compiled = time.perf_counter(), self.progress.compiled
        method = methods.load(point.method)
        options = method.options_class(**point.options)
        kept = Kept(self.store.side_file(point), point.code)
        cache = None if method.cache_key(options) is None else kept
        draws = methods.Draws(point.seed or 0, cache)
        result = method.compute(point.subject.problem, options, draws)
        record = record_of(point, result, self.versions)
        compiled = self.progress.compiled - compiled
        seconds = max(0.0, time.perf_counter() - began - compiled)
        self.store.append(point, record, round(seconds, 3))
        self.found[point.id] = record
        self.progress.computed(name, seconds, kept.reused, kept.needed, compiled)
