"""Schemes 1 and 2: the best of d_j servers of every pool j (arXiv:1502.05786)."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from manyserver.model import System
from manyserver.policies.base import (
    Policy,
    Sampling,
    Ties,
    checked_choices_per_pool,
    match_pools,
    per_pool,
)

__all__ = ["Scheme1", "Scheme2"]


class Scheme(Policy):
    """Base of the schemes: the sampling, and ties to the fastest pool."""

    d: tuple[int, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "d", checked_choices_per_pool(self.d))

    @property
    def ties(self) -> Ties:
        """The fastest pool wins."""
        return "fastest"

    def sampling(self, system: System) -> Sampling:
        """Look at d_j servers of every pool j."""
        match_pools("d", self.d, system)
        return per_pool(self.d, self.replacement)


@dataclass(frozen=True)
class Scheme1(Scheme):
    """Look at ``d[j]`` servers of every pool and join the shortest queue, ties to the fastest.

    Parameters
    ----------
    d : sequence of int, shape (pool,)
        Number of servers looked at in each pool.
    replacement : bool
        Whether the same server may be drawn twice.

    Notes
    -----
    Eq. (2.2) and (2.3) of arXiv:1502.05786. Stable whenever the load is below one, by eq. (3.1),
    if every pool is looked at.
    """

    name: ClassVar[str] = "scheme1"
    title: ClassVar[str] = "Scheme 1"

    d: tuple[int, ...]
    replacement: bool = False

    def preference(self, level: int, speed: Fraction) -> Fraction:
        """Prefer few jobs."""
        return Fraction(level)


@dataclass(frozen=True)
class Scheme2(Scheme):
    """Look at ``d[j]`` servers of every pool and join the one with most speed per job there.

    Parameters
    ----------
    d : sequence of int, shape (pool,)
        Number of servers looked at in each pool.
    replacement : bool
        Whether the same server may be drawn twice.

    Notes
    -----
    Eq. (2.2) and (2.4) of arXiv:1502.05786: the speed is divided by the number of jobs before
    the arrival, so that an idle server, however slow, beats a busy one. Ties go to the fastest.
    Speeds are compared as exact fractions: rounding would decide ties at rational speed ratios.
    """

    name: ClassVar[str] = "scheme2"
    title: ClassVar[str] = "Scheme 2"

    d: tuple[int, ...]
    replacement: bool = False

    def preference(self, level: int, speed: Fraction) -> Fraction:
        """Prefer few jobs per unit of speed."""
        return level / speed
