"""First come, first served.

The departure of a job is known when it arrives. Departures that are to come are kept in a ring.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from manyserver.model import System
from manyserver.simulation.jobs.records import masked, record_arrival
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


class State(NamedTuple):
    """See :class:`~manyserver.simulation.jobs.servers.Servers`."""

    code: np.ndarray
    due: np.ndarray
    head: np.ndarray
    """Place of the next departure in the ring, shape (server,), int64."""
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
        """Put jobs on the servers; a random part is left of the one in service."""
        counts = np.concatenate(jobs)
        n = len(counts)
        speed = np.repeat(system.speeds, system.counts)
        rows = np.full((n + polls, levels), np.inf)
        left = sizes.sample(generator, n * levels).reshape(n, levels)
        left[:, 0] = sizes.sample_residual(generator, n)
        ends = np.cumsum(left / speed[:, None], axis=1)
        rows[:n] = np.where(np.arange(levels) < counts[:, None], ends, np.inf)
        rows[:, -1] = 0.0
        due = np.full(n + polls, np.inf)
        due[:n] = np.where(counts > 0, ends[:, 0], np.inf)
        head = np.zeros(n + polls, dtype=np.int64)
        return cls(placed_codes(jobs, levels, polls), due, head, rows.ravel(), np.int64(n))

    def wider(self, n_pools: int, levels: int) -> "State":
        """Double the number of levels."""
        code = wider_codes(self, n_pools, levels, 2 * levels)
        rows = np.full((len(self.code), 2 * levels), np.inf)
        # Turn the rings so that the last departure that was is in the last place.
        ring = (self.head[:, None] + np.arange(levels)) % levels
        rows[:, :levels] = np.take_along_axis(self.table, ring, axis=1)
        rows[:, -1] = rows[:, levels - 1]
        return self._replace(code=code, head=np.zeros_like(self.head), rows=rows.ravel())

    def shift(self, levels: int, by: float) -> None:
        """Shift the origin of time, in place."""
        self.due[:] += by
        self.rows[:] += by

    def busy_until(self, levels: int, speed: np.ndarray) -> np.ndarray:
        """Return when the last departure is that is to come."""
        n = self.n_servers
        ring = (np.arange(levels) - self.head[:n, None]) % levels
        present = ring < jobs_present(self, levels)[:, None]
        return np.asarray(np.where(present, self.table[:n], -np.inf).max(axis=1))

    def promised(self, levels: int, now: float) -> float:
        """Return the time until those leave who are present, which is counted as they arrive."""
        n = self.n_servers
        ring = (np.arange(levels) - self.head[:n, None]) % levels
        ends = self.table[:n][ring < jobs_present(self, levels)[:, None]]
        return float((ends - now).sum())

    @property
    def table(self) -> np.ndarray:
        """A view of the rows, shape (server, level)."""
        return self.rows.reshape(len(self.code), -1)


@implements(leave, State)
def _leave(server, now, servers, tables, records, area, end):  # type: ignore[no-untyped-def]
    # Whether a job is due cannot be predicted, so there is no branch.
    due = servers.due[server]
    leaves = np.int64(due <= now)
    mask = np.uint64(0) - np.uint64(leaves)
    code = servers.code[server]
    head = (servers.head[server] + leaves) & tables.last_level
    servers.head[server] = head
    servers.code[server] = code - np.uint32(leaves)
    area[code] -= masked(end - due, mask)
    # After the last departure to come the ring holds an infinite one.
    servers.due[server] = servers.rows[np.int64(server) * (tables.last_level + 1) + head]


@implements(update, State)
def _update(server, now, servers, tables, records, area, end):  # type: ignore[no-untyped-def]
    leave(server, now, servers, tables, records, area, end)
    while servers.due[server] <= now:
        leave(server, now, servers, tables, records, area, end)


@implements(join, State)
def _join(server, now, size, servers, tables, records, batch):  # type: ignore[no-untyped-def]
    code = servers.code[server]
    last = tables.last_level
    level = np.int64(code) & last
    row = np.int64(server) * (last + 1)
    head = servers.head[server]
    place = head + level
    # Before the head is the last departure that was, so this holds for an idle server too.
    waits = max(0.0, servers.rows[row + ((place - 1) & last)] - now)
    sojourn = waits + size * tables.slowness[code + 1 - np.uint32(level)]
    servers.rows[row + (place & last)] = now + sojourn
    servers.rows[row + ((place + 1) & last)] = np.inf
    servers.code[server] = code + np.uint32(1)
    servers.due[server] = servers.rows[row + head]
    records.total[0] += sojourn
    record_arrival(records, batch, waits, sojourn, tables.pool[code])
