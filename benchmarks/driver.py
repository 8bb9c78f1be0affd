"""What all benchmarks share: each is a function that yields rows, and says what it counts.

A row is a dictionary from the columns to values. Where something is measured several times, the
value is the list of all measurements, and the median is shown.
"""

from __future__ import annotations

import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from inspect import cleandoc
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import pandas as pd

from manyserver.study.running.compute import versions

__all__ = [
    "Benchmark",
    "Entry",
    "NotHere",
    "Row",
    "benchmark",
    "changes",
    "children_seconds",
    "comparison",
    "in_turns",
    "markdown",
    "measured",
    "ratios",
]

ROOT = Path(__file__).parents[1]
NOISE = 0.2


class NotHere(Exception):
    """What a benchmark needs is not on this machine."""


Value = str | int | float | list[float] | None
"""Lists are measurements of the same."""
Row = dict[str, Value]


class Entry(TypedDict):
    """What a benchmark measured, when and where; so it is kept in a JSON file."""

    date: str
    commit: str
    machine: str
    versions: dict[str, str]
    cpu_seconds: float
    rows: list[Row]


@dataclass(frozen=True)
class Benchmark:
    """A table: what it counts, and the function that measures its rows.

    Parameters
    ----------
    name : str
        The module and the function.
    rows : callable
        Told whether to be quick; yields rows.
    key : sequence of str
        The columns that say what a row is about.
    costs : sequence of str
        The columns that are compared with the last run; less is better.
    noise : float
        By what part the costs differ from run to run, beside the spread within a run.
    """

    name: str
    rows: Callable[[bool], Iterable[Row]]
    key: tuple[str, ...]
    costs: tuple[str, ...]
    noise: float

    @property
    def title(self) -> str:
        """First paragraph of the docstring."""
        return cleandoc(self.rows.__doc__ or "").partition("\n\n")[0].rstrip(".")

    @property
    def counted(self) -> str:
        """Rest of the docstring."""
        return cleandoc(self.rows.__doc__ or "").partition("\n\n")[2]


def benchmark(
    *key: str, costs: Iterable[str] = (), noise: float = NOISE
) -> Callable[[Callable[[bool], Iterable[Row]]], Benchmark]:
    """Make a benchmark of a function; the parameters are those of :class:`Benchmark`."""

    def made(rows: Callable[[bool], Iterable[Row]]) -> Benchmark:
        name = f"{rows.__module__.rpartition('.')[2]}.{rows.__name__}"
        return Benchmark(name, rows, key, tuple(costs), noise)

    return made


# To measure


def in_turns(
    runs: Mapping[str, Callable[[], Any]], rounds: int, *, per_unit: bool = False
) -> dict[str, list[float]]:
    """Return the CPU times of runs of one thread, in seconds, or over what the run says it did.

    Each runs once before, to compile; then they take turns, so that the ratios of one turn hardly
    depend on what else the machine does.
    """
    spent: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(rounds + 1):
        for name, run in runs.items():
            began = time.thread_time()
            done = run()
            seconds = time.thread_time() - began
            if turn > 0:
                spent[name].append(seconds / done if per_unit else seconds)
    return spent


def ratios(above: list[float], below: list[float]) -> list[float]:
    """Return the ratio of each turn."""
    return [a / b for a, b in zip(above, below, strict=True)]


def children_seconds() -> float:
    """Return the CPU time of all processes that were started and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# To keep


def measured(one: Benchmark, quick: bool, tell: Callable[[str], None]) -> Entry:
    """Run a benchmark, and say when and where."""
    commit, began = _commit(), time.process_time() + children_seconds()
    rows = []
    for row in one.rows(quick):
        tell(", ".join(_key(one, row)))
        rows.append({name: _rounded(value) for name, value in row.items()})
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "commit": commit,
        "machine": _machine(),
        "versions": versions() | _peers(),
        "cpu_seconds": round(time.process_time() + children_seconds() - began, 1),
        "rows": rows,
    }


def _rounded(value: Value) -> Value:
    """Keep five digits, which is more than any time has."""
    if isinstance(value, list):
        return [float(f"{one:.5g}") for one in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


@cache
def _commit() -> str:
    """Return the commit at the start: results that are written change the tree."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return told.stdout.strip() or "unknown"


