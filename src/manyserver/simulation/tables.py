"""A system and a policy as plain arrays, for :mod:`manyserver.simulation.server_kernel`."""

import itertools
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from manyserver.model import System
from manyserver.policies import Draw, Policy, Sampling, full
from manyserver.simulation.server_kernel import BLOCK

__all__ = [
    "Block",
    "Polls",
    "Tables",
    "alias_method",
    "code_type",
    "event_rates",
    "intervals",
    "make_block",
    "make_polls",
    "make_tables",
]

SPARE_BITS = 24
"""A word gives another bounded number only while it has this many bits more than needed."""
MOST_POLLS = 100_000
ROUNDING = 1 - 2.0**-48
NOBODY = 1 << 62
"""Rank of the servers that do not exist."""
TIE_LEVELS = 256
"""Levels in which ties between pools are looked for; far more than servers hold jobs."""


class Polls(NamedTuple):
    """What a step can be, and which servers it polls then.

    An *event* is a branch of the sampling, or a departure from one pool. Arrays over polls and
    events are flat, ``look * events + event``.
    """

    bound: np.ndarray
    """Where the interval of each event begins in [0, 1), shape (event,)."""
    inverse: np.ndarray
    """One over the length of the interval, shape (event,)."""
    arrival: np.ndarray
    """1 for an arrival and 0 for a departure, shape (event,)."""
    first: np.ndarray
    """First server of the range that is drawn from."""
    size: np.ndarray
    """Length of that range: the servers of the draw that were not drawn yet."""
    last: np.ndarray
    """Server that the range lost at the first look of the draw, plus the number of that look."""
    fresh: np.ndarray
    """Whether a new random word is needed, shape (look,)."""
    start: np.ndarray
    """First look that may have drawn the same server, shape (look,)."""
    shuffled: bool
    """Whether servers of different draws can be equally good."""


class Tables(NamedTuple):
    """What the codes ``pool * levels + level`` mean."""

    rank: np.ndarray
    """Order of preference, shape (code,)."""
    change: np.ndarray
    """What a departure and an arrival add to a code, shape (2 * code,)."""
    last_level: np.uint64
    """``levels - 1``, all bits set."""


class Block(NamedTuple):
    """Steps that are drawn and not yet played; flat over polls, ``look * BLOCK + step``."""

    event: np.ndarray
    arrival: np.ndarray
    word: np.ndarray
    """What is left of a random word, shape (step,)."""
    drawn: np.ndarray
    """Numbers as drawn, those drawn before included."""
    server: np.ndarray


def code_type(n_codes: int) -> type[np.unsignedinteger]:
    """Return the smallest unsigned integer that holds so many codes.

    Examples
    --------
    >>> code_type(256), code_type(257)
    (<class 'numpy.uint8'>, <class 'numpy.uint16'>)
    """
    sizes = (np.uint8, np.uint16, np.uint32)
    return next(size for size in sizes if n_codes - 1 <= np.iinfo(size).max)


# The replications of a run share their inputs, which no kernel changes.
@lru_cache(maxsize=16)
def make_tables(system: System, policy: Policy, levels: int) -> Tables:
    """Tabulate the policy for `levels` levels, a power of two."""
    ranks = policy.rank_table(system, levels).astype(np.uint64).ravel()
    ranks[-1] = NOBODY
    change = np.ones((ranks.size, 2), dtype=np.int64)
    change[:, 0] = np.where(np.arange(ranks.size) % levels > 0, -1, 0)
    change[full(system, levels).ravel(), 1] = 0
    return Tables(ranks, change.ravel().view(np.uint64), np.uint64(levels - 1))


def make_block(polls: Polls) -> Block:
    """Make room for a block."""
    n = len(polls.fresh) * BLOCK
    return Block(*(np.zeros(size, dtype=np.uint64) for size in (BLOCK, BLOCK, BLOCK, n, n)))


