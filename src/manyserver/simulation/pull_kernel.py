"""The kernel for PULL with several routers (arXiv:1512.07873).

The state is the number of servers of each pool with at least k jobs, and the number of its idle
servers whose message each router has, so that a step costs the same for a hundred servers and for
ten million. Only an arrival at an empty router that hits an idle server walks over the routers.

The chain is uniformised as that of :mod:`manyserver.simulation.server_kernel`. A server is known by
its number in its pool, where servers with more jobs come first, and idle ones are in the order of
their routers.
"""

import numpy as np

from manyserver.simulation.observations import add_totals, end_piece, read_tails
from manyserver.simulation.progress import NEVER, PERIOD, PIECE, REMAINING, WAIT
from manyserver.simulation.random import kernel, next_word, wide_product

__all__ = ["EMPTY", "N_TALLIES", "RETURN", "SQUARES_IDLE", "SQUARES_KNOWN", "STEPS", "advance"]

_0, _1 = np.uint64(0), np.uint64(1)
_NEVER = np.uint64(NEVER)

STEPS, EMPTY, RETURN, SQUARES_KNOWN, SQUARES_IDLE, N_TALLIES = 0, 1, 2, 3, 4, 5
"""Tallies of a piece: steps; over the steps, the sum of the empty routers m, and of
``m (n I / R + sum of I_r**2 - I**2 / R)`` with I_r of I idle servers known to router r of R; over
the observations, the sums of ``sum of I_r**2`` and of ``I**2``."""


@kernel()
def _play(tables, tail, messages, known, rng, flows, tallies, steps, remaining):  # type: ignore[no-untyped-def]
    """Play steps, until all are done or a server reaches the last level.

    Returns the number of steps done, the steps that remain in the piece, and whether the last
    level was reached.
    """
    s0, s1, s2, s3 = rng[0], rng[1], rng[2], rng[3]
    n_pools, levels = tail.shape[0], np.int64(tail.shape[1] - 1)
    n_routers, n_events = np.uint64(known.size), np.uint64(tables.threshold.size)
    empty, idle, squares = np.int64(0), np.int64(0), np.int64(0)
    for each in range(known.size):
        empty += known[each] == 0
        idle += known[each]
        squares += known[each] * known[each]
    for step in range(steps):
        if empty > 0:
            spread = idle * (np.float64(tables.servers) - idle) / known.size + squares
            tallies[EMPTY] += empty
            tallies[RETURN] += empty * spread
        word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
        column, rest = wide_product(word, n_events)
        event = np.int64(
            tables.alias[column + column + np.uint64(rest >= tables.threshold[column])]
        )
        word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
        remaining -= _1
        if event < n_pools:
            pool = event
            high, word = wide_product(word, np.uint64(tail[pool, 0]))
            number = np.int64(high)
            level = np.int64(0)
            while tail[pool, level + 1] > number:
                level += 1
            flow = 4 * (pool * levels + level)
            flows[flow] += _1
            flows[flow + 1] += remaining
            if level > 0:
                tail[pool, level] -= 1
            if level == 1:
                high, word = wide_product(word, n_routers)
                router = np.int64(high)
                messages[pool, router] += 1
                empty -= known[router] == 0
                squares += 2 * known[router] + 1
                known[router] += 1
                idle += 1
            continue
        high, word = wide_product(word, n_routers)
        router = np.int64(high)
        pool, level = np.int64(0), np.int64(0)
        if known[router] > 0:
            high, word = wide_product(word, np.uint64(known[router]))
            number = np.int64(high)
            while number >= messages[pool, router]:
                number -= messages[pool, router]
                pool += 1
        else:
            high, word = wide_product(word, tables.servers)
            number = np.int64(high)
            while number >= tail[pool, 0]:
                number -= tail[pool, 0]
                pool += 1
            while tail[pool, level + 1] > number:
                level += 1
            if level == 0:
                number -= tail[pool, 1]
                router = np.int64(0)
                while number >= messages[pool, router]:
                    number -= messages[pool, router]
                    router += 1
        flow = 4 * (pool * levels + level) + 2
        flows[flow] += _1
        flows[flow + 1] += remaining
        if level < tables.room[pool]:
            tail[pool, level + 1] += 1
            if level == 0:
                messages[pool, router] -= 1
                known[router] -= 1
                squares -= 2 * known[router] + 1
                empty += known[router] == 0
                idle -= 1
            if level + 2 == levels:
                rng[0], rng[1], rng[2], rng[3] = s0, s1, s2, s3
                return step + 1, remaining, True
    rng[0], rng[1], rng[2], rng[3] = s0, s1, s2, s3
    return steps, remaining, False


