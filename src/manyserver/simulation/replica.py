"""One run of the chain: its state, and what it measured."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from manyserver.model import System
from manyserver.policies import Policy
from manyserver.simulation.choices import make_choices
from manyserver.simulation.random import seeded_words
from manyserver.simulation.sampled import BLOCK, advance
from manyserver.simulation.samples import Samples, make_samples, make_scratch
from manyserver.simulation.tables import code_type, make_block, make_looks, make_tables

__all__ = ["Measured", "Replica", "step_rate"]

FEWEST_LEVELS = 32
STEPS_PER_PIECE = 2**31
"""Longest piece; the sums of the steps that follow each event then fit into 63 bits."""
NEVER = 2**63
"""Steps until the next sample, if there is none."""


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
    samples: Samples
    """Sums over the samples."""


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
        self.looks = make_looks(system, policy)
        self.block = make_block(self.looks)
        shift = self.reseed(seed)
        start = _spread(start_tails, system.counts, shift)
        while levels < max(jobs.max() for jobs in start) + 2:
            levels *= 2
        self._use_levels(levels, start)

    def reseed(self, seed: Sequence[int]) -> float:
        """Start the generators again, and return one more number, uniform on [0, 1)."""
        *state, more = seeded_words(seed, 9)
        self.rng = np.array(state, dtype=np.uint64)
        self.next_step = BLOCK
        return float(more) / 2.0**64

    def _use_levels(self, levels: int, jobs: Sequence[np.ndarray]) -> None:
        """Make tables and codes for a number of levels, from the jobs at each pool's servers."""
        n_codes = levels * len(jobs)
        self.levels = levels
        self.tables = make_tables(self.system, self.policy, levels)
        self.choices = make_choices(self.system, self.policy, levels)
        self.scratch = make_scratch(self.choices, levels)
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

    def advance(
        self, pieces: int, steps: int, period: int | None = None, moments: bool = False
    ) -> Measured:
        """Simulate pieces of equal length.

        Parameters
        ----------
        pieces : int
        steps : int
            Steps of a piece.
        period : int, optional
            Steps from one sample to the next, which divide a piece; no samples without.
        moments : bool
            Whether samples add up products of the numbers of servers in two classes.
        """
        if steps > STEPS_PER_PIECE:
            raise ValueError(f"steps = {steps}: must be at most {STEPS_PER_PIECE}")
        at_start = self.tail_counts()
        before = at_start.copy()
        flows = np.zeros((pieces, 4 * self.codes_used), dtype=np.uint64)
        samples = make_samples(pieces, len(self.system.pools), self.levels, moments)
        wait = period or NEVER
        progress = np.array([0, steps, self.next_step, steps, wait, wait], dtype=np.uint64)
        while not advance(
            self.codes, flows, before, self.looks, self.tables, self.rng, self.block, progress,
            self.choices, self.scratch, samples,
        ):  # fmt: skip
            more = ((0, 0), (0, self.levels))
            at_start, before = np.pad(at_start, more), np.pad(before, more)
            flows, samples = self._grow(flows, samples)
        self.next_step = int(progress[2])
        return self._measured(at_start, flows, steps, samples)

    @property
    def codes_used(self) -> int:
        """Number of codes."""
        return self.levels * len(self.system.pools)

    def _grow(self, flows: np.ndarray, samples: Samples) -> tuple[np.ndarray, Samples]:
        """Double the number of levels, also in what was measured."""
        shape = (len(flows), len(self.system.pools), self.levels, 4)
        more = ((0, 0), (0, 0), (0, self.levels), (0, 0))
        flows = np.pad(flows.reshape(shape), more).reshape(len(flows), -1)
        samples = samples.with_levels(2 * self.levels)
        self._use_levels(2 * self.levels, self.jobs)
        return flows, samples

    def _measured(
        self, before: np.ndarray, flows: np.ndarray, steps: int, samples: Samples
    ) -> Measured:
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
        return Measured(tails, counted[..., 1, 0], events, samples)


def _spread(tails: np.ndarray, counts: Sequence[int], shift: float) -> list[np.ndarray]:
    """Give every server a level, so that each pool's tails are `tails` up to one server.

    A uniform `shift` in [0, 1) makes the mean of the rounded tails right.
    """
    return [
        # The level is the number of tails, from level 1 on, above the server's place.
        np.searchsorted(-tail[1:], -(np.arange(n) + shift) / n)
        for tail, n in zip(tails, counts, strict=True)
    ]
