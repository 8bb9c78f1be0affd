"""Slow twins of the kernels in plain Python, which use the same random words.

They read the policy themselves and keep a list of levels; from a kernel's inputs they take only
what says how random words are used.
"""

from itertools import accumulate

import numpy as np

from manyserver.model import System
from manyserver.policies import Policy
from manyserver.simulation.lockstep_kernel import BLOCK as BLOCK_TOGETHER
from manyserver.simulation.lockstep_replicas import LockstepTables
from manyserver.simulation.occupancy_replica import CountsTables
from manyserver.simulation.server_kernel import BLOCK
from manyserver.simulation.tables import Polls

WORD = 2**64 - 1


class Xoshiro:
    """The generator xoshiro256++, from its published definition."""

    def __init__(self, state: list[int]):
        self.state = state

    def next(self) -> int:
        s = self.state
        word = (self._rotated((s[0] + s[3]) & WORD, 23) + s[0]) & WORD
        shifted = (s[1] << 17) & WORD
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= shifted
        s[3] = self._rotated(s[3], 45)
        return word

    @staticmethod
    def _rotated(word: int, bits: int) -> int:
        return ((word << bits) | (word >> (64 - bits))) & WORD


def in_interval(word: int, bounds: np.ndarray) -> tuple[int, float]:
    """Return in which interval of [0, 1) a word falls, and where in it, in [0, 1)."""
    place = (word >> 12) / 2**52
    event = int((bounds <= place).sum()) - 1
    start, end = np.append(bounds, 1.0)[event : event + 2].tolist()
    return event, (place - start) / (end - start)


class Twin:
    """The chain, one step after another."""

    def __init__(
        self, system: System, policy: Policy, polls: Polls, state: list[int], jobs: list[int]
    ):
        self.random, self.further = Xoshiro(state[:4]), Xoshiro(state[4:])
        self.polls = polls
        self.jobs = jobs
        self.system = system
        sampling = policy.sampling(system)
        self.replacement = sampling.replacement
        bounds = list(accumulate(system.counts, initial=0))
        self.pool_of = [j for j, count in enumerate(system.counts) for _ in range(count)]
        self.ranks = policy.rank_table(system, 64)
        self.room = [64 if pool.buffer is None else pool.buffer for pool in system.pools]
        self.events = [
            [(bounds[d.pools[0]], bounds[d.pools[-1] + 1], d.count) for d in branch.draws]
            for branch in sampling.branches
        ]
        self.n_arrivals = len(self.events)
        self.events += [[(bounds[j], bounds[j + 1], 1)] for j in range(len(system.counts))]
        self.pending: list[tuple[int, list[int]]] = []

    def step(self) -> tuple[bool, int, int]:
        """Return whether it is an arrival, the server, and the jobs it had before."""
        if not self.pending:
            self.pending = self._block()
        event, servers = self.pending.pop(0)
        if event >= self.n_arrivals:
            (server,) = servers
            before = self.jobs[server]
            self.jobs[server] = max(before - 1, 0)
            return False, server, before
        server = min(servers, key=self._key)
        before = self.jobs[server]
        self.jobs[server] = min(before + 1, self.room[self.pool_of[server]])
        return True, server, before

    def _key(self, server: int) -> tuple[bool, int]:
        pool, jobs = self.pool_of[server], self.jobs[server]
        return jobs == self.room[pool], int(self.ranks[pool, jobs])

    def _block(self) -> list[tuple[int, list[int]]]:
        n_polls = len(self.polls.fresh)
        events: list[int] = []
        words: list[int] = []
        numbers: list[list[int]] = []
        for _ in range(BLOCK):
            event, share = in_interval(self.random.next(), self.polls.bound)
            events.append(event)
            numbers.append([int(share * self._sizes(event)[0])])
        for look in range(1, n_polls):
            if self.polls.fresh[look]:
                words = [self.further.next() for _ in range(BLOCK)]
            for step in range(BLOCK):
                numbers[step].append(self._bounded(words, events, step, look))
        steps = [self._servers(event, drawn) for event, drawn in zip(events, numbers, strict=True)]
        if self.polls.shuffled:
            for servers in steps:
                for look in range(1, n_polls):
                    other = self.further.next() * (look + 1) >> 64
                    servers[look], servers[other] = servers[other], servers[look]
        real = [[s for s in servers if s is not None] for servers in steps]
        return list(zip(events, real, strict=True))

    def _sizes(self, event: int) -> list[int]:
        return [
            end - first - (0 if self.replacement else drawn)
            for first, end, count in self.events[event]
            for drawn in range(count)
        ]

    def _bounded(self, words: list[int], events: list[int], step: int, look: int) -> int:
        sizes = self._sizes(events[step])
        product = words[step] * (sizes[look] if look < len(sizes) else 1)
        words[step] = product & WORD
        return product >> 64

    def _servers(self, event: int, numbers: list[int]) -> list[int | None]:
        servers: list[int | None] = []
        for first, end, count in self.events[event]:
            left = list(range(first, end))
            for _ in range(count):
                number = numbers[len(servers)]
                servers.append(left[number])
                if not self.replacement:
                    left[number] = left[-1]
                    left.pop()
        return servers + [None] * (len(numbers) - len(servers))


