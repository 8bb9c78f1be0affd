r"""How the idle servers of PULL are split over R routers in a large finite system.

Messages come to a router and are used by its arrivals at the same rate :math:`n \lambda / R`, while
the idle servers of all routers stay near :math:`n i`. On the scale of n the split so is a Brownian
motion on a simplex with vertices at distance :math:`\sqrt 2\, i`, of generator
:math:`\lambda / (n R) \Delta`, reflected at its faces, where routers have no messages. It relaxes
at the lowest rate of this operator,

.. math:: \frac{\lambda \theta_R}{4 n i^2}, \qquad
          \theta_2 = \pi^2, \quad \theta_3 = 32 \pi^2 / 27, \quad
          \theta_R \approx R + 6 R^{1/3} \; (R \ge 4),

the last within 3 %. The stationary law is uniform on the simplex, but for what the oblique
direction of the reflection changes.
"""

import math

import numpy as np

from manyserver.model import System
from manyserver.policies import Policy

__all__ = ["empty_router_coefficient", "slowest_split"]

MOST_BUSY = 0.9
"""Random arrivals to a server are taken to be no more than this part of what it can serve."""


def empty_router_coefficient(idle: float, routers: int) -> float:
    r"""Coefficient of 1/n in the probability that an arrival finds its router empty.

    .. math:: \frac{R - 1}{i (1 + i (R S - 1))}, \qquad S = E \sum_r (I_r / I)^2

    where S is over the splits seen when a router is empty. With two routers one has all, S = 1;
    if the others are split uniformly, S = 2 / R.

    Parameters
    ----------
    idle : float
        Fraction i of all servers that is idle, in (0, 1).
    routers : int
        R, at least one.
    """
    return (routers - 1) / (idle * (1 + idle))


def slowest_split(system: System, policy: Policy, tails: np.ndarray) -> float:
    """Estimate the relaxation time of what several routers have beyond one.

    Parameters
    ----------
    system : System
        In the limit the split never relaxes, and the time is infinite.
    policy : Policy
        With routers.
    tails : numpy.ndarray, shape (pool, level)
        The fixed point.

    Returns
    -------
    float
        In units of time, at least the relaxation time of a queue that gets the random arrivals of
        empty routers.
    """
    routers = policy.n_routers
    idle = float(system.fractions @ (1 - tails[:, 1]))
    if routers == 1 or idle <= 0:
        return 0.0
    if system.n_servers is None:
        return math.inf
    rates = {2: math.pi**2, 3: 32 * math.pi**2 / 27}
    rate = system.arrival_rate * rates.get(routers, routers + 6 * routers ** (1 / 3))
    empty = min(1.0, empty_router_coefficient(idle, routers) / system.n_servers)
    random = np.minimum(system.arrival_rate * empty, MOST_BUSY * system.speeds)
    rooms = system.buffers
    gap = (
        system.speeds + random - 2 * np.sqrt(system.speeds * random) * np.cos(math.pi / (rooms + 1))
    )
    return float(max(4 * system.n_servers * idle**2 / rate, 1 / gap.min()))
