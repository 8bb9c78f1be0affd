"""How long a simulation is, into which pieces it is cut, and how often it is sampled."""

import math
from typing import NamedTuple

import numpy as np

from manyserver.model import System
from manyserver.simulation.replica import STEPS_PER_PIECE

__all__ = [
    "BATCH_LENGTH",
    "BATCH_SAMPLES",
    "FEWEST_ARRIVALS",
    "FEWEST_BATCHES",
    "FEWEST_CONTROLLED",
    "FEWEST_INDEPENDENT",
    "HALVES",
    "LEAST_WORK",
    "MOST_BATCHES",
    "NEVER_SEEN",
    "PIECES",
    "PILOT_PIECES",
    "PILOT_REPLICATIONS",
    "PILOT_TIME",
    "ROUNDING",
    "SAFETY",
    "WARM_UP",
    "WITH_SERIES",
    "Lengths",
    "Plan",
    "independent_lengths",
    "kept_pieces",
    "longer_for_arrivals",
    "make_plan",
    "shortest_batch",
    "starts_close",
    "steps_between_samples",
]

LARGEST_CORRECTION = 0.1
"""Largest relative 1/N correction of the mean sojourn time with which replications that start at
the refined mean field are short and independent."""
FEWEST_INDEPENDENT = 32
"""Fewest of these."""
SETTLED = 2.0
"""Their warm-up, in relaxation times, where the correction is small."""
FELT_CORRECTION = 1e-5
"""Square of a correction that is small."""
MEASURED = 1.5
"""Measured time over warm-up: with more, the bias of the start is less, at the price of events
that the precision may not ask for."""
HALVES = 2
"""Pieces of a short replication, which must agree."""
WARM_UP = 10
"""Length of the warm-up of long replications, in relaxation times."""
BATCH_LENGTH = 20
"""Shortest batch that the half-widths can rely on, in autocorrelation times."""
BATCH_SAMPLES = 100
"""Fewest observations in a batch, so that its means are nearly normal also in a small system."""
FEWEST_BATCHES = 32
FEWEST_CONTROLLED = 48
"""With control variates, of which there is at most one for four batches."""
MOST_BATCHES = 128
"""With more, the interval hardly shrinks; longer batches are safer."""
FEWEST_ARRIVALS = 400
"""With fewer in all batches together, what they did says too little of what they may do: a mean of
so many waiting times, most of them zero, is far from normal."""
PILOT_REPLICATIONS = 8
"""Replications of a pilot; so many of the others have the fewest batches."""
PILOT_TIME = 40
"""Length of its replications, in relaxation times."""
PILOT_PIECES = 120
"""Their pieces."""
LEAST_WORK = 200_000
"""Fewest steps of a replication, unless its length is given: to begin one costs as much as some
ten thousand."""
ROUNDING = 0.01
"""Batches may be shorter by this fraction, as pieces are whole numbers of steps."""
SAFETY = 1.3
"""A run is longer than its variance so far asks for by this factor, as that is estimated."""
MOST_GROWTH = 10.0
"""A run gets longer by this factor at most, where arrivals were too few to tell more."""
NEVER_SEEN = 3.0
"""Upper end of the 95 % interval of the mean of a count that is zero."""
PIECES = 48
"""Pieces of a replication."""
SERIES = 240
"""Fine pieces in which the autocorrelation is seen, of a replication, at least."""
MOST_FINE = 256
"""Fine pieces in a piece, about."""
WITH_SERIES = 8
"""Replications in which the autocorrelation is looked at."""
ENOUGH_BATCHES = 2 * FEWEST_CONTROLLED
"""Two runs that are compared share a regression, with the control variates of both."""
SAMPLE_TIME = 0.25
"""Shortest time from one sample of the state to the next; more of them hardly tell more."""
LONGEST_SAMPLE_TIME = 1.0
"""In a small system, rarer observations cost more variance than time."""
SAMPLE_STEPS = 32
"""Fewest steps between observations, plus two for each level of a pool that has servers, within
these times."""
SAMPLE_STEPS_TIED = 128
"""The same if servers of different draws are tied, which takes a quadrature."""
FEWEST_SAMPLE_STEPS = 8
"""In the smallest systems."""


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
    cheap = (SAMPLE_STEPS_TIED if tied else SAMPLE_STEPS) + 2 * levels
    within = max(SAMPLE_TIME * rate, min(cheap, LONGEST_SAMPLE_TIME * rate))
    return max(FEWEST_SAMPLE_STEPS, round(within))


def shortest_batch(slowest: float, sample_steps: int) -> float:
    """Return the fewest steps of a batch that the half-widths can rely on.

    Parameters
    ----------
    slowest : float
        Steps in which the system forgets.
    sample_steps : int
        Steps from one sample to the next.
    """
    return max(BATCH_LENGTH * slowest, BATCH_SAMPLES * sample_steps)