def _peers() -> dict[str, str]:
    """Return the versions of other simulators, if a benchmark has used them."""
    found: dict[str, str] = {}
    for name in ("ciw", "gillespy2", "simpy"):
        if name in sys.modules:
            found[name] = version(name)
    if found and shutil.which("g++"):
        told = subprocess.run(["g++", "-dumpfullversion"], capture_output=True, text=True)
        found["g++"] = told.stdout.strip()
    return found


def _machine() -> str:
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    models = [line.partition(": ")[2] for line in lines if line.startswith("model name")]
    model = models[0] if models else platform.processor() or platform.machine()
    return f"{model}, {os.cpu_count()} cores, {platform.system()}"


# To show


def markdown(one: Benchmark, entry: Entry) -> str:
    """Return a section of a page: the table, what was counted, when and where."""
    rows = [{name: _shown(value) for name, value in row.items()} for row in entry["rows"]]
    shown = pd.DataFrame(rows).fillna("")
    align = ["right" if _numeric(shown[name]) else "left" for name in shown]
    table = shown.to_markdown(index=False, disable_numparse=True, colalign=align)
    where = f"`{one.name}`, {entry['date']}, commit {entry['commit']}, {entry['machine']}"
    return f"### {one.title}\n\n{one.counted}\n\n{table}\n\n*{where}.*\n"


def _shown(value: Value) -> str:
    if isinstance(value, list):
        value = statistics.median(value)
    if isinstance(value, float):
        return f"{value:,.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.3g}"
    return "" if value is None else f"{value:,}" if isinstance(value, int) else value


def _numeric(shown: pd.Series) -> bool:
    return bool(shown.str.fullmatch(r"[\d.,e+-]*").all())


# To compare


@dataclass(frozen=True)
class Change:
    """A cost, now and in the last run, and whether it is "slower", "faster", or neither ("")."""

    row: str
    cost: str
    before: float
    now: float
    verdict: str

    @property
    def ratio(self) -> float:
        """How much more it is now."""
        return self.now / self.before


def comparison(one: Benchmark, new: Iterable[Row], old: Iterable[Row]) -> Iterator[Change]:
    """Compare the costs with those of another run.

    A cost is slower if the lower quartile of its new measurements is above the upper quartile of
    the old ones, by more than the noise between runs; and faster if the reverse is true.
    """
    before = {_key(one, row): row for row in old}
    for row in new:
        last = before.get(_key(one, row), {})
        for cost in one.costs:
            if last.get(cost) is None or row.get(cost) is None:
                continue
            then, now = _quartiles(last[cost]), _quartiles(row[cost])
            verdict = ""
            if now[0] > (1 + one.noise) * then[2]:
                verdict = "slower"
            elif then[0] > (1 + one.noise) * now[2]:
                verdict = "faster"
            yield Change(", ".join(_key(one, row)), cost, then[1], now[1], verdict)


def _quartiles(value: Value) -> list[float]:
    measurements = np.asarray(value, dtype=float)
    return [float(found) for found in np.quantile(measurements, (0.25, 0.5, 0.75))]


def _key(one: Benchmark, row: Row) -> tuple[str, ...]:
    return tuple(_shown(row.get(name)) for name in one.key)


def changes(one: Benchmark, new: Entry, old: Entry | None) -> list[str]:
    """Say in lines of text how costs compare with those of the last run."""
    if old is None:
        return [f"{one.name}: there is no last run"]
    found = list(comparison(one, new["rows"], old["rows"]))
    if not found:
        return [f"{one.name}: nothing to compare"]
    mean = statistics.geometric_mean(change.ratio for change in found)
    elsewhere = (
        "" if new["machine"] == old["machine"] else f", on another machine ({old['machine']})"
    )
    counts = (f"{sum(c.verdict == v for c in found)} {v}" for v in ("slower", "faster"))
    return [
        f"{one.name}: {len(found)} costs, ratio {mean:.2f} (geometric mean), {', '.join(counts)} "
        f"by more than the noise; last run {old['date']}, commit {old['commit']}{elsewhere}",
        *(
            f"  {c.verdict}: {c.row}: {c.cost} {c.before:.3g} -> {c.now:.3g}, ratio {c.ratio:.2f}"
            for c in found
            if c.verdict
        ),
    ]
