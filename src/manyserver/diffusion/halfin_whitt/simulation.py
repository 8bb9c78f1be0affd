"""Join the shortest queue, simulated: a check of the exact laws that shares nothing with them."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from manyserver.checks import checked_count, checked_number
from manyserver.diffusion.halfin_whitt.checks import (
    check_beta,
    check_n,
)
from manyserver.diffusion.halfin_whitt.labels import labelled
from manyserver.statistics.estimates import Controls, batch_mean

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["empty_queues", "simulate_chain"]

RELAXATIONS_PER_BATCH = 20
RELAXATIONS_TO_WARM_UP = 10
FEWEST_BATCHES = 16
DEFAULT_BATCHES = 64
MOST_BATCHES = 512
BLOCK = 1 << 16
"""Events drawn at a time."""


def simulate_chain(
    beta: float,
    n: int,
    *,
    horizon: float | None = None,
    seed: int = 1,
    replications: int = 4,
    threads: int | None = None,
) -> xr.Dataset:
    r"""Simulate join the shortest queue with n servers in the stationary state.

    Parameters
    ----------
    beta : float
        Spare capacity, > 0: the arrival rate per server is :math:`1-\beta/\sqrt n`.
    n : int
        Servers, so many that the arrival rate is positive.
    horizon : float, optional
        Time to measure, all replications together. By default 64 batches of 20 relaxation times.
        It costs about 2 n events per unit of time.
    seed : int
        Seed, >= 0; the same seed gives the same result with any number of threads.
    replications : int
        Independent runs, each warmed up for 10 relaxation times.
    threads : int, optional
        Runs at a time; by default as many as there are processors.

    Returns
    -------
    xarray.Dataset
        ``q2_mean``, ``q3_mean``, ``waiting_probability``, each with ``_half_width`` (95 %), and
        ``q1_mean``, which is known; ``variance_reduction`` of the mean Q2 by the control
        variates, ``simulated_time``, ``n_events``, ``n_batches``. A half-width is NaN if too few
        batches contribute to the mean to tell; then a longer horizon is needed.

    Raises
    ------
    ValueError
        If a parameter is out of its range, or the horizon is shorter than 16 batches of 20
        relaxation times.

    Notes
    -----
    Events of the uniformised chain are counted, not timed. Three control variates have mean zero
    exactly: :math:`Q_1 - n\lambda`, :math:`Q_2 - n\lambda 1(Q_1=n)` (Lemma 2 of
    arXiv:1801.05121), and :math:`(Q_1-n\lambda)T - n\lambda` for the number of customers T.

    Examples
    --------
    >>> result = simulate_chain(1.0, 25, seed=1)
    >>> bool(abs(result.q2_mean - 2.33) < 0.2)
    True
    """
    beta = check_beta(beta)
    n = check_n(n, beta)
    replications = checked_count("replications", replications)
    if threads is not None:
        checked_count("threads", threads)
    seed = checked_count("seed", seed, 0)
    horizon, per_run = batches_per_run(beta, horizon, replications)
    n_batches = per_run * replications
    arrivals = 1 - beta / math.sqrt(n)
    rate = n * (1 + arrivals)
    events = math.ceil(horizon / n_batches * rate)
    warm_up = math.ceil(RELAXATIONS_TO_WARM_UP * relaxation_time(beta) * rate)
    streams = np.random.SeedSequence(seed).spawn(replications)

    def run(stream: np.random.SeedSequence) -> np.ndarray:
        rng = np.random.Generator(np.random.SFC64(stream))
        return _batches(beta, n, rng, warm_up, events, per_run)

    with ThreadPoolExecutor(threads) as pool:
        means = np.concatenate(list(pool.map(run, streams))) / events
    values = _estimates(means, n - beta * math.sqrt(n))
    values |= {
        "simulated_time": n_batches * events / rate,
        "n_events": n_batches * events,
        "n_batches": n_batches,
    }
    attrs = {"method": "simulation", "beta": beta, "n_servers": n, "seed": seed}
    return labelled(values, {}, attrs)


def batches_per_run(beta: float, horizon: float | None, replications: int) -> tuple[float, int]:
    """Return the time to measure, by default a suitable one, and the batches of every run.

    Raises
    ------
    ValueError
        If the horizon is too short for enough batches, or for so many replications.
    """
    shortest = RELAXATIONS_PER_BATCH * relaxation_time(beta)
    if horizon is None:
        horizon = DEFAULT_BATCHES * shortest
    horizon = checked_number("horizon", horizon)
    if horizon < FEWEST_BATCHES * shortest:
        raise ValueError(
            f"horizon = {horizon!r}: must be at least {FEWEST_BATCHES * shortest:g}, which is "
            f"{FEWEST_BATCHES} batches of {RELAXATIONS_PER_BATCH} relaxation times"
        )
    most = min(MOST_BATCHES, int(horizon / shortest))
    if replications > most:
        raise ValueError(f"replications = {replications}: must be at most {most} for this horizon")
    return horizon, most // replications


def relaxation_time(beta: float) -> float:
    """Return about one over the spectral gap of the diffusion, for any beta.

    The gap tends to ``2 beta**2 / 9`` for small beta; it is 0.054 at 0.5, 0.20 at 1 and 0.61 at 2.
    That of the queues is larger.
    """
    return 4.5 / beta**2 + 0.6


def empty_queues(beta: float, n: int) -> np.ndarray:
    """Return the counts of an empty system, with more levels than any run reaches.

    Customers that find all levels full are lost. As ``P(Q_i = n)`` falls by ``lambda**n`` from
    level to level, less than ``exp(-60)`` of them are.
    """
    return np.zeros(4 + math.ceil(60 / (beta * math.sqrt(n))), np.int64)


def _batches(
    beta: float, n: int, rng: np.random.Generator, warm_up: int, events: int, count: int
) -> np.ndarray:
    """Simulate one run; sums over each batch, shape (batch, 5)."""
    from manyserver.diffusion.halfin_whitt.jsq_kernel import accumulate

    arrivals = 1 - beta / math.sqrt(n)
    queues = empty_queues(beta, n)
    queues[0] = round(n * arrivals)
    buffer = np.empty(BLOCK)
    sums = np.zeros((count + 1, 5))
    for batch, length in enumerate([warm_up, *[events] * count]):
        while length > 0:
            block = buffer[: min(length, BLOCK)]
            rng.random(out=block)
            accumulate(queues, n, arrivals, block, sums[batch])
            length -= block.size
    return sums[1:]


def _estimates(means: np.ndarray, arrivals: float) -> dict[str, object]:
    """Means and half-widths from batch means; `arrivals` is the rate of all servers together."""
    first, second, third, full, product = means.T
    controls = Controls(
        np.column_stack([first - arrivals, second - arrivals * full, product - arrivals])
    )
    # Customers wait if all servers are busy, and E Q2 counts just these.
    responses = np.column_stack([second, third, second / arrivals])
    estimate = batch_mean(controls.adjusted(responses), controls)
    plain = batch_mean(responses)
    # What a few batches contribute most of is rare, and its interval would be too short.
    even = responses.sum(axis=0) ** 2 >= FEWEST_BATCHES * (responses**2).sum(axis=0)
    half_widths = np.where(even & (responses > 0).any(axis=0), estimate.half_width, np.nan)
    values: dict[str, object] = {"q1_mean": arrivals}
    for column, name in enumerate(("q2_mean", "q3_mean", "waiting_probability")):
        values[name] = estimate.value[column]
        values[f"{name}_half_width"] = half_widths[column]
    values["variance_reduction"] = (plain.half_width[0] / estimate.half_width[0]) ** 2
    return values
