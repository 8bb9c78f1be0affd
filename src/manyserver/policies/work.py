"""Policies that know the sizes: the least work left of some servers, and one queue for all."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from manyserver.model import NotKnown, System
from manyserver.policies.base import Policy, Sampling, checked_choices
from manyserver.policies.jsq import JSQ
from manyserver.policies.sq import SQ

__all__ = ["CentralQueue", "LeastWork"]


class ByWork(Policy):
    """Base of the policies that compare servers by when they would be idle.

    The jobs at a server do not say so: whatever reads a policy by its sampling and preference
    refuses these.
    """

    @property
    def by_work(self) -> bool:
        """Servers are compared by the work left."""
        return True

    @property
    def follows_jobs(self) -> bool:
        """Work is the sum of sizes."""
        return True

    def sampling(self, system: System) -> Sampling:
        """Refuse.

        Raises
        ------
        NotKnown
            Always.
        """
        raise _no_preference(self)

    def preference(self, level: int, speed: Fraction) -> Fraction:
        """Refuse.

        Raises
        ------
        NotKnown
            Always.
        """
        raise _no_preference(self)

    def _refuse_buffers(self, system: System) -> None:
        if system.is_bounded:
            raise ValueError(
                f"policy {self.name}: looks at all servers by their work; every pool must have "
                "buffer None"
            )


def _no_preference(policy: Policy) -> NotKnown:
    return NotKnown(
        f"policy {policy.name}: compares servers by the work left, and this works for policies "
        "that compare them by their jobs only"
    )


@dataclass(frozen=True)
class LeastWork(ByWork):
    """Join the server with the least work left of `d` servers, drawn from the whole system.

    Parameters
    ----------
    d : int, optional
        Number of servers looked at; all of them by default.
    replacement : bool
        Whether the same server may be drawn twice.

    Notes
    -----
    LL(d) of Hellemans and Van Houdt (2018), https://doi.org/10.1145/3224427. The work left is the
    time until the server is idle if nobody joins, so that it takes the speed into account, but
    not the own size. An idle server wins; the first of several that was drawn, and of all servers
    the fastest that has been idle longest. If all servers are looked at there must be no buffers.
    """

    name: ClassVar[str] = "least_work"
    title: ClassVar[str] = "Least work"

    d: int | None = None
    replacement: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.d is not None:
            object.__setattr__(self, "d", checked_choices(self.d))

    @property
    def memoryless(self) -> Policy:
        """Look at the same servers, and prefer few jobs."""
        return JSQ(ties="fastest") if self.d is None else SQ(self.d, replacement=self.replacement)

    def check(self, system: System) -> None:
        """Refuse buffers if all servers are looked at, and what SQ(d) refuses.

        Raises
        ------
        ValueError, UnstableSystem
            As in :meth:`manyserver.Policy.check`.
        """
        if self.d is None:
            self._refuse_buffers(system)
        super().check(system)


@dataclass(frozen=True)
class CentralQueue(ByWork):
    """Let jobs wait in one queue, from which a server takes the next one when it is free.

    Notes
    -----
    First come, first served; an arrival goes to the fastest idle server, and of equals to the one
    that has been idle longest. This is M/G/n. A job waits as long as if it joined the server
    with the least work left at once, and so it is simulated: waiting jobs are counted at the
    servers that will serve them. The same policy as ``least_work`` without `d`, under
    first come, first served.
    """

    name: ClassVar[str] = "central_queue"
    title: ClassVar[str] = "Central queue"

    @property
    def central(self) -> bool:
        """All wait for whichever server is free first."""
        return True

    @property
    def memoryless(self) -> JSQ:
        """Alike while some server is idle, and so with many servers."""
        return JSQ(ties="fastest")

    def check(self, system: System) -> None:
        """Refuse buffers.

        Raises
        ------
        ValueError
            If a pool has one.
        """
        self._refuse_buffers(system)
