"""From a system, a policy and a law of the sizes to a labelled result with half-widths.

Every replication starts with the queues of the mean field, works on jobs of which a random part
is left, and warms up. A pilot tells the autocorrelation time and the variance, and so how long to
measure; the result comes from what follows with new random numbers.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from manyserver.model import System
from manyserver.policies import Policy
from manyserver.policies.pull import Pull
from manyserver.simulation.jobs.outputs import (
    Batches,
    empty_routers,
    estimates,
    joined,
    make_controls,
    sojourn_mean,
)
from manyserver.simulation.jobs.replica import JobReplica, Measured
from manyserver.simulation.lengths import (
    BATCH_LENGTH,
    FEWEST_ARRIVALS,
    FEWEST_BATCHES,
    MOST_BATCHES,
    PILOT_BATCHES,
    ROUNDING,
    SAFETY,
    WARM_UP,
    WORTH,
    longer_for_arrivals,
)
from manyserver.simulation.saturation import certainly_stable, refuse_unstable
from manyserver.simulation.settings import Settings, checked_start
from manyserver.sizes import SizeLaw
from manyserver.statistics.estimates import Controls, autocorrelation_time
from manyserver.variables import DECILES, HALF_WIDTH, QUANTILES, labelled

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["JobRun"]

T = TypeVar("T")

RARE = 0.001
"""The warm-up lasts until jobs that are larger than all but this part of the work in service at a
random time have left."""
MOST_PIECES = 40
"""In a batch; so many are enough to see the autocorrelation."""
SHORTEST_PIECE = 1.0
"""In units of time; all servers are visited at the end of a piece."""
INFINITE_VARIANCE = "the sizes have infinite variance, so that the half-widths cannot be relied on"
INFINITE_WAITING = "; the mean waiting time of a single server would be infinite"


def slowest_sizes(sizes: SizeLaw) -> tuple[float, float]:
    """Say how long the sizes make a system remember.

    Returns
    -------
    largest : float
        Work left that is exceeded with probability 0.001 at a server at a random time.
    factor : float
        Mean of what is left, not counting more than that, over the mean size; at least one.
    """
    largest = float(sizes.residual_quantile(1 - RARE))
    grid = np.concatenate([[0.0], np.geomspace(1e-3 * sizes.mean, max(largest, sizes.mean), 400)])
    left = np.trapezoid(1 - sizes.residual_cdf(grid), grid)
    return largest, max(1.0, float(left) / sizes.mean)


class JobRun:
    """The replications of a system whose jobs are followed.

    Parameters
    ----------
    system : System
        With a number of servers.
    policy : Policy
    sizes : SizeLaw
        Of mean one.
    discipline : {"ps", "fcfs"}
    start_tails : numpy.ndarray, shape (pool, level)
        Fraction of the servers of each pool that hold at least ``level`` jobs at first.
    relaxation_time : float
        Time in which the system with exponential sizes forgets its start.
    settings : Settings

    Raises
    ------
    ValueError
        If the policy does not fit the system.
    UnstableSystem
        If some pools get more work than they can do; where only a simulation can tell, one with
        exponential sizes does.
    """

    def __init__(
        self,
        system: System,
        policy: Policy,
        sizes: SizeLaw,
        discipline: str,
        start_tails: np.ndarray,
        relaxation_time: float,
        settings: Settings,
    ):
        policy.check(system)
        self.margin = refuse_unstable(system, policy)
        start = checked_start(system, start_tails)
        self.system, self.policy = system, policy
        self.sizes, self.discipline = sizes, discipline
        self.settings = settings
        largest, factor = slowest_sizes(sizes)
        self.relaxation_time = factor * relaxation_time
        sojourn = float(start[:, 1:].sum(axis=1) @ system.fractions) / system.arrival_rate
        self.warm_up_time = max(WARM_UP * self.relaxation_time, largest * max(1.0, sojourn))
        self.replicas = [
            JobReplica(
                system, policy, sizes, discipline == "ps", start, (*settings.seed, number, 0)
            )
            for number in range(settings.replications)
        ]
        self.autocorrelation_time = math.inf
        self.settled = True
        self.stage, self.arrivals = 0, 0
        self.batches_each = self.pieces = 1
        self.piece = self.length = 0.0
        self.measured: list[Measured] = []

    # How long to simulate

    def simulate(self, progress: Callable[[str], None]) -> None:
        """Warm up and measure, until the precision is met or the events are used up."""
        began = time.perf_counter()
        horizon = self.settings.horizon
        if horizon is not None:
            self._refuse_endless_warm_up()
            left = self.left - horizon
            self.settled = self.warm_up_time <= left
            self._warm_up(min(self.warm_up_time, max(0.0, left)))
            self._measure(horizon)
            return
        pilot = self._shortest(PILOT_BATCHES)
        shorter = min(1.0, self.left / (self.warm_up_time + pilot))
        self._warm_up(shorter * self.warm_up_time)
        self._measure(shorter * pilot)
        while not (self.stage and self.precise):
            length = min(self.needed, self.left)
            if length < WORTH * self.length:
                return  # What has been measured says more than what may still be.
            arrivals = length * self.system.arrival_rate * sum(self.system.counts)
            each = (time.perf_counter() - began) / max(1, self.arrivals)
            seconds = each * arrivals * len(self.replicas)
            progress(f"{2 * arrivals * len(self.replicas):.2g} events to go, about {seconds:.2g} s")
            self.stage += 1
            for number, replica in enumerate(self.replicas):
                replica.reseed((*self.settings.seed, number, self.stage))
            self._measure(length)

    def _refuse_endless_warm_up(self) -> None:
        if self.warm_up_time > self.left:
            raise ValueError(
                f"sizes = {self.sizes!r}: are so large that the warm-up lasts "
                f"{self.warm_up_time:.2g} units of time, which takes more than max_events = "
                f"{self.settings.max_events:g} events; must have a lighter tail"
            )

    @property
    def left(self) -> float:
        """Time that each replication may still be simulated; an event is half an arrival."""
        arrivals = self.settings.max_events / 2 - self.arrivals
        rate = self.system.arrival_rate * sum(self.system.counts)
        return max(0.0, arrivals / len(self.replicas) / rate)

    @property
    def needed(self) -> float:
        """Time of each replication that gives the precision and enough batches."""
        batches = self.batches()
        value, half_width = sojourn_mean(batches, self.controls(batches))
        precision = self.settings.precision or math.inf
        longer = longer_for_arrivals(int(batches.arrivals.sum()), precision)
        if longer == 1:
            ratio = float(half_width / value) / precision
            longer = 0.0 if math.isnan(ratio) else SAFETY * ratio**2
        return max(self._shortest(FEWEST_BATCHES), longer * self.length)

    def _shortest(self, batches: int) -> float:
        """Time of each replication for so many of the shortest batches."""
        return math.ceil(batches / len(self.replicas)) * BATCH_LENGTH * self._slowest

    @property
    def _slowest(self) -> float:
        seen = self.autocorrelation_time
        return max(self.relaxation_time, seen if math.isfinite(seen) else 0.0)

    # Simulating

    def _each(self, work: Callable[[JobReplica], T]) -> list[T]:
        with ThreadPoolExecutor(self.settings.threads) as pool:
            return list(pool.map(work, self.replicas))

    def _warm_up(self, length: float) -> None:
        self.arrivals += sum(self._each(lambda replica: replica.warm_up(length)))

    def _measure(self, length: float) -> None:
        fewest = math.ceil(FEWEST_BATCHES / len(self.replicas))
        most = math.ceil(MOST_BATCHES / len(self.replicas))
        fitting = int(length / (BATCH_LENGTH * self._slowest))
        self.batches_each = min(max(fitting, fewest), most)
        batch = length / self.batches_each
        longest = max(SHORTEST_PIECE, self._slowest / 2, batch / MOST_PIECES)
        self.pieces = max(1, int(batch / longest))
        self.piece, self.length = batch / self.pieces, length
        most_followed = self.left * self.system.arrival_rate * sum(self.system.counts)
        self.measured = self._each(
            lambda replica: replica.measure(
                self.batches_each, self.pieces, self.piece, most_followed
            )
        )
        self.arrivals += sum(int(one.totals[:, 0].sum()) + one.followed for one in self.measured)
        jobs = [one.tails[:, :, 1:].sum(axis=2) @ self.system.fractions for one in self.measured]
        estimate = autocorrelation_time(np.array(jobs), self.piece)
        if estimate > self.piece or self.autocorrelation_time == math.inf:
            self.autocorrelation_time = estimate

    # Estimating

    @property
    def precise(self) -> bool:
        """Whether the half-width is small enough, and rests on enough batches."""
        batches = self.batches()
        value, half_width = sojourn_mean(batches, self.controls(batches))
        limit = self.settings.precision or math.inf
        return bool(half_width <= limit * value) and self.enough

    @property
    def enough(self) -> bool:
        """Whether there are enough arrivals and batches, all of them long enough."""
        if sum(int(one.totals[:, 0].sum()) for one in self.measured) < FEWEST_ARRIVALS:
            return False
        batch = self.pieces * self.piece
        slowest = max(self.relaxation_time, self.autocorrelation_time)
        long_enough = batch >= BATCH_LENGTH * slowest * (1 - ROUNDING)
        return long_enough and self.batches_each * len(self.replicas) >= FEWEST_BATCHES

    @property
    def unfinished(self) -> int:
        """Jobs that were not followed until they left."""
        return sum(one.unfinished for one in self.measured)

    @property
    def reliable(self) -> bool:
        """Whether the half-widths can be relied on."""
        finite = self.sizes.has_moment(2) and not self.unfinished
        return self.enough and self.settled and finite and certainly_stable(self.margin)

    def batches(self) -> Batches:
        """Put the batches of all replications one after another."""
        return joined(self.measured, self.pieces, self.piece)

    def controls(self, batches: Batches) -> Controls | None:
        """Make the control variates, if there are to be any."""
        return make_controls(self.system, batches) if self.settings.control_variates else None

    def result(self) -> xr.Dataset:
        """Estimate every output from the batches."""
        batches = self.batches()
        controls = self.controls(batches)
        values: dict[str, object] = {}
        outputs = estimates(self.system, batches, controls)
        if isinstance(self.policy, Pull):
            outputs["empty_router_probability"] = empty_routers(batches, controls)
        if self.margin is not None:
            outputs["stability_margin"] = self.margin
        for name, estimate in outputs.items():
            values[name], values[name + HALF_WIDTH] = estimate
        jobs = batches.joins.sum()
        departures = sum(one.departures for one in self.measured)
        values["n_events"] = int(batches.arrivals.sum()) + departures
        values["n_jobs"] = int(jobs)
        values["n_unfinished"] = self.unfinished
        values["little_residual"] = self._little_residual(batches)
        values["simulated_time"] = len(self.replicas) * self.length
        values["n_batches"] = len(batches.tails)
        values["n_controls"] = controls.rank if controls else 0
        values["autocorrelation_time"] = self.autocorrelation_time
        values["interval_reliable"] = self.reliable
        if self.settings.precision is not None:
            values["precision_met"] = self.precise and self.reliable
        coords = {"quantile": np.array(QUANTILES)}
        if self.discipline == "ps":
            coords["size_decile"] = np.arange(1, DECILES + 1)
        return labelled(values, self.system, coords=coords, attrs=self._attributes())

    def _little_residual(self, batches: Batches) -> float:
        """Compare the time in system of all jobs with the integral of the number of jobs."""
        by_jobs = sum(one.time_in_system for one in self.measured)
        servers = batches.tails[:, :, 1:].sum(axis=2) @ np.array(self.system.counts)
        by_servers = float(servers.sum()) * batches.length
        return abs(by_jobs - by_servers) / by_servers if by_servers else math.nan

    def _attributes(self) -> dict[str, object]:
        attributes: dict[str, object] = {
            "method": "simulation of jobs",
            "warm_up_time": self.warm_up_time,
        }
        if not self.sizes.has_moment(2):
            waiting = INFINITE_WAITING if self.discipline == "fcfs" else ""
            attributes["note"] = INFINITE_VARIANCE + waiting
        return attributes
