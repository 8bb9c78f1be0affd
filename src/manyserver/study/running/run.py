"""One run of the workflow: alone in its folder, watched, and summed up at its end."""

import logging
import sys
import threading
import time
import zlib
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType

from manyserver.study.running.cost import Expected, Left, Name, time_left
from manyserver.study.running.progress import State, read_state
from manyserver.study.storage.locks import sole_run

__all__ = [
    "FAILED_PRODUCTS",
    "Run",
    "failure_table",
    "product_list",
    "progress_line",
    "state_file",
]

FAILED_PRODUCTS = "Failed products:"
DRAWN = (".png", ".pdf")
MOST_NAMED = 3
"""Figures of a study that are named at the end of a run."""
LIVE_SECONDS = 1.0
"""Time between two looks on a terminal."""
PLAIN_SECONDS = 15.0
"""Time between the first two lines elsewhere; it grows, up to the following."""
LONGEST_SECONDS = 300.0


def state_file(results: Path, study: str, unit: str) -> Path:
    """File in which a unit tells how far it is."""
    return results / study / "logs" / f"{unit}.json"


def span(seconds: float) -> str:
    """Write a time in the unit that suits it.

    Examples
    --------
    >>> span(42.3), span(125), span(7_300)
    ('42 s', '2 min', '2.0 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def progress_line(state: State, expected: int, left: Left, now: float) -> str:
    """Say in one line how far a run is.

    Parameters
    ----------
    state : State
        Sum over all units that have begun.
    expected : int
        Points of all units of the run.
    left : Left
        How much is left.
    now : float
        Seconds since the epoch.

    Examples
    --------
    >>> state = State(computed=20, reused=10, running={"mean_field, load 0.5": 100.0})
    >>> progress_line(state, expected=50, left=Left(10.0, True), now=104.0)
    '30 of 50 points, about 10 s of computing left; slowest: mean_field, load 0.5 (4 s)'
    >>> progress_line(State(total=50, compiling=2), 50, Left(0.0, False), now=104.0)
    '0 of 50 points, compiling (once for every version of the code), time left not known yet'
    """
    parts = [f"{state.done} of {expected} points"]
    if state.compiling:
        parts.append("compiling (once for every version of the code)")
    if state.done >= expected:
        parts.append("cubes, tables and figures follow")
    elif left.complete or left.seconds:
        parts.append(
            f"{'about' if left.complete else 'at least'} {span(left.seconds)} of computing left"
        )
    else:
        parts.append("time left not known yet")
    if state.failed:
        parts.append(f"{len(state.failed)} failed")
    line = ", ".join(parts)
    if state.running:
        name, since = min(state.running.items(), key=lambda item: item[1])
        line += f"; slowest: {name} ({span(max(0.0, now - since))})"
    return line


def product_list(results: Path, files: Iterable[str]) -> list[str]:
    """List cubes, tables and figures, a line for every study, and say what to look at first.

    Parameters
    ----------
    results : pathlib.Path
        Folder of the results.
    files : iterable of str
        Below it, as ``STUDY/FILE``.

    Examples
    --------
    >>> product_list(Path("results"), ["a/cube.nc", "a/figures/load.png", "a/figures/load.pdf"])
    ['Built:', '  results/a: cube.nc, figures/load.png, .pdf',
     'Look first at results/a/figures/load.png. results/README.md describes all files.']
    """
    studies: dict[str, list[str]] = {}
    for file in files:
        study, name = file.split("/", 1)
        studies.setdefault(study, []).append(name)
    if not studies:
        return []
    lines = ["Built:"]
    for study, names in studies.items():
        told = [name for name in names if not name.startswith("figures/")]
        drawn = [name for name in names if name.endswith(".png")]
        told += [f"{name}, .pdf" for name in drawn[:MOST_NAMED]]
        if len(drawn) > MOST_NAMED:
            told.append(f"and {len(drawn) - MOST_NAMED} more in figures/")
        lines.append(f"  {results / study}: {', '.join(told)}")
    pictures = [f"{study}/{name}" for study in studies for name in studies[study] if ".png" in name]
    first = f"Look first at {results / pictures[0]}. " if pictures else ""
    return [*lines, f"{first}{results / 'README.md'} describes all files."]


def failure_table(failed: Mapping[str, str]) -> str:
    """List points that failed, those with the same reason together.

    Parameters
    ----------
    failed : mapping
        Reason by name of the point.

    Examples
    --------
    >>> print(failure_table({"mean_field, load 0.5": "ArithmeticError: no value"}))
    ArithmeticError: no value
      mean_field, load 0.5
    """
    reasons: dict[str, list[str]] = {}
    for name, reason in failed.items():
        reasons.setdefault(reason, []).append(name)
    lines = []
    for reason, names in sorted(reasons.items()):
        lines += [reason, *(f"  {name}" for name in names)]
    return "\n".join(lines)


class Run:
    """A run of the workflow.

    Parameters
    ----------
    results : pathlib.Path
        Folder of the results.
    """

    def __init__(self, results: Path):
        self.results = results
        self.files: dict[Name, Path] = {}
        self.units: dict[Name, Expected] = {}
        self.expected = 0
        self._products: dict[str, int | None] = {}
        self._stack = ExitStack()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._began = time.monotonic()

    def start(self, units: Mapping[Name, Expected], products: Iterable[str] = ()) -> None:
        """Lock the results and tell the progress from now on.

        Parameters
        ----------
        units : mapping
            What every job that computes points is to compute.
        products : iterable of str
            Files below the folder of the results that the run may build, in the order in which
            to name them.

        Raises
        ------
        FolderInUse
            If another run builds these results.
        """
        self._stack.enter_context(sole_run(self.results))
        self.files = {unit: state_file(self.results, *unit) for unit in units}
        self.units = dict(units)
        self.expected = sum(unit.points for unit in units.values())
        self._products = {file: self._version(file) for file in products}
        for file in self.files.values():
            file.unlink(missing_ok=True)
        self._began = time.monotonic()
        if self.files:
            self._thread.start()

    def finish(self, products: Mapping[str, str] = MappingProxyType({})) -> str:
        """Unlock the results; return the totals, what failed, and what was built.

        Parameters
        ----------
        products : mapping, optional
            Reasons of the figures and fits that failed, by their names.
        """
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        self._stack.close()
        state = self._state()
        lines = [f"points: {state}, in {span(time.monotonic() - self._began)}"]
        unfinished = self.expected - state.done
        if unfinished:
            lines[0] += f"; {unfinished} not reached"
        if state.failed:
            lines += ["Failed points:", failure_table(state.failed)]
        if products:
            lines += [FAILED_PRODUCTS, failure_table(products)]
        now = {file: self._version(file) for file in self._products}
        built = [file for file, at in now.items() if at not in (None, self._products[file])]
        return "\n".join([*lines, *product_list(self.results, built)])

    def _version(self, file: str) -> int | None:
        path = self.results / file
        try:
            if path.suffix in DRAWN:
                # Snakemake touches those that were left as they are.
                return zlib.crc32(path.read_bytes())
            return path.stat().st_mtime_ns
        except FileNotFoundError:
            return None

    def _states(self) -> dict[Name, State]:
        found: dict[Name, State] = {}
        for unit, file in self.files.items():
            state = read_state(file)
            if state is not None:
                # Studies may give the same name to different points.
                state.failed = {f"{unit[0]}: {key}": why for key, why in state.failed.items()}
                state.running = {f"{unit[0]}: {key}": at for key, at in state.running.items()}
                found[unit] = state
        return found

    def _state(self) -> State:
        return State.sum(self._states().values())

    def _line(self) -> str:
        states = self._states()
        left = time_left(self.units, states)
        return progress_line(State.sum(states.values()), self.expected, left, time.time())

    def _watch(self) -> None:
        if sys.stderr.isatty():
            self._watch_live()
            return
        pause = PLAIN_SECONDS
        while not self._over.wait(pause):
            if self._state().done < self.expected:
                print(self._line(), file=sys.stderr, flush=True)
            pause = min(LONGEST_SECONDS, pause * 1.3)

    def _watch_live(self) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        def line() -> Text:
            return Text(self._line(), style="bold", no_wrap=True, overflow="ellipsis")

        with Live(line(), console=Console(stderr=True), transient=True, auto_refresh=False) as live:
            # What is logged to the terminal must go above the line, and so through `sys.stderr`,
            # which the line has replaced.
            moved = [
                (handler, stream)
                for name in logging.root.manager.loggerDict
                for handler in logging.getLogger(name).handlers
                if isinstance(handler, logging.StreamHandler)
                and (stream := handler.stream) is sys.__stderr__
            ]
            for handler, _ in moved:
                handler.setStream(sys.stderr)
            while not self._over.wait(LIVE_SECONDS):
                live.update(line(), refresh=True)
            for handler, stream in moved:
                handler.setStream(stream)
