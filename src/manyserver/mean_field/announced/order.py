"""The order in which arrivals take the servers that announce themselves."""

from fractions import Fraction

import numpy as np

from manyserver.mean_field.drift import most_levels
from manyserver.mean_field.solver import FEWEST_LEVELS, MOST_LEVELS
from manyserver.model import System
from manyserver.policies import Policy, Sampling

__all__ = ["Drawn", "Order", "order_to_last_idle"]


class Order:
    """The announced classes by rank, best first.

    Parameters
    ----------
    system : System
    policy : Policy
    levels : int
        Number of levels, 0 included.

    Attributes
    ----------
    ranks : numpy.ndarray of int, shape (pool, level)
        From 0 for the best announced class; ``n_ranks`` for classes that are not announced.
    n_ranks : int
        Ranks of announced classes.
    before : numpy.ndarray of int, shape (pool, n_ranks + 1)
        How many levels of the pool come before the rank: if no server of these is left, then all
        servers of the pool hold at least so many jobs.
    """

    def __init__(self, system: System, policy: Policy, levels: int):
        announced = policy.sampling(system).announced_levels(system, levels)
        ranks = policy.rank_table(system, levels)
        known = np.unique(ranks[announced])
        self.system = system
        self.policy = policy
        self.levels = levels
        self.n_ranks = len(known)
        self.ranks = np.where(announced, np.searchsorted(known, ranks), self.n_ranks)
        every = np.arange(self.n_ranks + 1)
        self.before = np.stack([np.searchsorted(row, every, side="left") for row in self.ranks])

    def capacity(self, rank: int) -> Fraction:
        """Work that the pools can do whose idle servers come before the rank, per server."""
        return sum(
            (
                pool.fraction * pool.speed
                for pool, level in zip(self.system.pools, self.before[:, rank], strict=True)
                if level
            ),
            start=Fraction(0),
        )

    @property
    def idle_ranks(self) -> list[int]:
        """Ranks of the idle servers, in order."""
        return [int(rank) for rank in np.unique(self.ranks[:, 0])]


def order_to_last_idle(system: System, policy: Policy) -> Order:
    """Return the order with as many levels as come before the last idle server, and one more.

    Raises
    ------
    RuntimeError
        If these are very many.
    """
    all_levels = most_levels(system)
    levels = FEWEST_LEVELS
    while levels <= MOST_LEVELS:
        levels = levels if all_levels is None else min(levels, all_levels)
        order = Order(system, policy, levels)
        reached = order.before[:, order.idle_ranks[-1] + 1].max()
        if levels == all_levels or reached < levels - 1:
            return order
        levels *= 2
    raise RuntimeError(
        f"policy {policy.name}: prefers servers with more than {MOST_LEVELS // 2} jobs to an idle "
        "one, which is more than can be computed"
    )


class Drawn(Policy):
    """What a policy does while no server is announced.

    Parameters
    ----------
    policy : Policy
    """

    def __init__(self, policy: Policy):
        self.policy = policy
        self.name = policy.name  # type: ignore[misc]

    def sampling(self, system: System) -> Sampling:
        """Make the same draws."""
        sampling = self.policy.sampling(system)
        return Sampling(sampling.branches, sampling.replacement)

    def preference(self, level: int, speed: Fraction) -> Fraction:
        """Prefer the same servers."""
        return self.policy.preference(level, speed)

    def rank_table(self, system: System, levels: int) -> np.ndarray:
        """Rank them in the same way."""
        return self.policy.rank_table(system, levels)
