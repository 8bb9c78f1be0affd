"""The kernel that simulates every policy that looks at some servers and joins the best.

The chain is uniformised: steps come at the constant rate ``n_servers * arrival_rate + sum of all
speeds``, and each is an arrival, or a try to depart from a server that is drawn in proportion to
its speed and may be idle. Time is the number of steps over that rate, so nothing is drawn for it.

*Codes.* A server's state is one small integer, its *code*: ``pool * levels + level``, with a
number of levels that is a power of two. Tables over codes hold all that the kernel knows about
the policy. When a server reaches the last level the kernel stops after the step, and goes on
with longer tables as if nothing had happened.

*Blocks.* Which servers a step looks at does not depend on the state. It is drawn for `BLOCK`
steps at a time (:func:`draw_block`), and then they are played one after another (:func:`_play`).
Every step looks at the same number of servers; a step that needs fewer looks at servers that
do not exist and that nobody prefers. This is faster than a branch that cannot be predicted. So
are the conditional expressions below, which are compiled into no branch. The codes of many
servers do not fit into the nearest cache, and so are fetched into it when a block has been drawn.

*Measuring.* For each code, arrivals that found it and departures that left it are counted, and
for each of them the number of steps that follow in the piece is summed. The time integrals of
the queue tails follow from these (:mod:`manyserver.simulation.replica`). An arrival at a full
server is counted, and changes nothing. From time to time the state is sampled
(:mod:`manyserver.simulation.observations`).

*Random numbers.* What a step is and the first server it looks at come from a word of one generator,
and all further servers from another one. So policies that are simulated with the same seed see the
same arrivals and departures, however many servers they look at.
"""

import numpy as np

from manyserver.simulation.observations import end_piece, observe
from manyserver.simulation.progress import NEVER, PERIOD, PIECE, REMAINING, STEP, WAIT
from manyserver.simulation.random import kernel, next_word, prefetch, uniform, wide_product

__all__ = ["BLOCK", "advance", "draw_block"]

BLOCK = 128
"""Steps drawn at a time."""
CACHED = 2**15
"""Of so many servers, the codes are at hand anyway."""

_0, _1 = np.uint64(0), np.uint64(1)
_NEVER = np.uint64(NEVER)
_BLOCK = np.uint64(BLOCK)


@kernel()
def draw_block(polls, rng, block):  # type: ignore[no-untyped-def]
    """Draw the kinds of the next `BLOCK` steps and the servers that they look at."""
    s0, s1, s2, s3 = rng[0], rng[1], rng[2], rng[3]
    n_events = np.uint64(polls.bound.size)
    for step in range(_BLOCK):
        word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
        place = uniform(word)
        event = _0
        for later in range(_1, n_events):
            event += np.uint64(place >= polls.bound[later])
        block.event[step] = event
        block.arrival[step] = polls.arrival[event]
        share = (place - polls.bound[event]) * polls.inverse[event]
        server = np.uint64(np.int64(share * np.float64(polls.size[event]))) + polls.first[event]
        block.drawn[step] = server
        block.server[step] = server
    rng[0], rng[1], rng[2], rng[3] = s0, s1, s2, s3
    s0, s1, s2, s3 = rng[4], rng[5], rng[6], rng[7]
    for look in range(_1, np.uint64(polls.fresh.size)):
        row = look * _BLOCK
        column = look * n_events
        if polls.fresh[look]:
            for step in range(_BLOCK):
                block.word[step], s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
        for step in range(_BLOCK):
            item = block.event[step] + column
            server, block.word[step] = wide_product(block.word[step], polls.size[item])
            server += polls.first[item]
            block.drawn[row + step] = server
            block.server[row + step] = server
        # Drawing without replacement is drawing from a shrinking range, if a number that was
        # drawn before stands for the one that the range lost at that time.
        for back in range(_1, look - polls.start[look] + _1):
            other = look - back
            for step in range(_BLOCK):
                if block.drawn[other * _BLOCK + step] == block.server[row + step]:
                    last = polls.last[block.event[step] + column]
                    block.server[row + step] = last - other
    # The first of equally good servers wins, so their order must be uniform. Within a draw it is.
    if polls.shuffled:
        for step in range(_BLOCK):
            for look in range(_1, np.uint64(polls.fresh.size)):
                word, s0, s1, s2, s3 = next_word(s0, s1, s2, s3)
                other, word = wide_product(word, look + _1)
                here, there = look * _BLOCK + step, other * _BLOCK + step
                server = block.server[here]
                block.server[here] = block.server[there]
                block.server[there] = server
    rng[4], rng[5], rng[6], rng[7] = s0, s1, s2, s3


