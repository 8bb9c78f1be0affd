"""Policies that split a system into pools which do not see each other.

If every arrival looks at servers of one pool only, or at one server only, then pool ``j`` is a
system of equal servers under SQ(d) with load ``rho_j``, and in the limit of many servers its
queue tail is ``rho_j**((d**k - 1) / (d - 1))``, or ``rho_j**k`` for ``d = 1``.
"""

import math
from dataclasses import dataclass

import numpy as np

from manyserver.model import System
from manyserver.policies import Policy
from manyserver.policies.split import tail_exponent

__all__ = ["SeparablePool", "separable_pools"]


@dataclass(frozen=True)
class SeparablePool:
    """A pool of equal servers that gets its own stream of arrivals.

    Parameters
    ----------
    arrival_rate : float
        Per server of this pool.
    speed : float
    d : int
        Number of its servers that an arrival looks at.
    """

    arrival_rate: float
    speed: float
    d: int

    @property
    def load(self) -> float:
        """Arrival rate over speed."""
        return self.arrival_rate / self.speed

    def log_tail(self, levels: np.ndarray) -> np.ndarray:
        """Natural logarithm of the queue tail, shape (level,)."""
        exponents = tail_exponent(self.d, levels)
        if self.load == 0:
            return np.where(exponents > 0, -np.inf, 0.0)
        return np.asarray(exponents * math.log(self.load))

    def joining_rate(self, levels: np.ndarray) -> np.ndarray:
        """Rate of arrivals to one server with k jobs, shape (level,)."""
        tail = np.exp(self.log_tail(np.append(levels, len(levels))))
        powers = [tail[:-1] ** i * tail[1:] ** (self.d - 1 - i) for i in range(self.d)]
        return np.asarray(self.arrival_rate * sum(powers))

    def queue_mean(self) -> float:
        """Mean number of jobs at a server."""
        if self.d == 1:
            return self.load / (1 - self.load)
        total, k = 0.0, 1
        while True:
            term = float(np.exp(self.log_tail(np.array([k])))[0])
            total += term
            if term <= 1e-18 * total or term == 0:
                return total
            k += 1

    def level_reaching(self, log_tail: float) -> int:
        """First level whose tail is below ``exp(log_tail)``."""
        if self.load == 0:
            return 1
        exponent = log_tail / math.log(self.load)
        if self.d == 1:
            return math.ceil(exponent) + 1
        return math.ceil(math.log1p(exponent * (self.d - 1)) / math.log(self.d)) + 1


def separable_pools(system: System, policy: Policy) -> list[SeparablePool] | None:
    """Return the pools as systems of their own, or None if the policy ties them together."""
    found: dict[int, SeparablePool] = {}
    for branch in policy.sampling(system).branches:
        if len(branch.draws) != 1:
            return None
        draw = branch.draws[0]
        if (len(draw.pools) > 1 and draw.count > 1) or found.keys() & set(draw.pools):
            return None
        share = system.fractions[list(draw.pools)].sum()
        rate = float(system.arrival_rate * branch.probability / share)
        for pool in draw.pools:
            found[pool] = SeparablePool(rate, float(system.speeds[pool]), draw.count)
    return [
        found.get(pool, SeparablePool(0.0, float(speed), 1))
        for pool, speed in enumerate(system.speeds)
    ]
