"""One run of the workflow: alone in its folder, watched, and summed up at its end."""

import logging
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType

from manyserver.study.locks import sole_run
from manyserver.study.progress import State, read_state

__all__ = ["FAILED_PRODUCTS", "Run", "failure_table", "progress_line", "state_file"]

FAILED_PRODUCTS = "Failed products:"
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


def progress_line(state: State, expected: int, seconds: float, now: float) -> str:
    """Say in one line how far a run is.

    Parameters
    ----------
    state : State
        Sum over all units that have begun.
    expected : int
        Points of all units of the run.
    seconds : float
        How long the run has been going on.
    now : float
        Seconds since the epoch.

    Examples
    --------
    >>> state = State(computed=20, reused=10, running={"mean_field, load 0.5": 100.0})
    >>> progress_line(state, expected=50, seconds=10.0, now=104.0)
    '30 of 50 points, 2 per second, about 10 s left; slowest: mean_field, load 0.5 (4 s)'
    """
    parts = [f"{state.done} of {expected} points"]
    rate = state.computed / seconds if seconds > 0 else 0.0
    if rate > 0:
        parts.append(f"{rate:.2g} per second")
        parts.append(f"about {span((expected - state.done) / rate)} left")
    if state.failed:
        parts.append(f"{len(state.failed)} failed")
    line = ", ".join(parts)
    if state.running:
        name, since = min(state.running.items(), key=lambda item: item[1])
        line += f"; slowest: {name} ({span(max(0.0, now - since))})"
    return line


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
        self.files: dict[tuple[str, str], Path] = {}
        self.expected = 0
        self._stack = ExitStack()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._began = time.monotonic()

    def start(self, units: Mapping[tuple[str, str], int]) -> None:
        """Lock the results and tell the progress from now on.

        Parameters
        ----------
        units : mapping
            Number of points of every job that computes points, by its study and unit.

        Raises
        ------
        FolderInUse
            If another run builds these results.
        """
        self._stack.enter_context(sole_run(self.results))
        self.files = {unit: state_file(self.results, *unit) for unit in units}
        self.expected = sum(units.values())
        for file in self.files.values():
            file.unlink(missing_ok=True)
        self._began = time.monotonic()
        if self.files:
            self._thread.start()

    def finish(self, products: Mapping[str, str] = MappingProxyType({})) -> str:
        """Unlock the results; return the totals, and a table of what failed.

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
        return "\n".join(lines)

    def _state(self) -> State:
        found: list[State] = []
        for (study, _), file in self.files.items():
            state = read_state(file)
            if state is not None:
                # Studies may give the same name to different points.
                state.failed = {f"{study}: {key}": why for key, why in state.failed.items()}
                state.running = {f"{study}: {key}": at for key, at in state.running.items()}
                found.append(state)
        return State.sum(found)

    def _line(self) -> str:
        seconds = time.monotonic() - self._began
        return progress_line(self._state(), self.expected, seconds, time.time())

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
