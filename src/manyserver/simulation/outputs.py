"""From what was measured to the outputs, with half-widths."""

import math

import numpy as np

from manyserver.model import System
from manyserver.outputs import occupancy
from manyserver.simulation.controls import VISITS, often_visited, sampled
from manyserver.simulation.lengths import NEVER_SEEN
from manyserver.simulation.observations import Observations
from manyserver.simulation.replica import Measured
from manyserver.statistics.estimates import Controls, Estimate, batch_mean, batch_ratio
from manyserver.variables import MOMENT_LEVELS

__all__ = [
    "arrivals",
    "estimates",
    "queues",
    "resolved",
    "sojourn_mean",
    "sojourns",
    "unseen_share",
    "variances",
    "widened",
]


def sojourns(
    system: System, batches: Measured, controls: Controls | None, length: float
) -> np.ndarray:
    """Return terms that average to the mean sojourn time of accepted jobs, shape (batch,).

    Little's law; where jobs are blocked, a ratio of means, linearised.
    """
    jobs = queues(system, batches, controls) @ system.fractions
    if not _bounded(system):
        return np.asarray(jobs / system.arrival_rate)
    rate = system.arrival_rate * (1 - _blocked(system, batches, controls))
    if controls is None:
        rate = batches.accepted / (system.finite_servers * length)
    if not rate.any():
        return np.full(len(rate), np.nan)
    ratio = jobs.sum() / rate.sum()
    return np.asarray(ratio + (jobs - ratio * rate) / rate.mean())


def _bounded(system: System) -> bool:
    return system.is_bounded


def _blocked(system: System, batches: Measured, controls: Controls | None) -> np.ndarray:
    """Return the probability that an arrival is blocked, from observations, shape (batch,)."""
    blocked = batches.observations.blocked / batches.observations.taken
    return _adjusted(blocked, _often(batches.blocked.sum(axis=1)), controls)


def _often(occurred: np.ndarray) -> np.ndarray:
    """Whether something occurred often enough to be adjusted, given shape (batch,)."""
    return np.asarray(occurred.sum() >= VISITS * len(occurred))


def _tails(system: System, batches: Measured, controls: Controls | None) -> np.ndarray:
    """Return the queue tails, observed if there are controls for them, or over all the time."""
    if controls is None:
        return batches.tails
    return np.where(
        often_visited(batches.joins), sampled(system, batches.observations)[0], batches.tails
    )


def queues(system: System, batches: Measured, controls: Controls | None) -> np.ndarray:
    """Return the number of jobs at a server of each pool, adjusted, shape (batch, pool)."""
    jobs = _tails(system, batches, controls)[:, :, 1:].sum(axis=2)
    return controls.adjusted(jobs) if controls else jobs


def estimates(
    system: System, batches: Measured, controls: Controls | None, length: float
) -> dict[str, Estimate]:
    """Estimate the outputs.

    Parameters
    ----------
    batches : Measured
        From :func:`joined`.
    controls : Controls or None
        Of these batches.
    length : float
        Length of a batch, in units of time.
    """
    often = often_visited(batches.joins)
    measured = _tails(system, batches, controls)
    tails, tail = _adjusted(measured, often, controls), _means(measured, often, controls)
    tail.value[:, 0], tail.half_width[:, 0] = 1.0, 0.0  # every server has at least no job
    in_pools = queues(system, batches, controls)
    joins, waits = _joins(system, batches, often, controls, length)
    # As many jobs join a pool as leave it.
    served = system.fractions * system.speeds * tails[:, :, 1]
    accepted = np.broadcast_to(served.sum(axis=1, keepdims=True), served.shape)
    outputs = {
        "queue_tail": _cut(tail),
        "queue_mean": batch_mean(in_pools, controls),
        "jobs_per_server": batch_mean(in_pools @ system.fractions, controls),
        "sojourn_mean": sojourn_mean(system, batches, controls, length),
        "pool_share": batch_ratio(served, accepted, controls),
        "pool_utilization": Estimate(*(part[:, 1] for part in tail)),
        "waiting_probability": waits,
        "joining_rate": _cut(joins),
        "blocking_probability": _blocking(system, batches, controls),
    }
    outputs |= variances(system, batches.observations, often, controls)
    seen = arrivals(batches)
    return resolved(outputs, seen, unseen_share(batches.joins, seen))


