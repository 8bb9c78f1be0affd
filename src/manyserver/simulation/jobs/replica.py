"""One run of a system whose jobs are followed: its state, and what it measured."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from manyserver.disciplines import Discipline
from manyserver.model import System
from manyserver.policies import Policy
from manyserver.simulation.jobs.announced import make_announced
from manyserver.simulation.jobs.disciplines import state_of
from manyserver.simulation.jobs.dispatcher import drawing, make_dispatcher
from manyserver.simulation.jobs.kernel import (
    ARRIVALS,
    DONE,
    ITEM,
    MORE_LEVELS,
    STEP,
    TOTALS,
    Pieces,
    Stream,
    advance,
)
from manyserver.simulation.jobs.records import Records, make_records
from manyserver.simulation.jobs.routers import make_routers
from manyserver.simulation.jobs.servers import jobs_present
from manyserver.simulation.jobs.tables import arrival_polls, make_rules, sizes_between_deciles
from manyserver.simulation.random import seeded_words
from manyserver.simulation.replica import counted, spread
from manyserver.simulation.tables import make_block
from manyserver.sizes import SizeLaw

__all__ = ["JobReplica", "Measured", "event_rate"]

FEWEST_LEVELS = 8
CHUNK = 1 << 15
"""Arrivals drawn at a time."""
LEAST_RATE = 0.1
"""Steps per unit of time and server, at least: a horizon is a whole number of them."""
FIRST_FOLLOWED, FOLLOWED_LONGER = 8.0, 1.25
"""Time after which one polls first whether all jobs have left, and factor to the next one."""


class Measured(NamedTuple):
    """What happened in the batches of a window, each cut into pieces of equal length."""

    tails: np.ndarray
    """Time average of the queue tails, shape (piece, pool, level)."""
    ends: np.ndarray
    """Servers that hold at least ``level`` jobs at the end of a piece, (piece, pool, level)."""
    joins: np.ndarray
    """Arrivals that were accepted, by the level that they found, shape (piece, pool, level)."""
    totals: np.ndarray
    """Arrivals, those that were blocked and those that drew servers, shape (piece, 3)."""
    departures: int
    records: Records
    """Of the jobs that arrived in the window."""
    time_in_system: float
    """Time that jobs spent in the system in the window, job by job."""
    followed: int
    """Arrivals after the window until all jobs that arrived in it have left."""
    unfinished: int
    """Of these jobs, those that were not followed any longer."""


def event_rate(system: System) -> float:
    """Return the arrivals and departures per unit of time, or more where they are rare."""
    return max(2.0 * system.arrival_rate, LEAST_RATE) * system.finite_servers


class JobReplica:
    """A system that is simulated job by job.

    Parameters
    ----------
    system : System
        With a number of servers.
    policy : Policy
    sizes : SizeLaw
        Of mean one.
    discipline : Discipline
    start_tails : numpy.ndarray, shape (pool, level)
        Fraction of the servers of each pool that hold at least ``level`` jobs at first. What is
        left of a job in service then has the law of a random time.
    seed : sequence of int
        Of this replica's generators. The times of arrivals, the sizes, and the servers that an
        arrival looks at first depend neither on the policy nor on the start.

    Attributes
    ----------
    rate : float
        Steps of a plan per unit of time, from :func:`event_rate`.
    """

    def __init__(
        self,
        system: System,
        policy: Policy,
        sizes: SizeLaw,
        discipline: Discipline,
        start_tails: np.ndarray,
        seed: Sequence[int],
    ):
        # With messages apart, PULL knows idle servers and else looks at one, as with one router.
        self.system, self.policy, self.sizes = system, drawing(system, policy), sizes
        self.discipline = discipline
        self.n_servers = system.finite_servers
        self.polls = arrival_polls(system, self.policy)
        self.block = make_block(self.polls)
        self.bounds = sizes_between_deciles(sizes)
        self.clock, self.now = np.zeros(1), 0.0
        self.rate = event_rate(system)
        *state, shift = seeded_words(seed, 13)
        self.rng = np.array(state, dtype=np.uint64)
        self.step = self.block.event.size
        self.generator, at_start = (
            np.random.Generator(np.random.SFC64([len(seed), *seed, use])) for use in (1, 2)
        )
        self._draw_stream()
        jobs = spread(counted(start_tails, system.counts, float(shift) / 2.0**64))
        levels = FEWEST_LEVELS
        while levels < max(here.max() for here in jobs) + 2:
            levels *= 2
        polls = max(1, self.polls.fresh.size)
        kind = state_of(discipline)
        self.servers = kind.placed(system, sizes, jobs, levels, polls, at_start)
        self._use_levels(levels)
        self.routers = make_routers(policy, np.concatenate(jobs), at_start)
        self.dispatcher = make_dispatcher(system, policy, self.servers, levels, at_start)

    def _draw_stream(self) -> None:
        gaps = self.generator.standard_exponential(CHUNK)
        gaps /= self.system.arrival_rate * self.n_servers
        self.stream = Stream(gaps, self.sizes.sample(self.generator, CHUNK), self.clock)
        self.item = 0

    # The state

    def _use_levels(self, levels: int) -> None:
        self.levels = levels
        self.rules = make_rules(self.system, self.policy, levels)
        n = self.n_servers if self.policy.sampling(self.system).depends_on_all else 0
        self.announced = make_announced(
            self.system, self.policy, levels, self.servers.code[:n].astype(np.int64),
            self.servers.due[:n], float(self.clock[0]),
        )  # fmt: skip

    def _grow(self) -> None:
        """Double the number of levels."""
        self.servers = self.servers.wider(len(self.system.pools), self.levels)
        self._use_levels(2 * self.levels)

    def set_time(self, now: float) -> None:
        """Shift the origin of time so that the present is `now`."""
        shift = now - self.now
        self.now = now
        self.clock += shift
        self.servers.shift(self.levels, shift)
        self.dispatcher.free[:] += shift
        self._use_levels(self.levels)

    @property
    def jobs(self) -> list[np.ndarray]:
        """Jobs at every server, one array for each pool."""
        here = jobs_present(self.servers, self.levels)
        return np.split(here, np.cumsum(self.system.counts)[:-1])

    def tail_counts(self) -> np.ndarray:
        """Count the servers that hold at least ``level`` jobs, shape (pool, level)."""
        counts = [np.bincount(here, minlength=self.levels) for here in self.jobs]
        return _tails(np.array(counts))

    # Simulating

    def warm_up(self, steps: int) -> None:
        """Simulate without measuring."""
        length = steps / self.rate
        self.set_time(-length)
        self._advance(1, length, 1, self._no_records())

    def advance_all(self, pieces: int, steps: int) -> list[Measured]:
        """Simulate pieces of so many steps, without following jobs."""
        at_start, length = self.tail_counts(), steps / self.rate
        records = self._no_records()
        done = self._advance(pieces, length, pieces, records)
        ends, tails, joins = self._averages(done, at_start, length)
        return [Measured(tails, ends, joins, done.totals, 0, records, 0.0, 0, 0)]

    def _no_records(self) -> Records:
        records = self._records(1, 1.0)
        records.window[0] = 0.0
        return records

    def _records(self, batches: int, length: float) -> Records:
        n_pools, waiting = len(self.system.pools), self.discipline.waiting
        return make_records(batches, length, n_pools, waiting, self.bounds)

    def measure(
        self, batches: int, pieces: int, length: float, most_followed: float = math.inf
    ) -> Measured:
        """Simulate batches, and go on until all jobs that arrived in them have left.

        Parameters
        ----------
        batches : int
        pieces : int
            In each batch.
        length : float
            Of a piece.
        most_followed : float
            Arrivals after the window, after which jobs that are left are given up.
        """
        self.set_time(0.0)
        records = self._records(batches, pieces * length)
        at_start = self.tail_counts()
        promised = self.servers.promised(self.levels, self.now)
        done = self._advance(batches * pieces, length, pieces, records)
        promised -= self.servers.promised(self.levels, self.now)
        spent = float(records.total[0]) + promised
        jobs, followed = int(done.joins.sum()), 0
        gone = jobs + int(at_start[:, 1:].sum() - self.tail_counts()[:, 1:].sum())
        unfinished, more = jobs - records.jobs(), FIRST_FOLLOWED
        while unfinished and followed < most_followed:
            followed += int(self._advance(1, more, 1, records).totals[0, ARRIVALS])
            unfinished, more = jobs - records.jobs(), more * FOLLOWED_LONGER
        ends, tails, joins = self._averages(done, at_start, length)
        return Measured(tails, ends, joins, done.totals, gone, records, spent, followed, unfinished)

    def _advance(self, pieces: int, length: float, per_batch: int, records: Records) -> Pieces:
        codes = self.levels * len(self.system.pools)
        done = Pieces(
            np.array([self.now, length]),
            np.zeros((pieces, codes), dtype=np.int64),
            np.zeros((pieces, codes)),
            np.zeros((pieces, codes), dtype=np.int64),
            np.zeros((pieces, TOTALS)),
            np.array([per_batch]),
        )
        progress = np.array([0, self.step, self.item])
        while True:
            state = advance(
                self.servers, self.rules, self.announced, self.routers, self.dispatcher,
                self.polls, self.rng, self.block, self.stream, done, records, progress,
            )  # fmt: skip
            self.step, self.item = int(progress[STEP]), int(progress[ITEM])
            if state == DONE:
                self.now += pieces * length
                return done
            if state == MORE_LEVELS:
                self._grow()
                done = done._replace(
                    joins=self._wider(done.joins),
                    area=self._wider(done.area),
                    counts=self._wider(done.counts),
                )
            else:
                self._draw_stream()
                progress[ITEM] = 0

    def _wider(self, table: np.ndarray) -> np.ndarray:
        """Make room for the levels there are now, shape (piece, code)."""
        old = table.reshape(len(table), len(self.system.pools), -1)
        return np.pad(old, ((0, 0), (0, 0), (0, self.levels - old.shape[2]))).reshape(
            len(table), -1
        )

    def _averages(
        self, done: Pieces, at_start: np.ndarray, length: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return queue tails at the end and on average, and joins, (piece, pool, level) each."""
        shape = (len(done.joins), len(self.system.pools), -1)
        servers = np.array(self.system.counts)[:, None]
        at_end = _tails(done.counts.reshape(shape))
        more = at_end.shape[2] - at_start.shape[1]
        first = np.pad(at_start, ((0, 0), (0, more)))[None]
        before = np.concatenate([first, at_end[:-1]])
        tails = (before + done.area.reshape(shape) / length) / servers
        return at_end, tails, done.joins.reshape(shape)


def _tails(counts: np.ndarray) -> np.ndarray:
    """Add up the servers at a level and above, shape (..., level)."""
    return np.asarray(counts[..., ::-1].cumsum(axis=-1)[..., ::-1])
