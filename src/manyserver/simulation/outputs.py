"""From what was measured to the outputs, with half-widths."""

import numpy as np

from manyserver.model import System
from manyserver.simulation.replica import Measured
from manyserver.statistics.estimates import Estimate, batch_mean, batch_ratio, merge_batches

__all__ = ["doubled", "estimates", "first_levels", "levels_reached"]


def estimates(
    system: System, tails: np.ndarray, joins: np.ndarray, length: float
) -> dict[str, Estimate]:
    """Estimate the outputs.

    Parameters
    ----------
    tails : numpy.ndarray, shape (batch, pool, level + 1)
    joins : numpy.ndarray, shape (batch, pool, level)
        Mean number of arrivals in a piece.
    length : float
        Length of a piece, in units of time.
    """
    queue = tails[:, :, 1:].sum(axis=2)
    jobs = batch_mean(queue @ system.fractions)
    arrivals = joins.sum(axis=(1, 2))
    exposure = (tails[:, :, :-1] - tails[:, :, 1:]) * np.array(system.counts)[:, None] * length
    zero = np.zeros(())
    tail = batch_mean(tails[:, :, :-1])
    tail.half_width[:, 0] = 0.0  # every server has at least no job
    return {
        "queue_tail": tail,
        "queue_mean": batch_mean(queue),
        "jobs_per_server": jobs,
        "sojourn_mean": Estimate(*(part / system.arrival_rate for part in jobs)),
        "waiting_probability": batch_ratio(arrivals - joins[:, :, 0].sum(axis=1), arrivals),
        "joining_rate": batch_ratio(joins, exposure),
        "blocking_probability": Estimate(zero, zero),
    }


def levels_reached(tails: np.ndarray) -> int:
    """Return the number of levels, from 0 to the highest that was reached; at least two."""
    return max(2, 1 + int(np.flatnonzero(tails.any(axis=(0, 1)))[-1]))


def first_levels(values: np.ndarray, levels: int) -> np.ndarray:
    """Cut or pad the last axis to a number of levels."""
    missing = max(0, levels - values.shape[-1])
    return np.pad(values, ((0, 0), (0, 0), (0, missing)))[:, :, :levels]


def doubled(one: Measured, other: Measured) -> Measured:
    """Put one run after another, and merge the pieces in pairs."""
    levels = max(one.tails.shape[2], other.tails.shape[2])
    tails, joins, events = (
        np.concatenate(pair)
        for pair in (
            [first_levels(one.tails, levels), first_levels(other.tails, levels)],
            [first_levels(one.joins, levels), first_levels(other.joins, levels)],
            [one.events, other.events],
        )
    )
    return Measured(
        merge_batches(tails, 2), 2 * merge_batches(joins, 2), 2 * merge_batches(events, 2)
    )
