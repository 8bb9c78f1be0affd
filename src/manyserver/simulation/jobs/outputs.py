"""From what was measured of jobs and servers to the outputs, with half-widths."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from manyserver.model import System
from manyserver.outputs import occupancy
from manyserver.simulation.controls import often_visited
from manyserver.simulation.jobs.kernel import ARRIVALS, BLOCKED, DREW
from manyserver.simulation.jobs.records import SOJOURN, WAITING, edges
from manyserver.simulation.jobs.replica import Measured
from manyserver.simulation.observations import DRIFTS, Observations, first_levels
from manyserver.simulation.outputs import resolved, unseen_share, variances, widened
from manyserver.statistics.estimates import Controls, Estimate, batch_mean, batch_ratio
from manyserver.statistics.histogram import quantile_estimate
from manyserver.variables import MOMENT_LEVELS, QUANTILES

__all__ = [
    "JobPieces",
    "control_columns",
    "empty_routers",
    "estimates",
    "make_pieces",
    "mean_terms",
    "sojourn_mean",
]

ENTRIES = {"sojourn": SOJOURN, "waiting": WAITING}
"""Where the sums of a time and then of its square are among the moments."""


class JobPieces(NamedTuple):
    """What happened in pieces of equal length, and to the jobs that arrived in them."""

    tails: np.ndarray
    """Time average of the queue tails, shape (piece, pool, level)."""
    joins: np.ndarray
    """Arrivals that were accepted, by the level that they found, (piece, pool, level)."""
    length: np.ndarray
    """Time of a piece, shape (piece,)."""
    totals: np.ndarray
    """Arrivals, those that were blocked and those that drew servers, shape (piece, 3)."""
    once: np.ndarray
    """Of a whole replication, in its first piece: departures, time in the system, arrivals after
    the last piece, and jobs that were not followed until they left, shape (piece, 4)."""
    sojourn: np.ndarray
    """Histogram of sojourn times, shape (piece, pool, bin)."""
    waiting: np.ndarray
    """The same of waiting times; no bins if there are none."""
    moments: np.ndarray
    """As in the records, shape (piece, pool, 4)."""
    slowdown: np.ndarray
    """As in the records, shape (piece, decile, 2)."""
    observations: Observations
    """Sums over observations, at equal times."""
    longest: np.ndarray
    """Observations in which some server had at least ``level`` jobs, shape (piece, 1, level)."""

    def with_levels(self, levels: int) -> "JobPieces":
        """Cut or pad to a number of levels."""
        return self._replace(
            tails=first_levels(self.tails, levels),
            joins=first_levels(self.joins, levels),
            observations=self.observations.with_levels(levels),
            longest=first_levels(self.longest, levels),
        )

    @property
    def arrivals(self) -> np.ndarray:
        """All arrivals, shape (piece,)."""
        return self.totals[:, ARRIVALS]

    @property
    def histograms(self) -> dict[str, np.ndarray]:
        """Histograms of the times that were measured."""
        found = {name: getattr(self, name) for name in ENTRIES}
        return {name: counts for name, counts in found.items() if counts.size}


def make_pieces(measured: Measured, fine: int, length: float, moments: bool) -> JobPieces:
    """Merge the fine pieces of each piece of a replication.

    Parameters
    ----------
    measured : Measured
        With records by piece.
    fine : int
        Fine pieces in one.
    length : float
        Time of a fine piece.
    moments : bool
        Whether to add up products of the numbers of servers in two classes.
    """

    def by_piece(values: np.ndarray) -> np.ndarray:
        return np.asarray(values.reshape(-1, fine, *values.shape[1:]).sum(axis=1))

    records = measured.records
    pieces = len(records.sojourn)
    once = np.zeros((pieces, 4))
    once[0] = measured.departures, measured.time_in_system, measured.followed, measured.unfinished
    waiting = records.waiting if records.waiting.size else np.zeros((pieces, 0, 0), dtype=np.uint32)
    return JobPieces(
        by_piece(measured.tails) / fine,
        by_piece(measured.joins),
        np.full(pieces, fine * length),
        by_piece(measured.totals),
        once,
        records.sojourn,
        waiting,
        records.moments,
        records.slowdown,
        _samples(measured.ends.astype(float), fine, moments),
        by_piece(np.asarray(measured.ends.any(axis=1, keepdims=True))),
    )


def _samples(ends: np.ndarray, fine: int, moments: bool) -> Observations:
    """Sample the servers with at least so many jobs, shape (fine piece, pool, level)."""
    grouped = ends.reshape(-1, fine, *ends.shape[1:])
    tails = grouped.sum(axis=1)
    taken, never = np.full(len(tails), float(fine)), np.zeros(len(tails))
    servers = grouped[:, 0, :, 0].sum(axis=1)
    jobs = grouped[:, :, :, 1:].sum(axis=(2, 3)) / servers[:, None]
    held = occupancy(grouped)[..., : MOMENT_LEVELS if moments else 0]
    missing = (MOMENT_LEVELS if moments else 0) - held.shape[3]
    held = np.pad(held, ((0, 0), (0, 0), (0, 0), (0, missing)))
    products = np.einsum("bfpk,bfql->bpkql", held, held)
    return Observations(
        taken=taken,
        multiplied=taken,
        tails=tails,
        squares=(grouped**2).sum(axis=1),
        joining=np.zeros_like(tails),
        squared_jobs=(jobs**2).sum(axis=1),
        blocked=never,
        drifts=np.zeros((len(tails), len(DRIFTS))),
        products=products,
    )


def control_columns(system: System, batches: JobPieces) -> np.ndarray:
    """Return what is zero on average, shape (batch, column).

    Arrivals are Poisson, and servers do as much work as arrives; the second holds for the mean
    size one, whatever its law, if nobody is blocked.
    """
    expected = system.arrival_rate * system.finite_servers * batches.length
    columns = [batches.arrivals / expected - 1]
    if not system.is_bounded:
        work = batches.tails[:, :, 1] @ (system.fractions * system.speeds)
        columns.append(work / system.arrival_rate - 1)
    return np.stack(columns, axis=1)


def sojourn_mean(batches: JobPieces, controls: Controls | None) -> Estimate:
    """Estimate the mean sojourn time over the jobs that arrived, each followed until it left."""
    unseen = unseen_share(None, int(batches.arrivals.sum()))
    return widened(_ratio(*_times(batches, "sojourn"), controls), unseen)


def mean_terms(
    system: System, batches: JobPieces, controls: Controls | None
) -> dict[str, np.ndarray]:
    """Return terms that average to a mean, shape (batch,) each, ratios of means linearised."""
    jobs = batches.tails[:, :, 1:].sum(axis=2) @ system.fractions
    terms = {"jobs_per_server": controls.adjusted(jobs) if controls else jobs}
    for name in batches.histograms:
        sums, count = _times(batches, name)
        if controls:
            sums, count = controls.adjusted(sums), controls.adjusted(count)
        ratio = sums.sum() / count.sum() if count.any() else np.nan
        terms[f"{name}_mean"] = ratio + (sums - ratio * count) / count.mean()
    return terms


def _times(batches: JobPieces, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the sum of a time over jobs and their number, shape (batch,)."""
    sums = batches.moments[:, :, ENTRIES[name]].sum(axis=1)
    return sums, batches.histograms[name].sum(axis=(1, 2)).astype(float)