@lru_cache(maxsize=16)
def make_polls(system: System, policy: Policy) -> Polls:
    """Turn the sampling rule and the departures into ranges of servers."""
    sampling = policy.sampling(system)
    bounds = list(itertools.accumulate(system.counts, initial=0))
    for branch in sampling.branches:
        if (polls := sum(draw.count for draw in branch.draws)) > MOST_POLLS:
            raise ValueError(
                f"d = {polls}: servers that an arrival polls; must be at most {MOST_POLLS} in a "
                "simulation. JSQ and SED without d look at all"
            )
    events = [_branch_polls(branch.draws, sampling, bounds) for branch in sampling.branches]
    events += [[(bounds[pool], count, 0, 0)] for pool, count in enumerate(system.counts)]
    n_arrivals = len(sampling.branches)
    n_polls = max(len(event) for event in events)
    for event in events:
        event += [(bounds[-1] + look, 1, 0, look) for look in range(len(event), n_polls)]
    # Axes of the table: field (first, size, last, start), look, event.
    table = np.array(events).transpose(2, 1, 0)
    first, size, last = (
        np.ascontiguousarray(field, dtype=np.uint64).ravel() for field in table[:3]
    )
    bound, inverse = intervals(event_rates(system, sampling, system.arrival_rate, system.speeds))
    return Polls(
        bound,
        inverse,
        np.array([1] * n_arrivals + [0] * len(system.pools), dtype=np.uint64),
        first,
        size,
        last,
        _fresh_words(table[1].max(axis=1)),
        table[3].min(axis=1).astype(np.uint64),
        _ties_between_draws(sampling, system, policy),
    )


def event_rates(
    system: System, sampling: Sampling, arrival_rate: float, speeds: np.ndarray
) -> list[float]:
    """Return the rates of the events: the branches of an arrival, or one, and departures."""
    parts = [branch.probability for branch in sampling.branches] or [1.0]
    arrivals = [system.finite_servers * arrival_rate * part for part in parts]
    return arrivals + list(np.array(system.counts) * speeds)


def intervals(rates: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Cut [0, 1) in proportion to rates.

    Returns
    -------
    bound : numpy.ndarray, shape (event,)
        Where the intervals begin.
    inverse : numpy.ndarray, shape (event,)
        One over their lengths, rounded so that what is in an interval stays below one.
    """
    ends = np.cumsum(rates) / np.sum(rates)
    bound = np.concatenate([[0.0], ends[:-1]])
    lengths = np.diff(bound, append=1.0)
    # What never happens has an interval of no length.
    return bound, ROUNDING / np.where(lengths > 0.0, lengths, np.inf)


def _branch_polls(
    draws: tuple[Draw, ...], sampling: Sampling, bounds: list[int]
) -> list[tuple[int, int, int, int]]:
    """Return first, size, last and start of every look of an arrival."""
    polls: list[tuple[int, int, int, int]] = []
    for draw in draws:
        if list(draw.pools) != list(range(draw.pools[0], draw.pools[-1] + 1)):
            raise ValueError(f"pools = {draw.pools}: those of a draw must follow one another")
        first, end = bounds[draw.pools[0]], bounds[draw.pools[-1] + 1]
        start = len(polls)
        for drawn in range(draw.count):
            if sampling.replacement:
                polls.append((first, end - first, 0, len(polls)))
            else:
                polls.append((first, end - first - drawn, end - 1 + start, start))
    return polls


def alias_method(rates: list[float]) -> tuple[np.ndarray, np.ndarray]:
    """Return thresholds and aliases that give every event its share of the rates."""
    n = len(rates)
    share = np.array(rates) / sum(rates) * n
    threshold, alias = np.ones(n), np.arange(n)
    small = [i for i in range(n) if share[i] < 1]
    large = [i for i in range(n) if share[i] >= 1]
    while small and large:
        i, j = small.pop(), large[-1]
        threshold[i], alias[i] = share[i], j
        share[j] -= 1 - share[i]
        if share[j] < 1:
            small.append(large.pop())
    words = [min(int(value * 2.0**64), 2**64 - 1) for value in threshold]
    pairs = np.stack([np.arange(n), alias], axis=1)
    return np.array(words, dtype=np.uint64), pairs.ravel().astype(np.uint64)


def _fresh_words(sizes: np.ndarray) -> np.ndarray:
    """Say which polls need a new random word; what an earlier look left serves the others."""
    fresh = np.ones(len(sizes), dtype=np.bool_)
    left = 0.0
    # What is left of the word of the first look is not enough.
    for look, size in enumerate(sizes[1:], start=1):
        fresh[look] = left < math.log2(size) + SPARE_BITS
        left = (64.0 if fresh[look] else left) - math.log2(size)
    return fresh


def _ties_between_draws(sampling: Sampling, system: System, policy: Policy) -> bool:
    """Whether servers of different draws of a branch can have the same rank."""
    if all(len(branch.draws) == 1 for branch in sampling.branches):
        return False
    ranks = policy.rank_table(system, TIE_LEVELS)
    room = ~full(system, TIE_LEVELS)
    own = [set(row[here]) for row, here in zip(ranks, room, strict=True)]
    return any(
        not own[i].isdisjoint(own[j])
        for branch in sampling.branches
        for one, other in itertools.combinations(branch.draws, 2)
        for i, j in itertools.product(one.pools, other.pools)
    )
