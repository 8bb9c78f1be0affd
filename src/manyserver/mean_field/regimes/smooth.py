"""Arrivals look at servers that they draw."""

from functools import partial
from typing import Any

import numpy as np

from manyserver.mean_field.regimes.base import Integrator, Regime
from manyserver.mean_field.smooth import (
    Expansion,
    expand,
    follow_drift,
    joint_fixed_point,
    slowest_mode,
)
from manyserver.model import System
from manyserver.policies import Policy

__all__ = ["Smooth"]


class Smooth(Regime):
    """Where an arrival goes depends on the state smoothly, so that there is an expansion, and job
    sizes can be followed; see :mod:`manyserver.mean_field.smooth`.
    """

    @classmethod
    def fits(cls, system: System, policy: Policy) -> bool:
        """Whether it is none of the others."""
        return True

    def stationary(self) -> dict[str, Any]:
        """Solve for all pools together."""
        return joint_fixed_point(self.system, self.policy)

    def integrator(self, tails: np.ndarray, messages: Any) -> Integrator:
        """Return what integrates the drift."""
        return partial(follow_drift, self.system, self.policy)

    def relaxation_time(self, tails: np.ndarray) -> float:
        """Return that of the Jacobian of the drift."""
        return slowest_mode(self.system, self.policy, tails)

    def expand(self, tails: np.ndarray) -> Expansion:
        """Return the terms of order 1/N at the fixed point with given tails."""
        return expand(self.system, self.policy, tails)
