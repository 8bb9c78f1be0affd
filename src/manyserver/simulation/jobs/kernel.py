"""The kernel that follows every job, for any law of their sizes.

Times between arrivals and sizes are drawn beforehand, in chunks. Which servers an arrival looks at
comes from the generators of :mod:`manyserver.simulation.server_kernel`, drawn for a block of
arrivals at a time, and prefetched, since it does not depend on the state. So policies that are
simulated with the same seed see the same arrivals and sizes.

Time is cut into pieces of equal length. At the end of a piece all servers are brought up to date
and counted; within it, every arrival and departure adds the time that is left of the piece to its
class, from which the time integrals of the queue tails follow.
"""

from typing import NamedTuple

import numpy as np

from manyserver.simulation.jobs.announced import choose, move_down, move_up, strike, write
from manyserver.simulation.jobs.dispatcher import assign, first_free, take_turns
from manyserver.simulation.jobs.records import inlined
from manyserver.simulation.jobs.routers import ask, take_back, tell
from manyserver.simulation.jobs.servers import join, leave, update
from manyserver.simulation.random import kernel, prefetch
from manyserver.simulation.server_kernel import BLOCK, draw_block

__all__ = [
    "ARRIVALS",
    "BLOCKED",
    "DONE",
    "DREW",
    "ITEM",
    "MORE_LEVELS",
    "MORE_NUMBERS",
    "STEP",
    "TOTALS",
    "Pieces",
    "Rules",
    "Stream",
    "advance",
]

DONE, MORE_LEVELS, MORE_NUMBERS = 0, 1, 2
TOTALS = 3
"""Columns of `Pieces.totals`."""
ARRIVALS, BLOCKED, DREW = range(TOTALS)
PIECE, STEP, ITEM = 0, 1, 2
"""Entries of `progress`: the piece, the next step of the block, the next arrival of the stream."""

_0, _2, _32, _63 = (np.uint64(value) for value in (0, 2, 32, 63))
_BLOCK = np.uint64(BLOCK)
_LOW = np.uint64(2**32 - 1)
AHEAD = np.uint64(12)
"""Arrivals for which the servers are prefetched."""
NEAR = 1 << 17
"""Entries of rows that fit into a cache, so that nothing has to be prefetched: one megabyte."""


class Rules(NamedTuple):
    """What the codes mean, shape (code,) each."""

    rank: np.ndarray
    """Order of preference times 2**32."""
    full: np.uint64
    """Rank of full servers times 2**32."""
    speed: np.ndarray
    """Service that each job gets per unit of time if all are served; 0 if there is none."""
    slowness: np.ndarray
    """The inverse of it."""
    pool: np.ndarray
    last_level: np.int64
    """Levels less one, all bits set."""


class Stream(NamedTuple):
    """Arrivals that are drawn and not yet played."""

    gap: np.ndarray
    """Times between arrivals."""
    size: np.ndarray
    clock: np.ndarray
    """Time of the last arrival, shape (1,)."""


class Pieces(NamedTuple):
    """What happens in pieces of equal length."""

    start: np.ndarray
    """Of the first piece, and the length of all, shape (2,)."""
    joins: np.ndarray
    """Arrivals that were accepted, by the class they found, shape (piece, code)."""
    area: np.ndarray
    """Time left of the piece after each arrival at the class below, less that after each
    departure from the class, shape (piece, code)."""
    counts: np.ndarray
    """Servers in each class at the end of each piece, shape (piece, code)."""
    totals: np.ndarray
    """`ARRIVALS`, those that were `BLOCKED`, and those that `DREW` servers, shape (piece, 3)."""
    per_batch: np.ndarray
    """Pieces in a batch of the records, shape (1,)."""


@inlined
def _poll(server, now, servers, rules, records, area, end):  # type: ignore[no-untyped-def]
    """Bring a server up to date, and return its rank."""
    update(server, now, servers, rules, records, area, end)
    return rules.rank[servers.code[server]]


@inlined
def _turn_pages(now, servers, rules, announced, routers, rng, records, area, end):  # type: ignore[no-untyped-def]
    """Bring all servers up to date that are due."""
    today = np.int64(np.floor(now * announced.day[0]))
    pages = np.int64(announced.page.size)
    first = max(announced.today[0], today - pages + 1)
    for day in range(first, today + 1):
        server = announced.page[day & (pages - 1)]
        while server != -1:
            after = announced.after[server]
            if servers.due[server] <= now:
                strike(announced, server)
                while servers.due[server] <= now:
                    move_down(announced, server, np.int64(servers.code[server]))
                    leave(server, now, servers, rules, records, area, end)
                    if routers.held.size > 0 and servers.due[server] == np.inf:
                        tell(routers, server, rng)
                if servers.due[server] < np.inf:
                    write(announced, server, servers.due[server])
            server = after
    announced.today[0] = today


@inlined
def _best_drawn(now, step, n_polls, servers, rules, block, records, area, end):  # type: ignore[no-untyped-def]
    """Return the key of the best of the servers looked at: its rank, and its row in the block."""
    best = _poll(block.server[step], now, servers, rules, records, area, end)
    for look in range(np.uint64(1), n_polls):
        row = look * _BLOCK
        server = block.server[row + step]
        key = _poll(server, now, servers, rules, records, area, end) | row
        difference = key - best
        best += difference & (_0 - (difference >> _63))
    return best


