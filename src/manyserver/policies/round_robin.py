"""Round robin: servers have their turns in a fixed order, whatever their state."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from manyserver.model import NotKnown, System
from manyserver.policies.base import Policy, Sampling, checked_weights, match_pools
from manyserver.policies.random import Random, WeightedRandom

__all__ = ["RoundRobin", "WeightedRoundRobin"]


class Turns(Policy):
    """Base of the policies that give servers their turns.

    Whose turn it is must be remembered, so that a sampling and a preference do not say where an
    arrival goes: whatever reads a policy by these refuses it.
    """

    @property
    def follows_jobs(self) -> bool:
        """Arrivals to a server depend on the time since the last one."""
        return True

    @abstractmethod
    def turns(self, system: System) -> tuple[int, ...]:
        """Return how many turns a server of each pool has in a cycle."""

    def sampling(self, system: System) -> Sampling:
        """Refuse.

        Raises
        ------
        NotKnown
            Always.
        """
        raise _no_sampling(self)

    def preference(self, level: int, speed: Fraction) -> Fraction:
        """Refuse.

        Raises
        ------
        NotKnown
            Always.
        """
        raise _no_sampling(self)


def _no_sampling(policy: Policy) -> NotKnown:
    return NotKnown(
        f"policy {policy.name}: remembers whose turn it is, and this works for policies without "
        "memory only"
    )


@dataclass(frozen=True)
class RoundRobin(Turns):
    """Send arrivals to all servers in turn.

    Notes
    -----
    With Poisson arrivals and exponential sizes, each server is a queue E_N/M/1: the times between
    its arrivals are sums of N times, for N servers, and constant in the limit.
    """

    name: ClassVar[str] = "round_robin"
    title: ClassVar[str] = "Round robin"

    @property
    def memoryless(self) -> Random:
        """Send as many arrivals to each server."""
        return Random()

    def turns(self, system: System) -> tuple[int, ...]:
        """One for every server."""
        return (1,) * len(system.pools)


@dataclass(frozen=True)
class WeightedRoundRobin(Turns):
    """Send arrivals to servers in turn, to each as often as its weight says, smoothly.

    Parameters
    ----------
    weights : sequence of int, shape (pool,)
        Weight of a server of each pool, from 1 to 1000.

    Notes
    -----
    As nginx and envoy have it: at each arrival every server gains its weight, the server with
    most (the first one of equals) gets the arrival and loses the sum of all weights. The cycle
    has as many arrivals as this sum, over the greatest common divisor of the weights.
    """

    name: ClassVar[str] = "weighted_round_robin"
    title: ClassVar[str] = "Weighted round robin"

    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "weights", checked_weights(self.weights))

    @property
    def memoryless(self) -> WeightedRandom:
        """Send as many arrivals to each server."""
        return WeightedRandom(self.weights)

    def turns(self, system: System) -> tuple[int, ...]:
        """Return the weights, without a common divisor."""
        match_pools("weights", self.weights, system)
        divisor = math.gcd(*self.weights)
        return tuple(weight // divisor for weight in self.weights)
