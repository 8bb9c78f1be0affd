"""One run of the chain: its state, and what it measured."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from manyserver.model import System
from manyserver.policies import Policy
from manyserver.simulation.random import seeded_words
from manyserver.simulation.sampled import BLOCK, advance
from manyserver.simulation.tables import code_type, make_block, make_looks, make_tables

__all__ = ["Measured", "Replica", "step_rate"]

FEWEST_LEVELS = 32
STEPS_PER_PIECE = 2**31
"""Longest piece; the sums of the steps that follow each event then fit into 63 bits."""


def step_rate(system: System) -> float:
    """Return the steps of the uniformised chain per unit of time."""
    return float(sum(system.counts) * system.arrival_rate + np.dot(system.counts, system.speeds))


class Measured(NamedTuple):
    """What happened in pieces of equal length."""

    tails: np.ndarray
    """Time average of the queue tails, shape (piece, pool, level)."""
    joins: np.ndarray
    """Arrivals by the level that they found, shape (piece, pool, level)."""
    events: np.ndarray
    """Arrivals and departures, shape (piece,)."""


class Replica:
    """A system that is simulated.

    Parameters
    ----------
    system : System
        With a number of servers.
    policy : Policy
    start_tails : numpy.ndarray, shape (pool, level)
        Fraction of the servers of each pool that hold at least ``level`` jobs at first.
    seed : sequence of int
        Of this replica's generator.
    levels : int, optional
        Number of levels of the first tables, a power of two; they grow when needed, and the
        codes of the servers become wider with them.
    """

    def __init__(
        self,
        system: System,
        policy: Policy,
        start_tails: np.ndarray,
        seed: Sequence[int],
        levels: int = FEWEST_LEVELS,
    ):
        self.system, self.policy = system, policy
        *state, shift = seeded_words(seed, 5)
        self.rng = np.array(state, dtype=np.uint64)
        self.looks = make_looks(system, policy)
        self.block = make_block(self.looks)
        self.next_step = BLOCK
        start = _spread(start_tails, system.counts, float(shift) / 2.0**64)
        while levels < max(jobs.max() for jobs in start) + 2:
            levels *= 2
        self._use_levels(levels, start)

    def _use_levels(self, levels: int, jobs: Sequence[np.ndarray]) -> None:
        """Make tables and codes for a number of levels, from the jobs at each pool's servers."""
        n_codes = levels * len(jobs)
        self.levels = levels
        self.tables = make_tables(self.system, self.policy, levels)
        self.codes = np.full(
            sum(self.system.counts) + len(self.looks.fresh), n_codes - 1, code_type(n_codes)
        )
        first = 0
        for pool, here in enumerate(jobs):
            self.codes[first : first + len(here)] = here + pool * levels
            first += len(here)

    @property
    def jobs(self) -> list[np.ndarray]:
        """Jobs at every server, one array for each pool."""
        bounds = itertools.pairwise(itertools.accumulate(self.system.counts, initial=0))
        return [self.codes[i:j].astype(np.int64) % self.levels for i, j in bounds]

    def tail_counts(self) -> np.ndarray:
        """Count the servers that hold at least ``level`` jobs, shape (pool, level)."""
        counts = [np.bincount(here, minlength=self.levels) for here in self.jobs]
        return np.cumsum(np.array(counts)[:, ::-1], axis=1)[:, ::-1]

    def warm_up(self, steps: int) -> None:
        """Simulate without measuring."""
        while steps > 0:
            self.advance(1, min(steps, STEPS_PER_PIECE))
            steps -= STEPS_PER_PIECE

    def advance(self, pieces: int, steps: int) -> Measured:
        """Simulate `pieces` pieces of `steps` steps each."""
        if steps > STEPS_PER_PIECE:
            raise ValueError(f"steps = {steps}: must be at most {STEPS_PER_PIECE}")
        before = self.tail_counts()
        flows = np.zeros((pieces, 4 * self.codes_used), dtype=np.uint64)
        progress = np.array([0, steps, self.next_step, steps], dtype=np.uint64)
        while not advance(
            self.codes, flows, self.looks, self.tables, self.rng, self.block, progress
        ):
            before, flows = self._grow(before, flows)
        self.next_step = int(progress[2])
        return self._measured(before, flows, steps)

    @property
    def codes_used(self) -> int:
        """Number of codes."""
        return self.levels * len(self.system.pools)

    def _grow(self, before: np.ndarray, flows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Double the number of levels, also in what was measured."""
        shape = (len(flows), len(self.system.pools), self.levels, 4)
        more = ((0, 0), (0, 0), (0, self.levels), (0, 0))
        flows = np.pad(flows.reshape(shape), more).reshape(len(flows), -1)
        before = np.pad(before, more[1:3])
        self._use_levels(2 * self.levels, self.jobs)
        return before, flows

    def _measured(self, before: np.ndarray, flows: np.ndarray, steps: int) -> Measured:
        shape = (len(flows), len(self.system.pools), self.levels, 2, 2)
        counted = flows.reshape(shape).astype(np.int64)
        departures, arrivals = counted[:, :, 1:, 0], counted[:, :, :-1, 1]
        change = arrivals - departures
        # Tails change by one at an arrival or departure, for all the steps that follow it.
        net = change[..., 0].cumsum(axis=0)
        at_start = before[:, 1:] + np.concatenate([np.zeros_like(net[:1]), net[:-1]])
        servers = np.array(self.system.counts)[:, None]
        tails = np.ones(shape[:3])
        tails[:, :, 1:] = (at_start + change[..., 1] / steps) / servers
        events = arrivals[..., 0].sum(axis=(1, 2)) + departures[..., 0].sum(axis=(1, 2))
        return Measured(tails, counted[..., 1, 0], events)


def _spread(tails: np.ndarray, counts: Sequence[int], shift: float) -> list[np.ndarray]:
    """Give every server a level, so that each pool's tails are `tails` up to one server.

    A uniform `shift` in [0, 1) makes the mean of the rounded tails right.
    """
    return [
        # The level is the number of tails, from level 1 on, above the server's place.
        np.searchsorted(-tail[1:], -(np.arange(n) + shift) / n)
        for tail, n in zip(tails, counts, strict=True)
    ]
