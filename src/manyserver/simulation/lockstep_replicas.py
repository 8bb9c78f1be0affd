"""Replications of a system that are simulated together, with the tables for their kernel."""

import itertools
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from manyserver.model import System
from manyserver.policies import Draw, Policy, full
from manyserver.simulation.joining_tables import make_joining_tables
from manyserver.simulation.lanes import LANES, make_vectors
from manyserver.simulation.lockstep_kernel import BLOCK, advance
from manyserver.simulation.lockstep_observations import make_lane_observations, make_lane_scratch
from manyserver.simulation.observations import Observations
from manyserver.simulation.progress import NEVER, STEP
from manyserver.simulation.replica import STEPS_PER_PIECE, Measured, Replica
from manyserver.simulation.tables import make_polls

__all__ = ["Lockstep", "LockstepState", "LockstepTables", "make_lockstep_tables"]


class LockstepTables(NamedTuple):
    """A system and a policy as plain arrays.

    Events and polls are those of :class:`~manyserver.simulation.tables.Polls`. Arrays over both
    are flat, ``look * events + event``, and so are those over pools and levels, the *rows*.
    """

    bound: np.ndarray
    """Where the interval of each event begins in [0, 1), shape (event,)."""
    scale: np.ndarray
    """Servers of its first look over the length of the interval, shape (event,)."""
    arrivals: float
    """Where the departures begin."""
    n_branches: int
    """Events that are arrivals."""
    first: np.ndarray
    size: np.ndarray
    last: np.ndarray
    start: np.ndarray
    shuffled: bool
    """As in :class:`~manyserver.simulation.tables.Polls`."""
    merges: np.ndarray
    """Whether the larger number of this look and those before is better, shape (look,)."""
    ends: np.ndarray
    """Whether the next look does not merge with this one, shape (look,)."""
    several: bool
    """Whether there is more than one that does not."""
    first_pool: np.ndarray
    end_pool: np.ndarray
    """Pools in which an arrival may look then, shape (look,)."""
    first_server: np.ndarray
    """Number of the first server of each pool, shape (pool,)."""
    servers: np.ndarray
    """Shape (pool,)."""
    nobody: int
    """Number of the first server that does not exist."""
    room: np.ndarray
    """Most jobs of a server, shape (pool,)."""
    rank: np.ndarray
    """Order of preference, shape (row,)."""
    worse: np.ndarray
    """By how much it grows from the level below, shape (row,)."""
    stride: int
    """Number of levels."""


class LockstepState(NamedTuple):
    """The state of all lanes, and what happened since it was added up."""

    tail: np.ndarray
    """Servers with at least so many jobs, but for level 0, shape (row, lane)."""
    started: np.ndarray
    """The same when the sums were zero."""
    sums: np.ndarray
    """The same summed over the steps, modulo 2**32."""
    joins: np.ndarray
    """Arrivals that made the servers so many; at level 0 those that were blocked."""
    height: np.ndarray
    """Highest level that is reached in any lane, shape (pool,)."""
    rng: np.ndarray
    """States of two generators, shape (8, lane)."""


class LockstepBlock(NamedTuple):
    """Steps that are drawn and not yet played; flat over polls, ``look * BLOCK + step``."""

    place: np.ndarray
    """Uniform on [0, 1), shape (step, lane)."""
    drawn: np.ndarray
    """Numbers as drawn, those drawn before included."""
    number: np.ndarray
    """Numbers; of polls that merge, the best one so far."""
    priority: np.ndarray
    """Breaks ties between draws."""


@lru_cache(maxsize=16)
def make_lockstep_tables(system: System, policy: Policy, levels: int) -> LockstepTables:
    """Tabulate a policy for a number of levels."""
    sampling = policy.sampling(system)
    polls = make_polls(system, policy)
    draws = [
        [draw for draw in branch.draws for _ in range(draw.count)] for branch in sampling.branches
    ]
    n_polls, n_events, n_branches = max(map(len, draws)), len(polls.bound), len(draws)
    ranks = policy.rank_table(system, levels)
    worse = np.diff(ranks, axis=1, prepend=0)
    rooms = (~full(system, levels)).sum(axis=1)
    ordered = [bool((row[1 : room + 1] > 0).all()) for row, room in zip(worse, rooms, strict=True)]
    merges = [
        look > 0
        and not polls.shuffled
        and all(_merges(branch, look, ordered) for branch in draws if look < len(branch))
        for look in range(n_polls)
    ]
    pools = [
        [pool for branch in draws if look < len(branch) for pool in branch[look].pools]
        for look in range(n_polls)
    ]
    first, size, last = (
        field.astype(np.int64)[: n_polls * n_events]
        for field in (polls.first, polls.size, polls.last)
    )
    bounds = list(itertools.accumulate(system.counts, initial=0))
    ends = [*(not merged for merged in merges[1:]), True]
    return LockstepTables(
        polls.bound,
        polls.inverse * size[:n_events],
        polls.bound[n_branches],
        n_branches,
        first,
        size,
        last,
        polls.start.astype(np.int64),
        polls.shuffled,
        np.array(merges),
        np.array(ends),
        sum(ends) > 1,
        np.array([min(some) for some in pools]),
        np.array([max(some) + 1 for some in pools]),
        np.array(bounds[:-1]),
        np.array(system.counts),
        bounds[-1],
        rooms,
        ranks.astype(np.int32).ravel(),
        worse.astype(np.int32).ravel(),
        levels,
    )


