"""How long a simulation is, into which pieces it is cut, and how often it is sampled."""

import numpy as np

from manyserver.model import System
from manyserver.simulation.replica import STEPS_PER_PIECE

__all__ = [
    "BATCH_LENGTH",
    "BATCH_SAMPLES",
    "FEWEST_BATCHES",
    "FEWEST_CONTROLLED",
    "MOST_BATCHES",
    "PIECES",
    "PILOT_BATCHES",
    "ROUNDING",
    "SAFETY",
    "WARM_UP",
    "WORTH",
    "divisor",
    "pieces_and_samples",
    "steps_between_samples",
]

WARM_UP = 10
"""Length of the warm-up, in relaxation times."""
BATCH_LENGTH = 20
"""Shortest batch that the half-widths can rely on, in autocorrelation times."""
BATCH_SAMPLES = 100
"""Fewest samples in a batch, so that its means are nearly normal also in a small system."""
FEWEST_BATCHES = 32
FEWEST_CONTROLLED = 48
"""With control variates, of which there is at most one for four batches."""
MOST_BATCHES = 128
"""With more, the interval hardly shrinks; longer batches are safer."""
PILOT_BATCHES = 24
"""Length of the pilot, in shortest batches of all replications."""
ROUNDING = 0.01
"""Batches may be shorter by this fraction, as pieces are whole numbers of steps."""
SAFETY = 1.3
"""A run is longer than the pilot asks for by this factor, as its variance is estimated."""
WORTH = 0.75
"""A run that is shorter than the last one by more than this factor tells less than that."""
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
