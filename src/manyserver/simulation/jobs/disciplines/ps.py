"""Processor sharing.

The clock of a server is the service that each of its jobs has got since it was last idle. A job of
size x that arrives when the clock shows c leaves when it shows c + x, its *tag*. The jobs are kept
with falling tags, so the next to leave is the last one.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from manyserver.model import System
from manyserver.simulation.jobs.records import record_departure
from manyserver.simulation.jobs.servers import (
    implements,
    jobs_present,
    join,
    leave,
    placed_codes,
    update,
    wider_codes,
)
from manyserver.sizes import SizeLaw

__all__ = ["State"]

HEADER = 2
"""Entries of a row before its jobs: clock, and time of the last change."""
PARTS = 3
"""Entries of a job: tag, arrival and size, each with its like."""
BEFORE = -1.0
"""When the first jobs arrived, before the time zero."""


class State(NamedTuple):
    """See :class:`~manyserver.simulation.jobs.servers.Servers`."""

    code: np.ndarray
    due: np.ndarray
    rows: np.ndarray
    n_servers: np.int64

    @classmethod
    def placed(
        cls,
        system: System,
        sizes: SizeLaw,
        jobs: Sequence[np.ndarray],
        levels: int,
        polls: int,
        generator: np.random.Generator,
    ) -> "State":
        """Put jobs on the servers; a random part is left of each."""
        counts = np.concatenate(jobs)
        n = len(counts)
        speed = np.repeat(system.speeds, system.counts)
        rows = np.zeros((n + polls, HEADER + PARTS * levels))
        # The clock shows zero: the tag is what is left.
        left = sizes.sample_residual(generator, n * levels).reshape(n, levels)
        present = np.arange(levels) < counts[:, None]
        tags = -np.sort(-np.where(present, left, -1.0), axis=1)
        rows[:n, HEADER : HEADER + levels] = np.where(present, tags, 0.0)
        rows[:n, HEADER + levels : HEADER + 2 * levels] = BEFORE
        due = np.full(n + polls, np.inf)
        busy = np.flatnonzero(counts)
        due[busy] = tags[busy, counts[busy] - 1] * counts[busy] / speed[busy]
        return cls(placed_codes(jobs, levels, polls), due, rows.ravel(), np.int64(n))

    def wider(self, n_pools: int, levels: int) -> "State":
        """Double the number of levels."""
        row = HEADER + 2 * PARTS * levels
        code = wider_codes(self, n_pools, levels, row)
        before = self.table
        rows = np.zeros((len(before), row))
        rows[:, :HEADER] = before[:, :HEADER]
        for part in range(PARTS):
            first, old = HEADER + 2 * part * levels, HEADER + part * levels
            rows[:, first : first + levels] = before[:, old : old + levels]
        return self._replace(code=code, rows=rows.ravel())

    def shift(self, levels: int, by: float) -> None:
        """Shift the origin of time, in place."""
        self.due[:] += by
        self.table[:, 1] += by
        self._arrivals(levels)[:] += by

    def busy_until(self, levels: int, speed: np.ndarray) -> np.ndarray:
        """Add up what is left of all jobs."""
        table = self.table[: self.n_servers]
        present = np.arange(levels) < jobs_present(self, levels)[:, None]
        left = np.where(present, table[:, HEADER : HEADER + levels] - table[:, :1], 0.0)
        return np.asarray(table[:, 1] + left.sum(axis=1) / speed)

    def promised(self, levels: int, now: float) -> float:
        """Return minus the time since zero of the jobs present, which is not yet counted."""
        present = np.arange(levels) < jobs_present(self, levels)[:, None]
        arrived = self._arrivals(levels)[: self.n_servers][present]
        return -float((now - np.maximum(arrived, 0.0)).sum())

    @property
    def table(self) -> np.ndarray:
        """A view of the rows, shape (server, entry)."""
        return self.rows.reshape(len(self.code), -1)

    def _arrivals(self, levels: int) -> np.ndarray:
        return self.table[:, HEADER + levels : HEADER + 2 * levels]


@implements(leave, State)
def _leave(server, now, servers, tables, records, area, end):  # type: ignore[no-untyped-def]
    code = servers.code[server]
    level = np.int64(code) & tables.last_level
    levels = tables.last_level + 1
    row = np.int64(server) * (HEADER + PARTS * levels)
    place = row + HEADER + level - 1
    then = servers.due[server]
    tag = servers.rows[place]
    servers.rows[row] = tag
    servers.rows[row + 1] = then
    area[code] -= end - then
    servers.code[server] = code - np.uint32(1)
    if level > 1:
        servers.due[server] = then + (servers.rows[place - 1] - tag) * tables.slowness[code - 1]
    else:
        servers.due[server] = np.inf
    arrived = servers.rows[place + levels]
    records.total[0] += then - max(arrived, 0.0)
    if 0.0 <= arrived < records.window[0]:
        size = servers.rows[place + 2 * levels]
        record_departure(records, arrived, then - arrived, size, tables.pool[code])


@implements(update, State)
def _update(server, now, servers, tables, records, area, end):  # type: ignore[no-untyped-def]
    while servers.due[server] <= now:
        leave(server, now, servers, tables, records, area, end)


@implements(join, State)
def _join(server, now, size, servers, tables, records, batch):  # type: ignore[no-untyped-def]
    code = servers.code[server]
    level = np.int64(code) & tables.last_level
    levels = tables.last_level + 1
    row = np.int64(server) * (HEADER + PARTS * levels)
    clock = 0.0
    if level > 0:
        clock = servers.rows[row] + (now - servers.rows[row + 1]) * tables.speed[code]
    servers.rows[row] = clock
    servers.rows[row + 1] = now
    tag = clock + size
    first = row + HEADER
    place = first + level
    while place > first and servers.rows[place - 1] < tag:
        servers.rows[place] = servers.rows[place - 1]
        servers.rows[place + levels] = servers.rows[place + levels - 1]
        servers.rows[place + 2 * levels] = servers.rows[place + 2 * levels - 1]
        place -= 1
    servers.rows[place] = tag
    servers.rows[place + levels] = now
    servers.rows[place + 2 * levels] = size
    servers.code[server] = code + np.uint32(1)
    servers.due[server] = now + (servers.rows[first + level] - clock) * tables.slowness[code + 1]