def _merges(draws: Sequence[Draw], look: int, ordered: Sequence[bool]) -> bool:
    """Whether a look is of the same draw as the one before, from one pool, fewer jobs better."""
    draw = draws[look]
    return draw is draws[look - 1] and len(draw.pools) == 1 and ordered[draw.pools[0]]


class Lockstep:
    """Replications that are simulated together.

    Parameters
    ----------
    replicas : sequence of Replica
        Of the same system and policy, at most `LANES`, not simulated yet; their states and
        generators are taken over.
    """

    def __init__(self, replicas: Sequence[Replica]):
        self.replicas = replicas
        self.system, self.policy = replicas[0].system, replicas[0].policy
        self.levels = max(replica.levels for replica in replicas)
        # Lanes that nobody needs do what the last one does.
        lanes = [*replicas, *[replicas[-1]] * (LANES - len(replicas))]
        counts = np.zeros((len(self.system.pools), self.levels, LANES), dtype=np.int32)
        for lane, replica in enumerate(lanes):
            counts[:, : replica.levels, lane] = replica.tail_counts()
        counts[:, 0] = 0
        rows = counts.reshape(-1, LANES)
        self.tables = make_lockstep_tables(self.system, self.policy, self.levels)
        self.state = LockstepState(
            _vectors(rows),
            _vectors(rows),
            make_vectors((len(rows),), np.int32),
            make_vectors((len(rows),), np.int32),
            counts.any(axis=2).sum(axis=1),
            _vectors(np.stack([replica.rng for replica in lanes], axis=1)),
        )
        n_polls = len(self.tables.ends)
        self.block = LockstepBlock(
            make_vectors((BLOCK,), np.float64),
            *(make_vectors((n_polls * BLOCK,), np.int32) for _ in range(3)),
        )
        self.step = BLOCK

    def _longer(self, rows: np.ndarray) -> np.ndarray:
        """Double the number of levels, shape (..., row, lane)."""
        others, n_pools = rows.shape[:-2], len(self.system.pools)
        wider = make_vectors((*others, n_pools, 2 * self.levels), rows.dtype.type)
        wider[..., : self.levels, :] = rows.reshape(*others, n_pools, self.levels, LANES)
        return wider.reshape(*others, -1, LANES)

    def _all_longer(self, arrays: tuple[np.ndarray, ...], *names: str) -> dict[str, np.ndarray]:
        return {name: self._longer(getattr(arrays, name)) for name in names}

    def warm_up(self, steps: int) -> None:
        """Simulate without measuring."""
        while steps > 0:
            self.advance_all(1, min(steps, STEPS_PER_PIECE))
            steps -= STEPS_PER_PIECE

    def advance_all(
        self, pieces: int, steps: int, period: int | None = None, moments: bool = False
    ) -> list[Measured]:
        """Simulate pieces of equal length of all replications, see :meth:`Replica.advance`."""
        n_pools = len(self.system.pools)
        before = self.state.tail.copy()
        areas = np.zeros((pieces, *before.shape), dtype=np.int64)
        joins = np.zeros_like(areas)
        ends = np.zeros(areas.shape, dtype=np.int32)
        observations = make_lane_observations(pieces, n_pools, self.levels, moments)
        wait = min(period or NEVER, NEVER - 1)
        progress = np.array([0, steps, wait, steps, wait, self.step, 0])
        while True:
            joining = make_joining_tables(self.system, self.policy, self.levels)
            scratch = make_lane_scratch(joining, self.levels)
            if advance(
                self.tables, self.state, self.block, progress, areas, joins, ends, joining,
                scratch, observations,
            ):  # fmt: skip
                break
            areas, joins, ends, before = map(self._longer, (areas, joins, ends, before))
            longer = self._all_longer(self.state, "tail", "started", "sums", "joins")
            self.state = self.state._replace(**longer)
            observations = observations._replace(
                **self._all_longer(observations, "tails", "squares", "joining")
            )
            self.levels *= 2
            self.tables = make_lockstep_tables(self.system, self.policy, self.levels)
        self.step = int(progress[STEP])
        shape = (pieces, n_pools, self.levels, LANES)
        tails = np.concatenate([before[None], ends]).reshape(-1, *shape[1:]).astype(np.int64)
        return [
            self._measured(
                tails[..., lane],
                areas.reshape(shape)[..., lane],
                joins.reshape(shape)[..., lane],
                steps,
                observations.of_lane(lane, n_pools),
            )
            for lane in range(len(self.replicas))
        ]

    def _measured(
        self,
        states: np.ndarray,
        areas: np.ndarray,
        joins: np.ndarray,
        steps: int,
        observations: Observations,
    ) -> Measured:
        """Return what happened in a lane; the states are those before, between and after pieces."""
        tails = areas / steps / np.array(self.system.counts)[:, None]
        tails[:, :, 0] = 1
        blocked = joins[:, :, 0].copy()
        # Arrivals and departures by the level that they found.
        arrivals = np.concatenate([joins[:, :, 1:], np.zeros_like(joins[:, :, :1])], axis=2)
        departures = joins - np.diff(states, axis=0)
        departures[:, :, 0] = 0
        return Measured(
            tails, arrivals, departures, blocked, np.zeros((len(tails), 0)), observations
        )


def _vectors(values: np.ndarray) -> np.ndarray:
    """Copy numbers of lanes, shape (row, lane)."""
    copy = make_vectors(values.shape[:-1], values.dtype.type)
    copy[...] = values
    return copy
