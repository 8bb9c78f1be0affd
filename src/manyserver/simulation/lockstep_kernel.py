"""The kernel that simulates many replications of a system at once, step by step together.

Replications are the *lanes* of vectors (:mod:`manyserver.simulation.lanes`), and every
instruction plays a step of all of them. The chain is that of
:mod:`manyserver.simulation.server_kernel`, but its state is the numbers of servers with at least k
jobs: so a step costs the same for a hundred servers and for a hundred million, and nothing is
fetched from a place that depends on the state.

*Numbers.* A server is known by its number; those of a pool follow one another, and those with
more jobs come first. Number u of a pool holds at least k jobs if u < (servers with at least k
jobs). So comparisons with these numbers, level by level, tell where a server is in the order of
preference, and how the numbers change.

*Polls.* Numbers drawn without replacement are drawn as in the other kernel. Of those that are
drawn from one pool the largest one has the fewest jobs. If fewer jobs are always preferred,
there is no need to compare the others, and none to compare at all if these are all.

*Random numbers.* What a step is and the first server it looks at come from a word of one
generator, and all further servers from another one, with two steps to a word. A lane has the
generators of its replication, so that what happens in it does not depend on the others. Policies
that are simulated with the same seed see the same arrivals and departures, as in other kernels.

*Measuring.* The numbers of servers are summed over the steps, in 32 bits: what overflows comes
back when the sum is compared with what it would be without any change, as that is off by less
than 2**31 over `FLUSH` steps.
"""

import numpy as np

from manyserver.simulation.lanes import (
    LANES,
    any_of,
    at,
    bounded,
    chosen,
    count,
    everywhere,
    load,
    store,
    unit,
    whole,
)
from manyserver.simulation.lockstep_observations import observe_lanes
from manyserver.simulation.progress import (
    LENGTH,
    PERIOD,
    PIECE,
    REMAINING,
    SINCE,
    STEP,
    WAIT,
)
from manyserver.simulation.random import kernel, next_word

__all__ = ["BLOCK", "FLUSH", "advance"]

BLOCK = 64
"""Steps drawn at a time."""
FLUSH = 2**15
"""Most steps until the sums are added to those of the piece."""
WORST = np.int32(2**31 - 1)
HALF = BLOCK // 2
_32 = np.uint64(32)


@kernel(inline="always")
def _rank(tables, tail, height, first, end, number):  # type: ignore[no-untyped-def]
    """Return the place of servers in the order of preference, if they are of some pools."""
    rank = everywhere(WORST)
    for pool in range(first, end):
        own = number - at(tables.first_server, pool)
        row = pool * tables.stride
        here = (own >= 0) & (own < at(tables.servers, pool))
        rank = chosen(here, everywhere(at(tables.rank, row)), rank)
        own = chosen(here, own, everywhere(WORST))
        for level in range(row + 1, row + at(height, pool) + 1):
            rank = chosen(load(tail, level) > own, rank + at(tables.worse, level), rank)
    return rank


@kernel(inline="always")
def _change(tables, state, pool, number, arrival):  # type: ignore[no-untyped-def]
    """Let jobs arrive at servers of a pool, or leave them, and add up.

    Servers that hold as many jobs as may be are left alone. Returns whether the last level was
    reached.
    """
    tail, sums, joins = state.tail, state.sums, state.joins
    own = number - at(tables.first_server, pool)
    row, height = pool * tables.stride, at(state.height, pool)
    here = (own >= 0) & (own < at(tables.servers, pool))
    own = chosen(here, own, everywhere(WORST))
    # Truth values as numbers, 0 or -1: whether a server holds so many jobs, and what changes.
    arrives = everywhere(0) - count(arrival)
    value = load(tail, row + 1)
    more = (own - value) >> 31
    joined = arrives & (everywhere(0) - count(here)) & ~more
    for level in range(row + 1, row + height + 1):
        above = load(tail, level + 1)
        even_more = (own - above) >> 31
        value = value - joined + (more & ~even_more & ~arrives)
        store(tail, level, value)
        store(sums, level, load(sums, level) + value)
        store(joins, level, load(joins, level) - joined)
        joined = more & ~even_more & arrives
        value, more = above, even_more
    if height == at(tables.room, pool):
        store(joins, row, load(joins, row) - joined)
    elif any_of(joined < 0):
        store(tail, row + height + 1, everywhere(0) - joined)
        store(joins, row + height + 1, everywhere(0) - joined)
        store(sums, row + height + 1, everywhere(0) - joined)
        state.height[pool] = height + 1
        return height + 3 > tables.stride
    return False


