"""The states of a finite system: how many jobs its servers hold, longest queue first.

Servers of a pool are alike, so a state lists the queues of every pool in falling order. Only
finitely many states are kept: the ``i``-th longest queue of a pool holds at most ``caps[i]``
jobs, with ``caps`` falling too. Where queues are balanced, few can be long at the same time, and
this keeps far fewer states than one bound for all queues.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["Caps", "Lattice", "States", "count_by_idle", "count_states", "enumerate_states"]

Caps = tuple[tuple[int, ...], ...]
"""Most jobs in the i-th longest queue of every pool, falling, shape (pool, server of the pool)."""


@dataclass(frozen=True)
class States:
    """All states within the caps, by the number of jobs in the system.

    Parameters
    ----------
    jobs : numpy.ndarray of int16, shape (state, server)
        Jobs at every server: pool after pool, longest queue first.
    total : numpy.ndarray of int64, shape (state,)
        Jobs in the system; does not fall.
    """

    jobs: np.ndarray
    total: np.ndarray


@dataclass(frozen=True)
class Lattice(States):
    """The states of a policy without memory: there is one for all queues within the caps.

    Parameters
    ----------
    more, less : numpy.ndarray of int32, shape (server, state)
        The state with one job more, or less, at this server; -1 if it is not among the states,
        or lists queues in the wrong order.
    """

    more: np.ndarray
    less: np.ndarray


def count_states(caps: Caps) -> int:
    """Count the states within the caps without listing them.

    Examples
    --------
    >>> count_states(((2, 2),)), count_states(((2, 1), (1,)))
    (6, 10)
    """
    return math.prod(_count_pool(own) for own in caps)


def _count_pool(caps: Sequence[int]) -> int:
    # shorter[k]: ways to fill the servers so far with the longest of their queues at k jobs.
    shorter = [1] * (caps[-1] + 1)
    for cap in reversed(caps[:-1]):
        ways, total = [], 0
        for level in range(cap + 1):
            total += shorter[level] if level < len(shorter) else 0
            ways.append(total)
        shorter = ways
    return sum(shorter)


def count_by_idle(caps: Sequence[int]) -> list[int]:
    """Count the states of one pool by its idle servers, from none to all.

    Examples
    --------
    >>> count_by_idle((2, 2))
    [3, 2, 1]
    """
    counts = []
    for idle in range(len(caps) + 1):
        busy = [cap - 1 for cap in caps[: len(caps) - idle]]
        counts.append(1 if not busy else 0 if busy[-1] < 0 else _count_pool(busy))
    return counts


def enumerate_states(caps: Caps) -> Lattice:
    """List the states within the caps.

    Examples
    --------
    >>> enumerate_states(((2, 1),)).jobs.tolist()
    [[0, 0], [1, 0], [2, 0], [1, 1], [2, 1]]
    """
    jobs = np.zeros((1, 0), dtype=np.int16)
    more = less = np.zeros((0, 1), dtype=np.int32)
    for own in caps:
        pool = _enumerate_pool(own)
        up, down = _neighbours(pool)
        n, width = len(jobs), len(pool)
        more = np.concatenate([_outer(more, width), np.tile(up, n)])
        less = np.concatenate([_outer(less, width), np.tile(down, n)])
        jobs = np.concatenate([np.repeat(jobs, width, axis=0), np.tile(pool, (n, 1))], axis=1)
    # Moves so far are differences of position, which do not depend on the other pools.
    total = jobs.sum(axis=1, dtype=np.int64)
    order = np.argsort(total, kind="stable")
    position = np.empty(len(order), dtype=np.int32)
    position[order] = np.arange(len(order))

    def targets(steps: np.ndarray) -> np.ndarray:
        for row in steps:
            step = row[order]
            row[:] = np.where(step == 0, -1, position[order + step])
        return steps

    return Lattice(jobs[order], total[order], targets(more), targets(less))


def _outer(steps: np.ndarray, width: int) -> np.ndarray:
    """Turn steps among the states of the pools so far into steps with one pool more."""
    return np.repeat(steps * width, width, axis=1)


def _enumerate_pool(caps: Sequence[int]) -> np.ndarray:
    rows = np.arange(caps[-1] + 1, dtype=np.int16)[:, None]
    for cap in reversed(caps[:-1]):
        # The next longer queue holds between as many jobs as the longest so far and its cap.
        shortest = rows[:, 0].astype(np.int64)
        choices = cap + 1 - shortest
        row = np.repeat(np.arange(len(rows)), choices)
        first = np.cumsum(choices) - choices
        longest = np.arange(len(row)) - first[row] + shortest[row]
        rows = np.concatenate([longest[:, None].astype(np.int16), rows[row]], axis=1)
    return rows


def _neighbours(jobs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find the steps to the rows with one job more or less at each server; 0 if there is none.

    Rows are found by their number in the combinatorial number system, in which falling rows
    a[0] >= a[1] >= ... have the number sum_i C(a[i] + n - 1 - i, n - i).
    """
    n = jobs.shape[1]
    levels = range(int(jobs.max()) + 2)
    parts = [
        np.array([math.comb(level + n - 1 - i, n - i) for level in levels], dtype=np.int64)
        for i in range(n)
    ]
    numbers = np.sum([part[jobs[:, i]] for i, part in enumerate(parts)], axis=0)
    order = np.argsort(numbers)
    known = numbers[order]
    steps = np.zeros((2, n, len(jobs)), dtype=np.int32)
    for i, part in enumerate(parts):
        longer = jobs[:, i - 1] if i > 0 else np.inf
        shorter = jobs[:, i + 1] if i < n - 1 else 0
        for side, rows in enumerate((jobs[:, i] < longer, jobs[:, i] > shorter)):
            row = np.flatnonzero(rows)
            level = jobs[row, i].astype(np.int64)
            wanted = numbers[row] - part[level] + part[level + (1, -1)[side]]
            place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
            found = known[place] == wanted
            steps[side, i, row[found]] = order[place[found]] - row[found]
    return steps[0], steps[1]
