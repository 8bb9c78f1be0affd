"""How fast queue tails decay in the limit of many servers, from the policy alone.

Let ``e[j, k] = -log(queue_tail[j, k])`` for pool j. Deep in the tail an arrival joins a server of
pool j with k jobs only if everything else it looks at ranks no better, so that, up to a constant,

    e[j, k + 1] = e[j, k] + sum of e[i, m] over the other servers looked at,

where m is the number of levels of their pool i that rank better than (j, k). This is the leading
order of equations (4.11) and (4.12) of Mukhopadhyay, Karthik and Mazumdar (arXiv:1502.05786). For
SQ(d) it grows by d per level; for Scheme 1 by the spectral radius of a matrix. For a preference
that compares speeds, such as Scheme 2, it grows by a fixed factor whenever every pool has gone
through as many levels as its speed, in the smallest whole numbers, says.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from manyserver.model import System
from manyserver.policies.base import Draw, Policy, Sampling

__all__ = ["TailGrowth", "tail_growth"]

LONGEST_PERIOD = 50
"""Levels; tails are never deep enough to show a longer period."""
PERIODS = (20, 40, 80)
CONVERGED = 1e-9


@dataclass(frozen=True)
class TailGrowth:
    """Growth of ``-log(queue_tail)`` from one level to the next, deep in the tail.

    Attributes
    ----------
    per_level : tuple of float
        For every pool, the factor, as a geometric mean over the period. One is a geometric tail;
        NaN is a pool that gets no jobs, or a growth that does not settle.
    period : tuple of int
        For every pool, the number of levels after which the preference repeats itself.
    """

    per_level: tuple[float, ...]
    period: tuple[int, ...]


def tail_growth(system: System, policy: Policy) -> TailGrowth:
    """Compute how fast the queue tails of a policy decay in the limit of many servers.

    Parameters
    ----------
    system : System
        Pools with infinite buffers. The arrival rate matters only through an optimal split.
    policy : Policy
        Any policy that is a sampling and a preference.

    Returns
    -------
    TailGrowth
        Growth per level and period of every pool.

    Examples
    --------
    Scheme 1 with d = (2, 2): 4 + sqrt(12).

    >>> import manyserver as ms
    >>> system = ms.System(0.9, [ms.Pool("1/2", "2/3"), ms.Pool("1/2", "4/3")])
    >>> growth = tail_growth(system, ms.policy("scheme1", d=[2, 2]))
    >>> [round(factor, 6) for factor in growth.per_level], growth.period
    ([7.464102, 7.464102], (1, 1))
    """
    n_pools = len(system.pools)
    sampling = policy.sampling(system)
    period = _period(system, policy)
    if max(period) > LONGEST_PERIOD:
        return TailGrowth((math.nan,) * n_pools, period)
    factors = [math.nan] * n_pools
    for n_periods in PERIODS:
        # Pools keep pace only up to the first one whose levels run out: leave a margin.
        ranks = policy.rank_table(system, (n_periods + 2) * max(period) + 2)
        exponents = _exponents(sampling, ranks)
        previous, factors = (
            factors,
            [_factor(exponents[pool], period[pool], n_periods) for pool in range(n_pools)],
        )
        if np.allclose(previous, factors, rtol=CONVERGED, atol=0, equal_nan=True):
            break
    else:
        factors = [math.nan] * n_pools
    return TailGrowth(
        tuple(factor ** (1 / length) for factor, length in zip(factors, period, strict=True)),
        period,
    )


def _period(system: System, policy: Policy) -> tuple[int, ...]:
    """Levels of each pool after which the preference repeats itself."""
    speeds = [pool.speed for pool in system.pools]
    scale = math.lcm(*(speed.denominator for speed in speeds))
    whole = [int(speed * scale) for speed in speeds]
    by_speed = tuple(number // math.gcd(*whole) for number in whole)
    levels = 3 * min(max(by_speed), LONGEST_PERIOD) + 2
    better = _better_levels(policy.rank_table(system, levels))
    # Only a preference that compares speeds repeats by speed; one that does not, at every level.
    return by_speed if _repeats(better, by_speed) else (1,) * len(speeds)


def _better_levels(ranks: np.ndarray) -> np.ndarray:
    """Count, for every (pool, level), the levels of every pool that rank better."""
    return np.stack([np.searchsorted(row, ranks, side="left") for row in ranks], axis=-1)


def _repeats(better: np.ndarray, period: tuple[int, ...]) -> bool:
    n_levels = better.shape[1]
    for pool, step in enumerate(period):
        later, earlier = better[pool, 1 + step :], better[pool, 1 : n_levels - step]
        inside = later < n_levels
        if not np.array_equal(
            (later - earlier)[inside], np.broadcast_to(period, later.shape)[inside]
        ):
            return False
    return True


def _exponents(sampling: Sampling, ranks: np.ndarray) -> list[list[int]]:
    """Iterate the recursion in the order of preference, with all constants equal to one."""
    n_pools, n_levels = ranks.shape
    better = _better_levels(ranks)
    exponents = [[0] for _ in range(n_pools)]
    order = sorted(np.ndindex(n_pools, n_levels), key=lambda state: (ranks[state], state[1]))
    for pool, level in order:
        counts = better[pool, level]
        known = len(exponents[pool]) == level + 1
        if not known or counts.max() == n_levels:
            continue
        ways = [
            _others(branch.draws, draw, exponents, counts)
            for branch in sampling.branches
            for draw in branch.draws
            if pool in draw.pools
        ]
        if ways:
            exponents[pool].append(1 + exponents[pool][level] + min(ways))
    return exponents


def _others(
    draws: tuple[Draw, ...], joined: Draw, exponents: list[list[int]], counts: np.ndarray
) -> int:
    """Exponent of the event that everything looked at besides the joined server ranks no better."""
    return sum(
        (draw.count - (draw == joined)) * min(exponents[i][counts[i]] for i in draw.pools)
        for draw in draws
    )


def _factor(exponents: list[int], period: int, n_periods: int) -> float:
    if len(exponents) <= n_periods * period:
        return math.nan
    last, middle, first = (exponents[(n_periods - back) * period] for back in range(3))
    return float(Fraction(last - middle, middle - first))
