"""PULL that is simulated by counts: its state, tables, and what it alone can tell."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from manyserver.model import System
from manyserver.policies import full
from manyserver.policies.pull import Pull
from manyserver.simulation.joining_tables import make_joining_tables
from manyserver.simulation.observations import Observations, make_scratch
from manyserver.simulation.occupancy_replica import OnCounts
from manyserver.simulation.pull_kernel import (
    EMPTY,
    N_TALLIES,
    RETURN,
    SQUARES_IDLE,
    SQUARES_KNOWN,
    STEPS,
    advance,
)
from manyserver.simulation.replica import Measured, messages_per_job
from manyserver.simulation.tables import alias_method
from manyserver.statistics.estimates import Controls, Estimate, batch_mean, batch_ratio

__all__ = ["PullReplica", "PullTables", "make_pull_tables"]

ONE_ROUTER = Pull(1)
"""With one router messages and levels are what they are with several."""


class PullTables(NamedTuple):
    """A system as plain arrays. An *event* is a departure from one pool, or an arrival."""

    threshold: np.ndarray
    """Walker's alias method for the event, shape (event,), probabilities times 2**64."""
    alias: np.ndarray
    """Event below and from the threshold, shape (2 * event,)."""
    room: np.ndarray
    """Most jobs of a server, shape (pool,)."""
    servers: np.uint64
    """Of all pools."""


@lru_cache(maxsize=16)
def make_pull_tables(system: System, levels: int) -> PullTables:
    """Tabulate a system for a number of levels."""
    counts = np.array(system.counts)
    threshold, alias = alias_method(_rates(system, system.arrival_rate, system.speeds))
    room = (~full(system, levels)).sum(axis=1)
    return PullTables(threshold, alias, room, np.uint64(counts.sum()))


def _rates(system: System, arrival_rate: float, speeds: np.ndarray) -> list[float]:
    """Return the rates of the events."""
    return [*(np.array(system.counts) * speeds), system.finite_servers * arrival_rate]


class PullReplica(OnCounts):
    """The state is what the queues are, and which router knows of how many idle servers."""

    n_tallies = N_TALLIES

    def start(self, tail: np.ndarray) -> None:
        """Take the numbers of servers, and split the idle ones over the routers.

        The parts of the routers are uniform on the simplex, as they are in the stationary state
        of many servers: from an equal split the way there takes a time of order ``n_servers``.
        """
        rng = np.random.default_rng(self.rng[4:])
        parts = rng.dirichlet(np.ones(self.policy.n_routers))
        self.messages = np.stack([rng.multinomial(idle, parts) for idle in tail[:, 0] - tail[:, 1]])
        self.known = self.messages.sum(axis=0)
        self._tabulate(np.pad(tail, ((0, 0), (0, 1))))

    def _tabulate(self, tail: np.ndarray) -> None:
        self.tail = np.ascontiguousarray(tail, dtype=np.int64)
        self.tables = make_pull_tables(self.system, self.levels)
        self.tabulate_rates()
        self.joining = make_joining_tables(self.system, ONE_ROUTER, self.levels)
        self.scratch = make_scratch(self.joining, self.levels)

    def tabulate_rates(self) -> None:
        """Make the alias tables of the events."""
        threshold, alias = alias_method(_rates(self.system, self.arrival_rate, self.speeds))
        self.tables = self.tables._replace(threshold=threshold, alias=alias)

    def play(
        self,
        flows: np.ndarray,
        before: np.ndarray,
        lengths: np.ndarray,
        progress: np.ndarray,
        observations: Observations,
        tallies: np.ndarray,
    ) -> bool:
        """Run the kernel."""
        done = advance(
            self.tables, self.tail, self.messages, self.known, flows, before, lengths, self.rng,
            progress, self.joining, self.scratch, observations, tallies,
        )  # fmt: skip
        return bool(done)

    def own_controls(self, batches: Measured) -> np.ndarray:
        r"""Return what is zero on average, shape (batch, 1); no column for one router.

        The drift of :math:`\sum_r I_r^2 - I^2 / R`, with :math:`I_r` of I idle servers known to
        router r: a step up or down of any router makes it larger, and an empty router, whose
        messages only come, smaller. So

        .. math::

            (R - 1) E a = \frac{1}{n} E\Bigl[ m \Bigl( \frac{n I}{R} + \sum_r I_r^2
                - \frac{I^2}{R} \Bigr) \Bigr],

        with a the probability that an arrival joins an idle server and m the empty routers.
        """
        routers = self.policy.n_routers
        if routers == 1:
            return np.zeros((len(batches.tallies), 0))
        returning = batches.tallies[:, RETURN] / batches.tallies[:, STEPS]
        drift = (routers - 1) * _to_idle(batches) - returning / self.system.finite_servers
        return np.asarray(drift[:, None])

    def own_outputs(self, batches: Measured, controls: Controls | None) -> dict[str, Estimate]:
        """Estimate messages, empty routers, and how the idle servers are split over routers."""
        sampling = ONE_ROUTER.sampling(self.system)
        empty = batches.tallies[:, EMPTY] / batches.tallies[:, STEPS] / self.policy.n_routers
        return {
            "messages_per_job": messages_per_job(self.system, sampling, batches),
            "empty_router_probability": batch_mean(
                controls.adjusted(empty) if controls else empty, controls
            ),
            "idle_concentration": batch_ratio(
                batches.tallies[:, SQUARES_KNOWN], batches.tallies[:, SQUARES_IDLE]
            ),
        }


def _to_idle(batches: Measured) -> np.ndarray:
    """Probability that an arrival joins an idle server, over the observations, shape (batch,)."""
    return np.asarray(
        batches.observations.joining[:, :, 0].sum(axis=1) / batches.observations.taken
    )
