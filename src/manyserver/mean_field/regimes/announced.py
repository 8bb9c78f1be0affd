"""Servers announce themselves."""

from functools import partial
from typing import Any

import numpy as np

from manyserver.mean_field.announced import follow, slowest, stationary
from manyserver.mean_field.regimes.base import Integrator, Regime
from manyserver.model import System
from manyserver.policies import Policy

__all__ = ["Announced"]


class Announced(Regime):
    """See :mod:`manyserver.mean_field.announced`."""

    @classmethod
    def fits(cls, system: System, policy: Policy) -> bool:
        """Whether an arrival may go to the best of all servers."""
        return policy.sampling(system).depends_on_all

    def stationary(self) -> dict[str, Any]:
        """Fill the servers in the order of preference."""
        return stationary(self.system, self.policy)

    def integrator(self, tails: np.ndarray, messages: Any) -> Integrator:
        """Return what slides along the states in which the best servers run out."""
        return partial(follow, self.system, self.policy)

    def relaxation_time(self, tails: np.ndarray) -> float:
        """Return that of the sliding drift, or of the system as one queue."""
        return slowest(self.system, self.policy, tails)
