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
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike

from manyserver.model import System
from manyserver.policies.base import match_pools

__all__ = ["checked_probabilities", "naive_split", "optimal_split", "tail_exponent"]


def checked_probabilities(value: object) -> tuple[float, ...]:
    """Return `value` as probabilities that sum to one, or raise ValueError."""
    message = f"probabilities = {value!r}: must be numbers in [0, 1] that sum to 1, one per pool"
    if isinstance(value, str) or not isinstance(value, (Sequence, np.ndarray)):
        raise ValueError(message)
    if not all(isinstance(item, Real) and not isinstance(item, bool) for item in value):
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


def _marginal_jobs(rho: float, d: int) -> float:
    """Return the derivative of ``L_d`` at `rho` in [0, 1)."""
    if d == 1:
        return 1 / (1 - rho) ** 2
    if rho == 0:
        return 1.0
    total, k = 1.0, 2
    while True:
        exponent = float((d**k - 1) // (d - 1))
        log_term = math.log(exponent) + (exponent - 1) * math.log(rho)
        if log_term < math.log(total) - 45 and (exponent - 1) * math.log(rho) < -1:
            return total
        total += math.exp(log_term)
        k += 1


def _load_at(marginal: float, d: int) -> float:
    """Return the load at which one more job per unit of load adds `marginal` jobs."""
    from scipy.optimize import brentq

    if marginal <= 1:
        return 0.0
    if d == 1:
        return 1 - 1 / math.sqrt(marginal)
    highest = 1 - 1 / (1 + marginal)
    while _marginal_jobs(highest, d) < marginal:
        highest = (1 + highest) / 2
    return float(brentq(lambda rho: _marginal_jobs(rho, d) - marginal, 0.0, highest, xtol=1e-16))


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
    from scipy.optimize import brentq

    choices = np.broadcast_to(np.asarray(d), system.fractions.shape)
    match_pools("d", list(choices), system)
    if system.load >= 1:
        raise ValueError(
            f"arrival_rate = {system.arrival_rate:g}: load is {system.load:.6g}; must be below one "
            "for an optimal split, which is the best for unbounded buffers"
        )
    capacity = system.fractions * system.speeds
    if np.all(choices == 1):
        flow = _water_filling(system)
    else:

        def loads(theta: float) -> np.ndarray:
            return np.array(
                [
                    _load_at(theta * speed, int(count))
                    for speed, count in zip(system.speeds, choices, strict=True)
                ]
            )

        lowest = 1 / system.speeds.max()
        highest = 2 * lowest
        while capacity @ loads(highest) < system.arrival_rate:
            highest *= 2
        theta = brentq(
            lambda value: capacity @ loads(value) - system.arrival_rate,
            lowest,
            highest,
            xtol=1e-300,
            rtol=4 * np.finfo(float).eps,
        )
        flow = capacity * loads(float(theta))
    return tuple(float(value) for value in flow / flow.sum())


def _water_filling(system: System) -> np.ndarray:
    """Return the flow into each pool when servers are picked at random (closed form).

    Pool j serves at rate C and receives a = C - w sqrt(C) per server where that is positive,
    with w set by the total flow; the slowest pools are left out one by one.
    """
    fractions, speeds = system.fractions, system.speeds
    used = np.ones(len(speeds), dtype=bool)
    while True:
        spare = fractions[used] @ speeds[used] - system.arrival_rate
        w = spare / (fractions[used] @ np.sqrt(speeds[used]))
        flow = np.where(used, fractions * (speeds - w * np.sqrt(speeds)), 0.0)
        if np.all(flow[used] >= 0):
            return flow
        used &= speeds > speeds[used].min()