def arrivals(batches: Measured) -> int:
    """Return the number of arrivals, accepted or not."""
    return int(batches.accepted.sum() + batches.blocked.sum())


def sojourn_mean(
    system: System, batches: Measured, controls: Controls | None, length: float
) -> Estimate:
    """Estimate the mean sojourn time of accepted jobs; parameters as for :func:`estimates`."""
    mean = batch_mean(sojourns(system, batches, controls, length), controls)
    return widened(mean, unseen_share(batches.joins, arrivals(batches)))


def unseen_share(joins: np.ndarray | None, seen: int) -> float:
    """Return which share of the arrivals may meet what none met; NaN if none was seen.

    It is at most ``NEVER_SEEN / seen``, with 95 % confidence. Where tails fall at least
    geometrically, as those of exponential jobs do, it is no more than the highest two levels
    that were found allow.

    Parameters
    ----------
    joins : numpy.ndarray, shape (batch, pool, level), or None
        Accepted arrivals by the level that they found, if the tails are such.
    seen : int
        Number of arrivals.

    Examples
    --------
    >>> unseen_share(np.array([[[9000, 1000, 0, 0]]]), 10_000)
    0.0003
    >>> round(unseen_share(np.array([[[9000, 1000, 10, 0]]]), 10_010), 7)
    1.69e-05
    """
    if not seen:
        return math.nan
    if joins is None:
        return NEVER_SEEN / seen
    return max(min(NEVER_SEEN, _next(found)) for found in joins.sum(axis=0)) / seen


def _next(found: np.ndarray) -> float:
    """Bound the mean number of arrivals that find the first level that none of these found."""
    found = found[found > 0]
    return float((found[-1] + NEVER_SEEN) ** 2 / found[-2]) if len(found) > 1 else NEVER_SEEN


def widened(mean: Estimate, unseen: float) -> Estimate:
    """Widen an interval by what a share of the arrivals may meet that none met."""
    if math.isnan(unseen):
        return _unknown(mean)
    value, half_width = mean
    return Estimate(value, np.maximum(half_width, unseen * value))


def resolved(outputs: dict[str, Estimate], seen: int, unseen: float) -> dict[str, Estimate]:
    """Tell of what none of so many arrivals met, or all of them, that it may be otherwise.

    Without any arrival, nothing is known.
    """
    if not seen:
        return {name: _unknown(estimate) for name, estimate in outputs.items()}
    told = outputs | {"jobs_per_server": widened(outputs["jobs_per_server"], unseen)}
    for name in ("waiting_probability", "blocking_probability"):
        value, half_width = outputs[name]
        never = (value == 0) & np.isnan(half_width) | (value == 1)
        told[name] = Estimate(value, np.where(never, NEVER_SEEN / seen, half_width))
    return told


def _unknown(estimate: Estimate) -> Estimate:
    nothing = np.full_like(estimate.value, np.nan)
    return Estimate(nothing, nothing)


def _blocking(system: System, batches: Measured, controls: Controls | None) -> Estimate:
    if not _bounded(system):
        return Estimate(np.zeros(()), np.zeros(()))
    if controls is None:
        blocked = batches.blocked.sum(axis=1)
        return batch_ratio(blocked, batches.accepted + blocked)
    blocked = batches.observations.blocked / batches.observations.taken
    return _means(blocked, _often(batches.blocked.sum(axis=1)), controls)


def _cut(estimate: Estimate) -> Estimate:
    """Leave out the last level, which was not reached."""
    return Estimate(*(part[..., :-1] for part in estimate))


def _adjusted(values: np.ndarray, often: np.ndarray, controls: Controls | None) -> np.ndarray:
    """Adjust the batches (batch, ...) of what is often visited, (...)."""
    return np.where(often, controls.adjusted(values), values) if controls else values


def _means(values: np.ndarray, often: np.ndarray, controls: Controls | None) -> Estimate:
    """Average batches (batch, ...), those adjusted of what is often visited, (...).

    The interval of what is not adjusted has nothing to do with the control variates: a batch in
    which it happens may be one that they hardly weigh.
    """
    plain = batch_ratio(values, np.ones_like(values), skewed=True)
    if controls is None:
        return plain
    return _chosen(often, batch_mean(controls.adjusted(values), controls), plain)