@kernel(inline="always")
def _of_branch(tables, values, item, place):  # type: ignore[no-untyped-def]
    """Return the values of the branches that lanes are in, from `item` on."""
    value = everywhere(at(values, item))
    for event in range(1, tables.n_branches):
        value = chosen(
            place >= at(tables.bound, event), everywhere(at(values, item + event)), value
        )
    return value


@kernel(inline="always")
def _bounded(tables, block, word, item, here, step):  # type: ignore[no-untyped-def]
    """Turn the low half of a word into the number that a step draws at a look."""
    if tables.n_branches == 1:
        number = bounded(word, at(tables.size, item)) + at(tables.first, item)
    else:
        place = load(block.place, step)
        size = _of_branch(tables, tables.size, item, place)
        number = bounded(word, size) + _of_branch(tables, tables.first, item, place)
    store(block.drawn, here + step, number)
    store(block.number, here + step, number)


@kernel()
def _draw(tables, rng, block):  # type: ignore[no-untyped-def]
    """Draw what the next `BLOCK` steps are and the servers that they look at."""
    s0, s1, s2, s3 = load(rng, 0), load(rng, 1), load(rng, 2), load(rng, 3)
    n_events = tables.bound.size
    for step in range(BLOCK):
        word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
        place = unit(word)
        below, scale = everywhere(at(tables.bound, 0)), everywhere(at(tables.scale, 0))
        first = everywhere(at(tables.first, 0))
        for event in range(1, n_events):
            later = place >= at(tables.bound, event)
            below = chosen(later, everywhere(at(tables.bound, event)), below)
            scale = chosen(later, everywhere(at(tables.scale, event)), scale)
            first = chosen(later, everywhere(at(tables.first, event)), first)
        number = whole((place - below) * scale) + first
        store(block.place, step, place)
        store(block.drawn, step, number)
        store(block.number, step, number)
    store(rng, 0, s0), store(rng, 1, s1), store(rng, 2, s2), store(rng, 3, s3)
    s0, s1, s2, s3 = load(rng, 4), load(rng, 5), load(rng, 6), load(rng, 7)
    for look in range(1, tables.ends.size):
        here, item = look * BLOCK, look * n_events
        for step in range(HALF):
            word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
            _bounded(tables, block, word, item, here, step)
            _bounded(tables, block, word >> _32, item, here, step + HALF)
        # A number that was drawn before stands for the one that the range lost then.
        for back in range(look - 1, at(tables.start, look) - 1, -1):
            for step in range(BLOCK):
                last = everywhere(at(tables.last, item))
                if tables.n_branches > 1:
                    last = _of_branch(tables, tables.last, item, load(block.place, step))
                number = load(block.number, here + step)
                again = load(block.drawn, back * BLOCK + step) == number
                store(block.number, here + step, chosen(again, last - back, number))
        if at(tables.merges, look):
            for step in range(BLOCK):
                one, other = (
                    load(block.number, here - BLOCK + step),
                    load(block.number, here + step),
                )
                better = (other > one) & (other < tables.nobody)
                better &= load(block.place, step) < tables.arrivals
                store(block.number, here + step, chosen(better, other, one))
    if tables.shuffled:
        for row in range(tables.ends.size * BLOCK):
            word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
            store(block.priority, row, bounded(word, WORST))
    store(rng, 4, s0), store(rng, 5, s1), store(rng, 6, s2), store(rng, 7, s3)


