"""Where a simulation starts: at the stationary state of many servers, to order 1/N."""

import math
from typing import NamedTuple

import numpy as np

from manyserver.mean_field import CriticalLoad, NotSmooth, fixed_point, refine, relaxation_time
from manyserver.mean_field.independent.pools import independent_pools
from manyserver.model import System
from manyserver.policies import Policy

__all__ = ["Start", "limit_start"]

BELOW_CRITICAL = 0.999
"""Part of a critical arrival rate, at which the limit has one stationary state."""
MOST_REFINED = 500
"""Most tails for which the correction is solved for; the time grows with their third power."""
FELT = 1e-16
"""Smallest tail that counts for this."""


class Start(NamedTuple):
    """What the limit says of a finite system."""

    tails: np.ndarray
    """Queue tails to start from, shape (pool, level)."""
    relaxation_time: float
    """Time in which the system settles."""
    correction: float
    """By how much the mean sojourn time differs from the limit, relative to it; infinite if the
    limit does not tell."""


def limit_start(system: System, policy: Policy) -> Start:
    """Say where a system of N servers starts.

    At the fixed point of the mean field with its 1/N correction, where that is known. Where the
    limit has many stationary states, as some pools are exactly busy, at that of a slightly lower
    arrival rate. For a policy that needs jobs to be followed, where the same without memory has
    many servers.
    """
    policy = policy.memoryless if policy.follows_jobs else policy
    try:
        limit = fixed_point(system, policy)
    except CriticalLoad:
        lower = BELOW_CRITICAL * system.arrival_rate
        system = System(lower, system.pools, system.n_servers)
        limit = fixed_point(system, policy)
        return Start(limit.queue_tail.values, relaxation_time(system, policy, limit), math.inf)
    tails = limit.queue_tail.values
    corrected, correction = _corrected(system, policy, tails)
    return Start(corrected, relaxation_time(system, policy, limit), correction)


def _corrected(system: System, policy: Policy, tails: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the tails of N servers, and the relative correction of the mean sojourn time."""
    few = np.count_nonzero(tails > FELT) <= MOST_REFINED
    if system.n_servers is None or not (few or independent_pools(system, policy)):
        return tails, math.inf
    try:
        refined = refine(system, policy)
    except (NotSmooth, RuntimeError, np.linalg.LinAlgError):
        return tails, math.inf
    change = refined.queue_tail_correction.values / system.n_servers
    corrected = tails.copy()
    corrected[:, : change.shape[1]] += change
    # The correction may leave the possible range, where it is as large as what it corrects.
    corrected = np.minimum.accumulate(np.clip(corrected, 0.0, 1.0), axis=1)
    relative = refined.sojourn_mean_correction / refined.sojourn_mean / system.n_servers
    return corrected, abs(float(relative))
