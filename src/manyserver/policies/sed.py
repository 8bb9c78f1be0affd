"""SED and SED(d): the shortest expected delay among all servers, or among those looked at."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from manyserver.model import System
from manyserver.policies.base import (
    Policy,
    Sampling,
    Ties,
    all_servers,
    checked_choices_or_list,
    match_pools,
    per_pool,
    whole_system,
)

__all__ = ["SED"]


@dataclass(frozen=True)
class SED(Policy):
    """Join the server with the fewest jobs per unit of speed, the arrival included.

    Parameters
    ----------
    d : int or sequence of int, shape (pool,), optional
        An integer: servers drawn from the whole system. A sequence: servers of each pool. None:
        all servers.
    replacement : bool
        Whether the same server may be drawn twice.

    Notes
    -----
    The preference is ``(level + 1) / speed``; ties go to the fastest. With draws from the whole
    system the stability region shrinks as that of SQ(d) does.
    """

    name: ClassVar[str] = "sed"
    title: ClassVar[str] = "SED"

    d: int | tuple[int, ...] | None = None
    replacement: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.d is not None:
            object.__setattr__(self, "d", checked_choices_or_list(self.d))

    @property
    def ties(self) -> Ties:
        """The fastest pool wins."""
        return "fastest"

    def sampling(self, system: System) -> Sampling:
        """Look at all servers, d servers of the whole system, or d_j of every pool j."""
        if self.d is None:
            return all_servers()
        if isinstance(self.d, int):
            return whole_system(self.d, len(system.pools), self.replacement)
        match_pools("d", self.d, system)
        return per_pool(self.d, self.replacement)

    def preference(self, level: int, speed: Fraction) -> Fraction:
        """Prefer a short expected delay."""
        return (level + 1) / speed
