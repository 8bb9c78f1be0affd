"""Servers announce themselves to one of several routers."""

from functools import partial
from typing import Any

import numpy as np

from manyserver.mean_field.announced import slowest
from manyserver.mean_field.pull import (
    checked_split,
    follow_routers,
    routed_fixed_point,
    slowest_split,
    start_messages,
)
from manyserver.mean_field.regimes.base import Integrator, Regime
from manyserver.model import System
from manyserver.policies import Policy

__all__ = ["Routed"]


class Routed(Regime):
    """See :mod:`manyserver.mean_field.pull`."""

    @classmethod
    def fits(cls, system: System, policy: Policy) -> bool:
        """Whether routers keep messages of idle servers."""
        return policy.n_routers > 0

    def stationary(self) -> dict[str, Any]:
        """Fill the servers as one router does, and split the idle ones equally."""
        split = checked_split(self.policy.n_routers, None)
        return routed_fixed_point(self.system, self.policy, split)

    def integrator(self, tails: np.ndarray, messages: Any) -> Integrator:
        """Return what slides along the states in which routers have no messages."""
        start = start_messages(self.system, self.policy.n_routers, tails, messages)
        return partial(follow_routers, self.system, self.policy, messages=start)

    def relaxation_time(self, tails: np.ndarray) -> float:
        """Return that of one router, or that of the split of the idle servers if it is longer."""
        time = slowest(self.system, self.policy.memoryless, tails)
        return max(time, slowest_split(self.system, self.policy, tails))
