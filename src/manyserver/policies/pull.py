"""PULL: servers that become idle tell one of several routers, which remember it."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from manyserver.model import System
from manyserver.policies.base import Policy, Sampling, checked_choices, whole_system

__all__ = ["Pull"]


@dataclass(frozen=True)
class Pull(Policy):
    """Join an idle server that told this arrival's router; without one, a random server.

    Parameters
    ----------
    routers : int
        Number of routers, at least one; not more than servers.

    Notes
    -----
    arXiv:1512.07873. An arrival comes to a router that is drawn uniformly. If that holds
    messages of idle servers, the arrival joins one of them, each alike; else it joins a server
    drawn uniformly from the whole system, and is lost if that is full. A server that becomes idle
    sends a message to a router drawn uniformly. An idle server that is joined at random takes back
    the message it has at another router.

    With one router this is JIQ, a policy without memory. With several, which router holds whose
    message matters, so that a sampling and a preference do not say where an arrival goes:
    whatever reads a policy by these refuses it.
    """

    name: ClassVar[str] = "pull"
    title: ClassVar[str] = "PULL"

    routers: int

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "routers", checked_choices(self.routers, name="routers"))

    @property
    def n_routers(self) -> int:
        """Routers, one or more."""
        return self.routers

    @property
    def memoryless(self) -> "Pull":
        """The same without memory: alike in the messages sent, and with many servers."""
        return Pull(1)

    def sampling(self, system: System) -> Sampling:
        """Know the idle servers, and look at one of the whole system while there are none.

        Raises
        ------
        ValueError
            With several routers.
        """
        self._refuse_memory()
        return Sampling(whole_system(1, len(system.pools)).branches, announced=1)

    def preference(self, level: int, speed: Fraction) -> Fraction:
        """Prefer an idle server.

        Raises
        ------
        ValueError
            With several routers.
        """
        self._refuse_memory()
        return Fraction(level > 0)

    def _refuse_memory(self) -> None:
        if self.routers > 1:
            raise ValueError(
                f"routers = {self.routers}: policy {self.name} remembers which router knows of "
                "which idle server, and this works for policies without memory only; must be 1 "
                "here"
            )

    def check(self, system: System) -> None:
        """Refuse a system with fewer servers than routers.

        Raises
        ------
        ValueError
            If there are fewer.
        """
        if system.n_servers is not None and self.routers > system.n_servers:
            raise ValueError(
                f"routers = {self.routers}: must be at most {system.n_servers}, the number of "
                "servers"
            )
