"""How the jobs of all servers are laid out in arrays, and how they get more room."""

from collections.abc import Sequence

import numpy as np

from manyserver.model import System
from manyserver.simulation.jobs.servers import HEADER, PARTS, Servers, row_length
from manyserver.sizes import SizeLaw

__all__ = ["arrivals", "departures", "levels_now", "placed", "shifted", "widened"]

MOST_ENTRIES = 1 << 28
"""Of the rows of all servers, two gigabytes."""
BEFORE = -1.0
"""When the first jobs arrived, before the time zero."""


def placed(
    system: System,
    sizes: SizeLaw,
    ps: bool,
    jobs: Sequence[np.ndarray],
    levels: int,
    looks: int,
    generator: np.random.Generator,
) -> Servers:
    """Put jobs on the servers at time zero.

    Under processor sharing a random part is left of every job, and under first come, first served
    of the one in service.

    Parameters
    ----------
    system, sizes, ps
        As for a replica.
    jobs : sequence of numpy.ndarray
        Number of jobs at the servers of each pool.
    levels : int
        More than any of these.
    looks : int
        Servers that do not exist, at the end.
    generator : numpy.random.Generator
    """
    counts = np.concatenate(jobs)
    n = len(counts)
    pools = np.repeat(np.arange(len(jobs)), system.counts)
    code = np.full(n + looks, levels * len(jobs) - 1, dtype=np.uint32)
    code[:n] = pools * levels + counts
    due = np.full(n + looks, np.inf)
    speed = system.speeds[pools]
    present = np.arange(levels) < counts[:, None]
    row = row_length(levels, ps)
    rows = np.full((n + looks, row), 0.0 if ps else np.inf)
    if ps:
        # The clock shows zero: the tag is what is left.
        left = sizes.sample_residual(generator, n * levels).reshape(n, levels)
        tags = -np.sort(-np.where(present, left, -1.0), axis=1)
        rows[:n, HEADER : HEADER + levels] = np.where(present, tags, 0.0)
        rows[:n, HEADER + levels : HEADER + 2 * levels] = BEFORE
        busy = np.flatnonzero(counts)
        due[busy] = tags[busy, counts[busy] - 1] * counts[busy] / speed[busy]
    else:
        left = sizes.sample(generator, n * levels).reshape(n, levels)
        left[:, 0] = sizes.sample_residual(generator, n)
        ends = np.cumsum(left / speed[:, None], axis=1)
        rows[:n] = np.where(present, ends, np.inf)
        rows[:, -1] = 0.0
        due[:n] = np.where(counts > 0, ends[:, 0], np.inf)
    head = np.zeros(n + looks, dtype=np.int64)
    return Servers(code, due, head, rows.ravel(), np.int64(n))


def widened(servers: Servers, n_pools: int, levels: int, ps: bool) -> Servers:
    """Double the number of levels.

    Raises
    ------
    RuntimeError
        If there is no memory for so many jobs.
    """
    row = row_length(2 * levels, ps)
    if row * len(servers.code) > MOST_ENTRIES:
        raise RuntimeError(
            f"a server holds {levels - 1} jobs: the queues do not fit into memory; is the system "
            "stable with these sizes?"
        )
    before = _rows(servers)
    rows = np.full((len(before), row), 0.0 if ps else np.inf)
    if ps:
        rows[:, :HEADER] = before[:, :HEADER]
        for part in range(PARTS):
            first, old = HEADER + 2 * part * levels, HEADER + part * levels
            rows[:, first : first + levels] = before[:, old : old + levels]
    else:
        # Turn the rings so that the last departure that was is in the last place.
        ring = (servers.head[:, None] + np.arange(levels)) % levels
        rows[:, :levels] = np.take_along_axis(before, ring, axis=1)
        rows[:, -1] = rows[:, levels - 1]
    pool, level = np.divmod(servers.code.astype(np.int64), levels)
    code = (2 * pool * levels + level).astype(np.uint32)
    code[servers.n_servers :] = 2 * n_pools * levels - 1
    return servers._replace(code=code, head=np.zeros_like(servers.head), rows=rows.ravel())


def shifted(servers: Servers, levels: int, ps: bool, by: float) -> None:
    """Shift the origin of time, in place."""
    servers.due[:] += by
    rows = _rows(servers)
    if ps:
        rows[:, 1] += by
        rows[:, HEADER + levels : HEADER + 2 * levels] += by
    else:
        rows += by


def levels_now(servers: Servers, levels: int) -> np.ndarray:
    """Return the jobs at every server, shape (server,)."""
    return servers.code[: servers.n_servers].astype(np.int64) % levels


def departures(servers: Servers, levels: int) -> np.ndarray:
    """Return when the jobs that are present leave, in no order; first come, first served."""
    n = servers.n_servers
    ring = (np.arange(levels) - servers.head[:n, None]) % levels
    return np.asarray(_rows(servers)[:n][ring < levels_now(servers, levels)[:, None]])


def arrivals(servers: Servers, levels: int) -> np.ndarray:
    """Return when the jobs that are present arrived, in no order; processor sharing."""
    first = HEADER + levels
    arrived = _rows(servers)[: servers.n_servers, first : first + levels]
    return np.asarray(arrived[np.arange(levels) < levels_now(servers, levels)[:, None]])


def _rows(servers: Servers) -> np.ndarray:
    """Return a view of the rows, shape (server, entry)."""
    return servers.rows.reshape(len(servers.code), -1)
