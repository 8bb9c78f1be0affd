"""What the methods for dispatching policies compute."""

from dataclasses import dataclass

from manyserver.disciplines import Discipline
from manyserver.model import System
from manyserver.policies import Policy
from manyserver.sizes import SizeLaw

__all__ = ["DispatchingProblem"]


@dataclass(frozen=True)
class DispatchingProblem:
    """One system under one policy; with `sizes` and `discipline`, every job is followed."""

    system: System
    policy: Policy
    sizes: SizeLaw | None = None
    discipline: Discipline | None = None

    @property
    def n_servers(self) -> int | None:
        """Number of servers; None in the limit."""
        return self.system.n_servers
