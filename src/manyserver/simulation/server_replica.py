"""A system that is simulated server by server, for policies that look at some servers."""

import itertools
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from manyserver.simulation.joining_tables import make_joining_tables
from manyserver.simulation.observations import Observations, first_levels, make_scratch
from manyserver.simulation.replica import Measured, Replica, messages_per_job, spread
from manyserver.simulation.server_kernel import BLOCK, advance
from manyserver.simulation.tables import (
    code_type,
    event_rates,
    intervals,
    make_block,
    make_polls,
    make_tables,
)
from manyserver.statistics.estimates import Controls, Estimate

__all__ = ["ServerReplica"]


class ServerReplica(Replica):
    """The state is the code of every server; codes become wider as the tables grow."""

    def reseed(self, seed: Sequence[int]) -> float:
        """Start the generators again, and forget the steps that were drawn ahead."""
        self.next_step = BLOCK
        return super().reseed(seed)

    def start(self, tail: np.ndarray) -> None:
        """Make the tables; servers get their codes when one is looked at."""
        self.tail = tail
        self._tabulate()

    def _tabulate(self) -> None:
        self.polls = make_polls(self.system, self.policy)
        self.tabulate_rates()
        self.block = make_block(self.polls)
        self.tied = self.polls.shuffled
        self.tables = make_tables(self.system, self.policy, self.levels)
        self.joining = make_joining_tables(self.system, self.policy, self.levels)
        self.scratch = make_scratch(self.joining, self.levels)

    def set_rates(self, arrival_rate: float, speeds: np.ndarray) -> None:
        """Change the rates, and forget the steps that were drawn ahead."""
        super().set_rates(arrival_rate, speeds)
        self.next_step = BLOCK

    def tabulate_rates(self) -> None:
        """Cut the interval of what a step can be."""
        sampling = self.policy.sampling(self.system)
        rates = event_rates(self.system, sampling, self.arrival_rate, self.speeds)
        bound, inverse = intervals(rates)
        self.polls = self.polls._replace(bound=bound, inverse=inverse)

    @cached_property
    def codes(self) -> np.ndarray:
        """Code of every server, and of those that do not exist."""
        return self._coded(spread(self.tail, code_type(self.tail.size)))

    def _coded(self, jobs: Sequence[np.ndarray]) -> np.ndarray:
        n_codes = self.levels * len(jobs)
        kind = code_type(n_codes)
        first = (np.arange(len(jobs)) * self.levels).astype(kind)
        codes = [here.astype(kind, copy=False) + own for here, own in zip(jobs, first, strict=True)]
        return np.concatenate([*codes, np.full(len(self.polls.fresh), n_codes - 1, kind)])

    def grow(self) -> None:
        """Translate the codes."""
        block, jobs = self.block, self._jobs(self.levels // 2)
        self._tabulate()
        self.block, self.codes = block, self._coded(jobs)

    @property
    def jobs(self) -> list[np.ndarray]:
        """Jobs at every server, one array for each pool."""
        return self._jobs(self.levels)

    def _jobs(self, levels: int) -> list[np.ndarray]:
        bounds = itertools.pairwise(itertools.accumulate(self.system.counts, initial=0))
        return [self.codes[i:j].astype(np.int64) % levels for i, j in bounds]

    def tail_counts(self) -> np.ndarray:
        """Count the servers that hold at least ``level`` jobs, shape (pool, level)."""
        return np.array(first_levels(self.tail[None], self.levels)[0])

    def play(
        self,
        flows: np.ndarray,
        before: np.ndarray,
        lengths: np.ndarray,
        progress: np.ndarray,
        observations: Observations,
        tallies: np.ndarray,
    ) -> bool:
        """Run the kernel; steps are drawn ahead in blocks."""
        state = np.append(progress, np.uint64(self.next_step))
        done = advance(
            self.codes, flows, before, lengths, self.polls, self.tables, self.rng, self.block,
            state, self.joining, self.scratch, observations,
        )  # fmt: skip
        progress[:], self.next_step = state[:-1], int(state[-1])
        if done:
            self.tail = before.copy()
        return bool(done)

    def own_outputs(self, batches: Measured, controls: Controls | None) -> dict[str, Estimate]:
        """Estimate the messages per job."""
        sampling = self.policy.sampling(self.system)
        return {"messages_per_job": messages_per_job(self.system, sampling, batches)}
