"""Into which pieces a simulation is cut, and how often it is sampled."""

import numpy as np

from manyserver.model import System
from manyserver.simulation.replica import STEPS_PER_PIECE

__all__ = ["PIECES", "divisor", "pieces_and_samples", "steps_between_samples"]

PIECES = 120
"""Pieces of a replication; a number with many divisors."""
SAMPLE_TIME = 0.25
"""Time from one sample of the state to the next."""
SAMPLE_STEPS = 128
"""Fewest steps between samples, plus two for each level of a pool that has servers: then
sampling takes less than 15 % of the time."""
SAMPLE_STEPS_TIED = 512
"""The same if servers of different draws are tied, which takes a quadrature."""


def steps_between_samples(system: System, tails: np.ndarray, rate: float, tied: bool) -> int:
    """Choose the number of steps from one sample to the next.

    Parameters
    ----------
    system : System
    tails : numpy.ndarray, shape (pool, level)
        Queue tails of about the size to come.
    rate : float
        Steps per unit of time.
    tied : bool
        Whether servers of different draws can be tied.
    """
    levels = int((tails * np.array(system.counts)[:, None] > 0.1).sum())
    fewest = (SAMPLE_STEPS_TIED if tied else SAMPLE_STEPS) + 2 * levels
    return max(fewest, round(SAMPLE_TIME * rate))


def pieces_and_samples(steps: float, sample_steps: int) -> tuple[int, int, int]:
    """Cut a replication into equal pieces of equally many samples.

    Returns
    -------
    pieces : int
    steps : int
        Steps of a piece.
    period : int
        Steps from one sample to the next, which divide a piece.

    Examples
    --------
    >>> pieces_and_samples(120_000, 128)
    (120, 1000, 125)
    """
    pieces = PIECES if steps >= PIECES else 1
    while steps > pieces * STEPS_PER_PIECE / 2:
        pieces *= 2
    length = max(1, round(steps / pieces))
    samples = max(1, round(length / sample_steps))
    period = round(length / samples)
    return pieces, period * samples, period


def divisor(number: int, smallest: int) -> int:
    """Return the smallest divisor that is at least `smallest`, or the number itself.

    Examples
    --------
    >>> divisor(120, 7), divisor(120, 500)
    (8, 120)
    """
    return next((d for d in range(smallest, number) if number % d == 0), number)
