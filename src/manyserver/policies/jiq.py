"""JIQ: an idle server if there is one, else one of d servers; and thresholds above zero."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from manyserver.model import System
from manyserver.policies.base import (
    Policy,
    Sampling,
    Ties,
    checked_choices,
    checked_ties,
    whole_system,
)

__all__ = ["JIQ", "Threshold"]


@dataclass(frozen=True)
class JIQ(Policy):
    """Join an idle server; if there is none, the shortest of `d` queues of the whole system.

    Parameters
    ----------
    d : int
        Number of servers looked at while none is idle; by default one, a random server.
    ties : {"uniform", "fastest"}
        Whether idle servers are equally likely, or the fastest one wins; and likewise among the
        shortest queues looked at.
    replacement : bool
        Whether the same server may be drawn twice.

    Notes
    -----
    PULL with one router, arXiv:1512.07873. With unequal speeds and few servers a slow pool can
    get more jobs than it can serve although the load is below one.
    """

    name: ClassVar[str] = "jiq"
    title: ClassVar[str] = "JIQ"

    d: int = 1
    ties: Ties = "uniform"
    replacement: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "d", checked_choices(self.d))
        checked_ties(self.ties)

    def sampling(self, system: System) -> Sampling:
        """Know the idle servers, and look at d of the whole system while there are none."""
        draws = whole_system(self.d, len(system.pools), self.replacement)
        return Sampling(draws.branches, self.replacement, announced=1)

    def preference(self, level: int, speed: Fraction) -> Fraction:
        """Prefer few jobs."""
        return Fraction(level)


@dataclass(frozen=True)
class Threshold(Policy):
    """Join a server with fewer than `threshold` jobs; if there is none, a random one.

    Parameters
    ----------
    threshold : int
        Servers with fewer jobs are known, at least one; with one this is JIQ.
    ties : {"uniform", "fastest"}
        Whether servers below the threshold are equally likely, or the fastest pool wins.

    Notes
    -----
    Join-below-threshold of Zhou et al. (2017), https://doi.org/10.1145/3154498.
    """

    name: ClassVar[str] = "threshold"
    title: ClassVar[str] = "Threshold"

    threshold: int
    ties: Ties = "uniform"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "threshold", checked_choices(self.threshold, name="threshold"))
        checked_ties(self.ties)

    def sampling(self, system: System) -> Sampling:
        """Know the servers below the threshold, and look at a random one while there are none."""
        return Sampling(whole_system(1, len(system.pools)).branches, announced=self.threshold)

    def preference(self, level: int, speed: Fraction) -> Fraction:
        """Prefer a server below the threshold."""
        return Fraction(level >= self.threshold)
