"""Jobs that are followed: what replications measure of them, and the outputs.

A step of a plan stands for an arrival or a departure, of which there are twice as many as arrivals.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np

from manyserver.disciplines import Discipline
from manyserver.model import System
from manyserver.policies import Policy
from manyserver.simulation.estimator import Estimator, Replication
from manyserver.simulation.jobs.dispatcher import drawing
from manyserver.simulation.jobs.outputs import (
    JobPieces,
    control_columns,
    empty_routers,
    estimates,
    make_pieces,
    mean_terms,
    sojourn_mean,
)
from manyserver.simulation.jobs.records import edges
from manyserver.simulation.jobs.replica import JobReplica, event_rate
from manyserver.simulation.kernels import kernel_for
from manyserver.simulation.lengths import (
    FEWEST_SAMPLE_STEPS,
    PILOT_REPLICATIONS,
    WITH_SERIES,
    Plan,
    kept_pieces,
)
from manyserver.simulation.pieces import joined, merged
from manyserver.simulation.pilot import jobs_per_server
from manyserver.simulation.settings import Settings
from manyserver.sizes import SizeLaw
from manyserver.statistics.estimates import Controls, Estimate
from manyserver.statistics.histogram import quantile_estimate
from manyserver.variables import DECILES, QUANTILES

__all__ = ["JobsEstimator"]

MOST_TO_RESOLVE = 100_000_000
"""Jobs after which a quantile without an interval is taken to be beyond all bins."""
RARE = 0.001
"""The warm-up lasts until jobs that are larger than all but this part of the work in service at a
random time have left."""
INFINITE_VARIANCE = "the sizes have infinite variance, so that the half-widths cannot be relied on"
INFINITE_WAITING = "; the mean waiting time of a single server would be infinite"
DEPARTURES, TIME_IN_SYSTEM, AFTER, UNFINISHED = range(4)
"""Columns of `JobPieces.once`."""


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


class JobsEstimator(Estimator[JobPieces]):
    """See :class:`~manyserver.simulation.estimator.Estimator`.

    Parameters
    ----------
    system, policy, start_tails
    relaxation_time : float
        Time in which the system with exponential sizes forgets its start.
    settings : Settings
    sizes : SizeLaw
        Of mean one.
    discipline : Discipline
    """

    kind = JobPieces
    sample_steps = FEWEST_SAMPLE_STEPS

    def __init__(
        self,
        system: System,
        policy: Policy,
        start_tails: np.ndarray,
        relaxation_time: float,
        settings: Settings,
        sizes: SizeLaw,
        discipline: Discipline,
    ):
        largest, factor = slowest_sizes(sizes)
        # The start is that of exponential sizes, so it is not known how close it is.
        super().__init__(system, policy, start_tails, factor * relaxation_time, math.inf, settings)
        self.sizes, self.discipline = sizes, discipline
        self.rate = event_rate(system)
        self.limit_settles = kernel_for(system, drawing(system, policy)).limit_settles
        sojourn = float(self.start[:, 1:].sum(axis=1) @ system.fractions) / system.arrival_rate
        self.least_warm_up = largest * max(1.0, sojourn) * self.rate
        if settings.horizon is not None:
            self._refuse_endless_warm_up()

    def _refuse_endless_warm_up(self) -> None:
        warm_up = self.least_warm_up
        if warm_up > self.settings.max_events / self.settings.replications:
            raise ValueError(
                f"sizes = {self.sizes!r}: are so large that the warm-up lasts "
                f"{warm_up / self.rate:.2g} units of time, which takes more than max_events = "
                f"{self.settings.max_events:g} events; must have a lighter tail"
            )

    @property
    def identity(self) -> tuple[object, ...]:
        """All that a replication depends on, but for its number, its plan and the code."""
        # Measured sizes are told by their digest.
        measured = getattr(self.sizes, "digest", None)
        return (*super().identity, self.sizes, measured, self.discipline.name)

    def group(self, seeds: Sequence[Sequence[int]]) -> JobReplica:
        """Make a replica with random numbers of its own."""
        (seed,) = seeds
        return JobReplica(self.system, self.policy, self.sizes, self.discipline, self.start, seed)

    def simulate(
        self, seeds: Sequence[Sequence[int]], plan: Plan, numbers: Sequence[int]
    ) -> list[Replication]:
        """Warm up and measure, and go on until all jobs have left that arrived meanwhile."""
        (number,), replica = numbers, self.group(seeds)
        replica.warm_up(plan.warm_up)
        left = self.settings.max_events / PILOT_REPLICATIONS - plan.warm_up - plan.measured
        length = plan.steps / self.rate
        measured = replica.measure(plan.pieces, plan.fine, length, left / 2)
        head = plan.head * plan.fine if number < WITH_SERIES else 0
        series = jobs_per_server(self.system, measured.tails[:head])
        pieces = make_pieces(measured, plan.fine, length, self.settings.moments)
        size = plan.pieces // kept_pieces(number, plan.pieces)
        return [Replication(joined([merged(pieces, size)]), series)]

    def steps_after(self, measured: JobPieces) -> float:
        """Return the steps that a replication went on for after its plan."""
        return 2 * float(measured.once[:, AFTER].sum())

    def arrivals(self, batches: JobPieces) -> int:
        """Return the number of arrivals, accepted or not."""
        return int(batches.arrivals.sum())

    def events(self, batches: JobPieces) -> int:
        """Return the number of arrivals and departures."""
        return int(batches.arrivals.sum() + batches.once[:, DEPARTURES].sum())

    def controls(self, batches: JobPieces, *others: tuple[Self, JobPieces]) -> Controls:
        """Choose the control variates; with others, those of all runs together."""
        runs = [(self, batches), *others]
        return Controls(
            np.concatenate([control_columns(one.system, some) for one, some in runs], axis=1)
        )

    def terms(
        self, batches: JobPieces, controls: Controls | None, length: float
    ) -> dict[str, np.ndarray]:
        """Return terms that average to the jobs per server and to the means of times."""
        return mean_terms(self.system, batches, controls)

    def sojourn_mean(
        self, batches: JobPieces, controls: Controls | None, length: float
    ) -> Estimate:
        """Estimate the mean sojourn time of accepted jobs."""
        return sojourn_mean(batches, controls)

    def estimates(
        self, batches: JobPieces, controls: Controls | None, length: float
    ) -> dict[str, Estimate]:
        """Estimate every output."""
        outputs = estimates(self.system, batches, controls)
        if self.policy.n_routers:
            outputs["empty_router_probability"] = empty_routers(batches, controls)
        return outputs

    def values(self, batches: JobPieces, length: float) -> dict[str, object]:
        """Count the jobs, and compare their time in the system with the jobs over time."""
        by_jobs = batches.once[:, TIME_IN_SYSTEM].sum()
        servers = batches.tails[:, :, 1:].sum(axis=2) @ np.array(self.system.counts)
        by_servers = servers @ batches.length
        return {
            "n_jobs": int(batches.joins.sum()),
            "n_unfinished": int(batches.once[:, UNFINISHED].sum()),
            "little_residual": abs(by_jobs - by_servers) / by_servers if by_servers else math.nan,
        }

    def reliable(self, batches: JobPieces) -> bool:
        """Whether the sizes have a variance, and all jobs were followed until they left."""
        return self.sizes.has_moment(2) and not batches.once[:, UNFINISHED].any()

    def resolves(self, batches: JobPieces, controls: Controls | None) -> bool:
        """Whether the highest quantile of the sojourn time has an interval, if it can have one."""
        counts = batches.sojourn.sum(axis=1)
        highest = quantile_estimate(counts, edges(), QUANTILES[-1], controls)
        return bool(np.isfinite(highest.half_width)) or counts.sum() > MOST_TO_RESOLVE

    @property
    def coordinates(self) -> Mapping[str, np.ndarray]:
        """Quantiles, and deciles of the size where slowdowns are recorded."""
        quantiles = {"quantile": np.array(QUANTILES)}
        if self.discipline.waiting:
            return quantiles
        return {**quantiles, "size_decile": np.arange(1, DECILES + 1)}

    def attributes(self, plan: Plan) -> dict[str, object]:
        """Say how long the warm-up is, and what the sizes do to the intervals."""
        told: dict[str, object] = {
            "method": "simulation of jobs",
            "warm_up_time": plan.warm_up / self.rate,
        }
        if not self.sizes.has_moment(2):
            waiting = INFINITE_WAITING if self.discipline.waiting else ""
            told["note"] = INFINITE_VARIANCE + waiting
        return told
