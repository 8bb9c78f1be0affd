"""Status: how many points are stored, and how long the others will take."""

from dataclasses import dataclass
from pathlib import Path

from manyserver.inspection.past import failures_in
from manyserver.plan import Plan
from manyserver.study.running.cost import Timings, job_memory
from manyserver.study.running.run import span
from manyserver.study.storage.store import Store

__all__ = ["Status", "needed", "status", "status_table"]

YEAR = 365.25 * 86400
"""Seconds."""


@dataclass(frozen=True)
class Status:
    """Points of a study by what is known of them.

    Parameters
    ----------
    study : str
        Its name.
    points, stored, left_out : int
        All; those in the store; those that are never computed.
    failed : int
        Those that failed when the cube was built and are not stored since.
    seconds : float
        CPU time that the others will take, estimated from stored points; it includes the start
        of their units, and compiling.
    """

    study: str
    points: int
    stored: int
    left_out: int
    failed: int
    seconds: float

    @property
    def to_do(self) -> int:
        """Points that are still to be computed."""
        return self.points - self.stored - self.left_out


def status(plan: Plan, results: Path) -> list[Status]:
    """Count the points of every study of a plan."""
    timings = Timings(Store(results / "points"))
    return [_status(plan, name, results, timings) for name in plan.names]


def _status(plan: Plan, name: str, results: Path, timings: Timings) -> Status:
    study = plan.study(name)
    wanted = [point for point in study.points if not point.left_out]
    found = timings.store.find(wanted)
    missing = [point for point in wanted if point.id not in found]
    failed = failures_in(results / name / "cube.nc") if missing else {}
    ids = {point.id for point in missing}
    units = [u for u in study.units.values() if not ids.isdisjoint(p.id for p in u.points)]
    return Status(
        study=name,
        points=len(study.points),
        stored=len(wanted) - len(missing),
        left_out=len(study.points) - len(wanted),
        failed=sum(point.id in failed for point in missing),
        seconds=timings.overhead(units) + sum(timings.cost(point).typical for point in missing),
    )


def needed(plan: Plan, found: Status) -> str:
    """Say how much time and memory the points of a study need that are not stored."""
    if not found.to_do:
        return "all are stored"
    units = plan.study(found.study).units.values()
    memory = max(job_memory(unit, 1, 1) for unit in units) / 1000
    time = span(found.seconds)
    if found.seconds > YEAR:
        time = f"{found.seconds / YEAR:.2g} years"
    return f"{found.to_do} to compute: some {time} of CPU time, {memory:.3g} GB for each job"


def status_table(rows: list[Status]) -> str:
    """Lay out the counts of several studies, with their sums.

    Examples
    --------
    >>> print(status_table([Status("small", 10, 8, 1, 0, 2.5)]))
    study  points  stored  to do  failed  left out  CPU seconds left
    small      10       8      1       0         1                 2
    """

    def cells(name: str, counts: list[int], seconds: float) -> list[str]:
        return [name, *(str(count) for count in counts), f"{seconds:.0f}"]

    counts = [[s.points, s.stored, s.to_do, s.failed, s.left_out] for s in rows]
    table = [["study", "points", "stored", "to do", "failed", "left out", "CPU seconds left"]]
    table += [cells(s.study, own, s.seconds) for s, own in zip(rows, counts, strict=True)]
    if len(rows) > 1:
        sums = [sum(column) for column in zip(*counts, strict=True)]
        table.append(cells("all", sums, sum(s.seconds for s in rows)))
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    lines = [
        "  ".join(
            text.ljust(width) if i == 0 else text.rjust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in table
    ]
    return "\n".join(line.rstrip() for line in lines)
