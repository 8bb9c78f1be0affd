"""Arrivals go to a pool whatever its state."""

from typing import Any

import numpy as np

from manyserver.mean_field.independent import (
    IndependentPool,
    expand_separately,
    independent_pools,
    separate_fixed_point,
)
from manyserver.mean_field.regimes.smooth import Smooth
from manyserver.mean_field.smooth import Expansion
from manyserver.model import System
from manyserver.policies import Policy

__all__ = ["Independent"]


class Independent(Smooth):
    """See :mod:`manyserver.mean_field.independent`."""

    @classmethod
    def fits(cls, system: System, policy: Policy) -> bool:
        """Whether every pool has arrivals of its own."""
        return independent_pools(system, policy) is not None

    @property
    def pools(self) -> list[IndependentPool]:
        """The pools, each with its own arrivals."""
        pools = independent_pools(self.system, self.policy)
        assert pools is not None
        return pools

    def stationary(self) -> dict[str, Any]:
        """Put together what is known of each pool."""
        return separate_fixed_point(self.system, self.pools)

    def relaxation_time(self, tails: np.ndarray) -> float:
        """Return that of the slowest M/M/1/B queue; of the drift if servers are drawn."""
        if all(pool.d == 1 for pool in self.pools):
            return float(1 / min(pool.gap for pool in self.pools))
        return super().relaxation_time(tails)

    def expand(self, tails: np.ndarray) -> Expansion:
        """Expand every pool."""
        return expand_separately(self.system, self.pools, self.policy.replacement)
