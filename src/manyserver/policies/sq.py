"""SQ(d), the power of d choices: the shortest of d queues drawn from the whole system."""

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

__all__ = ["SQ"]


@dataclass(frozen=True)
class SQ(Policy):
    """Join the shortest of `d` queues drawn from the whole system.

    Parameters
    ----------
    d : int
        Number of servers looked at, at least one.
    ties : {"uniform", "fastest"}
        Whether servers with equally many jobs are equally likely, or the fastest one wins.
    replacement : bool
        Whether the same server may be drawn twice.

    Notes
    -----
    With pools of unequal speeds the stability region is smaller than that of the system: for
    every set B of pools ``arrival_rate * fraction(B)**d < capacity(B)`` must hold.
    """

    name: ClassVar[str] = "sq"
    title: ClassVar[str] = "SQ"

    d: int
    ties: Ties = "uniform"
    replacement: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "d", checked_choices(self.d))
        checked_ties(self.ties)

    def sampling(self, system: System) -> Sampling:
        """Look at d servers of the whole system."""
        return whole_system(self.d, len(system.pools), self.replacement)

    def preference(self, level: int, speed: Fraction) -> Fraction:
        """Prefer few jobs."""
        return Fraction(level)