class LockstepTwin:
    """The chain of one lane of the kernel in lockstep, one server after another.

    Servers of a pool are listed with most jobs first; those that are drawn are taken off a list.
    """

    def __init__(
        self,
        system: System,
        policy: Policy,
        tables: LockstepTables,
        state: list[int],
        jobs: list[list[int]],
    ):
        self.random, self.further = Xoshiro(state[:4]), Xoshiro(state[4:])
        self.tables = tables
        self.jobs = jobs
        self.sampling = policy.sampling(system)
        self.ranks = policy.rank_table(system, 64)
        self.room = [64 if pool.buffer is None else pool.buffer for pool in system.pools]
        self.pending: list[tuple[int, list[float]]] = []

    def step(self) -> tuple[bool, int, int]:
        """Return whether it is an arrival, the pool, and the jobs of the server before."""
        if not self.pending:
            self.pending = self._block()
        event, numbers = self.pending.pop(0)
        pool = event - len(self.sampling.branches)
        if pool >= 0:
            before = sorted(self.jobs[pool], reverse=True)[int(numbers[0] * len(self.jobs[pool]))]
            self._move(pool, before, max(before - 1, 0))
            return False, pool, before
        pool, before = self._joined(event, numbers)
        self._move(pool, before, min(before + 1, self.room[pool]))
        return True, pool, before

    def _move(self, pool: int, before: int, after: int) -> None:
        self.jobs[pool].remove(before)
        self.jobs[pool].append(after)

    def _block(self) -> list[tuple[int, list[float]]]:
        """Return events and the uniform numbers of their polls, and then those that break ties."""
        bound, n_polls = self.tables.bound, len(self.tables.ends)
        steps: list[tuple[int, list[float]]] = []
        for _ in range(BLOCK_TOGETHER):
            event, share = in_interval(self.random.next(), bound)
            steps.append((event, [share]))
        for _ in range(1, n_polls):
            words = [self.further.next() for _ in range(BLOCK_TOGETHER // 2)]
            halves = [word & (2**32 - 1) for word in words] + [word >> 32 for word in words]
            for half, (_, numbers) in zip(halves, steps, strict=True):
                numbers.append(half / 2**32)
        if self.tables.shuffled:
            for _ in range(n_polls):
                for _, numbers in steps:
                    numbers.append((self.further.next() & (2**32 - 1)) * (2**31 - 1) >> 32)
        return steps

    def _joined(self, event: int, numbers: list[float]) -> tuple[int, int]:
        looked_at: list[tuple[int, float, int, int]] = []
        for draw in self.sampling.branches[event].draws:
            left = [
                (pool, level)
                for pool in draw.pools
                for level in sorted(self.jobs[pool], reverse=True)
            ]
            for _ in range(draw.count):
                look = len(looked_at)
                number = int(numbers[look] * len(left))
                pool, level = left[number]
                if not self.sampling.replacement:
                    left[number] = left[-1]
                    left.pop()
                # The highest number wins a tie between draws, else the first look.
                shuffled = self.tables.shuffled
                tie = -numbers[len(self.tables.ends) + look] if shuffled else look
                looked_at.append((int(self.ranks[pool, level]), tie, pool, level))
        return min(looked_at)[2:]


class CountsTwin:
    """The chain of the kernel on counts, one server after another."""

    def __init__(
        self,
        system: System,
        policy: Policy,
        tables: CountsTables,
        state: list[int],
        jobs: list[list[int]],
    ):
        self.random, self.further = Xoshiro(state[:4]), Xoshiro(state[4:])
        self.tables = tables
        self.jobs = jobs
        self.sampling = policy.sampling(system)
        self.ranks = policy.rank_table(system, 64)
        self.room = [64 if pool.buffer is None else pool.buffer for pool in system.pools]
        known = self.sampling.announced
        self.known = [room if known is None else min(known, room) for room in self.room]

    def step(self) -> tuple[bool, int, int]:
        """Return whether it is an arrival, the pool, and the jobs of the server before."""
        event, share = in_interval(self.random.next(), self.tables.bound)
        pool = event - max(1, len(self.sampling.branches))
        if pool >= 0:
            # Servers with more jobs have smaller numbers.
            servers = sorted(self.jobs[pool], reverse=True)
            before = servers[int(share * len(servers))]
            self._move(pool, before, max(before - 1, 0))
            return False, pool, before
        pool, before = self._joined(event, share)
        self._move(pool, before, min(before + 1, self.room[pool]))
        return True, pool, before

    def _move(self, pool: int, before: int, after: int) -> None:
        self.jobs[pool].remove(before)
        self.jobs[pool].append(after)

    def _joined(self, event: int, share: float) -> tuple[int, int]:
        announced = [
            (pool, level)
            for pool, levels in enumerate(self.jobs)
            for level in sorted(levels)
            if level < self.known[pool]
        ]
        if announced:
            best = min(int(self.ranks[one]) for one in announced)
            tied = [one for one in announced if self.ranks[one] == best]
            return tied[int(share * len(tied))]
        if not self.sampling.branches:
            return 0, self.room[0]
        looked_at: list[tuple[int, int]] = []
        for draw in self.sampling.branches[event].draws:
            left = [
                (pool, level)
                for pool in draw.pools
                for level in sorted(self.jobs[pool], reverse=True)
            ]
            for _ in range(draw.count):
                number = int(share * len(left))
                if looked_at:
                    number = self.further.next() * len(left) >> 64
                self._compare(looked_at, left[number])
                if not self.sampling.replacement:
                    left[number] = left[-1]
                    left.pop()
        return looked_at[0]

    def _compare(self, looked_at: list[tuple[int, int]], server: tuple[int, int]) -> None:
        """Put the best so far first; of equally good ones, each with the same probability."""
        ranks = [int(self.ranks[one]) for one in looked_at]
        rank = int(self.ranks[server])
        tied = ranks.count(rank) + 1
        looked_at.append(server)
        better = not ranks or rank < ranks[0]
        if better or (rank == ranks[0] and self.further.next() * tied >> 64 == 0):
            looked_at.insert(0, looked_at.pop())
