"""From what was measured of jobs and servers to the outputs, with half-widths."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from manyserver.model import System
from manyserver.simulation.jobs.records import edges
from manyserver.simulation.jobs.replica import Measured
from manyserver.simulation.outputs import resolved, widened
from manyserver.statistics.estimates import (
    Controls,
    Estimate,
    batch_mean,
    batch_ratio,
    merge_batches,
)
from manyserver.statistics.histogram import quantile_estimate
from manyserver.variables import QUANTILES

__all__ = ["Batches", "empty_routers", "estimates", "joined", "make_controls", "sojourn_mean"]

ENTRIES = {"sojourn": 0, "waiting": 2}
"""Where the sums of a time and of its square are among the moments."""


class Batches(NamedTuple):
    """The batches of all replications, one after another."""

    tails: np.ndarray
    """Time average of the queue tails, shape (batch, pool, level)."""
    joins: np.ndarray
    """Arrivals that were accepted, by the level that they found, (batch, pool, level)."""
    arrivals: np.ndarray
    """All arrivals, shape (batch,)."""
    blocked: np.ndarray
    """Arrivals that were not accepted, shape (batch,)."""
    drew: np.ndarray
    """Arrivals that drew servers, shape (batch,)."""
    histograms: dict[str, np.ndarray]
    """Of sojourn and waiting times, shape (batch, pool, bin)."""
    moments: np.ndarray
    """As in the records, shape (batch, pool, 4)."""
    slowdown: np.ndarray
    """As in the records, shape (batch, decile, 2)."""
    length: float
    """Time of a batch."""


def joined(parts: Sequence[Measured], pieces: int, length: float) -> Batches:
    """Merge the pieces of each batch, and put the batches of all replications together.

    Parameters
    ----------
    parts : sequence of Measured
        One for each replication.
    pieces : int
        In a batch.
    length : float
        Of a piece.
    """
    levels = 1 + max(int(np.flatnonzero(part.tails.any(axis=(0, 1)))[-1]) for part in parts) + 1

    def all_of(tables: Sequence[np.ndarray]) -> np.ndarray:
        wide = [_with_levels(table, levels) for table in tables]
        return np.concatenate([merge_batches(table, pieces) for table in wide])

    totals = pieces * np.concatenate([merge_batches(part.totals, pieces) for part in parts])
    histograms = {
        name: np.concatenate([getattr(part.records, name) for part in parts]) for name in ENTRIES
    }
    return Batches(
        all_of([part.tails for part in parts]),
        pieces * all_of([part.joins for part in parts]),
        totals[:, 0],
        totals[:, 1],
        totals[:, 3],
        {name: counts for name, counts in histograms.items() if counts.size},
        np.concatenate([part.records.moments for part in parts]),
        np.concatenate([part.records.slowdown for part in parts]),
        pieces * length,
    )


def _with_levels(table: np.ndarray, levels: int) -> np.ndarray:
    """Cut or fill with zeros to a number of levels."""
    more = max(0, levels - table.shape[2])
    return np.pad(table, ((0, 0), (0, 0), (0, more)))[:, :, :levels]


def make_controls(system: System, batches: Batches) -> Controls:
    """Use that arrivals are Poisson, and that servers do as much work as arrives.

    The second holds for the mean size one, whatever its law, if nobody is blocked.
    """
    expected = system.arrival_rate * sum(system.counts) * batches.length
    columns = [batches.arrivals / expected - 1]
    if all(pool.buffer is None for pool in system.pools):
        work = batches.tails[:, :, 1] @ (system.fractions * system.speeds)
        columns.append(work / system.arrival_rate - 1)
    return Controls(np.stack(columns, axis=1))


def sojourn_mean(batches: Batches, controls: Controls | None) -> Estimate:
    """Estimate the mean sojourn time over the jobs that arrived, each followed until it left."""
    sums = batches.moments[:, :, 0].sum(axis=1)
    mean = _ratio(sums, batches.histograms["sojourn"].sum(axis=(1, 2)), controls)
    return widened(mean, int(batches.arrivals.sum()))


def empty_routers(batches: Batches, controls: Controls | None) -> Estimate:
    """Estimate the probability that an arrival finds its router without messages."""
    return _ratio(batches.drew, batches.arrivals, controls)


def _ratio(numerator: np.ndarray, denominator: np.ndarray, controls: Controls | None) -> Estimate:
    numerator, denominator = numerator.astype(float), denominator.astype(float)
    if controls:
        numerator, denominator = controls.adjusted(numerator), controls.adjusted(denominator)
    return batch_ratio(numerator, denominator, controls)


def estimates(system: System, batches: Batches, controls: Controls | None) -> dict[str, Estimate]:
    """Estimate the outputs."""
    outputs = _occupancies(system, batches, controls)
    for name, counts in batches.histograms.items():
        first = ENTRIES[name]
        sums = batches.moments[:, :, first : first + 2]
        outputs |= _law(name, counts.sum(axis=1), sums.sum(axis=1), controls)
        pools = [
            _law(f"pool_{name}", counts[:, pool], sums[:, pool], controls)
            for pool in range(len(system.pools))
        ]
        outputs |= {key: _stack([pool[key] for pool in pools]) for key in pools[0]}
    if "waiting" not in batches.histograms:
        sums, jobs = batches.slowdown[:, :, 1], batches.slowdown[:, :, 0]
        outputs["slowdown_mean"] = _ratio(sums, jobs, controls)
    outputs["sojourn_mean"] = sojourn_mean(batches, controls)
    return resolved(outputs, int(batches.arrivals.sum()))


def _law(
    name: str, counts: np.ndarray, sums: np.ndarray, controls: Controls | None
) -> dict[str, Estimate]:
    """Estimate mean, variance and quantiles of a time, from (batch, bin) and (batch, 2)."""
    jobs = counts.sum(axis=1)
    mean = _ratio(sums[:, 0], jobs, controls)
    around = float(mean.value)
    squares = sums[:, 1] - 2 * around * sums[:, 0] + around**2 * jobs
    bounds = edges()
    return {
        f"{name}_mean": mean,
        f"{name}_variance": _ratio(squares, jobs, controls),
        f"{name}_quantile": _stack(
            [quantile_estimate(counts, bounds, part, controls) for part in QUANTILES]
        ),
    }


def _stack(parts: Sequence[Estimate]) -> Estimate:
    return Estimate(*(np.stack(values) for values in zip(*parts, strict=True)))


def _occupancies(
    system: System, batches: Batches, controls: Controls | None
) -> dict[str, Estimate]:
    tails = controls.adjusted(batches.tails) if controls else batches.tails
    tail = batch_mean(tails, controls)
    tail.half_width[:, 0] = 0.0  # every server has at least no job
    queues = tails[:, :, 1:].sum(axis=2)
    joins = batches.joins
    held = -np.diff(batches.tails, axis=2, append=0.0)
    time = held * np.array(system.counts)[:, None] * batches.length
    by_pool = joins.sum(axis=2)
    accepted = by_pool.sum(axis=1)
    blocked = _ratio(batches.blocked, batches.arrivals, controls)
    if all(pool.buffer is None for pool in system.pools):
        blocked = Estimate(np.zeros(()), np.zeros(()))
    return {
        "queue_tail": _cut(tail),
        "queue_mean": batch_mean(queues, controls),
        "jobs_per_server": batch_mean(queues @ system.fractions, controls),
        "waiting_probability": _ratio(
            accepted - joins[:, :, 0].sum(axis=1), batches.arrivals, controls
        ),
        "blocking_probability": blocked,
        "joining_rate": _cut(batch_ratio(joins.astype(float), time)),
        "pool_share": _ratio(by_pool, np.broadcast_to(accepted[:, None], by_pool.shape), controls),
    }


def _cut(estimate: Estimate) -> Estimate:
    """Leave out the last level, which was not reached."""
    return Estimate(*(part[..., :-1] for part in estimate))
