"""State-independent routing: a pool at random, then a server of it at random."""

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from manyserver.model import System
from manyserver.policies.base import Policy, Sampling, checked_weights, match_pools, one_pool
from manyserver.policies.split import checked_probabilities, naive_split, optimal_split

__all__ = ["NaiveSplit", "OptimalSplit", "Random", "WeightedRandom"]


class StateIndependent(Policy):
    """Base of the policies that look at one server only, and so have nothing to prefer."""

    @abstractmethod
    def probabilities_for(self, system: System) -> tuple[float, ...]:
        """Return the probability of each pool."""

    def sampling(self, system: System) -> Sampling:
        """Look at one server of a pool picked at random."""
        probabilities = self.probabilities_for(system)
        return one_pool(probabilities, [1] * len(system.pools), self.replacement)

    def preference(self, level: int, speed: Fraction) -> Fraction:
        """Prefer nothing: there is one server to choose from."""
        return Fraction(0)


@dataclass(frozen=True)
class Random(StateIndependent):
    """Send each arrival to a server at random, by default to each with the same probability.

    Parameters
    ----------
    probabilities : sequence of float, shape (pool,), optional
        Probability of each pool, sum one; the fractions of the pools by default.
    replacement : bool
        Makes no difference here, as one server is looked at.
    """

    name: ClassVar[str] = "random"
    title: ClassVar[str] = "Random"

    probabilities: tuple[float, ...] | None = None
    replacement: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.probabilities is not None:
            object.__setattr__(self, "probabilities", checked_probabilities(self.probabilities))

    def probabilities_for(self, system: System) -> tuple[float, ...]:
        """Return the given probabilities, or the fractions of the pools."""
        if self.probabilities is None:
            return tuple(float(pool.fraction) for pool in system.pools)
        match_pools("probabilities", self.probabilities, system)
        return self.probabilities


@dataclass(frozen=True)
class WeightedRandom(StateIndependent):
    """Send each arrival to a server at random, with a probability in proportion to its weight.

    Parameters
    ----------
    weights : sequence of int, shape (pool,)
        Weight of a server of each pool, at least one.
    """

    name: ClassVar[str] = "weighted_random"
    title: ClassVar[str] = "Weighted random"

    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "weights", checked_weights(self.weights))

    def probabilities_for(self, system: System) -> tuple[float, ...]:
        """Return the shares of the pools in the weights of all servers."""
        match_pools("weights", self.weights, system)
        shares = [
            weight * pool.fraction for weight, pool in zip(self.weights, system.pools, strict=True)
        ]
        return tuple(float(share / sum(shares)) for share in shares)


@dataclass(frozen=True)
class NaiveSplit(StateIndependent):
    """Send each arrival to a pool with probability in proportion to the pool's capacity."""

    name: ClassVar[str] = "naive_split"
    title: ClassVar[str] = "Naive split"

    replacement: bool = False

    def probabilities_for(self, system: System) -> tuple[float, ...]:
        """Return the shares of capacity."""
        return naive_split(system)


@dataclass(frozen=True)
class OptimalSplit(StateIndependent):
    """Send each arrival to a pool with the probabilities that minimise the mean sojourn time.

    The best that can be done without looking at the state (arXiv:1311.5806).
    """

    name: ClassVar[str] = "optimal_split"
    title: ClassVar[str] = "Optimal split"

    replacement: bool = False

    def probabilities_for(self, system: System) -> tuple[float, ...]:
        """Return the best probabilities for this arrival rate."""
        return optimal_split(system)
