"""The joining law of a finite system as plain arrays, for the kernel that observations it.

The law is that of :mod:`manyserver.joining.law`. Classes of one rank are a *group*. Within a
group, neighbouring levels of one pool are a *run*, which is a single level unless the policy does
not look at the number of jobs.
"""

import itertools
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from manyserver.model import System
from manyserver.policies import Branch, Policy, full

__all__ = ["JoiningTables", "make_joining_tables"]


class JoiningTables(NamedTuple):
    """Where an arrival goes; a `first` array has one element more, the end of the last part."""

    arrival_rate: float
    """Per server."""
    announced: int
    """Groups of announced servers; they come before those of the branches."""
    room: np.ndarray
    """Most jobs of a server, shape (pool,); the number of levels for no bound."""
    speed: np.ndarray
    """Shape (pool,)."""
    servers: float
    """Of all pools."""
    distinct: float
    """1 if the servers of a draw are distinct, 0 if they are drawn with replacement."""
    probability: np.ndarray
    """Shape (branch,)."""
    first_draw: np.ndarray
    """First draw of each branch, shape (branch + 1,)."""
    first_group: np.ndarray
    """First group of each branch, shape (branch + 1,)."""
    size: np.ndarray
    """Servers that a draw is made from, shape (draw,)."""
    first_poll: np.ndarray
    """First look of each draw, shape (draw + 1,)."""
    inverse: np.ndarray
    """One over the number of servers that are left at a look, shape (look,)."""
    group_draw: np.ndarray
    """The draw of a group's servers; -1 if servers of several draws are tied, shape (group,)."""
    first_run: np.ndarray
    """First run of each group, shape (group + 1,)."""
    run: np.ndarray
    """Pool, draw, first level and the level after the last one, shape (run, 4)."""
    nodes: np.ndarray
    weights: np.ndarray
    """Gauss' quadrature on [0, 1], for ties between draws."""


# The replications of a run share their inputs, which no kernel changes.
@lru_cache(maxsize=16)
def make_joining_tables(system: System, policy: Policy, levels: int) -> JoiningTables:
    """Tabulate the joining law for a number of levels."""
    sampling = policy.sampling(system)
    ranks = policy.rank_table(system, levels)
    room = (~full(system, levels)).sum(axis=1)
    announced = _announced_groups(sampling.announced_levels(system, levels), ranks)
    draws = [draw for branch in sampling.branches for draw in branch.draws]
    sizes = [sum(system.counts[pool] for pool in draw.pools) for draw in draws]
    group_draw, runs = [0] * len(announced), list(announced)
    groups_each = [len(announced)]
    first_draw = list(itertools.accumulate((len(b.draws) for b in sampling.branches), initial=0))
    for branch, first in zip(sampling.branches, first_draw, strict=False):
        groups = _groups(branch, ranks, room, first)
        groups_each.append(len(groups))
        runs += groups
        for group in groups:
            own = {draw for _, draw, _, _ in group}
            group_draw.append(own.pop() if len(own) == 1 else -1)
    looked_at = max(
        (sum(draw.count for draw in branch.draws) for branch in sampling.branches), default=1
    )
    nodes, weights = np.polynomial.legendre.leggauss((looked_at - 1) // 2 + 1)
    left = [
        size - (0 if sampling.replacement else look)
        for draw, size in zip(draws, sizes, strict=True)
        for look in range(draw.count)
    ]
    return JoiningTables(
        arrival_rate=system.arrival_rate,
        announced=len(announced),
        room=room,
        speed=system.speeds,
        servers=float(system.finite_servers),
        distinct=float(not sampling.replacement),
        probability=np.array([branch.probability for branch in sampling.branches]),
        first_draw=np.array(first_draw),
        first_group=np.cumsum(groups_each),
        size=np.array(sizes, dtype=float),
        first_poll=np.cumsum([0, *(draw.count for draw in draws)]),
        inverse=1 / np.array(left, dtype=float),
        group_draw=np.array(group_draw),
        first_run=np.cumsum([0, *(len(group) for group in runs)]),
        run=np.array([run for group in runs for run in group]),
        nodes=(1 + nodes) / 2,
        weights=weights / 2,
    )


def _announced_groups(announced: np.ndarray, ranks: np.ndarray) -> list[list[tuple[int, ...]]]:
    """Return the runs of every group of announced servers, best rank first."""
    groups: dict[int, list[tuple[int, ...]]] = {}
    for pool, row in enumerate(ranks):
        for start, end in _runs(row, int(announced[pool].sum())):
            groups.setdefault(int(row[start]), []).append((pool, -1, start, end))
    return [groups[rank] for rank in sorted(groups)]


def _groups(
    branch: Branch, ranks: np.ndarray, room: np.ndarray, first: int
) -> list[list[tuple[int, ...]]]:
    """Return the runs of every group of a branch, best rank first, without full servers."""
    groups: dict[int, list[tuple[int, ...]]] = {}
    for number, draw in enumerate(branch.draws, start=first):
        for pool in draw.pools:
            for start, end in _runs(ranks[pool], int(room[pool])):
                groups.setdefault(int(ranks[pool, start]), []).append((pool, number, start, end))
    return [groups[rank] for rank in sorted(groups)]


def _runs(row: np.ndarray, levels: int) -> list[tuple[int, int]]:
    """Cut the first levels of a pool into runs of equal rank."""
    cuts = np.flatnonzero(np.diff(row[:levels])) + 1
    return list(itertools.pairwise([0, *cuts, levels])) if levels else []
