"""What a dispatcher knows besides the jobs at the servers: whose turn it is, or the work assigned.

A server works whenever it has jobs, so that when it would be idle if nobody joined follows from
the sizes and the arrivals alone, whatever its discipline.
"""

import itertools
from typing import NamedTuple

import numpy as np

from manyserver.model import System
from manyserver.policies import Policy
from manyserver.policies.random import Random
from manyserver.simulation.jobs.records import inlined
from manyserver.simulation.jobs.servers import Servers
from manyserver.simulation.server_kernel import BLOCK

__all__ = ["Dispatcher", "assign", "drawing", "first_free", "make_dispatcher", "take_turns"]

_NOTHING = np.zeros(0, dtype=np.int64)


class Dispatcher(NamedTuple):
    """For most policies all arrays are empty."""

    cycle: np.ndarray
    """Servers in the order in which arrivals go to them, again and again."""
    turn: np.ndarray
    """Place in the cycle of the next arrival, shape (1,)."""
    free: np.ndarray
    """When each server is idle or will be, shape (server,)."""
    heap: np.ndarray
    """Servers, group by group, each a binary heap with the first to be free on top; empty if
    arrivals draw servers."""
    first: np.ndarray
    """Where the groups of equal speed begin, the fastest first, and their end, (group + 1,)."""
    group: np.ndarray
    """Group of each server, shape (server,)."""


def drawing(system: System, policy: Policy) -> Policy:
    """Return the policy without memory by which arrivals draw servers."""
    memoryless = policy.memoryless
    # A dispatcher that knows all the work needs no announcements.
    return Random() if policy.by_work and not _draws(system, memoryless) else memoryless


def _draws(system: System, memoryless: Policy) -> bool:
    return bool(memoryless.sampling(system).branches)


def make_dispatcher(
    system: System, policy: Policy, servers: Servers, levels: int, generator: np.random.Generator
) -> Dispatcher:
    """Begin anywhere in the cycle, or with the work that is at the servers."""
    weights = policy.turns(system)
    if weights is not None:
        cycle = _cycle(system, weights)
        turn = generator.integers(len(cycle), size=1)
        return Dispatcher(cycle, turn, np.zeros(0), _NOTHING, _NOTHING, _NOTHING)
    if not policy.by_work:
        return Dispatcher(_NOTHING, _NOTHING, np.zeros(0), _NOTHING, _NOTHING, _NOTHING)
    speed = np.repeat(system.speeds, system.counts)
    free = servers.busy_until(levels, speed)
    if _draws(system, policy.memoryless):
        return Dispatcher(_NOTHING, _NOTHING, free, _NOTHING, _NOTHING, _NOTHING)
    # What is sorted is a heap.
    heap = np.lexsort((free, -speed)).astype(np.int64)
    first = np.flatnonzero(np.diff(speed[heap], prepend=np.inf, append=0.0)).astype(np.int64)
    group = np.empty(len(heap), dtype=np.int64)
    group[heap] = np.repeat(np.arange(len(first) - 1), np.diff(first))
    return Dispatcher(_NOTHING, _NOTHING, free, heap, first, group)


def _cycle(system: System, weights: tuple[int, ...]) -> np.ndarray:
    """Return the cycle of smooth weighted round robin, as nginx has it.

    Every server gains its weight at each step; the one with most, the first of equals, is taken and
    loses the weight of all. Servers of a pool so have their turns one after another.
    """
    counts = system.counts
    total = sum(weight * count for weight, count in zip(weights, counts, strict=True))
    starts = list(itertools.accumulate(counts, initial=0))[:-1]
    taken = [0] * len(counts)
    cycle = np.empty(total, dtype=np.int64)
    for step in range(total):
        gains = [
            (step + 1) * weight - total * (own // count)
            for weight, own, count in zip(weights, taken, counts, strict=True)
        ]
        pool = gains.index(max(gains))
        cycle[step] = starts[pool] + taken[pool] % counts[pool]
        taken[pool] += 1
    return cycle


@inlined
def take_turns(dispatcher, block):  # type: ignore[no-untyped-def]
    """Write the servers of the next arrivals into a block."""
    turn = dispatcher.turn[0]
    for step in range(BLOCK):
        block.server[step] = np.uint64(dispatcher.cycle[turn])
        turn += 1
        if turn == dispatcher.cycle.size:
            turn = 0
    dispatcher.turn[0] = turn


@inlined
def first_free(dispatcher, now):  # type: ignore[no-untyped-def]
    """Return the server that is free first, the fastest of those that are idle."""
    best = np.int64(-1)
    least = np.inf
    for group in range(dispatcher.first.size - 1):
        server = dispatcher.heap[dispatcher.first[group]]
        free = max(dispatcher.free[server], now)
        if free < least:
            best, least = server, free
    return best


@inlined
def assign(dispatcher, server, now, work):  # type: ignore[no-untyped-def]
    """Give a server work, as the time that it takes."""
    free = max(dispatcher.free[server], now) + work
    dispatcher.free[server] = free
    if dispatcher.heap.size > 0:
        # It is on top of its heap, and sinks.
        group = dispatcher.group[server]
        start = dispatcher.first[group]
        size = dispatcher.first[group + 1] - start
        place = np.int64(0)
        while 2 * place + 1 < size:
            child = 2 * place + 1
            other = dispatcher.heap[start + child]
            if child + 1 < size:
                right = dispatcher.heap[start + child + 1]
                if dispatcher.free[right] < dispatcher.free[other]:
                    child += 1
                    other = right
            if dispatcher.free[other] >= free:
                break
            dispatcher.heap[start + place] = other
            place = child
        dispatcher.heap[start + place] = server
