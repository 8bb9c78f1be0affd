"""A pilot: how slowly a system forgets, and so how long its replications must be."""

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol

import numpy as np

from manyserver.model import System
from manyserver.simulation.lengths import (
    PILOT_PIECES,
    PILOT_REPLICATIONS,
    PILOT_TIME,
    WARM_UP,
)
from manyserver.statistics.estimates import autocorrelation_time

__all__ = ["Group", "Pilot", "jobs_per_server", "simulate_pilot"]


class Group(Protocol):
    """Replications that are simulated together, or one alone."""

    system: System

    def warm_up(self, steps: int) -> None:
        """Simulate without measuring."""

    def advance_all(self, pieces: int, steps: int) -> Sequence[Any]:
        """Simulate pieces of so many steps; what each has measured has `tails`."""


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
    groups: Sequence[Group], rate: float, relaxation_time: float, most_steps: float, threads: int
) -> Pilot:
    """Simulate until the autocorrelation time of the number of jobs is known.

    Parameters
    ----------
    groups : sequence of Group
        With `PILOT_REPLICATIONS` together, each with random numbers of its own.
    rate : float
        Steps per unit of time.
    relaxation_time : float
        Time in which the system forgets its start, as far as that is known.
    most_steps : float
        Bound of all steps together.
    threads : int
        Groups simulated at a time.
    """
    warm_up = WARM_UP * relaxation_time * rate
    length = PILOT_TIME * relaxation_time * rate
    shorter = min(1.0, most_steps / PILOT_REPLICATIONS / (warm_up + length))
    steps = max(1, math.floor(length * shorter / PILOT_PIECES))
    first = math.floor(warm_up * shorter)

    def advance(group: Group) -> list[np.ndarray]:
        measured = group.advance_all(PILOT_PIECES, steps)
        return [jobs_per_server(group.system, one.tails) for one in measured]

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda group: group.warm_up(first), groups))
        series = np.concatenate(list(pool.map(advance, groups)))
        each = first + PILOT_PIECES * steps
        while True:
            slowest = autocorrelation_time(series, steps / rate)
            wanted = PILOT_TIME / 2 * max(slowest, relaxation_time) * rate
            more = each + PILOT_PIECES * steps
            if PILOT_PIECES * steps >= wanted or more * PILOT_REPLICATIONS > most_steps:
                return Pilot(slowest, each * PILOT_REPLICATIONS)
            further = np.concatenate(list(pool.map(advance, groups)))
            series = np.concatenate([series, further], axis=1)
            series = series.reshape(len(series), PILOT_PIECES, 2).mean(axis=2)
            steps *= 2
            each = more
