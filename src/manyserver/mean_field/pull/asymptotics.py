"""How waiting and blocking vanish under PULL as the number of servers grows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from manyserver.mean_field.announced import stationary
from manyserver.mean_field.pull.split import empty_router_coefficient
from manyserver.model import System
from manyserver.origin import with_origin
from manyserver.policies import Policy, check_fit
from manyserver.statistics.erlang import erlang_b, erlang_c
from manyserver.variables import CORRECTION, REFINED, labelled

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["pull_asymptotics"]


def pull_asymptotics(system: System, policy: Policy) -> xr.Dataset:
    r"""Compute to leading order how waiting vanishes under PULL with many servers.

    Parameters
    ----------
    system : System
        With a load below one. With a number of servers n, values at this number are given too.
    policy : Policy
        With routers.

    Returns
    -------
    xarray.Dataset
        With several routers, ``<name>_correction``, the coefficient c in :math:`x_n = x + c / n`,
        for ``empty_router_probability``, ``waiting_probability``, ``blocking_probability`` and, if
        all speeds are equal, ``sojourn_mean``; and ``<name>_refined``, :math:`x + c / n`.

        With one router ``empty_router_decay``, :math:`- \lim \log(P_e) / n` for the probability
        :math:`P_e` that the router is empty; and, if all speeds are equal and n is given,
        ``empty_router_lower`` and ``empty_router_upper``, between which :math:`P_e` lies.

    Raises
    ------
    ValueError
        If the policy is not PULL or does not fit the system, or the load is one or more.
    UnstableSystem, CriticalLoad
        As in :func:`manyserver.fixed_point`.

    Notes
    -----
    With R routers, of which m are empty, and :math:`I_r` of I idle servers known to router r, the
    mean drift of :math:`\sum_r I_r^2 - I^2 / R` vanishes at every n:

    .. math::

        (R - 1) P(\text{joins an idle server}) = \frac{1}{n} E\Bigl[ m \Bigl( \frac{n I}{R}
            + \sum_r I_r^2 - \frac{I^2}{R} \Bigr) \Bigr].

    With I close to its limit n i this is :math:`P_e = E m / R \approx (R - 1) / (n i (1 + i (R S -
    1)))`, where S is the mean of :math:`\sum_r (I_r / I)^2` when a router is empty. With two
    routers S = 1. With more, S = 2 / R is heuristic: the other routers are taken to split the idle
    servers uniformly. So

    .. math:: P_e \approx \frac{R - 1}{n i (1 + i)} .

    The next term is smaller only by :math:`n^{-1/2}`: with two routers, load 0.7 and n = 400 it is
    10 %. An arrival at an empty router joins a server at random, which is busy with one job with
    probability 1 - i; there it waits, or is lost if the buffer is one.

    One router is empty exponentially rarely. All servers of M/M/n/n and of M/M/n are busy with
    the probabilities of Erlang's formulas B and C. With a buffer of one PULL is the first of
    these; with other buffers and equal speeds it lies between the two wherever it was computed.
    The decay is that of the loss system, whose law is
    :math:`\pi(b) \propto (n - \sum_j b_j)!\, (n \lambda)^{\sum_j b_j} \prod_j
    \binom{N_j}{b_j} C_j^{-b_j}`; for unequal speeds with larger buffers it is heuristic. With equal
    speeds it is :math:`\rho - 1 - \log \rho`.

    Examples
    --------
    >>> import manyserver as ms
    >>> system = ms.System(0.7, [ms.Pool(1, 1)], n_servers=400)
    >>> result = ms.pull_asymptotics(system, ms.policy("pull", routers=2))
    >>> float(result.empty_router_probability_correction.round(4))
    2.5641
    >>> one = ms.pull_asymptotics(system, ms.policy("pull", routers=1))
    >>> float(one.empty_router_decay.round(4))
    0.0567
    """
    check_fit(system, policy)
    if not policy.n_routers:
        raise ValueError(f"policy = {policy}: must be a policy 'pull'")
    limit = stationary(system, policy.memoryless)
    busy = limit["queue_tail"][:, 1]
    if np.all(busy == 1):
        raise ValueError(
            f"arrival_rate = {system.arrival_rate:g}: load is {system.load:.6g}; must be below 1, "
            "as routers do not run out of messages rarely otherwise"
        )
    values = _one_router(system, busy) if policy.n_routers == 1 else _routers(system, policy, busy)
    result = labelled(values, system, attrs={"method": "PULL with many servers"})
    return with_origin(result, system, policy)


def _routers(system: System, policy: Policy, busy: np.ndarray) -> dict[str, float]:
    idle = float(system.fractions @ (1 - busy))
    empty = empty_router_coefficient(idle, policy.n_routers)
    lost = np.array([pool.buffer == 1 for pool in system.pools])
    waits, blocks = (
        empty * float(system.fractions @ np.where(chosen, busy, 0.0)) for chosen in (~lost, lost)
    )
    limits = {
        "empty_router_probability": (0.0, empty),
        "waiting_probability": (0.0, waits),
        "blocking_probability": (0.0, blocks),
    }
    if len(set(system.speeds)) == 1:
        speed = float(system.speeds[0])
        limits["sojourn_mean"] = (1 / speed, waits / speed)
    values = {name + CORRECTION: coefficient for name, (_, coefficient) in limits.items()}
    if system.n_servers is not None:
        for name, (limit, coefficient) in limits.items():
            values[name + REFINED] = limit + coefficient / system.n_servers
    return values


def _one_router(system: System, busy: np.ndarray) -> dict[str, float]:
    values = {"empty_router_decay": _decay(system, busy)}
    if system.n_servers is not None and len(set(system.speeds)) == 1:
        offered = system.n_servers * system.arrival_rate / float(system.speeds[0])
        values["empty_router_lower"] = erlang_b(system.n_servers, offered)
        values["empty_router_upper"] = (
            values["empty_router_lower"]
            if all(pool.buffer == 1 for pool in system.pools)
            else erlang_c(system.n_servers, offered)
        )
    return values


def _decay(system: System, busy: np.ndarray) -> float:
    """Difference of the loss system's exponent at its most likely state and with all busy."""
    idle = float(system.fractions @ (1 - busy))

    def exponent(part: np.ndarray, idle: float) -> float:
        mixing = -part * np.log(part) - (1 - part) * np.log1p(-part) if idle else 0 * part
        weight = mixing - part * np.log(system.speeds)
        order = idle * math.log(idle) - idle if idle else 0.0
        rate = (1 - idle) * math.log(system.arrival_rate)
        return float(order + rate + system.fractions @ weight)

    return exponent(busy, idle) - exponent(np.ones_like(busy), 0.0)
