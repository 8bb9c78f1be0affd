"""From a system and a policy to a labelled result with half-widths.

Each replication warms up, and is then measured in short pieces of equal length. Pieces are merged
into batches of at least `BATCH_LENGTH` autocorrelation times. A run is made longer by doubling it
and merging its pieces in pairs, so that their number stays the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from manyserver.model import System
from manyserver.policies import Policy
from manyserver.simulation.outputs import doubled, estimates, first_levels, levels_reached
from manyserver.simulation.replica import Measured, Replica, step_rate
from manyserver.simulation.settings import Settings, checked_settings, checked_start
from manyserver.statistics.estimates import autocorrelation_time, batch_mean, merge_batches
from manyserver.variables import HALF_WIDTH, labelled

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["run"]

PIECES = 128
"""Pieces of a replication; a power of two."""
WARM_UP = 10
"""Length of the warm-up, in relaxation times."""
BATCH_LENGTH = 20
"""Shortest batch that the half-widths can rely on, in autocorrelation times."""
FEWEST_BATCHES = 32
MOST_BATCHES = 128
"""With more, the interval hardly shrinks; longer batches are safer."""
ROUNDING = 0.01
"""Batches may be shorter by this fraction, as pieces are whole numbers of steps."""


def run(
    system: System,
    policy: Policy,
    start_tails: np.ndarray,
    relaxation_time: float,
    *,
    seed: int | Sequence[int] = 1,
    precision: float | None = None,
    horizon: float | None = None,
    replications: int = 8,
    threads: int | None = None,
    max_events: float = 1e10,
) -> xr.Dataset:
    """Simulate from given queue tails; see :func:`manyserver.simulate` for the other parameters.

    Parameters
    ----------
    start_tails : numpy.ndarray, shape (pool, level)
        Fraction of the servers of each pool that hold at least ``level`` jobs at first.
    relaxation_time : float
        Time in which the system forgets its start; sets the lengths of warm-up and batches.
    """
    settings = checked_settings(system, seed, precision, horizon, replications, threads, max_events)
    policy.check(system)
    start = checked_start(system, start_tails)
    replicas = [
        Replica(system, policy, start, (*settings.seed, number))
        for number in range(settings.replications)
    ]
    work = _Run(system, replicas, relaxation_time, settings)
    work.simulate()
    return work.result()


class _Run:
    """The replications of a system, and how long they have been simulated."""

    def __init__(
        self, system: System, replicas: list[Replica], relaxation_time: float, settings: Settings
    ):
        self.system, self.replicas, self.settings = system, replicas, settings
        self.rate = step_rate(system)
        self.relaxation_time = relaxation_time
        self.autocorrelation_time = math.inf
        self.simulated_steps = 0
        self.measured: list[Measured] = []

    def simulate(self) -> None:
        """Warm up and measure, until the precision is met or the time is over."""
        warm_up, length, doublings = self._lengths()
        self._warm_up(round(warm_up * self.rate))
        self.pieces = PIECES if length * self.rate >= PIECES else 1
        self.steps = max(1, round(length * self.rate / self.pieces))
        self.measured = self._measure()
        self._time_correlations()
        while doublings > 0 or (self.settings.horizon is None and self._worth_doubling()):
            more = self._measure()
            self.measured = [doubled(*pair) for pair in zip(self.measured, more, strict=True)]
            self.steps *= 2
            doublings -= 1
            self._time_correlations()

    def _lengths(self) -> tuple[float, float, int]:
        """Return times to warm up and to measure at first, and how often to double the latter."""
        warm_up = WARM_UP * self.relaxation_time
        if self.settings.horizon is not None:
            # Pieces of the first round are short enough to see the autocorrelation.
            ratio = self.settings.horizon / (PIECES * self.relaxation_time)
            doublings = max(0, math.ceil(math.log2(ratio)))
            return warm_up, self.settings.horizon / 2**doublings, doublings
        length = self._fewest_batches * BATCH_LENGTH * self.relaxation_time
        allowed = self.settings.max_events / len(self.replicas) / self.rate
        shorter = min(1.0, allowed / (warm_up + length))
        return warm_up * shorter, length * shorter, 0

    @property
    def _fewest_batches(self) -> int:
        """Batches needed from each replication: a power of two, as is the number of pieces."""
        return self._share(FEWEST_BATCHES)

    def _share(self, batches: int) -> int:
        return 1 << max(0, math.ceil(math.log2(batches / len(self.replicas))))

    def _warm_up(self, steps: int) -> None:
        self.simulated_steps = steps * len(self.replicas)
        with ThreadPoolExecutor(self.settings.threads) as pool:
            list(pool.map(lambda replica: replica.warm_up(steps), self.replicas))

    def _measure(self) -> list[Measured]:
        pieces, steps = self.pieces, self.steps
        self.simulated_steps += pieces * steps * len(self.replicas)
        with ThreadPoolExecutor(self.settings.threads) as pool:
            return list(pool.map(lambda replica: replica.advance(pieces, steps), self.replicas))

    def _time_correlations(self) -> None:
        """Estimate the autocorrelation time, unless the pieces have become too long to see it."""
        spacing = self.steps / self.rate
        estimate = autocorrelation_time(self._jobs(), spacing)
        if estimate > spacing or self.autocorrelation_time == math.inf:
            self.autocorrelation_time = estimate

    def _jobs(self) -> np.ndarray:
        """Jobs per server, shape (replication, piece)."""
        tails = [here.tails[:, :, 1:].sum(axis=2) for here in self.measured]
        return np.array([here @ self.system.fractions for here in tails])

    def _worth_doubling(self) -> bool:
        again = self.pieces * self.steps * len(self.replicas)
        return not self.precise and self.simulated_steps + again <= self.settings.max_events

    @property
    def precise(self) -> bool:
        """Whether the half-width can be relied on and is small enough."""
        value, half_width = batch_mean(self._batches(self._jobs()))
        limit = self.settings.precision or math.inf
        return bool(half_width <= limit * value) and self.reliable

    @property
    def reliable(self) -> bool:
        """Whether there are enough batches, and all of them are long enough."""
        batch = self.pieces * self.steps / self.rate / self.batches_each
        enough = self.batches_each * len(self.replicas) >= FEWEST_BATCHES
        return enough and batch >= self._shortest_batch

    @property
    def batches_each(self) -> int:
        """Batches of a replication: those that are long enough, within the bounds."""
        fitting = self.pieces * self.steps / self.rate / self._shortest_batch
        long_enough = 1 << math.floor(math.log2(max(fitting, 1.0)))
        wanted = min(max(long_enough, self._fewest_batches), self._share(MOST_BATCHES))
        return min(wanted, self.pieces)

    @property
    def _shortest_batch(self) -> float:
        slowest = max(self.autocorrelation_time, self.relaxation_time)
        return BATCH_LENGTH * slowest * (1 - ROUNDING)

    def _batches(self, pieces: np.ndarray) -> np.ndarray:
        """Merge pieces (replication, piece, ...) into batches of all replications."""
        size = self.pieces // self.batches_each
        return np.concatenate([merge_batches(one, size) for one in pieces])

    def result(self) -> xr.Dataset:
        """Estimate every output from the batches."""
        levels = max(levels_reached(one.tails) for one in self.measured)
        tails = np.array([first_levels(one.tails, levels + 1) for one in self.measured])
        joins = np.array([first_levels(one.joins, levels) for one in self.measured])
        length = self.steps / self.rate
        values: dict[str, object] = {}
        for name, estimate in estimates(
            self.system, self._batches(tails), self._batches(joins), length
        ).items():
            values[name], values[name + HALF_WIDTH] = estimate
        values["simulated_time"] = len(self.replicas) * self.pieces * length
        values["n_events"] = sum(int(one.events.sum()) for one in self.measured)
        values["n_batches"] = len(self.replicas) * self.batches_each
        values["autocorrelation_time"] = self.autocorrelation_time
        values["interval_reliable"] = self.reliable
        if self.settings.precision is not None:
            values["precision_met"] = self.precise
        return labelled(values, self.system)
