"""Servers that are announced to the dispatcher: who is known at which level, and who leaves next.

*Classes.* The servers of a pool stand in the order of their levels, so that those of a class are
neighbours. A server that gets or loses a job changes places with the last or the first of its
class, and the border between the classes moves by one.

*Calendar.* Time is cut into days of the mean time between two arrivals, and days that are a whole
number of laps apart share a page, which lists the servers that are due then. At an arrival the
pages since the last one are turned. What a server does before the next arrival depends on no
other, so the order in which a page is read makes no difference.
"""

from typing import NamedTuple

import numpy as np

from manyserver.model import System
from manyserver.policies import Policy
from manyserver.simulation.jobs.records import inlined
from manyserver.simulation.random import kernel, next_word, wide_product

__all__ = ["Announced", "choose", "make_announced", "move_down", "move_up", "strike", "write"]

NOBODY = -1
PAGES_PER_SERVER = 4


class Announced(NamedTuple):
    """Which servers are known, and when they are due."""

    first_code: np.ndarray
    """First code of each group of equally good classes, best first; and the end, (group + 1,)."""
    codes: np.ndarray
    """Codes of the groups, one group after another."""
    border: np.ndarray
    """Place of the first server of a class, and at the end their number, shape (code + 1,)."""
    order: np.ndarray
    """Server at each place, shape (server,)."""
    place: np.ndarray
    """Place of each server, shape (server,)."""
    page: np.ndarray
    """First server on each page, shape (page,)."""
    after: np.ndarray
    """Next server on the same page, shape (server,)."""
    before: np.ndarray
    """Server before it on the page; -2 - page for the first one, shape (server,)."""
    day: np.ndarray
    """Days per unit of time, shape (1,)."""
    today: np.ndarray
    """Day of the last arrival, shape (1,)."""


def make_announced(
    system: System, policy: Policy, levels: int, codes: np.ndarray, due: np.ndarray, now: float
) -> Announced:
    """Arrange the servers by their codes, and by the times at which they are due."""
    announced = policy.sampling(system).announced_levels(system, levels)
    ranks = policy.rank_table(system, levels)
    known = np.flatnonzero(announced)
    known = known[np.argsort(ranks.ravel()[known], kind="stable")]
    ordered = ranks.ravel()[known]
    first_code = np.concatenate([[0], np.flatnonzero(np.diff(ordered)) + 1, [len(known)]])
    if not len(known):
        first_code = np.zeros(1, dtype=np.int64)
    n = len(codes)
    order = np.argsort(codes, kind="stable").astype(np.int64)
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    border = np.searchsorted(codes[order], np.arange(ranks.size + 1)).astype(np.int64)
    pages = 1 << max(4, (PAGES_PER_SERVER * n - 1).bit_length())
    rate = system.arrival_rate * n
    result = Announced(
        first_code.astype(np.int64),
        known.astype(np.int64),
        border,
        order,
        place,
        np.full(pages, NOBODY, dtype=np.int64),
        np.full(n, NOBODY, dtype=np.int64),
        np.full(n, NOBODY, dtype=np.int64),
        np.array([rate]),
        np.array([np.floor(now * rate)], dtype=np.int64),
    )
    _write_all(result, due)
    return result


@inlined
def write(announced, server, due):  # type: ignore[no-untyped-def]
    """Write a server on the page of the day when it is due."""
    page = np.int64(np.floor(due * announced.day[0])) & np.int64(announced.page.size - 1)
    first = announced.page[page]
    announced.after[server] = first
    announced.before[server] = -2 - page
    if first != NOBODY:
        announced.before[first] = server
    announced.page[page] = server


@kernel(cache=True)
def _write_all(announced, due):  # type: ignore[no-untyped-def]
    for server in range(due.size):
        if due[server] < np.inf:
            write(announced, server, due[server])


@inlined
def strike(announced, server):  # type: ignore[no-untyped-def]
    """Strike a server from its page."""
    after, before = announced.after[server], announced.before[server]
    if before < NOBODY:
        announced.page[-2 - before] = after
    else:
        announced.after[before] = after
    if after != NOBODY:
        announced.before[after] = before


@inlined
def _swap(announced, server, to):  # type: ignore[no-untyped-def]
    other, here = announced.order[to], announced.place[server]
    announced.order[to], announced.order[here] = server, other
    announced.place[server], announced.place[other] = to, here


@inlined
def move_up(announced, server, code):  # type: ignore[no-untyped-def]
    """Move a server from a class to the next higher one."""
    last = announced.border[code + 1] - 1
    _swap(announced, server, last)
    announced.border[code + 1] = last


@inlined
def move_down(announced, server, code):  # type: ignore[no-untyped-def]
    """Move a server from a class to the next lower one."""
    first = announced.border[code]
    _swap(announced, server, first)
    announced.border[code] = first + 1


@inlined
def choose(announced, rng):  # type: ignore[no-untyped-def]
    """Return one of the best servers that are announced, each alike, or -1 if there is none."""
    for group in range(announced.first_code.size - 1):
        start, stop = announced.first_code[group], announced.first_code[group + 1]
        count = 0
        for i in range(start, stop):
            code = announced.codes[i]
            count += announced.border[code + 1] - announced.border[code]
        if count > 0:
            word, rng[8], rng[9], rng[10], rng[11] = next_word(rng[8], rng[9], rng[10], rng[11])
            number, _ = wide_product(word, np.uint64(count))
            left = np.int64(number)
            for i in range(start, stop):
                code = announced.codes[i]
                here = announced.border[code + 1] - announced.border[code]
                if left < here:
                    return announced.order[announced.border[code] + left]
                left -= here
    return np.int64(NOBODY)
