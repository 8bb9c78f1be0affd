"""A system that is simulated by its occupancy counts, with the tables for its kernel."""

import itertools
from abc import abstractmethod
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from manyserver.model import System
from manyserver.policies import Policy, full
from manyserver.simulation.joining_tables import make_joining_tables
from manyserver.simulation.observations import Observations, make_scratch
from manyserver.simulation.occupancy_kernel import advance
from manyserver.simulation.replica import Measured, Replica, messages_per_job
from manyserver.simulation.tables import event_rates, intervals
from manyserver.statistics.estimates import Controls, Estimate

__all__ = ["CountsTables", "OccupancyReplica", "OnCounts", "make_counts_tables"]


class CountsTables(NamedTuple):
    """A system and a policy as plain arrays.

    An *event* is a branch of the sampling, or an arrival where there are no branches, or a
    departure from one pool.
    """

    bound: np.ndarray
    inverse: np.ndarray
    """As in :class:`~manyserver.simulation.tables.Polls`."""
    rank: np.ndarray
    """Order of preference, shape (pool, level)."""
    room: np.ndarray
    """Most jobs of a server, shape (pool,)."""
    group: np.ndarray
    """Group of a class, shape (pool, level); the number of groups for what is not announced."""
    first_class: np.ndarray
    """First class of each group, shape (group,)."""
    pool: np.ndarray
    """Pool of a class, group after group."""
    level: np.ndarray
    """Level of a class."""
    first_draw: np.ndarray
    """First draw of each branch, shape (branch + 1,)."""
    first_pool: np.ndarray
    """First pool of a draw, shape (draw,)."""
    size: np.ndarray
    """Servers that a draw is made from, shape (draw,)."""
    polls: np.ndarray
    """Servers that a draw looks at, shape (draw,)."""
    distinct: int
    """1 if the servers of a draw are distinct, 0 if they are drawn with replacement."""


@lru_cache(maxsize=16)
def make_counts_tables(system: System, policy: Policy, levels: int) -> CountsTables:
    """Tabulate a policy for a number of levels."""
    sampling = policy.sampling(system)
    announced = sampling.announced_levels(system, levels)
    ranks = policy.rank_table(system, levels)
    known = sorted(set(ranks[announced]))
    classes = [np.argwhere(announced & (ranks == rank)) for rank in known]
    group = np.full(ranks.shape, len(known))
    group[announced] = np.searchsorted(known, ranks[announced])
    listed = np.concatenate(classes)
    branches = sampling.branches
    draws = [draw for branch in branches for draw in branch.draws]
    rates = event_rates(system, sampling, system.arrival_rate, system.speeds)
    bound, inverse = intervals(rates)
    return CountsTables(
        bound,
        inverse,
        ranks,
        (~full(system, levels)).sum(axis=1),
        group,
        np.cumsum([0, *(len(some) for some in classes[:-1])]),
        np.ascontiguousarray(listed[:, 0]),
        np.ascontiguousarray(listed[:, 1]),
        np.array([0, *itertools.accumulate(len(branch.draws) for branch in branches)])
        if branches
        else np.array([0, 0]),
        np.array([draw.pools[0] for draw in draws], dtype=np.int64),
        np.array([sum(system.counts[i] for i in draw.pools) for draw in draws], dtype=np.int64),
        np.array([draw.count for draw in draws], dtype=np.int64),
        int(not sampling.replacement),
    )


class OnCounts(Replica):
    """A replica that keeps the number of servers of each pool with at least k jobs."""

    tail: np.ndarray
    """These numbers, shape (pool, level + 1); the last column stays zero."""

    @abstractmethod
    def _tabulate(self, tail: np.ndarray) -> None:
        """Take these numbers, and make the tables for the levels that there are."""

    def grow(self) -> None:
        """Add empty levels."""
        self._tabulate(np.pad(self.tail, ((0, 0), (0, self.levels + 1 - self.tail.shape[1]))))

    def tail_counts(self) -> np.ndarray:
        """Count the servers that hold at least ``level`` jobs, shape (pool, level)."""
        return self.tail[:, :-1].copy()


class OccupancyReplica(OnCounts):
    """The state is the number of servers of each pool with at least k jobs."""

    limit_settles = False

    def start(self, tail: np.ndarray) -> None:
        """Take the numbers of servers."""
        self._tabulate(np.pad(tail, ((0, 0), (0, 1))))

    def _tabulate(self, tail: np.ndarray) -> None:
        self.tail = np.ascontiguousarray(tail, dtype=np.int64)
        self.tables = make_counts_tables(self.system, self.policy, self.levels)
        self.tabulate_rates()
        self.joining = make_joining_tables(self.system, self.policy, self.levels)
        self.scratch = make_scratch(self.joining, self.levels)
        self.tied = bool((self.joining.group_draw < 0).any())
        self.drawn = np.zeros(int(self.tables.polls.max(initial=1)), dtype=np.int64)
        self.held = np.zeros(len(self.tables.first_class) + 1, dtype=np.int64)
        np.add.at(self.held, self.tables.group, -np.diff(self.tail, axis=1))

    def tabulate_rates(self) -> None:
        """Cut the interval of what a step can be."""
        sampling = self.policy.sampling(self.system)
        rates = event_rates(self.system, sampling, self.arrival_rate, self.speeds)
        bound, inverse = intervals(rates)
        self.tables = self.tables._replace(bound=bound, inverse=inverse)

    def play(
        self,
        flows: np.ndarray,
        before: np.ndarray,
        lengths: np.ndarray,
        progress: np.ndarray,
        observations: Observations,
        tallies: np.ndarray,
    ) -> bool:
        """Run the kernel."""
        done = advance(
            self.tables, self.tail, self.held, self.drawn, flows, before, lengths, self.rng,
            progress, self.joining, self.scratch, observations,
        )  # fmt: skip
        return bool(done)

    def own_outputs(self, batches: Measured, controls: Controls | None) -> dict[str, Estimate]:
        """Estimate the messages per job."""
        sampling = self.policy.sampling(self.system)
        return {"messages_per_job": messages_per_job(self.system, sampling, batches)}
