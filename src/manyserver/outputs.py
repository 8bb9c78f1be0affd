"""Outputs, from what a method computed."""

from typing import Any

import numpy as np

from manyserver.model import System

__all__ = ["occupancy", "stationary_outputs"]


def occupancy(tails: np.ndarray) -> np.ndarray:
    """Return the fraction of servers with just so many jobs, shape (..., level).

    Parameters
    ----------
    tails : numpy.ndarray, shape (..., level)
        Fraction of servers that hold at least ``level`` jobs.

    Examples
    --------
    >>> occupancy(np.array([1.0, 0.5, 0.25]))
    array([0.5 , 0.25, 0.25])
    """
    return np.asarray(-np.diff(tails, axis=-1, append=0.0))


def stationary_outputs(
    system: System,
    tails: np.ndarray,
    rates: np.ndarray,
    waiting: float,
    blocking: float,
    queue_mean: np.ndarray | None = None,
) -> dict[str, Any]:
    """Return the outputs by variable name.

    Parameters
    ----------
    system : System
    tails : numpy.ndarray, shape (pool, level)
        Fraction of the servers of each pool that hold at least ``level`` jobs.
    rates : numpy.ndarray, shape (pool, level)
        Arrivals per unit of time to a server of the pool that holds ``level`` jobs.
    waiting, blocking : float
        Probabilities that an arrival joins a busy server, and that it is blocked.
    queue_mean : numpy.ndarray, shape (pool,), optional
        Mean number of jobs at a server of each pool, where the tails go on beyond the last level.

    Examples
    --------
    >>> import manyserver as ms
    >>> system = ms.System(0.5, [ms.Pool(1, 1)])
    >>> tails, rates = np.array([[1, 0.5, 0.25, 0.125]]), np.full((1, 4), 0.5)
    >>> stationary_outputs(system, tails, rates, 0.5, 0.0, np.array([1.0]))["sojourn_mean"]
    2.0
    """
    if queue_mean is None:
        queue_mean = tails[:, 1:].sum(axis=1)
    jobs = float(system.fractions @ queue_mean)
    # As many jobs join a pool as leave it.
    served = system.fractions * system.speeds * tails[:, 1]
    return {
        "queue_tail": tails,
        "queue_mean": queue_mean,
        "jobs_per_server": jobs,
        # Little's law
        "sojourn_mean": jobs / (system.arrival_rate * (1 - blocking)),
        "pool_share": served / served.sum(),
        "pool_utilization": tails[:, 1],
        "waiting_probability": waiting,
        "blocking_probability": blocking,
        "joining_rate": rates,
    }
