r"""How fast a system forgets where it started, if its servers announce themselves.

Two things are slow. The limit relaxes as the linearised sliding drift does. A finite system, near
a load at which some pools are just busy, is one queue: with S the capacity of these pools, the
jobs that are more than they hold at the best rank they have left rise and fall at the rates
:math:`N \lambda` and :math:`N S`, until the next rank has idle servers, D jobs per server later.
Such a queue relaxes as M/M/1 does, or as a Brownian motion between two walls if these are near,

.. math:: \tau = \min \left( \frac{1}{N (\sqrt{S} - \sqrt{\lambda})^2}, \
                      \frac{N D^2}{\pi^2 \lambda} \right) .

Jobs that cross several such stretches take the time of a way as long as all of them, with the
root of the times for the length of the ways. For exact chains of 4 to 8 servers the sum of both
is right to a factor of two.
"""

import itertools
import math
from fractions import Fraction

import numpy as np

from manyserver.mean_field.announced.fixed_point import critical_rank
from manyserver.mean_field.announced.law import Sliding
from manyserver.mean_field.announced.order import Order, order_to_last_idle
from manyserver.model import System
from manyserver.policies import Policy

__all__ = ["slowest"]

NO_GAP = 1e-9
"""An eigenvalue this small is zero: all servers are just busy."""


def slowest(system: System, policy: Policy, tails: np.ndarray) -> float:
    """Estimate the time constant of the slowest mode at the stationary state.

    Parameters
    ----------
    system : System
        With a number of servers, it is also considered as one queue.
    policy : Policy
    tails : numpy.ndarray, shape (pool, level)
        The stationary state of the limit.

    Returns
    -------
    float
        In units of time, at least the mean service time of the fastest servers. Infinite for the
        limit at load one, which is approached more slowly than exponentially.
    """
    rank = critical_rank(order_to_last_idle(system, policy))
    order = Order(system, policy, tails.shape[1] + 1)
    drift = Sliding(order, order.n_ranks if rank is None else rank)
    there = np.arange(order.levels) <= system.buffers[:, None]
    free = (there & ~drift.held)[:, 1:].ravel()
    time = 1 / float(system.speeds.max())
    if free.any():
        matrix = drift.jacobian(drift.state(tails))[np.ix_(free, free)]
        gap = -float(np.linalg.eigvals(matrix).real.max())
        if gap > NO_GAP:
            time = max(time, 1 / gap)
    if system.n_servers is None and Fraction(repr(system.arrival_rate)) == system.exact_capacity:
        return math.inf
    return time + _as_one_queue(system, policy)


def _as_one_queue(system: System, policy: Policy) -> float:
    """Relaxation time of the jobs beyond those at which some pools are just busy."""
    if system.n_servers is None:
        return 0.0
    order = order_to_last_idle(system, policy)
    rate, way = system.arrival_rate, 0.0
    for rank, after in itertools.zip_longest(order.idle_ranks, order.idle_ranks[1:]):
        levels = system.buffers if after is None else order.before[:, after]
        width = float(system.fractions @ (levels - order.before[:, rank + 1]))
        gap = system.n_servers * (math.sqrt(order.capacity(rank + 1)) - math.sqrt(rate)) ** 2
        walls = system.n_servers * width**2 / (math.pi**2 * rate)
        way += math.sqrt(min(walls, 1 / gap if gap > 0 else math.inf))
    return way**2
