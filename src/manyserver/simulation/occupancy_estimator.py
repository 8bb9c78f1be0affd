"""The numbers of jobs at the servers: what replications measure of them, and the outputs."""

from collections.abc import Sequence
from typing import Self

import numpy as np

from manyserver.model import System
from manyserver.policies import Policy
from manyserver.simulation.controls import make_controls
from manyserver.simulation.estimator import Estimator, Replication
from manyserver.simulation.kernels import in_lockstep, make_replica
from manyserver.simulation.lanes import LANES
from manyserver.simulation.lengths import WITH_SERIES, Plan, kept_pieces, steps_between_samples
from manyserver.simulation.lockstep_replicas import Lockstep
from manyserver.simulation.outputs import arrivals, estimates, queues, sojourn_mean, sojourns
from manyserver.simulation.pieces import joined, merged
from manyserver.simulation.pilot import jobs_per_server
from manyserver.simulation.replica import STEPS_PER_PIECE, Measured, Replica
from manyserver.simulation.settings import Settings
from manyserver.statistics.estimates import Controls, Estimate

__all__ = ["OccupancyEstimator"]


class OccupancyEstimator(Estimator[Measured]):
    """See :class:`~manyserver.simulation.estimator.Estimator`.

    Attributes
    ----------
    kernel : Replica
        One that is not simulated, for what it knows of its kernel.
    """

    kind = Measured

    def __init__(
        self,
        system: System,
        policy: Policy,
        start_tails: np.ndarray,
        relaxation_time: float,
        correction: float,
        settings: Settings,
    ):
        super().__init__(system, policy, start_tails, relaxation_time, correction, settings)
        self.kernel = self._replica((*settings.seed, 0, 0))
        self.together = LANES if in_lockstep(system, policy, self.start) else 1
        self.rate = self.kernel.rate
        self.limit_settles = self.kernel.limit_settles
        self.sample_steps = steps_between_samples(system, self.start, self.rate, self.kernel.tied)

    def _replica(self, seed: Sequence[int]) -> Replica:
        return make_replica(self.system, self.policy, self.start, seed)

    def group(self, seeds: Sequence[Sequence[int]]) -> Replica | Lockstep:
        """Make replicas that are simulated together, each with random numbers of its own."""
        replicas = [self._replica(seed) for seed in seeds]
        return Lockstep(replicas) if self.together > 1 else replicas[0]

    def simulate(
        self, seeds: Sequence[Sequence[int]], plan: Plan, numbers: Sequence[int]
    ) -> list[Replication]:
        """Warm up and measure replications, one alone or some together."""
        group, moments = self.group(seeds), self.settings.moments
        group.warm_up(plan.warm_up)
        # Those that may be simulated together are treated alike.
        head = plan.head if numbers[0] // LANES * LANES < WITH_SERIES else 0
        parts: list[list[Measured]] = [[] for _ in numbers]
        series = [np.zeros(0)] * len(numbers)
        if head:
            all_fine = group.advance_all(head * plan.fine, plan.steps, plan.period, moments)
            for place, (number, fine) in enumerate(zip(numbers, all_fine, strict=True)):
                if number < WITH_SERIES:
                    series[place] = jobs_per_server(self.system, fine.tails)
                parts[place].append(merged(fine, plan.fine))
        if head < plan.pieces:
            # A piece may be longer than what the kernel takes at once.
            cuts = 1 if plan.fine * plan.steps <= STEPS_PER_PIECE else plan.fine
            steps = plan.fine * plan.steps // cuts
            rest = group.advance_all((plan.pieces - head) * cuts, steps, plan.period, moments)
            for own, measured in zip(parts, rest, strict=True):
                own.append(merged(measured, cuts))
        sizes = [plan.pieces // kept_pieces(number, plan.pieces) for number in numbers]
        return [
            Replication(joined([merged(joined(own), size)]), seen)
            for own, size, seen in zip(parts, sizes, series, strict=True)
        ]

    def arrivals(self, batches: Measured) -> int:
        """Return the number of arrivals, accepted or not."""
        return arrivals(batches)

    def events(self, batches: Measured) -> int:
        """Return the number of arrivals and departures."""
        return int(batches.events.sum())

    def controls(self, batches: Measured, *others: tuple[Self, Measured]) -> Controls | None:
        """Choose the control variates; with others, those of all runs together."""
        runs = [(self, batches), *others]
        own = [] if others else [self.kernel.own_controls(batches)]
        return make_controls([one.system for one, _ in runs], [some for _, some in runs], own)

    def terms(
        self, batches: Measured, controls: Controls | None, length: float
    ) -> dict[str, np.ndarray]:
        """Return terms that average to the jobs per server and to the mean sojourn time."""
        return {
            "jobs_per_server": queues(self.system, batches, controls) @ self.system.fractions,
            "sojourn_mean": sojourns(self.system, batches, controls, length),
        }

    def sojourn_mean(self, batches: Measured, controls: Controls | None, length: float) -> Estimate:
        """Estimate the mean sojourn time of accepted jobs."""
        return sojourn_mean(self.system, batches, controls, length)

    def estimates(
        self, batches: Measured, controls: Controls | None, length: float
    ) -> dict[str, Estimate]:
        """Estimate every output, with what this kernel alone can tell."""
        outputs = estimates(self.system, batches, controls, length)
        return outputs | self.kernel.own_outputs(batches, controls)
