r"""A server whose arrivals come after sums of exponential times, E_n/M/1; D/M/1 in the limit.

With load :math:`\rho`, an arrival finds k jobs or more with probability :math:`\sigma^k`, where

.. math:: \sigma = \left(1 + \frac{1 - \sigma}{n \rho}\right)^{-n},

and at a random time there are k > 0 or more with probability :math:`\rho \sigma^{k - 1}`.
"""

import math
from typing import Any

import numpy as np

from manyserver.model import System
from manyserver.outputs import stationary_outputs

__all__ = ["arrivals_that_wait", "renewal_outputs"]

SMALLEST_TAIL = 1e-16
MOST_LEVELS = 1 << 15


def arrivals_that_wait(load: float, n: int | None) -> float:
    """Compute the probability that an arrival finds the server busy.

    Parameters
    ----------
    load : float
        In (0, 1).
    n : int or None
        Exponential times between two arrivals, at least one; None if the time is constant.

    Examples
    --------
    >>> arrivals_that_wait(0.5, 1)
    0.5
    >>> round(arrivals_that_wait(0.5, None), 10)
    0.20318787
    """
    from scipy.optimize import brentq

    if n == 1:
        return load

    def excess(idle: float) -> float:
        between = idle / load if n is None else n * math.log1p(idle / (n * load))
        return math.log1p(-idle) + between

    # More regular arrivals wait less often than Poisson ones do.
    return 1.0 - float(brentq(excess, 1.0 - load, 1.0 - 1e-16, xtol=1e-16, rtol=1e-14))


def renewal_outputs(system: System, rates: np.ndarray, n: int | None) -> dict[str, Any]:
    """Compute the stationary state of servers that do not see each other, by variable name.

    Parameters
    ----------
    system : System
        Without buffers.
    rates : numpy.ndarray, shape (pool,)
        Arrivals to a server of each pool, per unit of time.
    n : int or None
        As in :func:`arrivals_that_wait`.
    """
    loads = rates / system.speeds
    waits = np.array([arrivals_that_wait(float(load), n) for load in loads])
    fewest = math.log(SMALLEST_TAIL) / math.log(max(waits.max(), SMALLEST_TAIL))
    level = np.arange(min(MOST_LEVELS, math.ceil(fewest) + 2))
    with np.errstate(under="ignore"):
        log_tails = np.log(loads)[:, None] + (level - 1) * np.log(waits)[:, None]
        log_tails[:, 0] = 0.0
        tails = np.exp(log_tails)
    joining = np.repeat((system.speeds * waits)[:, None], len(level), axis=1)
    joining[:, 0] = rates * (1 - waits) / (1 - loads)
    shares = system.fractions * rates / system.arrival_rate
    jobs = loads / (1 - waits)
    outputs = stationary_outputs(system, tails, joining, float(shares @ waits), 0.0, jobs)
    return outputs | {"queue_log_tail": log_tails, "residual": 0.0, "truncation_error": 0.0}
