"""How far a unit is: a line in its log for every point, and a small file that others can read."""

import json
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from manyserver.study.whole_files import replacing

__all__ = ["FEWEST", "Progress", "State", "read_state"]

SECONDS = 1.0
"""Time between two writes of the file."""
FEWEST = 3
"""Points that tell how long others will take."""


@dataclass
class State:
    """Points of a unit by what became of them.

    Parameters
    ----------
    total : int
        Points that the unit needs.
    computed, reused, left_out : int
        Points computed now, answered from the store, and never computed.
    compiling : int
        Processes that compile their kernel at the moment.
    seconds : float
        Time behind the points that were computed now, without compiling.
    replications, found_replications : int
        Replications behind the points that were computed now, and those of them that an earlier
        request had measured.
    failed : dict
        Reason by name of a point that could not be computed.
    running : dict
        Time when a point was begun, in seconds since the epoch, by its name.
    """

    total: int = 0
    computed: int = 0
    reused: int = 0
    left_out: int = 0
    compiling: int = 0
    seconds: float = field(default=0.0, compare=False)
    replications: int = 0
    found_replications: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    running: dict[str, float] = field(default_factory=dict)

    @property
    def done(self) -> int:
        """Points that need no more work."""
        return self.computed + self.reused + len(self.failed)

    @classmethod
    def sum(cls, states: Iterable["State"]) -> "State":
        """Add up the points of several units.

        Examples
        --------
        >>> State.sum([State(total=3, computed=1), State(total=2, reused=2)]).done
        3
        """
        result = cls()
        for state in states:
            result.total += state.total
            result.computed += state.computed
            result.reused += state.reused
            result.left_out += state.left_out
            result.compiling += state.compiling
            result.seconds += state.seconds
            result.replications += state.replications
            result.found_replications += state.found_replications
            result.failed |= state.failed
            result.running |= state.running
        return result

    def __str__(self) -> str:
        computed = f"{self.computed} computed"
        if self.found_replications:
            computed += f" ({self.found_replications} of {self.replications} replications reused)"
        return (
            f"{computed}, {self.reused} reused, {len(self.failed)} failed, {self.left_out} left out"
        )


def read_state(path: Path) -> State | None:
    """Read the file of a unit; None if it has not begun, or the file is damaged."""
    try:
        return State(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return None


class Progress:
    """Tells what happens to the points of a unit; safe to call from several threads.

    Parameters
    ----------
    say : callable
        Takes lines for the log.
    path : pathlib.Path, optional
        File that holds the :class:`State`.
    """

    def __init__(self, say: Callable[[str], None], path: Path | None = None):
        self.say = say
        self.path = path
        self.state = State()
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._compiled = 0.0
        self._compiling_since: float | None = None
        self._written = -SECONDS
        self._later: threading.Timer | None = None

    def begin(self, total: int, reused: int, left_out: int) -> None:
        """Say how many points there are."""
        with self._lock:
            self.state = State(total=total, reused=reused, left_out=left_out)
            self._write()

    def start(self, point: str) -> None:
        """Say that a point is begun."""
        with self._lock:
            self.state.running[point] = time.time()
            self._write()

    def compiling(self, now: bool) -> None:
        """Say that a kernel is being compiled, or not any more."""
        with self._lock:
            if now:
                self._compiling_since = time.monotonic()
            else:
                self._compiled = self._compiled_until_now
                self._compiling_since = None
            self.state.compiling = int(now)
            self._write()

    @property
    def compiled(self) -> float:
        """Seconds of compiling so far."""
        with self._lock:
            return self._compiled_until_now

    @property
    def _compiled_until_now(self) -> float:
        since = self._compiling_since
        return self._compiled + (0.0 if since is None else time.monotonic() - since)

    def computed(
        self,
        point: str,
        seconds: float,
        found: int = 0,
        replications: int = 0,
        compiled: float = 0.0,
    ) -> None:
        """Say that a point is stored, and tell it in the log.

        Parameters
        ----------
        point : str
            Its name.
        seconds : float
            Time that it took, without compiling.
        found, replications : int, optional
            Replications that an earlier request had measured, and all.
        compiled : float, optional
            Time that it waited for its kernel to be compiled.
        """
        with self._lock:
            self.state.running.pop(point, None)
            self.state.computed += 1
            self.state.seconds += seconds
            self.state.replications += replications
            self.state.found_replications += found
            self._write()
            # The next points need no compiling.
            spent = max(time.monotonic() - self._began - self._compiled_until_now, 1e-3)
            rate = self.state.computed / spent
            left = (self.state.total - self.state.done) / rate
            self.say(
                f"{self.state.done} of {self.state.total} points, {rate:.2g} per second"
                + (f", about {left:.0f} s left" if self.state.computed >= FEWEST else "")
                + f"; {seconds:.2f} s for {point}"
                + (f", after {compiled:.0f} s of compiling" if compiled else "")
                + (f", {found} of {replications} replications reused" if found else "")
            )

    def found(self, point: str) -> None:
        """Say that another process has computed a point meanwhile."""
        with self._lock:
            self.state.running.pop(point, None)
            self.state.reused += 1
            self._write()

    def failed(self, point: str, reason: str) -> None:
        """Say that a point could not be computed."""
        with self._lock:
            self.state.running.pop(point, None)
            self.state.failed[point] = reason
            self._write()
            self.say(f"failed: {point}: {reason}")

    def end(self) -> None:
        """Say what became of all points."""
        with self._lock:
            self.state.running.clear()
            self._write(now=True)
            self.say(f"points: {self.state}")

    def _write(self, now: bool = False) -> None:
        """Write the file, or let it be written as soon as the last time is long enough ago."""
        if self.path is None:
            return
        left = self._written + SECONDS - time.monotonic()
        if left > 0 and not now:
            if self._later is None:
                self._later = threading.Timer(left, self._write_later)
                self._later.daemon = True
                self._later.start()
            return
        if self._later is not None:
            self._later.cancel()
            self._later = None
        self._written = time.monotonic()
        try:
            with replacing(self.path) as temporary:
                temporary.write_text(json.dumps(asdict(self.state)))
        except OSError:
            # Results matter more than being watched; a full disk is told by what writes them.
            return

    def _write_later(self) -> None:
        with self._lock:
            if self._later is not None:
                self._write(now=True)
