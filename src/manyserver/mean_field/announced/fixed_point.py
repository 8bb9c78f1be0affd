r"""Stationary states of the limit where servers announce themselves.

As many jobs leave as arrive: the busy servers have the capacity ``lambda``. If the announced
servers before rank ``r`` are gone, a pool is busy altogether if its idle servers come before
``r``. So ``r`` is the first rank with

.. math:: \sum_{j: m_j(r + 1) \ge 1} \gamma_j C_j > \lambda .

The servers of rank ``r`` are the last to get jobs, each at the same rate :math:`\theta`. Nobody
joins a class of a higher rank. With ``m_j`` and ``n_j`` the levels of pool ``j`` that come before
``r`` and ``r + 1``, its servers are a birth-and-death process between these,

.. math:: x^{(j)}_k \propto (\theta / C_j)^{k - m_j}, \quad m_j \le k \le n_j, \qquad
          \sum_{j: m_j = 0} \gamma_j C_j x^{(j)}_0
          = \sum_{j: n_j \ge 1} \gamma_j C_j - \lambda,

of which the second equation gives :math:`\theta`. If all servers together cannot serve
``lambda``, no announced server is left, and what remains of the arrivals makes its draws.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import scipy

from manyserver.mean_field.announced.law import Sliding
from manyserver.mean_field.announced.order import Order, order_to_last_idle
from manyserver.mean_field.drift import most_levels
from manyserver.mean_field.solver import FEWEST_LEVELS, solve_levels
from manyserver.model import System, UnstableSystem
from manyserver.outputs import stationary_outputs
from manyserver.policies import Policy

__all__ = ["CriticalLoad", "critical_rank", "stationary"]


class CriticalLoad(ValueError):
    """Raised if the limit has many stationary states, as some pools are busy to the last server.

    Attributes
    ----------
    pools : tuple of int
        The pools whose capacity is the arrival rate, as positions in ``System.pools``.
    """

    def __init__(self, message: str, pools: tuple[int, ...]):
        super().__init__(message)
        self.pools = pools


def stationary(system: System, policy: Policy) -> dict[str, Any]:
    """Compute the stationary state of the limit.

    Parameters
    ----------
    system : System
    policy : Policy
        One to which servers announce themselves.

    Returns
    -------
    dict of str to numpy.ndarray or float
        By variable name, as :func:`manyserver.fixed_point` gives them.

    Raises
    ------
    UnstableSystem
        If some pools get more work than they can do.
    CriticalLoad
        If there is more than one stationary state.

    Notes
    -----
    The derivation is in the documentation of the theory. JSQ with equal servers has
    ``u_1 = arrival_rate`` and no queues; SED with the fastest pools busy has ``floor(C_j / C_i)``
    jobs at every server of a pool ``j`` faster than the pool ``i`` that is partly idle.
    """
    order = order_to_last_idle(system, policy)
    rank = critical_rank(order)
    if rank is None:
        _refuse_endless(system, policy)
    _refuse_critical(order, rank)
    if rank is not None:
        log_tails, truncation = _filled(order, rank), 0.0
    else:
        log_tails, truncation = _overloaded(system, policy)
    tails = np.exp(log_tails)
    order = Order(system, policy, tails.shape[1])
    drift = Sliding(order, order.n_ranks if rank is None else rank)
    joins = drift.law.probabilities(tails)
    outputs = stationary_outputs(
        system,
        tails,
        system.arrival_rate * drift.law.rates(tails),
        waiting=joins[:, 1:].sum(),
        blocking=max(0.0, 1 - float(joins.sum())) if rank is None else 0.0,
    )
    residual = drift.imbalance(drift.state(tails))
    return outputs | {
        "queue_log_tail": log_tails,
        "residual": residual,
        "truncation_error": truncation,
    }


def critical_rank(order: Order) -> int | None:
    """Find the rank whose servers are neither all taken nor all left, in the stationary state.

    Parameters
    ----------
    order : Order
        Up to the last idle server.

    Returns
    -------
    int or None
        None if the servers cannot do all the work, so that no announced one is left.
    """
    rate = Fraction(repr(order.system.arrival_rate))
    return next((rank for rank in order.idle_ranks if order.capacity(rank + 1) > rate), None)


def _refuse_endless(system: System, policy: Policy) -> None:
    """Raise UnstableSystem if a pool without bound gets all that the others have no room for."""
    if policy.sampling(system).announced is None and most_levels(system) is None:
        pools = tuple(j for j, pool in enumerate(system.pools) if pool.buffer is None)
        which = f"pool {pools[0]}" if len(pools) == 1 else f"pools {list(pools)}"
        raise UnstableSystem(
            f"arrival_rate = {system.arrival_rate:g}: load is {system.load:.6g}; must be below the "
            f"capacity of {system.capacity:.6g} jobs per unit of time and server, as policy "
            f"{policy.name} sends to {which} what the others have no room for",
            pools=pools,
        )


def _refuse_critical(order: Order, rank: int | None) -> None:
    """Raise CriticalLoad if the state is one of many."""
    system = order.system
    last = max((r for r in order.idle_ranks if rank is None or r < rank), default=None)
    if last is None or order.capacity(last + 1) != Fraction(repr(system.arrival_rate)):
        return
    if rank is None and (all_levels := most_levels(system)) is not None:
        order = Order(system, order.policy, all_levels)
    if (order.n_ranks if rank is None else rank) > last + 1:
        pools = tuple(int(j) for j in np.flatnonzero(order.before[:, last + 1]))
        which = f"pool {pools[0]}" if len(pools) == 1 else f"pools {list(pools)} together"
        raise CriticalLoad(
            f"arrival_rate = {system.arrival_rate:g}: is exactly what {which} can serve, and with "
            f"policy {order.policy.name} the limit then has more than one stationary state; must "
            "be another rate",
            pools=pools,
        )


def _filled(order: Order, rank: int) -> np.ndarray:
    """Return the logarithm of the tails if some announced servers of a rank are left."""
    system = order.system
    low, high = order.before[:, rank], order.before[:, rank + 1]
    rate = Fraction(repr(system.arrival_rate))
    idle = float(order.capacity(rank + 1) - rate)
    busy = float(rate - order.capacity(rank))
    partly = np.flatnonzero((low == 0) & (high > 0))
    work = (system.fractions * system.speeds)[partly]
    theta = _common_rate(work, system.speeds[partly], high[partly], busy, idle)
    log_tails = np.full((len(low), order.levels), -np.inf)
    for row, speed, first, last in zip(log_tails, system.speeds, low, high, strict=True):
        row[: first + 1] = 0.0
        if theta > 0:
            row[first : last + 1] = _log_tail(np.log(theta / speed), last - first)
    used = int(np.flatnonzero((log_tails > -np.inf).any(axis=0))[-1])
    all_levels = most_levels(system) or used + 2
    kept = min(used + 2, all_levels)
    return log_tails[:, :kept]


def _log_tail(log_ratio: float, top: int) -> np.ndarray:
    """Logarithm of the tail of a law on 0 ... top in proportion to ratio**k."""
    weights = log_ratio * np.arange(top + 1)
    above = np.logaddexp.accumulate(weights[::-1])[::-1]
    return np.asarray(above - above[0])


def _common_rate(
    work: np.ndarray, speeds: np.ndarray, tops: np.ndarray, busy: float, idle: float
) -> float:
    """Find the rate of arrivals to a server at which the right part of the work is done.

    Parameters
    ----------
    work : numpy.ndarray, shape (pool,)
        Capacity of the pools that are partly idle.
    speeds, tops : numpy.ndarray, shape (pool,)
        Their speeds, and the most jobs that their servers hold.
    busy, idle : float
        Capacity of their busy and idle servers; the smaller one decides.
    """
    if busy == 0:
        return 0.0

    def excess(log_theta: float) -> float:
        tails = [_log_tail(log_theta - np.log(c), n) for c, n in zip(speeds, tops, strict=True)]
        at_work = np.array([tail[1] for tail in tails])
        if busy <= idle:
            return float(np.log(work @ np.exp(at_work)) - np.log(busy))
        # P(idle) is the last term of the reversed law, which loses no digits near saturation.
        at_rest = [
            _log_tail(np.log(c) - log_theta, n)[-1] for c, n in zip(speeds, tops, strict=True)
        ]
        return float(np.log(idle) - np.log(work @ np.exp(at_rest)))

    low, high = -1.0, 1.0
    while excess(low) > 0:
        low *= 2
    while excess(high) < 0:
        high *= 2
    return float(np.exp(scipy.optimize.brentq(excess, low, high, xtol=1e-15, rtol=1e-15)))


def _overloaded(system: System, policy: Policy) -> tuple[np.ndarray, float]:
    """Return the logarithm of the tails, and their truncation, if no announced server is left."""
    sampling = policy.sampling(system)
    if sampling.announced is None:
        rooms = np.array([pool.buffer for pool in system.pools])
        levels = np.arange(rooms.max() + 1)
        return np.where(levels <= rooms[:, None], 0.0, -np.inf), 0.0

    def drift(levels: int) -> Sliding:
        order = Order(system, policy, levels)
        return Sliding(order, order.n_ranks)

    flows, state, truncation = solve_levels(
        system,
        drift,
        lambda drift: drift.held.astype(float),
        policy.name,
        fewest=max(FEWEST_LEVELS, sampling.announced + 2),
    )
    with np.errstate(divide="ignore"):
        return np.log(np.clip(flows.tails(state), 0.0, 1.0)), truncation
