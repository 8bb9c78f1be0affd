"""One run of the chain: what it measured, and what a kernel must provide.

Control variates and outputs (:mod:`manyserver.simulation.occupancy_estimator`) know the kernels
only as subclasses of :class:`Replica`, and the run knows none of them. To add one:

1. Write the kernel. It plays steps of a chain that is uniformised, so that a step takes the time
   ``1 / rate`` whatever happens, and books every arrival and departure in ``flows`` under the code
   ``pool * levels + level`` of the server as it was before. An arrival at a full server is booked
   as well, and changes nothing; it counts as blocked.
2. Write a subclass of :class:`Replica` that keeps the state: `start`, `grow`, `play`,
   `tail_counts`, `tabulate_rates`, and where the kernel counts more than arrivals and departures,
   `n_tallies`, `own_controls` and `own_outputs`.
3. Name it in :mod:`manyserver.simulation.kernels`.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from manyserver.model import System
from manyserver.policies import Policy, Sampling, full
from manyserver.policies.messages import messages
from manyserver.simulation.observations import Observations, first_levels, make_observations
from manyserver.simulation.progress import NEVER
from manyserver.simulation.random import seeded_words
from manyserver.statistics.estimates import Controls, Estimate, batch_ratio

__all__ = [
    "STEPS_PER_PIECE",
    "Measured",
    "Passed",
    "Replica",
    "counted",
    "messages_per_job",
    "spread",
    "step_rate",
]

FEWEST_LEVELS = 32
STEPS_PER_PIECE = 2**31
"""Longest piece; the sums of the steps that follow each event then fit into 63 bits."""


def step_rate(system: System) -> float:
    """Return the steps of the uniformised chain per unit of time."""
    return float(system.finite_servers * system.arrival_rate + np.dot(system.counts, system.speeds))


class Measured(NamedTuple):
    """What happened in pieces of equal length."""

    tails: np.ndarray
    """Time average of the queue tails, shape (piece, pool, level)."""
    joins: np.ndarray
    """Arrivals that were accepted, by the level that they found, shape (piece, pool, level)."""
    leaves: np.ndarray
    """Departures by the level that they found, shape (piece, pool, level)."""
    blocked: np.ndarray
    """Arrivals that found all servers looked at full, by the pool of one, shape (piece, pool)."""
    tallies: np.ndarray
    """Sums of the kernel's own, shape (piece, tally)."""
    observations: Observations
    """Sums over the observations."""

    def with_levels(self, levels: int) -> "Measured":
        """Cut or pad to a number of levels."""
        return self._replace(
            tails=first_levels(self.tails, levels),
            joins=first_levels(self.joins, levels),
            leaves=first_levels(self.leaves, levels),
            observations=self.observations.with_levels(levels),
        )

    @property
    def accepted(self) -> np.ndarray:
        """Arrivals that were accepted, shape (piece,)."""
        return np.asarray(self.joins.sum(axis=(1, 2)))

    @property
    def events(self) -> np.ndarray:
        """Arrivals and departures, shape (piece,)."""
        return np.asarray(self.accepted + self.blocked.sum(axis=1) + self.leaves.sum(axis=(1, 2)))


class Passed(NamedTuple):
    """States at the ends of pieces."""

    tails: np.ndarray
    """Servers with at least so many jobs, shape (piece, pool, level)."""
    joining: np.ndarray
    """Probability that an arrival joins the class, shape (piece, pool, level)."""
    blocked: np.ndarray
    """Probability that an arrival is blocked, shape (piece,)."""