def empty_routers(batches: JobPieces, controls: Controls | None) -> Estimate:
    """Estimate the probability that an arrival finds its router without messages."""
    return _ratio(batches.totals[:, DREW], batches.arrivals, controls)


def _ratio(numerator: np.ndarray, denominator: np.ndarray, controls: Controls | None) -> Estimate:
    numerator, denominator = numerator.astype(float), denominator.astype(float)
    if controls:
        numerator, denominator = controls.adjusted(numerator), controls.adjusted(denominator)
    return batch_ratio(numerator, denominator, controls, skewed=True)


def estimates(system: System, batches: JobPieces, controls: Controls | None) -> dict[str, Estimate]:
    """Estimate the outputs."""
    outputs = _occupancies(system, batches, controls)
    outputs |= variances(system, batches.observations, often_visited(batches.joins), controls)
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
    outputs |= _longest(batches, controls)
    seen = int(batches.arrivals.sum())
    return resolved(outputs, seen, unseen_share(None, seen))


def _longest(batches: JobPieces, controls: Controls | None) -> dict[str, Estimate]:
    """Estimate the law of the jobs at the fullest server, from observations."""
    seen, taken = batches.longest[:, 0].astype(float), batches.observations.taken
    tail = _ratio(seen, np.broadcast_to(taken[:, None], seen.shape), None)
    tail.half_width[0] = 0.0  # every server has at least no job
    return {
        "longest_queue_tail": _cut(tail),
        "longest_queue_mean": _ratio(seen[:, 1:].sum(axis=1), taken, controls),
    }


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
    system: System, batches: JobPieces, controls: Controls | None
) -> dict[str, Estimate]:
    tails = controls.adjusted(batches.tails) if controls else batches.tails
    tail = batch_mean(tails, controls)
    tail.half_width[:, 0] = 0.0  # every server has at least no job
    queues = tails[:, :, 1:].sum(axis=2)
    joins = batches.joins
    held = occupancy(batches.tails)
    time = held * np.array(system.counts)[:, None] * batches.length[:, None, None]
    by_pool = joins.sum(axis=2)
    accepted = by_pool.sum(axis=1)
    blocked = _ratio(batches.totals[:, BLOCKED], batches.arrivals, controls)
    if not system.is_bounded:
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
        "pool_utilization": Estimate(*(part[:, 1] for part in tail)),
        "pool_share": _ratio(by_pool, np.broadcast_to(accepted[:, None], by_pool.shape), controls),
    }


def _cut(estimate: Estimate) -> Estimate:
    """Leave out the last level, which was not reached."""
    return Estimate(*(part[..., :-1] for part in estimate))