@kernel()
def _play(codes, flows, tables, block, n_polls, step, stop, remaining):  # type: ignore[no-untyped-def]
    """Play steps of a block until `stop`, or until a server reaches the last level.

    Returns the next step, the steps that remain in the piece, and whether the last level was
    reached.
    """
    servers, arrival = block.server, block.arrival
    while step < stop:
        server = servers[step]
        code = np.uint64(codes[server])
        best = tables.rank[code]
        for look in range(_1, n_polls):
            other = servers[look * _BLOCK + step]
            its = np.uint64(codes[other])
            rank = tables.rank[its]
            better = rank < best
            best = rank if better else best
            server = other if better else server
            code = its if better else code
        flow = (code << _1) | arrival[step]
        code += tables.change[flow]
        codes[server] = code
        step += _1
        remaining -= _1
        flows[flow << _1] += _1
        flows[(flow << _1) | _1] += remaining
        if (code & tables.last_level) == tables.last_level:
            return step, remaining, True
    return step, remaining, False


@kernel(cache=True)
def advance(  # type: ignore[no-untyped-def]
    codes,
    flows,
    before,
    lengths,
    polls,
    tables,
    rng,
    block,
    progress,
    joining,
    scratch,
    observations,
):
    """Simulate pieces, until all are done or a server reaches the last level.

    Parameters
    ----------
    codes : array of unsigned integers, shape (server + look,)
        State of each server, changed in place; then the servers that do not exist.
    flows : array of uint64, shape (piece, 4 * code)
        Added to: at ``4 * code + 2 * arrival`` the number of departures (0) and arrivals (1),
        and after it the sum of the steps that follow each of them.
    before : array of int64, shape (pool, level)
        Servers with at least so many jobs when the piece began, changed in place.
    lengths : array of uint64, shape (piece + 1,)
        Steps of each piece; the last one is not read.
    polls : Polls
        What a step can be, and which servers it looks at then.
    tables : Tables
        What the codes mean.
    rng : array of uint64, shape (8,)
        States of two generators, changed in place.
    block : Block
        Steps that are drawn, changed in place.
    progress : array of uint64, shape (6,)
        See :mod:`manyserver.simulation.progress`; calling again goes on from there.
    joining, scratch, observations : JoiningTables, Scratch, Observations
        How to sample, and the sums over observations, added to.

    Returns
    -------
    bool
        Whether all pieces are done.
    """
    piece, remaining, wait = progress[PIECE], progress[REMAINING], progress[WAIT]
    step, at_ends = progress[STEP], progress[PERIOD] == _0
    n_polls = np.uint64(polls.fresh.size)
    full = False
    while piece < np.uint64(len(flows)) and not full:
        row = flows[piece]
        if step == _BLOCK:
            draw_block(polls, rng, block)
            if codes.size > CACHED:
                for place in range(np.uint64(block.server.size)):
                    prefetch(codes, block.server[place])
            step = _0
        stop = min(_BLOCK, step + min(remaining, wait))
        wait += step
        step, remaining, full = _play(codes, row, tables, block, n_polls, step, stop, remaining)
        wait -= step
        if wait == _0 or (at_ends and remaining == _0):
            observe(row, before, np.int64(piece), joining, scratch, observations)
            wait = _NEVER if at_ends else progress[PERIOD]
        if remaining == _0:
            end_piece(row, before, joining)
            piece += _1
            remaining = lengths[piece]
    progress[PIECE], progress[REMAINING], progress[WAIT] = piece, remaining, wait
    progress[STEP] = step
    return not full