@kernel()
def _add_joining_law(tables, scratch, messages, known, sums, room):  # type: ignore[no-untyped-def]
    """Add the probabilities that an arrival joins each class to `sums`, shape (pool, level).

    Returns the probability that an arrival is blocked.
    """
    servers = np.float64(tables.servers)
    empty = 0
    for router in range(known.size):
        empty += known[router] == 0
    random = empty / known.size
    tail = scratch.tail
    blocked = 0.0
    for pool in range(messages.shape[0]):
        for router in range(known.size):
            if messages[pool, router] > 0:
                sums[pool, 0] += messages[pool, router] / (known[router] * known.size)
        for level in range(scratch.top[pool]):
            share = random * (tail[pool, level] - tail[pool, level + 1]) / servers
            if level < room[pool]:
                sums[pool, level] += share
            else:
                blocked += share
    return blocked


@kernel()
def _observe(row, before, piece, tables, messages, known, joining, scratch, observations, tallies):  # type: ignore[no-untyped-def]
    """Add the present state to the sums of a piece."""
    jobs, work = read_tails(row, before, piece, joining, scratch, observations)
    blocked = _add_joining_law(
        tables, scratch, messages, known, observations.joining[piece], joining.room
    )
    add_totals(jobs, work, blocked, piece, joining, scratch, observations)
    idle, squares = 0.0, 0.0
    for router in range(known.size):
        here = np.float64(known[router])
        idle += here
        squares += here * here
    tallies[SQUARES_KNOWN] += squares
    tallies[SQUARES_IDLE] += idle * idle


@kernel(cache=True)
def advance(  # type: ignore[no-untyped-def]
    tables,
    tail,
    messages,
    known,
    flows,
    before,
    lengths,
    rng,
    progress,
    joining,
    scratch,
    observations,
    tallies,
):
    """Simulate pieces, until all are done or a server reaches the last level.

    Parameters
    ----------
    tables : PullTables
    tail : array of int64, shape (pool, level + 1)
        Servers with at least so many jobs, changed in place; the last column stays zero.
    messages : array of int64, shape (pool, router)
        Idle servers of the pool that the router knows of, changed in place.
    known : array of int64, shape (router,)
        Sums of these over the pools, changed in place.
    flows, before, lengths, rng, progress, observations, tallies
        As :meth:`manyserver.simulation.replica.Replica.play` has them.
    joining, scratch : JoiningTables, Scratch
        How to sample.

    Returns
    -------
    bool
        Whether all pieces are done.
    """
    piece, remaining, wait = progress[PIECE], progress[REMAINING], progress[WAIT]
    full, at_ends = False, progress[PERIOD] == _0
    while piece < np.uint64(len(flows)) and not full:
        row, tally = flows[piece], tallies[piece]
        steps = np.int64(min(remaining, wait))
        done, remaining, full = _play(
            tables, tail, messages, known, rng, row, tally, steps, remaining
        )
        tally[STEPS] += np.float64(done)
        wait -= np.uint64(done)
        if wait == _0 or (at_ends and remaining == _0):
            _observe(
                row, before, np.int64(piece), tables, messages, known, joining, scratch,
                observations, tally,
            )  # fmt: skip
            wait = _NEVER if at_ends else progress[PERIOD]
        if remaining == _0:
            end_piece(row, before, joining)
            piece += _1
            remaining = lengths[piece]
    progress[PIECE], progress[REMAINING], progress[WAIT] = piece, remaining, wait
    return not full