@inlined
def _least_drawn(now, step, n_polls, servers, rules, dispatcher, block, records, area, end):  # type: ignore[no-untyped-def]
    """Return the server that is free first of those looked at, or -1 if all are full."""
    best = np.int64(-1)
    least = np.inf
    for look in range(n_polls):
        server = np.int64(block.server[look * _BLOCK + step])
        if _poll(server, now, servers, rules, records, area, end) < rules.full:
            free = max(dispatcher.free[server], now)
            if free < least:
                best, least = server, free
    return best


@inlined
def _prefetch_step(servers, block, n_polls, row, step):  # type: ignore[no-untyped-def]
    """Ask for all that an arrival to come will look at."""
    for look in range(n_polls):
        server = np.int64(block.server[look * _BLOCK + step])
        prefetch(servers.due, server)
        prefetch(servers.code, server)
        prefetch(servers.rows, server * row)
        prefetch(servers.rows, server * row + 8)


@kernel(cache=True)
def advance(  # type: ignore[no-untyped-def]
    servers,
    rules,
    announced,
    routers,
    dispatcher,
    polls,
    rng,
    block,
    stream,
    pieces,
    records,
    progress,
):
    """Simulate pieces, until all are done or something is needed.

    Parameters
    ----------
    servers : Servers
        Changed in place.
    rules : Rules
    announced : Announced
        Changed in place, unless nobody is announced.
    routers : Routers
        Changed in place, unless there are none.
    dispatcher : Dispatcher
        Changed in place, unless it knows nothing.
    polls : Polls
        Which servers an arrival looks at.
    rng : array of uint64, shape (12,)
        States of three generators, changed in place: those of the draws, and for the choice among
        announced servers.
    block : Block
        Draws, changed in place.
    stream : Stream
        Times between arrivals and sizes.
    pieces : Pieces
        Added to.
    records : Records
        Added to.
    progress : array of int64, shape (3,)
        `PIECE`, `STEP` and `ITEM`, changed in place; calling again goes on from there.

    Returns
    -------
    int
        `DONE`, `MORE_LEVELS` if a server reached the last level, or `MORE_NUMBERS` if the stream is
        used up.
    """
    piece, step, item = progress[PIECE], np.uint64(progress[STEP]), progress[ITEM]
    now, gap, size = stream.clock[0], stream.gap, stream.size
    start, length = pieces.start[0], pieces.start[1]
    some_routers = routers.held.size > 0
    some_announced, some_drawn = announced.first_code.size > 1, polls.fresh.size > 0
    turns, by_work = dispatcher.cycle.size > 0, dispatcher.free.size > 0
    all_known = dispatcher.heap.size > 0
    n_polls = np.uint64(polls.fresh.size)
    row = servers.rows.size // servers.code.size
    far = some_drawn and servers.rows.size > NEAR
    state = DONE
    while piece < len(pieces.joins) and state == DONE:
        end = start + (piece + 1) * length
        joins, area, totals = pieces.joins[piece], pieces.area[piece], pieces.totals[piece]
        batch = min(piece // pieces.per_batch[0], len(records.sojourn) - 1)
        while True:
            if item == gap.size:
                state = MORE_NUMBERS
                break
            if step == _BLOCK:
                if turns:
                    take_turns(dispatcher, block)
                elif some_drawn:
                    draw_block(polls, rng, block)
                if far:
                    for early in range(AHEAD):
                        _prefetch_step(servers, block, n_polls, row, early)
                step = _0
            if now + gap[item] > end:
                break
            now += gap[item]
            if far and step + AHEAD < _BLOCK:
                _prefetch_step(servers, block, n_polls, row, step + AHEAD)
            server = np.int64(-1)
            if some_announced:
                _turn_pages(now, servers, rules, announced, routers, rng, records, area, end)
                server = ask(routers, rng) if some_routers else choose(announced, rng)
            if all_known:
                server = first_free(dispatcher, now)
                update(server, now, servers, rules, records, area, end)
            elif by_work:
                server = _least_drawn(
                    now, step, n_polls, servers, rules, dispatcher, block, records, area, end
                )
            elif some_drawn and server < 0:
                totals[DREW] += 1.0
                best = _best_drawn(now, step, n_polls, servers, rules, block, records, area, end)
                if best < rules.full:
                    server = np.int64(block.server[(best & _LOW) + step])
            step += np.uint64(1)
            totals[ARRIVALS] += 1.0
            if server >= 0:
                code = np.int64(servers.code[server])
                joins[code] += 1
                area[code + 1] += end - now
                if some_announced:
                    if servers.due[server] < np.inf:
                        strike(announced, server)
                    elif some_routers:
                        take_back(routers, server)
                    move_up(announced, server, code)
                if by_work:
                    single = code - (code & rules.last_level) + 1
                    assign(dispatcher, server, now, size[item] * rules.slowness[single])
                join(server, now, size[item], servers, rules, records, batch)
                if some_announced:
                    write(announced, server, servers.due[server])
                if (code + 1) & rules.last_level == rules.last_level:
                    state = MORE_LEVELS
            else:
                totals[BLOCKED] += 1.0
            item += 1
            if state != DONE:
                break
        if state == DONE:
            if some_announced:
                _turn_pages(end, servers, rules, announced, routers, rng, records, area, end)
            counts = pieces.counts[piece]
            for other in range(servers.n_servers):
                _poll(other, end, servers, rules, records, area, end)
                counts[servers.code[other]] += 1
            piece += 1
    progress[PIECE], progress[STEP], progress[ITEM] = piece, np.int64(step), item
    stream.clock[0] = now
    return state