@kernel(inline="always")
def _best(tables, state, block, step, arrival):  # type: ignore[no-untyped-def]
    """Return the numbers of the best servers that arrivals look at."""
    n_polls = tables.ends.size
    best = load(block.number, step)
    best_rank, best_priority = everywhere(WORST), everywhere(np.int32(-1))
    for look in range(n_polls):
        if at(tables.ends, look):
            row = look * BLOCK + step
            number = load(block.number, row)
            rank = _rank(
                tables, state.tail, state.height, at(tables.first_pool, look),
                at(tables.end_pool, look), number,
            )  # fmt: skip
            better = rank < best_rank
            if tables.shuffled:
                priority = load(block.priority, row)
                better |= (rank == best_rank) & (priority > best_priority)
                best_priority = chosen(better, priority, best_priority)
            best = chosen(better & arrival, number, best)
            best_rank = chosen(better, rank, best_rank)
    return best


@kernel()
def _play(tables, state, block, step, stop):  # type: ignore[no-untyped-def]
    """Play steps of a block until `stop`, or until a server reaches the last level.

    Returns the next step, and whether the last level was reached.
    """
    last = (tables.ends.size - 1) * BLOCK
    full = False
    while step < stop and not full:
        arrival = load(block.place, step) < tables.arrivals
        if tables.several:
            number = _best(tables, state, block, step, arrival)
        else:
            number = load(block.number, last + step)
        for pool in range(tables.servers.size):
            full |= _change(tables, state, pool, number, arrival)
        step += 1
    return step, full


@kernel()
def _flush(tables, state, steps, areas, joins):  # type: ignore[no-untyped-def]
    """Add what happened in some steps to the sums of a piece, both of shape (row, lane)."""
    for pool in range(tables.servers.size):
        row = pool * tables.stride
        for level in range(row, row + state.height[pool] + 1):
            for lane in range(LANES):
                unchanged = steps * np.int64(state.started[level, lane])
                change = np.int32(np.int64(state.sums[level, lane]) - unchanged)
                areas[level, lane] += unchanged + np.int64(change)
                joins[level, lane] += np.int64(state.joins[level, lane])
                state.started[level, lane] = state.tail[level, lane]
                state.sums[level, lane] = 0
                state.joins[level, lane] = 0
        while state.height[pool] > 0:
            for lane in range(LANES):
                if state.tail[row + state.height[pool], lane] > 0:
                    break
            else:
                state.height[pool] -= 1
                continue
            break


@kernel(cache=True)
def advance(tables, state, block, progress, areas, joins, ends, joining, scratch, observations):  # type: ignore[no-untyped-def]
    """Simulate pieces of equal length, until all are done or a server reaches the last level.

    Parameters
    ----------
    tables : LockstepTables
        The system and the policy.
    state : LockstepState
        Changed in place.
    progress : array of int64, shape (7,)
        See :mod:`manyserver.simulation.progress`; calling again goes on from there.
    areas, joins : array of int64, shape (piece, pool * level, lane)
        Added to: the sum over the steps of the servers with at least so many jobs, and the
        arrivals that made them so many; at level 0 those that were blocked.
    ends : array of int32, shape (piece, pool * level, lane)
        Gets the servers with at least so many jobs when the piece ends.
    joining, scratch, observations : JoiningTables, LaneScratch, LaneObservations
        How to sample, and the sums over observations, added to.

    Returns
    -------
    bool
        Whether all pieces are done.
    """
    piece, remaining, wait = progress[PIECE], progress[REMAINING], progress[WAIT]
    step, since = progress[STEP], progress[SINCE]
    full = False
    while piece < len(areas) and not full:
        while remaining > 0 and not full:
            if step == BLOCK:
                _draw(tables, state.rng, block)
                step = 0
            steps = min(remaining, wait, FLUSH - since)
            done = -step
            step, full = _play(tables, state, block, step, min(BLOCK, step + steps))
            done += step
            remaining -= done
            wait -= done
            since += done
            if since == FLUSH or remaining == 0:
                _flush(tables, state, since, areas[piece], joins[piece])
                since = 0
            if wait == 0:
                observe_lanes(tables, state, piece, joining, scratch, observations)
                wait = progress[PERIOD]
        if remaining == 0:
            end = ends[piece]
            for row in range(len(end)):
                store(end, row, load(state.tail, row))
            piece += 1
            remaining = progress[LENGTH]
    progress[PIECE], progress[REMAINING], progress[WAIT] = piece, remaining, wait
    progress[STEP], progress[SINCE] = step, since
    return not full
