"""Which servers an arrival looks at."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from manyserver.model import System

__all__ = [
    "Branch",
    "Draw",
    "Sampling",
    "all_servers",
    "full",
    "one_pool",
    "per_pool",
    "whole_system",
]


@dataclass(frozen=True)
class Draw:
    """`count` servers, drawn uniformly from all servers of `pools`.

    Parameters
    ----------
    pools : tuple of int
        Positions of the pools: one pool, or all of them.
    count : int
        Number of servers drawn, at least one.
    """

    pools: tuple[int, ...]
    count: int


@dataclass(frozen=True)
class Branch:
    """The draws that an arrival makes together, with the probability that it makes these."""

    probability: float
    draws: tuple[Draw, ...]


@dataclass(frozen=True)
class Sampling:
    """Which servers an arrival can choose from.

    The servers below the level `announced` are known to the dispatcher, and the arrival joins
    the best of them. If there are none, it picks one branch, makes all of its draws, and joins
    the best server that it looks at.

    Parameters
    ----------
    branches : tuple of Branch
        Their probabilities sum to one. None if every server is announced.
    replacement : bool
        Whether a draw may look at the same server twice.
    announced : int or None
        Servers with fewer jobs are announced to the dispatcher: 0 for none of them, 1 for those
        that are idle, None for every server that has room.
    """

    branches: tuple[Branch, ...] = ()
    replacement: bool = False
    announced: int | None = 0

    @property
    def depends_on_all(self) -> bool:
        """Whether an arrival depends on the state of all servers."""
        return self.announced != 0

    def announced_levels(self, system: System, levels: int) -> np.ndarray:
        """Say which servers are announced.

        Returns
        -------
        numpy.ndarray of bool, shape (pool, level)
            Full servers are not.
        """
        known = np.arange(levels) < (levels if self.announced is None else self.announced)
        return np.asarray(known & ~full(system, levels))

    @property
    def queries(self) -> float:
        """Messages for the draws of one arrival: to each server looked at, and back.

        None for a single server, which is joined whatever it says.
        """
        looks = [(b.probability, sum(draw.count for draw in b.draws)) for b in self.branches]
        return sum(probability * 2 * count for probability, count in looks if count > 1)


def full(system: System, levels: int) -> np.ndarray:
    """Say at which levels a server is full (or cannot be), shape (pool, level)."""
    rooms = [levels if pool.buffer is None else pool.buffer for pool in system.pools]
    return np.arange(levels) >= np.array(rooms)[:, None]


def per_pool(d: Sequence[int], replacement: bool = False) -> Sampling:
    """Look at ``d[j]`` servers of every pool ``j``."""
    draws = tuple(Draw((pool,), count) for pool, count in enumerate(d) if count)
    return Sampling((Branch(1.0, draws),), replacement)


def whole_system(d: int, n_pools: int, replacement: bool = False) -> Sampling:
    """Look at ``d`` servers drawn from the whole system."""
    return Sampling((Branch(1.0, (Draw(tuple(range(n_pools)), d),)),), replacement)


def one_pool(
    probabilities: Sequence[float], d: Sequence[int], replacement: bool = False
) -> Sampling:
    """Pick pool ``j`` with probability ``probabilities[j]`` and look at ``d[j]`` of its servers."""
    branches = tuple(
        Branch(float(probability), (Draw((pool,), d[pool]),))
        for pool, probability in enumerate(probabilities)
        if probability > 0
    )
    return Sampling(branches, replacement)


def all_servers() -> Sampling:
    """Look at every server that has room."""
    return Sampling(announced=None)
