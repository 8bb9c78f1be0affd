"""JSQ: the shortest queue of all servers."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from manyserver.model import System
from manyserver.policies.base import Policy, Sampling, Ties, all_servers, checked_ties

__all__ = ["JSQ"]


@dataclass(frozen=True)
class JSQ(Policy):
    """Join the shortest of all queues.

    Parameters
    ----------
    ties : {"uniform", "fastest"}
        Whether servers with equally many jobs are equally likely, or the fastest one wins.

    Notes
    -----
    SQ(d) with d the number of servers, drawn without replacement.
    """

    name: ClassVar[str] = "jsq"
    title: ClassVar[str] = "JSQ"

    ties: Ties = "uniform"

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_ties(self.ties)

    def sampling(self, system: System) -> Sampling:
        """Look at every server."""
        return all_servers()

    def preference(self, level: int, speed: Fraction) -> Fraction:
        """Prefer few jobs."""
        return Fraction(level)