def longer_for_arrivals(arrivals: int, precision: float) -> float:
    """Return how many times as much must be simulated, as far as arrivals are too few.

    Parameters
    ----------
    arrivals : int
        Seen so far. If there are none, ten times as much may show some.
    precision : float
        What none of n arrivals met, up to ``NEVER_SEEN / n`` of them may meet; this must be less.

    Examples
    --------
    >>> longer_for_arrivals(100, 0.1), longer_for_arrivals(1000, 0.1), longer_for_arrivals(0, 0.1)
    (5.2, 1.0, 10.0)
    """
    fewest = max(FEWEST_ARRIVALS, NEVER_SEEN / precision)
    if arrivals >= fewest:
        return 1.0
    return min(MOST_GROWTH, SAFETY * fewest / arrivals) if arrivals else MOST_GROWTH


def starts_close(correction: float) -> bool:
    """Say whether the refined mean field is a start from which replications can be short."""
    return correction <= LARGEST_CORRECTION


def independent_lengths(correction: float, settling: float, sample_steps: int) -> "Lengths":
    r"""Choose the length of short independent replications.

    A start at the refined mean field is off by about the square of the relative 1/N correction
    :math:`\epsilon`. A warm-up of w relaxation times multiplies this by :math:`e^{-w}`;
    :math:`w = 2 + \ln \max(1, 10^5 \epsilon^2)` leaves some 1e-6. The fluctuations, of which there
    are none at the start, settle twice as fast, and control variates take out most of what they
    still lack.

    Parameters
    ----------
    correction : float
        The relative correction.
    settling : float
        Steps of a relaxation time.
    sample_steps : int
        Steps from one sample to the next.

    Examples
    --------
    >>> independent_lengths(0.001, 100_000, 50)
    Lengths(warm_up=200000.0, measured=300000.0, slowest=100000, sample_steps=50)
    """
    warm_up = SETTLED + math.log(max(correction**2, FELT_CORRECTION) / FELT_CORRECTION)
    steps = max(warm_up * settling, LEAST_WORK / (1 + MEASURED))
    return Lengths(steps, MEASURED * steps, settling, sample_steps)


class Lengths(NamedTuple):
    """How long a replication should be, in steps."""

    warm_up: float
    measured: float
    slowest: float
    """In which the system forgets."""
    sample_steps: int
    """From one sample to the next, about."""


class Plan(NamedTuple):
    """How every replication is simulated."""

    warm_up: int
    """Steps before anything is measured."""
    pieces: int
    """Equal pieces that are measured."""
    fine: int
    """Fine pieces in one of them."""
    head: int
    """Pieces of which the fine ones are looked at, in the first replications."""
    steps: int
    """Steps of a fine piece."""
    period: int
    """Steps from one sample to the next, which divide a piece."""

    @property
    def measured(self) -> int:
        """Steps that are measured."""
        return self.pieces * self.fine * self.steps


def make_plan(lengths: Lengths, pieces: int = PIECES) -> Plan:
    """Cut a replication into equal pieces of equally many observations.

    Examples
    --------
    >>> make_plan(Lengths(1000, 48_000, 400, 130))
    Plan(warm_up=1000, pieces=48, fine=4, head=48, steps=250, period=125)
    """
    pieces = pieces if lengths.measured >= pieces else 1
    piece = lengths.measured / pieces
    period = min(lengths.sample_steps, max(1, round(piece)))
    wanted = min(max(lengths.slowest, piece / MOST_FINE, 1.0), STEPS_PER_PIECE / 2)
    # Fine pieces are a part of the period, or some periods; so many as fit best.
    finer = max(1, round(period / wanted))
    period = finer * math.ceil(period / finer)
    fewest = math.ceil(piece / max(period, min(wanted, piece)))
    groups = min(
        range(fewest, 2 * fewest + 1),
        key=lambda number: number * math.ceil(piece / (number * period)),
    )
    several = math.ceil(piece / (groups * period))
    period = finer * math.ceil(piece / (groups * several * finer))
    steps, fine = several * period // finer, groups * finer
    head = min(pieces, math.ceil(SERIES / fine))
    return Plan(round(lengths.warm_up), pieces, fine, head, steps, period)


def kept_pieces(number: int, pieces: int) -> int:
    """Return how many pieces of a replication are kept.

    With more replications fewer of each make enough batches; the numbers divide each other. The
    halves of short replications are kept, so that their drift is known.

    Examples
    --------
    >>> [kept_pieces(number, 48) for number in (0, 3, 7, 15, 31, 95, 1000)]
    [48, 24, 12, 6, 3, 1, 1]
    >>> kept_pieces(1000, HALVES)
    2
    """
    while pieces > 1 and pieces != HALVES:
        fewer = next(d for d in range(pieces - 1, 0, -1) if pieces % d == 0)
        if fewer * (number + 1) < ENOUGH_BATCHES:
            return pieces
        pieces = fewer
    return pieces
