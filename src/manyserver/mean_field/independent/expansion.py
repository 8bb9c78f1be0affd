"""The terms of order 1/N of pools that do not see each other."""

import math
from fractions import Fraction

import numpy as np

from manyserver.mean_field.independent.pools import IndependentPool
from manyserver.mean_field.smooth.expansion import FEWEST_LEVELS, TOP_TAIL, Expansion, expand
from manyserver.model import Pool, System
from manyserver.policies.sq import SQ

__all__ = ["expand_separately"]

MOST_LEVELS = 512
"""Most levels given for a pool in which an arrival looks at one server only."""


def expand_separately(system: System, pools: list[IndependentPool], replacement: bool) -> Expansion:
    """Put together pools that do not see each other; pool j has fraction_j N servers."""
    parts = [
        _expand_alone(pool, speed, replacement)
        for pool, speed in zip(pools, (pool.speed for pool in system.pools), strict=True)
    ]
    levels = max(part.correction.shape[1] for part in parts)
    correction = np.zeros((len(parts), levels))
    covariance = np.zeros(correction.shape * 2)
    for pool, (part, fraction) in enumerate(zip(parts, system.fractions, strict=True)):
        kept = part.correction.shape[1]
        correction[pool, :kept] = part.correction[0] / fraction
        covariance[pool, :kept, pool, :kept] = part.covariance[0, :, 0] / fraction
    return Expansion(
        correction,
        covariance,
        float(system.fractions @ [part.jobs_variance for part in parts]),
        max(part.residual for part in parts),
    )


def _expand_alone(pool: IndependentPool, speed: Fraction, replacement: bool) -> Expansion:
    """Expand a pool of equal servers with its own arrivals."""
    top = pool.level_reaching(math.log(TOP_TAIL))
    if pool.d > 1:
        alone = System(pool.arrival_rate, [Pool(1, speed, buffer=pool.buffer)])
        tails = np.exp(pool.log_tail(np.arange(top + 1)))
        return expand(alone, SQ(pool.d, replacement=replacement), tails[None])
    # Independent M/M/1/B queues: Cov(u_k, u_l) = u_max(k, l) - u_k u_l.
    levels = np.arange(min(max(top + 1, FEWEST_LEVELS), MOST_LEVELS))
    tails = np.exp(pool.log_tail(levels))
    covariance = tails[np.maximum.outer(levels, levels)] - np.outer(tails, tails)
    nothing = np.zeros((1, len(levels)))
    return Expansion(nothing, covariance[None, :, None, :], pool.queue_variance(), 0.0)
