"""A system that is simulated server by server, for policies that look at some servers."""

import itertools
from collections.abc import Sequence

import numpy as np

from manyserver.simulation.choices import make_choices
from manyserver.simulation.replica import Measured, Replica, messages_per_customer
from manyserver.simulation.sampled import BLOCK, advance
from manyserver.simulation.samples import Samples, make_scratch
from manyserver.simulation.tables import code_type, make_block, make_looks, make_tables
from manyserver.statistics.estimates import Controls, Estimate

__all__ = ["SampledReplica"]


class SampledReplica(Replica):
    """The state is the code of every server; codes become wider as the tables grow."""

    def reseed(self, seed: Sequence[int]) -> float:
        """Start the generators again, and forget the steps that were drawn ahead."""
        self.next_step = BLOCK
        return super().reseed(seed)

    def start(self, jobs: Sequence[np.ndarray]) -> None:
        """Give every server its code."""
        self.looks = make_looks(self.system, self.policy)
        self.block = make_block(self.looks)
        self.tied = self.looks.shuffled
        n_codes = self.levels * len(jobs)
        self.tables = make_tables(self.system, self.policy, self.levels)
        self.choices = make_choices(self.system, self.policy, self.levels)
        self.scratch = make_scratch(self.choices, self.levels)
        self.codes = np.full(
            sum(self.system.counts) + len(self.looks.fresh), n_codes - 1, code_type(n_codes)
        )
        first = 0
        for pool, here in enumerate(jobs):
            self.codes[first : first + len(here)] = here + pool * self.levels
            first += len(here)

    def grow(self) -> None:
        """Translate the codes."""
        block = self.block
        self.start(self._jobs(self.levels // 2))
        self.block = block

    @property
    def jobs(self) -> list[np.ndarray]:
        """Jobs at every server, one array for each pool."""
        return self._jobs(self.levels)

    def _jobs(self, levels: int) -> list[np.ndarray]:
        bounds = itertools.pairwise(itertools.accumulate(self.system.counts, initial=0))
        return [self.codes[i:j].astype(np.int64) % levels for i, j in bounds]

    def tail_counts(self) -> np.ndarray:
        """Count the servers that hold at least ``level`` jobs, shape (pool, level)."""
        counts = [np.bincount(here, minlength=self.levels) for here in self.jobs]
        return np.cumsum(np.array(counts)[:, ::-1], axis=1)[:, ::-1]

    def play(
        self,
        flows: np.ndarray,
        before: np.ndarray,
        progress: np.ndarray,
        samples: Samples,
        tallies: np.ndarray,
    ) -> bool:
        """Run the kernel; steps are drawn ahead in blocks."""
        state = np.append(progress, np.uint64(self.next_step))
        done = advance(
            self.codes, flows, before, self.looks, self.tables, self.rng, self.block, state,
            self.choices, self.scratch, samples,
        )  # fmt: skip
        progress[:], self.next_step = state[:-1], int(state[-1])
        return bool(done)

    def own_outputs(self, batches: Measured, controls: Controls | None) -> dict[str, Estimate]:
        """Estimate the messages per customer."""
        sampling = self.policy.sampling(self.system)
        return {"messages_per_customer": messages_per_customer(self.system, sampling, batches)}
