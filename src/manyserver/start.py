"""Where a simulation starts: at the stationary state of many servers."""

import numpy as np

from manyserver.mean_field import CriticalLoad, fixed_point, relaxation_time
from manyserver.model import System
from manyserver.policies import Policy

__all__ = ["limit_start"]

BELOW_CRITICAL = 0.999
"""Part of a critical arrival rate, at which the limit has one stationary state."""


def limit_start(system: System, policy: Policy) -> tuple[np.ndarray, float]:
    """Return queue tails to start from, and the time in which they settle, by the mean field.

    Where the limit has many stationary states, as some pools are exactly busy, those of a slightly
    lower arrival rate.
    """
    try:
        limit = fixed_point(system, policy)
    except CriticalLoad:
        lower = BELOW_CRITICAL * system.arrival_rate
        system = System(lower, system.pools, system.n_servers)
        limit = fixed_point(system, policy)
    return limit.queue_tail.values, relaxation_time(system, policy, limit)
