"""Splits of the arrivals over the pools, chosen in advance and kept whatever the state.

A split sends an arrival to pool ``j`` with probability ``p[j]``, where it joins the shortest of
``d[j]`` queues (``d[j] = 1``: a random server). Each pool is then a system of its own, whose
mean number of jobs per server at load ``rho`` is, in the limit of many servers,
``L_d(rho) = sum_k rho**((d**k - 1) / (d - 1))``, ``k >= 1``.

References
----------
.. [1] A. Mukhopadhyay, R. R. Mazumdar, "Analysis of randomized join-the-shortest-queue (JSQ)
   schemes in large heterogeneous processor-sharing systems", arXiv:1311.5806.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import ArrayLike

from manyserver.checks import is_real
from manyserver.model import System
from manyserver.policies.base import match_pools

__all__ = ["checked_probabilities", "naive_split", "optimal_split", "tail_exponent"]

LARGEST_EXPONENT = 1e20
SMALLEST = 1e-300
MOST_STEPS = 200
ROUNDING = 4 * np.finfo(float).eps


def checked_probabilities(value: object) -> tuple[float, ...]:
    """Return `value` as probabilities that sum to one, or raise ValueError."""
    message = f"probabilities = {value!r}: must be numbers in [0, 1] that sum to 1, one per pool"
    if isinstance(value, str) or not isinstance(value, (Sequence, np.ndarray)):
        raise ValueError(message)
    if not all(map(is_real, value)):
        raise ValueError(message)
    numbers = [float(item) for item in value]
    total = math.fsum(numbers)
    if not all(0 <= number <= 1 for number in numbers) or not abs(total - 1) <= 1e-9:
        raise ValueError(message)
    return tuple(number / total for number in numbers)


def naive_split(system: System) -> tuple[float, ...]:
    """Split in proportion to the capacity of the pools, so that all have the same load."""
    total = system.exact_capacity
    return tuple(float(pool.fraction * pool.speed / total) for pool in system.pools)


def tail_exponent(d: int, levels: np.ndarray) -> np.ndarray:
    """Return ``(d**k - 1) / (d - 1)``, the exponent of the load in the tail of SQ(d) at level k."""
    if d == 1:
        return np.asarray(levels, dtype=float)
    return np.expm1(np.asarray(levels, dtype=float) * math.log(d)) / (d - 1)


def _loads(inverse: np.ndarray, d: np.ndarray) -> np.ndarray:
    """Return the loads where the derivative of ``L_d`` has a given inverse; above one, zero.

    As the inverse falls almost linearly from one to zero, Newton's method needs few steps.

    Parameters
    ----------
    inverse, d : numpy.ndarray, shape (pool,)
    """
    # Terms with larger exponents vanish at any load below one.
    several = np.maximum(d, 2).astype(float)
    exponents = np.ones((1, len(d)))
    while exponents[-1].min() < LARGEST_EXPONENT:
        exponents = np.vstack([exponents, np.minimum(several * exponents[-1] + 1, 1 / SMALLEST)])
    single = d == 1
    wanted = np.minimum(inverse, 1.0)
    low, high, loads = np.zeros_like(wanted), np.ones_like(wanted), 1 - wanted
    for _ in range(MOST_STEPS):
        log_load = np.log(np.maximum(loads, SMALLEST))
        terms = exponents * np.exp((exponents - 1) * log_load)
        slope = terms.sum(axis=0)
        bend = ((exponents - 1) * terms).sum(axis=0) / np.maximum(loads, SMALLEST)
        excess = 1 / slope - wanted
        low, high = np.where(excess >= 0, loads, low), np.where(excess < 0, loads, high)
        step = loads + excess * slope**2 / np.maximum(bend, SMALLEST)
        new = np.where((step >= low) & (step <= high), step, (low + high) / 2)
        settled = (np.abs(new - loads) <= ROUNDING * loads) | (np.abs(excess) <= ROUNDING * wanted)
        loads = new
        if np.all(settled | single | (wanted == 1)):
            break
    return np.where(wanted == 1, 0.0, np.where(single, 1 - np.sqrt(wanted), loads))


def optimal_split(system: System, d: ArrayLike = 1) -> tuple[float, ...]:
    """Split so that the mean sojourn time is smallest in the limit of many servers.

    The mean number of jobs ``sum_j fraction_j L_{d_j}(rho_j)`` is convex in the loads ``rho_j``,
    so that at the minimum ``L'_{d_j}(rho_j) = theta * speed_j`` wherever pool ``j`` is used.

    Parameters
    ----------
    system : System
        The arrival rate and the pools.
    d : int or sequence of int
        Queues compared in each pool.

    Returns
    -------
    tuple of float, shape (pool,)
        Probability of each pool.

    Raises
    ------
    ValueError
        If the load is one or more: the split is that for unbounded buffers.

    Examples
    --------
    >>> from manyserver import Pool, System
    >>> optimal_split(System(0.3, [Pool("1/2", "1/5"), Pool("1/2", "9/5")]))
    (0.0, 1.0)
    """
    choices = np.broadcast_to(np.asarray(d), system.fractions.shape)
    match_pools("d", list(choices), system)
    if system.load >= 1:
        raise ValueError(
            f"arrival_rate = {system.arrival_rate:g}: load is {system.load:.6g}; must be below one "
            "for an optimal split, which is the best for unbounded buffers"
        )
    return _optimal_split(system, tuple(choices.tolist()))


# A policy is asked for its sampling again and again.
@lru_cache(maxsize=64)
def _optimal_split(system: System, d: tuple[int, ...]) -> tuple[float, ...]:
    flow = _water_filling(system) if set(d) == {1} else _equal_marginals(system, np.array(d))
    return tuple(float(value) for value in flow / flow.sum())


def _equal_marginals(system: System, d: np.ndarray) -> np.ndarray:
    """Return the flow into each pool where one more job in any costs the same."""
    capacity = system.fractions * system.speeds
    # The slowest server that is used at all has this speed.
    slowest = scipy.optimize.brentq(
        lambda speed: capacity @ _loads(speed / system.speeds, d) - system.arrival_rate,
        0.0,
        system.speeds.max(),
        xtol=1e-300,
        rtol=4 * np.finfo(float).eps,
    )
    # With many choices rounding makes loads jump there; what is between is as good.
    least, most = (
        capacity * _loads(float(slowest) * side / system.speeds, d)
        for side in (1 + ROUNDING, 1 - ROUNDING)
    )
    jump = most.sum() - least.sum()
    part = (system.arrival_rate - least.sum()) / jump if jump > 0 else 0.0
    return np.asarray(least + (most - least) * min(max(part, 0.0), 1.0))


def _water_filling(system: System) -> np.ndarray:
    """Return the flow into each pool when servers are picked at random (closed form).

    Pool j serves at rate C and receives a = C - w sqrt(C) per server where that is positive,
    with w set by the total flow; the slowest pools are left out one by one.
    """
    fractions, speeds = system.fractions, system.speeds
    used = np.ones(len(speeds), dtype=bool)
    while True:
        capacity = sum(
            (system.pools[j].fraction * system.pools[j].speed for j in np.flatnonzero(used)),
            start=Fraction(0),
        )
        spare = float(capacity - Fraction(repr(system.arrival_rate)))
        w = spare / (fractions[used] @ np.sqrt(speeds[used]))
        flow = np.where(used, fractions * (speeds - w * np.sqrt(speeds)), 0.0)
        if np.all(flow[used] >= 0):
            return flow
        used &= speeds > speeds[used].min()