def _chosen(first_if: np.ndarray, first: Estimate, second: Estimate) -> Estimate:
    return Estimate(*(np.where(first_if, *both) for both in zip(first, second, strict=True)))


def _joins(
    system: System,
    batches: Measured,
    often: np.ndarray,
    controls: Controls | None,
    length: float,
) -> tuple[Estimate, Estimate]:
    """Estimate the joining rates and the waiting probability.

    With control variates from the joining law at the sampled states, else from the arrivals.
    """
    waiting = batches.joins[:, :, 1:].sum(axis=(1, 2))
    if controls is None:
        arrivals = batches.accepted + batches.blocked.sum(axis=1)
        held = occupancy(batches.tails) * np.array(system.counts)[:, None] * length
        waits = batch_ratio(waiting, arrivals)
        return batch_ratio(batches.joins, held), waits
    tails, joining = sampled(system, batches.observations)
    waits = _means(joining[:, :, 1:].sum(axis=(1, 2)), _often(waiting), controls)
    # Arrivals that find level k are as many as the visits to level k + 1.
    leave_often = np.concatenate([often[:, 1:], np.zeros((len(often), 1), dtype=bool)], axis=1)
    joined = system.arrival_rate * joining
    held = system.fractions[:, None] * occupancy(tails)
    adjusted = batch_ratio(controls.adjusted(joined), controls.adjusted(held), controls)
    return _chosen(leave_often, adjusted, batch_ratio(joined, held)), waits


def variances(
    system: System, observations: Observations, often: np.ndarray, controls: Controls | None
) -> dict[str, Estimate]:
    """Estimate variances over time, N times, from the deviations from the estimated means.

    Parameters
    ----------
    observations : Observations
        Sums over the observations of each batch.
    often : numpy.ndarray, shape (pool, level)
        Levels that are visited often enough to be adjusted.
    """
    servers = system.finite_servers
    count = observations.taken
    tails, _ = sampled(system, observations)
    mean = _adjusted(tails, often, controls).mean(axis=0)
    squares = observations.squares / (count[:, None, None] * np.array(system.counts)[:, None] ** 2)
    variance = servers * (squares - 2 * mean * tails + mean**2)
    jobs = tails[:, :, 1:].sum(axis=2) @ system.fractions
    jobs_mean = float(_adjusted(jobs, np.array(True), controls).mean())
    jobs_variance = observations.squared_jobs / count - 2 * jobs_mean * jobs + jobs_mean**2
    tail_variance = _means(variance, often, controls)
    for part in tail_variance:
        part[:, 0] = 0.0  # every server has at least no job
    outputs = {
        "queue_tail_variance": _cut(tail_variance),
        "jobs_per_server_variance": _means(servers * jobs_variance, np.array(True), controls),
    }
    if observations.products.shape[2]:
        outputs["occupancy_covariance"] = _covariance(system, observations, often, controls)
    return outputs


def _covariance(
    system: System, observations: Observations, often: np.ndarray, controls: Controls | None
) -> Estimate:
    """Estimate N times the covariance of the fractions of servers in two classes."""
    levels = observations.tails.shape[2] - 1
    used = min(levels, MOMENT_LEVELS)
    servers = np.array(system.counts)
    products = observations.products[:, :, :used, :, :used]
    # The kernel adds up one half of the pairs.
    products = _mirrored(products) / observations.multiplied[:, None, None, None, None]
    products = products / (servers[:, None, None, None] * servers[:, None])
    held = occupancy(sampled(system, observations)[0])[:, :, :used]
    mean = _adjusted(held, often[:, :used], controls).mean(axis=0)
    cross = held[..., None, None] * mean
    centred = products - cross - np.moveaxis(cross, (1, 2), (3, 4)) + mean[..., None, None] * mean
    both = often[:, :used, None, None] & often[:, :used]
    estimate = _means(system.finite_servers * centred, both, controls)
    more = ((0, 0), (0, levels - used)) * 2
    return Estimate(*(np.pad(part, more, constant_values=np.nan) for part in estimate))


def _mirrored(products: np.ndarray) -> np.ndarray:
    """Fill in the pairs of an earlier pool with a later one."""
    turned = np.moveaxis(products, (1, 2), (3, 4))
    n_pools = products.shape[1]
    later = np.arange(n_pools)[:, None] < np.arange(n_pools)
    return np.where(later[:, None, :, None], turned, products)
