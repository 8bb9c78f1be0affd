"""The kernel on occupancy counts, for policies to which servers announce themselves.

An arrival joins the best announced server, wherever it is; only if there is none does it look at
servers that it draws. The state is the number of servers of each pool with at least k jobs, so
that a step costs the same for a hundred servers and for ten million.

The chain is uniformised as that of :mod:`manyserver.simulation.server_kernel`, and its random
numbers are used alike: what a step is and the first number of a server come from one generator,
and what further servers are polled from another one.

*Groups.* Announced classes (pool, level) of one rank are a group, best rank first. The kernel
keeps the number of servers in each group and a lower bound for the best group that has some: a
departure may lower it, and an arrival moves up from there.

*Numbers.* A server is known by its number in its pool, where servers with more jobs come first:
number u holds at least k jobs if u < (servers with at least k jobs).
"""

import numpy as np

from manyserver.simulation.observations import end_piece, observe
from manyserver.simulation.progress import NEVER, PERIOD, PIECE, REMAINING, WAIT
from manyserver.simulation.random import kernel, next_word, uniform, wide_product

__all__ = ["advance"]

_0, _1 = np.uint64(0), np.uint64(1)
_NEVER = np.uint64(NEVER)


@kernel(inline="always")
def _level(tail, pool, number):  # type: ignore[no-untyped-def]
    """Return the jobs at a server, by its number in the pool."""
    level = 0
    while tail[pool, level + 1] > number:
        level += 1
    return level


@kernel()
def _poll(tables, tail, event, number, drawn, rng):  # type: ignore[no-untyped-def]
    """Make the draws of a branch and return pool and level of the best server looked at.

    Equally good ones are equally likely. `number` is the first of the numbers drawn.
    """
    s0, s1, s2, s3 = rng[4], rng[5], rng[6], rng[7]
    best, best_pool, best_level, tied = np.int64(0), np.int64(0), np.int64(0), _0
    for draw in range(tables.first_draw[event], tables.first_draw[event + 1]):
        first_pool, polls = tables.first_pool[draw], tables.polls[draw]
        size = tables.size[draw]
        for look in range(polls):
            left = size - tables.distinct * look
            if tied > _0:
                word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
                high, word = wide_product(word, np.uint64(left))
                number = np.int64(high)
            drawn[look] = number
            # A number that was drawn before stands for the one that the range lost at that time.
            if tables.distinct:
                for back in range(look - 1, -1, -1):
                    if drawn[back] == number:
                        number = size - 1 - back
            pool = first_pool
            while number >= tail[pool, 0]:
                number -= tail[pool, 0]
                pool += 1
            level = _level(tail, pool, number)
            rank = tables.rank[pool, level]
            if tied == _0 or rank < best:
                best, best_pool, best_level, tied = rank, pool, level, _1
            elif rank == best:
                tied += _1
                word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
                high, word = wide_product(word, tied)
                if high == _0:
                    best_pool, best_level = pool, level
    rng[4], rng[5], rng[6], rng[7] = s0, s1, s2, s3
    return best_pool, best_level


@kernel()
def _play(tables, tail, held, drawn, rng, flows, steps, remaining):  # type: ignore[no-untyped-def]
    """Play steps, until all are done or a server reaches the last level.

    Returns the number of steps done, the steps that remain in the piece, and whether the last
    level was reached.
    """
    s0, s1, s2, s3 = rng[0], rng[1], rng[2], rng[3]
    levels = tables.rank.shape[1]
    n_arrivals, n_groups = tables.first_draw.size - 1, held.size - 1
    best = 0
    for step in range(steps):
        word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
        place = uniform(word)
        event = 0
        for later in range(1, tables.bound.size):
            event += place >= tables.bound[later]
        share = (place - tables.bound[event]) * tables.inverse[event]
        remaining -= _1
        if event >= n_arrivals:
            pool = event - n_arrivals
            level = _level(tail, pool, np.int64(share * tail[pool, 0]))
            flow = 4 * (pool * levels + level)
            flows[flow] += _1
            flows[flow + 1] += remaining
            if level > 0:
                tail[pool, level] -= 1
                held[tables.group[pool, level]] -= 1
                group = tables.group[pool, level - 1]
                held[group] += 1
                best = min(best, group)
            continue
        while best < n_groups and held[best] == 0:
            best += 1
        if best < n_groups:
            left = np.int64(share * held[best])
            item = tables.first_class[best]
            while True:
                pool, level = tables.pool[item], tables.level[item]
                left -= tail[pool, level] - tail[pool, level + 1]
                if left < 0:
                    break
                item += 1
        elif tables.polls.size == 0:
            pool, level = np.int64(0), tables.room[0]
        else:
            number = np.int64(share * tables.size[tables.first_draw[event]])
            pool, level = _poll(tables, tail, event, number, drawn, rng)
        flow = 4 * (pool * levels + level) + 2
        flows[flow] += _1
        flows[flow + 1] += remaining
        if level < tables.room[pool]:
            tail[pool, level + 1] += 1
            held[tables.group[pool, level]] -= 1
            held[tables.group[pool, level + 1]] += 1
            if level + 2 == levels:
                rng[0], rng[1], rng[2], rng[3] = s0, s1, s2, s3
                return step + 1, remaining, True
    rng[0], rng[1], rng[2], rng[3] = s0, s1, s2, s3
    return steps, remaining, False


@kernel(cache=True)
def advance(  # type: ignore[no-untyped-def]
    tables, tail, held, drawn, flows, before, lengths, rng, progress, joining, scratch, observations
):
    """Simulate pieces, until all are done or a server reaches the last level.

    Parameters
    ----------
    tables : CountsTables
    tail : array of int64, shape (pool, level + 1)
        Servers with at least so many jobs, changed in place; the last column stays zero.
    held : array of int64, shape (group + 1,)
        Servers of each group, and those that are not announced, changed in place.
    drawn : array of int64, shape (look,)
        Room to work.
    flows, before, lengths, rng, progress, observations
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
        row = flows[piece]
        steps = np.int64(min(remaining, wait))
        done, remaining, full = _play(tables, tail, held, drawn, rng, row, steps, remaining)
        wait -= np.uint64(done)
        if wait == _0 or (at_ends and remaining == _0):
            observe(row, before, np.int64(piece), joining, scratch, observations)
            wait = _NEVER if at_ends else progress[PERIOD]
        if remaining == _0:
            end_piece(row, before, joining)
            piece += _1
            remaining = lengths[piece]
    progress[PIECE], progress[REMAINING], progress[WAIT] = piece, remaining, wait
    return not full
