"""A slow twin of the kernel that follows jobs: every event of every server, one after another."""

from dataclasses import dataclass, field

import numpy as np

from manyserver.policies import full
from manyserver.simulation.jobs.disciplines.ps import HEADER
from manyserver.simulation.jobs.replica import JobReplica
from manyserver.simulation.server_kernel import draw_block

__all__ = ["JobTwin"]

LEVELS = 64
"""More than any server of a test holds."""


@dataclass
class Job:
    """A job, with the times of all that happens to it."""

    arrived: float
    size: float
    needs: float
    """Service that is still needed."""
    began: float = np.nan
    left: float = np.nan


@dataclass
class JobTwin:
    """Plays the arrivals that a replica has drawn, from its present state on.

    Its policy draws servers; which of the announced ones is taken is the affair of their list.
    """

    replica: JobReplica
    servers: list[list[Job]] = field(init=False)
    jobs: list[Job] = field(init=False)
    changes: list[tuple[float, int, int, int]] = field(init=False)
    """Time, pool, level before, and 1 for an arrival and -1 for a departure."""

    def __post_init__(self) -> None:
        replica = self.replica
        self.system = replica.system
        self.pool = np.repeat(np.arange(len(self.system.pools)), self.system.counts)
        self.speed = self.system.speeds[self.pool]
        self.rank = replica.policy.rank_table(self.system, LEVELS)
        self.room = ~full(self.system, LEVELS)
        self.servers = [self._present(server) for server in range(len(self.pool))]
        self.jobs = [job for here in self.servers for job in here]
        self.start = [len(here) for here in self.servers]
        self.changes, self.blocked = [], 0
        self.rng = replica.rng.copy()
        self.block = replica.block._replace(
            **{name: getattr(replica.block, name).copy() for name in replica.block._fields}
        )
        self.gaps, self.sizes = replica.stream.gap.tolist(), replica.stream.size.tolist()

    def _present(self, server: int) -> list[Job]:
        replica = self.replica
        level = int(replica.servers.code[server]) % replica.levels
        row = replica.servers.rows.reshape(len(replica.servers.code), -1)[server]
        self.ps = replica.discipline.name == "ps"
        if self.ps:
            needs = row[HEADER : HEADER + level]
        else:
            ends = row[:level] * self.speed[server]
            needs = np.diff(ends, prepend=0.0)
        return [Job(-1.0, float(need), float(need), 0.0) for need in needs]

    # Events

    def _next_departure(self) -> tuple[float, int, int]:
        """Return the time to the next departure, its server, and which of the jobs leaves."""
        best = (np.inf, -1, -1)
        for server, here in enumerate(self.servers):
            if not here:
                continue
            share = len(here) if self.ps else 1
            which = int(np.argmin([job.needs for job in here])) if self.ps else 0
            best = min(best, (here[which].needs * share / self.speed[server], server, which))
        return best

    def _work(self, time: float) -> None:
        for server, here in enumerate(self.servers):
            if self.ps:
                for job in here:
                    job.needs -= time * self.speed[server] / len(here)
            elif here:
                here[0].needs -= time * self.speed[server]

    def run(self, stop: float) -> None:
        """Play until a time, and then on until all jobs that arrived before have left."""
        now, number, step = 0.0, 0, len(self.block.event)
        self.stop = stop
        while now < stop or any(np.isnan(job.left) for job in self.jobs if job.arrived < stop):
            gap = self.gaps[number]
            while True:
                wait, server, which = self._next_departure()
                if wait >= gap:
                    break
                self._work(wait)
                now, gap = now + wait, gap - wait
                job = self.servers[server].pop(which)
                job.left = now
                self._note(now, server, len(self.servers[server]) + 1, -1)
                if not self.ps and self.servers[server]:
                    self.servers[server][0].began = now
            self._work(gap)
            now += gap
            if step == len(self.block.event):
                draw_block(self.replica.polls, self.rng, self.block)
                step = 0
            chosen = self._choose(step)
            if chosen is None:
                self.blocked += now < stop
            else:
                size = self.sizes[number]
                here = self.servers[chosen]
                self._note(now, chosen, len(here), 1)
                here.append(Job(now, size, size, now if not here else np.nan))
                self.jobs.append(here[-1])
            step, number = step + 1, number + 1

    def _note(self, now: float, server: int, level: int, change: int) -> None:
        self.changes.append((now, int(self.pool[server]), level, change))

    def _choose(self, step: int) -> int | None:
        levels = [len(here) for here in self.servers]
        polls = len(self.replica.polls.fresh)
        rows = [int(s) for s in self.block.server.reshape(-1, len(self.block.event))[:polls, step]]
        open_ones = [
            (self.rank[self.pool[s], levels[s]], row, s)
            for row, s in enumerate(rows)
            if s < len(levels) and self.room[self.pool[s], levels[s]]
        ]
        return min(open_ones)[2] if open_ones else None

    # What came of it

    def pieces(self, name: str, count: int, length: float, levels: int) -> np.ndarray:
        """Return tails or joins as the kernel does, shape (piece, pool, level)."""
        result = np.zeros((count, len(self.system.pools), LEVELS))
        if name == "joins":
            for now, pool, level, change in self.changes:
                if change > 0 and now < self.stop:
                    result[int(now / length), pool, level] += 1
            return result[:, :, :levels]
        servers = np.array(self.system.counts)
        tails = np.zeros((len(servers), LEVELS))
        for server, level in enumerate(self.start):
            tails[self.pool[server], : level + 1] += 1
        before = 0.0
        bounds = [length * (piece + 1) for piece in range(count)]
        events = [*sorted(self.changes), (np.inf, 0, 0, 0)]
        for now, pool, level, change in events:
            while before < min(now, self.stop):
                piece = min(int(before / length + 1e-12), count - 1)
                until = min(now, bounds[piece])
                result[piece] += tails * (until - before)
                before = until
            tails[pool, level + (change > 0)] += change
        return result[:, :, :levels] / (length * servers[:, None])

    def arrived_in(self, batch: int, length: float) -> list[Job]:
        """Return the jobs that arrived in a batch."""
        return [job for job in self.jobs if batch * length <= job.arrived < (batch + 1) * length]

    def time_in_system(self) -> float:
        """Return the time that jobs spent in the system until the end."""
        return sum(
            min(job.left, self.stop) - max(job.arrived, 0.0)
            for job in self.jobs
            if job.arrived < self.stop
        )
