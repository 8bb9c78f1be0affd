r"""Finite systems under policies for which jobs are followed, as far as they are known.

*Round robin.* Of Poisson arrivals a server gets every N-th.

*One queue.* While no job waits, servers are busy as in the system without room to wait, in which an
arrival that finds all of them busy is lost. Let that be the part p of the arrivals there. With load
:math:`\rho`, the number of jobs that wait is geometric, given that all are busy, and

.. math:: P(\text{all busy}) = \frac{p}{1 - \rho + \rho p}, \qquad
          P(V > t) = P(\text{all busy}) \, e^{-(1 - \rho) C t}

with the capacity C of all servers. With equal servers p is Erlang's B, else it is found from the
chain of the numbers of busy servers.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from manyserver.model import NotKnown, Pool, System
from manyserver.policies import Policy
from manyserver.policies.jsq import JSQ
from manyserver.statistics.erlang import erlang_b
from manyserver.statistics.renewal_queue import renewal_outputs
from manyserver.variables import QUANTILES

__all__ = ["central_outputs", "turns_outputs"]

Busy = tuple[float, np.ndarray]
"""Part of the arrivals that is lost without room to wait, and of the servers busy, by pool."""


def turns_outputs(system: System, policy: Policy) -> dict[str, Any]:
    """Compute the stationary state under round robin, by variable name.

    Raises
    ------
    NotKnown
        If servers have different weights, or a buffer is finite.
    """
    if set(policy.turns(system) or ()) != {1} or system.is_bounded:
        raise NotKnown(
            f"policy {policy.name}: a finite system is known for equal weights and buffer None only"
        )
    rates = np.full(len(system.pools), system.arrival_rate)
    return renewal_outputs(system, rates, system.finite_servers)


def central_outputs(system: System, loss: Callable[[System, Policy], Busy]) -> dict[str, Any]:
    """Compute the stationary state with one queue for all servers, by variable name.

    Parameters
    ----------
    system : System
    loss : callable
        Solves a system with buffers of one job.
    """
    servers, load = system.finite_servers, system.load
    if np.ptp(system.speeds) == 0:
        lost = erlang_b(servers, load * servers)
        busy = np.full(len(system.pools), load * (1 - lost))
    else:
        pools = [Pool(pool.fraction, pool.speed, 1) for pool in system.pools]
        lost, busy = loss(System(system.arrival_rate, pools, servers), JSQ(ties="fastest"))
    rate = system.arrival_rate * servers
    all_busy = lost / (1 - load + load * lost)
    waiting = all_busy * load
    utilization = (1 - waiting) * busy + waiting
    served = system.fractions * system.speeds * utilization
    # A job that waits does so until as many have left as were before it.
    settling = rate / load * (1 - load)
    queue = waiting / (1 - load)
    jobs = float(system.fractions @ utilization) + queue / servers
    # As many e-folds as bring the tail of the waiting time down to what is above the quantile.
    folds = [math.log(max(1.0, all_busy / (1 - part))) for part in QUANTILES]
    return {
        "jobs_per_server": jobs,
        "sojourn_mean": jobs / system.arrival_rate,
        "pool_share": served / served.sum(),
        "pool_utilization": utilization,
        "waiting_probability": all_busy,
        "waiting_mean": queue / rate,
        "waiting_variance": all_busy * (2 - all_busy) / settling**2,
        "waiting_quantile": np.array(folds) / settling,
        "blocking_probability": 0.0,
        "residual": abs(float(served.sum()) / system.arrival_rate - 1),
        "truncation_error": 0.0,
    }
