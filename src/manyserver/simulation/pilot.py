"""A pilot: how slowly a system forgets, and so how long its replications must be."""

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from manyserver.model import System
from manyserver.simulation.lengths import PILOT_PIECES, PILOT_TIME, WARM_UP
from manyserver.simulation.replica import Replica
from manyserver.statistics.estimates import autocorrelation_time

__all__ = ["Pilot", "jobs_per_server", "simulate_pilot"]


class Pilot(NamedTuple):
    """What a pilot has told."""

    autocorrelation_time: float
    """Infinite if the pilot was too short to tell."""
    steps: int
    """Steps that it took."""


def jobs_per_server(system: System, tails: np.ndarray) -> np.ndarray:
    """Return the mean number of jobs in every piece, shape (piece,).

    Parameters
    ----------
    system : System
    tails : numpy.ndarray, shape (piece, pool, level)
    """
    return np.asarray(tails[:, :, 1:].sum(axis=2) @ system.fractions)


def simulate_pilot(
    replicas: Sequence[Replica], relaxation_time: float, most_steps: float, threads: int
) -> Pilot:
    """Simulate until the autocorrelation time of the number of jobs is known.

    Parameters
    ----------
    replicas : sequence of Replica
        `PILOT_REPLICATIONS`, with random numbers of their own.
    relaxation_time : float
        Time in which the system forgets its start, as far as that is known.
    most_steps : float
        Bound of all steps together.
    threads : int
        Replicas simulated at a time.
    """
    rate = replicas[0].rate
    warm_up = WARM_UP * relaxation_time * rate
    length = PILOT_TIME * relaxation_time * rate
    shorter = min(1.0, most_steps / len(replicas) / (warm_up + length))
    steps = max(1, math.floor(length * shorter / PILOT_PIECES))
    first = math.floor(warm_up * shorter)

    def advance(replica: Replica) -> np.ndarray:
        return jobs_per_server(replica.system, replica.advance(PILOT_PIECES, steps).tails)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda replica: replica.warm_up(first), replicas))
        series = np.array(list(pool.map(advance, replicas)))
        each = first + PILOT_PIECES * steps
        while True:
            slowest = autocorrelation_time(series, steps / rate)
            wanted = PILOT_TIME / 2 * max(slowest, relaxation_time) * rate
            more = each + PILOT_PIECES * steps
            if PILOT_PIECES * steps >= wanted or more * len(replicas) > most_steps:
                return Pilot(slowest, each * len(replicas))
            series = np.concatenate([series, list(pool.map(advance, replicas))], axis=1)
            series = series.reshape(len(series), PILOT_PIECES, 2).mean(axis=2)
            steps *= 2
            each = more
