"""What servers do between arrivals, under processor sharing and first come, first served.

Between its own arrivals a server evolves deterministically. It is brought up to date only when
somebody looks at it, so no list of events is needed.

*Processor sharing.* The clock of a server is the service that each of its jobs has got since it
was last idle. A job of size x that arrives when the clock shows c leaves when it shows c + x, its
*tag*. The jobs are kept with falling tags, so the next to leave is the last one.

*First come, first served.* The departure of a job is known when it arrives. Departures that are to
come are kept in a ring.

A code is ``pool * levels + level``, as in :mod:`manyserver.simulation.sampled`; the number of
levels is a power of two, and a server's row has room for as many jobs.
"""

from typing import NamedTuple

import numpy as np

from manyserver.simulation.jobs.records import inlined, masked, record_departure

__all__ = ["Servers", "join_fcfs", "join_ps", "leave_fcfs", "leave_ps", "row_length"]

HEADER = 2
"""Entries of a row before its jobs under processor sharing: clock, and time of the last change."""
PARTS = 3
"""Entries of a job under processor sharing: tag, arrival and size, each with its like."""


class Servers(NamedTuple):
    """The state of all servers, and then of servers that do not exist, which nobody prefers."""

    code: np.ndarray
    """Shape (server,), uint32."""
    due: np.ndarray
    """Time of the next departure if nobody arrives; infinite if idle. Shape (server,)."""
    head: np.ndarray
    """Place of the next departure in the ring, shape (server,), int64; unused under PS."""
    rows: np.ndarray
    """Shape (server * row,)."""
    n_servers: np.int64
    """Number of servers that do exist."""


def row_length(levels: int, ps: bool) -> int:
    """Return the length of a server's row."""
    return HEADER + PARTS * levels if ps else levels


@inlined
def leave_ps(server, servers, tables, records, area, end):  # type: ignore[no-untyped-def]
    """Let the next job leave."""
    code = servers.code[server]
    level = np.int64(code) & tables.last_level
    levels = tables.last_level + 1
    row = np.int64(server) * (HEADER + PARTS * levels)
    place = row + HEADER + level - 1
    now = servers.due[server]
    tag = servers.rows[place]
    servers.rows[row] = tag
    servers.rows[row + 1] = now
    area[code] -= end - now
    servers.code[server] = code - np.uint32(1)
    if level > 1:
        servers.due[server] = now + (servers.rows[place - 1] - tag) * tables.slowness[code - 1]
    else:
        servers.due[server] = np.inf
    arrived = servers.rows[place + levels]
    records.total[0] += now - max(arrived, 0.0)
    if 0.0 <= arrived < records.window[0]:
        size = servers.rows[place + 2 * levels]
        record_departure(records, arrived, now - arrived, size, tables.pool[code])


@inlined
def join_ps(server, now, size, servers, tables):  # type: ignore[no-untyped-def]
    """Let a job join."""
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


@inlined
def leave_fcfs(server, now, servers, tables, area, end):  # type: ignore[no-untyped-def]
    """Let the next job leave if it is due, and say whether it was.

    Whether a job is due cannot be predicted, so there is no branch.
    """
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
    return leaves


@inlined
def join_fcfs(server, now, size, servers, tables):  # type: ignore[no-untyped-def]
    """Let a job join, and return its waiting and its sojourn time."""
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
    return waits, sojourn
