"""From a system and a policy to a labelled result with half-widths.

Each replication warms up, and is then measured in pieces of equal length, which are merged into
batches of at least `BATCH_LENGTH` autocorrelation times. For a precision, a pilot tells the
autocorrelation time, the variance, and so how long to measure. The result comes from what follows
with new random numbers: a run that ended when its own half-width happens to be small would claim
too much.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from manyserver.model import System
from manyserver.policies import Policy
from manyserver.simulation.controls import make_controls
from manyserver.simulation.kernels import make_replica
from manyserver.simulation.lengths import (
    BATCH_LENGTH,
    BATCH_SAMPLES,
    FEWEST_BATCHES,
    FEWEST_CONTROLLED,
    MOST_BATCHES,
    PIECES,
    PILOT_BATCHES,
    ROUNDING,
    SAFETY,
    WARM_UP,
    WORTH,
    divisor,
    pieces_and_samples,
    steps_between_samples,
)
from manyserver.simulation.outputs import estimates, joined, merged, sojourns
from manyserver.simulation.replica import Measured, Replica
from manyserver.simulation.saturation import certainly_stable, refuse_unstable
from manyserver.simulation.settings import Settings, checked_start
from manyserver.statistics.estimates import Controls, Estimate, autocorrelation_time, batch_mean
from manyserver.variables import HALF_WIDTH, labelled

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Run"]


class Run:
    """The replications of a system, and how long they have been simulated.

    Parameters
    ----------
    system : System
        With a number of servers.
    policy : Policy
    start_tails : numpy.ndarray, shape (pool, level)
        Fraction of the servers of each pool that hold at least ``level`` jobs at first.
    relaxation_time : float
        Time in which the system forgets its start; sets the lengths of warm-up and batches.
    settings : Settings
    """

    def __init__(
        self,
        system: System,
        policy: Policy,
        start_tails: np.ndarray,
        relaxation_time: float,
        settings: Settings,
    ):
        policy.check(system)
        self.margin = refuse_unstable(system, policy)
        start = checked_start(system, start_tails)
        self.replicas = [
            make_replica(system, policy, start, (*settings.seed, number, 0))
            for number in range(settings.replications)
        ]
        self.system, self.settings = system, settings
        self.rate, tied = self.replicas[0].rate, self.replicas[0].tied
        self.sample_steps = steps_between_samples(system, start, self.rate, tied)
        self.relaxation_time = relaxation_time
        self.autocorrelation_time = math.inf
        self.simulated_steps = 0
        self.stage = 0
        self.runs_together = 1
        self.most_batches_each = math.ceil(MOST_BATCHES / len(self.replicas))
        self.pieces = self.steps = self.period = 1
        self.measured: list[Measured] = []

    # How long to simulate

    def simulate(self, progress: Callable[[str], None]) -> None:
        """Warm up and measure, until the precision is met or the time is over."""
        if self.settings.horizon is not None:
            if self.replicas[0].limit_settles:
                self._warm_up(WARM_UP * self.relaxation_time)
            else:
                self.pilot()
            self._measure_horizon(self.settings.horizon)
            return
        began = time.perf_counter()
        self.pilot()
        while not (self.stage and self.precise):
            length = min(self.needed, self.left)
            if length < WORTH * self.pieces * self.steps / self.rate:
                return  # What has been measured says more than what may still be.
            steps = length * self.rate * len(self.replicas)
            seconds = (time.perf_counter() - began) / self.simulated_steps * steps
            progress(f"{steps:.2g} steps to go, about {seconds:.2g} s")
            self.measure_again(*self.pieces_for(length))

    def pilot(self) -> None:
        """Warm up, and measure until the autocorrelation time is known."""
        warm_up = WARM_UP * self.relaxation_time
        length = self._time_each(PILOT_BATCHES, self.relaxation_time)
        shorter = min(1.0, self.left / (warm_up + length))
        self._warm_up(warm_up * shorter)
        self._measure(*self.pieces_for(length * shorter))
        while self._too_short_for_pilot() and self.pieces * self.steps / self.rate <= self.left:
            self._double()

    def _too_short_for_pilot(self) -> bool:
        long_enough = self._time_each(PILOT_BATCHES, self._slowest) / 2
        return self.pieces * self.steps / self.rate < long_enough

    def _time_each(self, batches: float, slowest: float) -> float:
        """Time of each replication for so many batches of all."""
        return batches / len(self.replicas) * self._batch(slowest)

    def _batch(self, slowest: float) -> float:
        """Shortest time of a batch that the half-widths can rely on."""
        return max(BATCH_LENGTH * slowest, BATCH_SAMPLES * self.sample_steps / self.rate)

    @property
    def left(self) -> float:
        """Time that each replication may still be simulated."""
        return (self.settings.max_events - self.simulated_steps) / len(self.replicas) / self.rate

    @property
    def needed(self) -> float:
        """Time of each replication that gives the precision and enough batches."""
        value, half_width = self.sojourn()
        ratio = float(half_width / value) / (self.settings.precision or math.inf)
        length = self.pieces * self.steps / self.rate
        precise = SAFETY * length * ratio**2
        batches = divisor(self.pieces, self._fewest_each) * self._batch(self._slowest)
        return max(batches, 0.0 if math.isnan(precise) else precise)

    def pieces_for(self, length: float) -> tuple[int, int, int]:
        """Return the number of pieces of a replication, their steps, and those of a sample."""
        return pieces_and_samples(length * self.rate, self.sample_steps)

    def _measure_horizon(self, horizon: float) -> None:
        # Pieces of the first round are short enough to see the autocorrelation.
        slowest = self._slowest if math.isfinite(self._slowest) else self.relaxation_time
        ratio = horizon / (PIECES * slowest)
        doublings = max(0, math.ceil(math.log2(ratio)))
        self._measure(*self.pieces_for(horizon / 2**doublings))
        for _ in range(doublings):
            self._double()

    # Simulating

    def _advance(self, work: Callable[[Replica], Measured | None]) -> list[Measured | None]:
        with ThreadPoolExecutor(self.settings.threads) as pool:
            return list(pool.map(work, self.replicas))

    def _warm_up(self, length: float) -> None:
        steps = round(length * self.rate)
        self.simulated_steps += steps * len(self.replicas)
        self._advance(lambda replica: replica.warm_up(steps))

    def _measure(self, pieces: int, steps: int, period: int) -> None:
        self.pieces, self.steps, self.period = pieces, steps, period
        self.measured = self._more()
        self._time_correlations()

    def measure_again(self, pieces: int, steps: int, period: int) -> None:
        """Measure anew, with new random numbers, whatever was measured before."""
        self.stage += 1
        for number, replica in enumerate(self.replicas):
            replica.reseed((*self.settings.seed, number, self.stage))
        self._measure(pieces, steps, period)

    def _double(self) -> None:
        pairs = zip(self.measured, self._more(), strict=True)
        self.measured = [merged(joined(pair), 2) for pair in pairs]
        self.steps *= 2
        self._time_correlations()

    def _more(self) -> list[Measured]:
        pieces, steps, period = self.pieces, self.steps, self.period
        self.simulated_steps += pieces * steps * len(self.replicas)
        moments = self.settings.moments
        work = self._advance(lambda replica: replica.advance(pieces, steps, period, moments))
        return [measured for measured in work if measured is not None]

    def _time_correlations(self) -> None:
        """Estimate the autocorrelation time, unless the pieces have become too long to see it."""
        spacing = self.steps / self.rate
        tails = [one.tails[:, :, 1:].sum(axis=2) for one in self.measured]
        jobs = np.array([here @ self.system.fractions for here in tails])
        estimate = autocorrelation_time(jobs, spacing)
        if estimate > spacing or self.autocorrelation_time == math.inf:
            self.autocorrelation_time = estimate

    # Estimating

    @property
    def precise(self) -> bool:
        """Whether the half-width can be relied on and is small enough."""
        value, half_width = self.sojourn()
        limit = self.settings.precision or math.inf
        return bool(half_width <= limit * value) and self.reliable

    @property
    def reliable(self) -> bool:
        """Whether there are enough batches, all are long enough, and the system is stable."""
        batch = self.pieces * self.steps / self.rate / self.batches_each
        enough = self.batches_each * len(self.replicas) >= self._fewest
        return (
            enough
            and certainly_stable(self.margin)
            and batch >= self._batch(self._slowest) * (1 - ROUNDING)
        )

    @property
    def _slowest(self) -> float:
        return max(self.autocorrelation_time, self.relaxation_time)

    @property
    def _fewest(self) -> int:
        # Two runs that are compared share a regression, with the control variates of both.
        controlled = FEWEST_CONTROLLED * self.runs_together
        return controlled if self.settings.control_variates else FEWEST_BATCHES

    @property
    def _fewest_each(self) -> int:
        return math.ceil(self._fewest / len(self.replicas))

    @property
    def batches_each(self) -> int:
        """Batches of a replication: those that are long enough, within the bounds."""
        fitting = self.pieces * self.steps / self.rate / self._batch(self._slowest)
        long_enough = min(int(fitting / (1 - ROUNDING)), self.most_batches_each)
        if long_enough >= self._fewest_each:
            most = max(d for d in range(1, long_enough + 1) if self.pieces % d == 0)
            if most >= self._fewest_each:
                return most
        return divisor(self.pieces, self._fewest_each)

    def batches(self) -> Measured:
        """Merge the pieces into batches, those of all replications one after another."""
        size = self.pieces // self.batches_each
        return joined([merged(one, size) for one in self.measured])

    def controls(self, batches: Measured) -> Controls | None:
        """Choose the control variates, if there are to be any."""
        if not self.settings.control_variates:
            return None
        return make_controls([self.system], [batches], [self.replicas[0].own_controls(batches)])

    @property
    def batch_length(self) -> float:
        """Time of a batch."""
        return self.pieces * self.steps / self.rate / self.batches_each

    def sojourn(self) -> Estimate:
        """Estimate the mean sojourn time."""
        batches = self.batches()
        controls = self.controls(batches)
        return batch_mean(sojourns(self.system, batches, controls, self.batch_length), controls)

    def result(self, more: Mapping[str, object] | None = None) -> xr.Dataset:
        """Estimate every output from the batches, and add `more` variables."""
        batches = self.batches()
        controls = self.controls(batches)
        length = self.pieces * self.steps / self.rate
        outputs = estimates(self.system, batches, controls, self.batch_length)
        outputs |= self.replicas[0].own_outputs(batches, controls)
        if self.margin is not None:
            outputs["stability_margin"] = self.margin
        values: dict[str, object] = {}
        for name, estimate in outputs.items():
            values[name], values[name + HALF_WIDTH] = estimate
        values["simulated_time"] = len(self.replicas) * length
        values["n_events"] = int(batches.events.sum())
        values["n_batches"] = len(batches.tails)
        values["n_controls"] = controls.rank if controls else 0
        values["autocorrelation_time"] = self.autocorrelation_time
        values["interval_reliable"] = self.reliable
        if self.settings.precision is not None:
            values["precision_met"] = self.precise
        return labelled(values | dict(more or {}), self.system)