class Replica(ABC):
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
        Number of levels of the first tables, a power of two; they grow when needed.

    Attributes
    ----------
    arrival_rate, speeds : float and numpy.ndarray
        Of the system, unless other ones were set.
    levels : int
        Number of levels of the present tables.
    rng : numpy.ndarray of uint64, shape (8,)
        States of two generators: one for what a step is and the first server that it looks at,
        one for all the rest.
    limit_settles : bool
        Whether the limit of many servers settles as slowly as the system does; if not, a pilot
        finds out how long that takes.
    tied : bool
        Whether a sample of the state takes long, as servers of different draws may be tied.
    n_tallies : int
        Sums that the kernel keeps beyond those of every kernel.
    """

    limit_settles: ClassVar[bool] = True
    tied: bool = False
    n_tallies: ClassVar[int] = 0

    def __init__(
        self,
        system: System,
        policy: Policy,
        start_tails: np.ndarray,
        seed: Sequence[int],
        levels: int = FEWEST_LEVELS,
    ):
        self.system, self.policy = system, policy
        self.arrival_rate, self.speeds = system.arrival_rate, system.speeds
        shift = self.reseed(seed)
        tail = counted(start_tails, system.counts, shift)
        while levels < tail.any(axis=0).sum() + 1:
            levels *= 2
        self.levels = levels
        self.start(first_levels(tail[None], levels)[0])

    @property
    def rate(self) -> float:
        """Steps per unit of time."""
        counts = self.system.counts
        return float(sum(counts) * self.arrival_rate + np.dot(counts, self.speeds))

    def set_rates(self, arrival_rate: float, speeds: np.ndarray) -> None:
        """Change the arrivals per unit of time and server, and the speeds of the pools.

        What the policy looks at and prefers stays as it is for the system.
        """
        self.arrival_rate, self.speeds = arrival_rate, speeds
        if self.rate > 0.0:
            self.tabulate_rates()

    @abstractmethod
    def tabulate_rates(self) -> None:
        """Make the tables of what a step can be for the present rates."""

    def reseed(self, seed: Sequence[int]) -> float:
        """Start the generators again, and return one more number, uniform on [0, 1)."""
        *state, more = seeded_words(seed, 9)
        self.rng = np.array(state, dtype=np.uint64)
        return float(more) / 2.0**64

    @abstractmethod
    def start(self, tail: np.ndarray) -> None:
        """Make tables and the state for ``levels`` levels.

        Parameters
        ----------
        tail : numpy.ndarray of int64, shape (pool, level)
            Servers with at least ``level`` jobs.
        """

    @abstractmethod
    def grow(self) -> None:
        """Make tables and the state longer; `levels` has just been doubled."""

    @abstractmethod
    def play(
        self,
        flows: np.ndarray,
        before: np.ndarray,
        lengths: np.ndarray,
        progress: np.ndarray,
        observations: Observations,
        tallies: np.ndarray,
    ) -> bool:
        """Simulate until all pieces are done, or a server reaches the last level.

        Parameters
        ----------
        flows : numpy.ndarray of uint64, shape (piece, 4 * code)
            Added to: at ``4 * code + 2 * arrival`` the number of departures (0) and arrivals (1)
            by the server's code before, and after it the sum of the steps that follow each.
        before : numpy.ndarray of int64, shape (pool, level)
            Servers with at least so many jobs when the piece began, changed in place.
        lengths : numpy.ndarray of uint64, shape (piece + 1,)
            Steps of each piece; the last one is not read.
        progress : numpy.ndarray of uint64, shape (5,)
            See :mod:`manyserver.simulation.progress`; changed in place.
        observations : Observations
            Added to.
        tallies : numpy.ndarray, shape (piece, tally)
            Added to.

        Returns
        -------
        bool
            Whether all pieces are done.
        """

    @abstractmethod
    def tail_counts(self) -> np.ndarray:
        """Count the servers that hold at least ``level`` jobs, shape (pool, level)."""

    def own_controls(self, batches: Measured) -> np.ndarray:
        """Return what this kernel alone knows to be zero on average, shape (batch, column)."""
        return np.zeros((len(batches.tails), 0))

    def own_outputs(self, batches: Measured, controls: Controls | None) -> dict[str, Estimate]:
        """Estimate what this kernel alone can tell, from the batches of all replicas."""
        return {}

    def warm_up(self, steps: int) -> None:
        """Simulate without measuring."""
        while steps > 0:
            self.advance(1, min(steps, STEPS_PER_PIECE))
            steps -= STEPS_PER_PIECE

    def advance_all(
        self, pieces: int, steps: int, period: int | None = None, moments: bool = False
    ) -> list[Measured]:
        """Simulate as :meth:`advance`, like several that are simulated together."""
        return [self.advance(pieces, steps, period, moments)]

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
            Steps from one sample to the next, which divide a piece; no observations without.
        moments : bool
            Whether observations add up products of the numbers of servers in two classes.
        """
        lengths = np.full(pieces + 1, steps, dtype=np.uint64)
        wait = period or NEVER
        return self._measured(*self._played(lengths, wait, wait, moments), steps)

    def pass_through(self, lengths: np.ndarray) -> Passed:
        """Simulate pieces, and tell the state at the end of each.

        Parameters
        ----------
        lengths : numpy.ndarray of uint64, shape (piece,)
            Steps of each piece; may be zero.
        """
        at_ends = 0
        before, flows, observations, _ = self._played(
            np.append(lengths, np.uint64(0)), NEVER, at_ends, False
        )
        departures, arrivals, _ = self._events(flows)
        tails = np.repeat(before[None], len(lengths), axis=0)
        tails[:, :, 1:] += (arrivals[:, :, :-1, 0] - departures[:, :, 1:, 0]).cumsum(axis=0)
        return Passed(tails, observations.joining, observations.blocked)

    def _played(
        self, lengths: np.ndarray, wait: int, period: int, moments: bool
    ) -> tuple[np.ndarray, np.ndarray, Observations, np.ndarray]:
        """Simulate pieces; return the first state, flows, observations and tallies."""
        if lengths.max() > STEPS_PER_PIECE:
            raise ValueError(f"steps = {lengths.max()}: must be at most {STEPS_PER_PIECE}")
        at_start = self.tail_counts()
        before = at_start.copy()
        pieces, n_pools = len(lengths) - 1, len(self.system.pools)
        flows = np.zeros((pieces, 4 * n_pools * self.levels), dtype=np.uint64)
        observations = make_observations(pieces, n_pools, self.levels, moments)
        tallies = np.zeros((pieces, self.n_tallies))
        progress = np.array([0, lengths[0], wait, 0, period], dtype=np.uint64)
        while not self.play(flows, before, lengths, progress, observations, tallies):
            more = ((0, 0), (0, self.levels))
            at_start, before = np.pad(at_start, more), np.pad(before, more)
            shape = (pieces, n_pools, self.levels, 4)
            wider = ((0, 0), (0, 0), (0, self.levels), (0, 0))
            flows = np.pad(flows.reshape(shape), wider).reshape(pieces, -1)
            self.levels *= 2
            observations = observations.with_levels(self.levels)
            self.grow()
        return at_start, flows, observations, tallies

    def _events(self, flows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return departures, accepted arrivals, and arrivals that were blocked.

        Each with the sums of the steps that follow, shape (piece, pool, level, 2) or (piece, pool).
        """
        shape = (len(flows), len(self.system.pools), self.levels, 2, 2)
        numbers = flows.reshape(shape).astype(np.int64)
        departures, arrivals = numbers[:, :, :, 0], numbers[:, :, :, 1]
        departures[:, :, 0] = 0  # tries at idle servers
        stopped = full(self.system, self.levels)
        blocked = (arrivals[..., 0] * stopped).sum(axis=2)
        arrivals[:, stopped] = 0
        return departures, arrivals, blocked

    def _measured(
        self,
        before: np.ndarray,
        flows: np.ndarray,
        observations: Observations,
        tallies: np.ndarray,
        steps: int,
    ) -> Measured:
        departures, arrivals, blocked = self._events(flows)
        change = arrivals[:, :, :-1] - departures[:, :, 1:]
        # Tails change by one at an arrival or departure, for all the steps that follow it.
        net = change[..., 0].cumsum(axis=0)
        at_start = before[:, 1:] + np.concatenate([np.zeros_like(net[:1]), net[:-1]])
        servers = np.array(self.system.counts)[:, None]
        tails = np.ones(arrivals.shape[:3])
        tails[:, :, 1:] = (at_start + change[..., 1] / steps) / servers
        return Measured(tails, arrivals[..., 0], departures[..., 0], blocked, tallies, observations)


def counted(tails: np.ndarray, counts: Sequence[int], shift: float) -> np.ndarray:
    """Turn tails into numbers of servers, shape (pool, level).

    A uniform `shift` in [0, 1) makes the mean of the rounded numbers right.
    """
    numbers = np.ceil(tails * np.array(counts)[:, None] - shift)
    return np.asarray(numbers.astype(np.int64))


def spread(tail: np.ndarray, kind: type[np.integer] = np.int64) -> list[np.ndarray]:
    """List the jobs of every server, most jobs first, from the servers with at least so many."""
    levels = np.arange(tail.shape[1], dtype=kind)[::-1]
    return [np.repeat(levels, -np.diff(row, append=0)[::-1]) for row in tail]


def messages_per_job(system: System, sampling: Sampling, batches: Measured) -> Estimate:
    """Estimate the messages per accepted job from what happened."""
    bounded = system.is_bounded
    if not sampling.depends_on_all and not (bounded and sampling.queries):
        return Estimate(np.array(sampling.queries), np.zeros(()))
    arrivals = batches.accepted + batches.blocked.sum(axis=1)
    sent = messages(system, sampling, arrivals, batches.joins, batches.leaves)
    return batch_ratio(sent, batches.accepted)
