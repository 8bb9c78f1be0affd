"""Which kernel simulates which policy."""

from collections.abc import Sequence

import numpy as np

from manyserver.model import System
from manyserver.policies import Policy
from manyserver.simulation.occupancy_replica import OccupancyReplica
from manyserver.simulation.pull_replica import PullReplica
from manyserver.simulation.replica import Replica
from manyserver.simulation.server_replica import ServerReplica

__all__ = ["in_lockstep", "kernel_for", "make_replica"]

MOST_SERVERS = 2**30
"""In lockstep, the number of a server has 31 bits."""
MOST_LEVELS = 24
"""Levels of all pools that servers are at. A step in lockstep goes over all of them: with so many
it takes some 0.6 of a step that goes server by server, with three times as many it takes longer."""
MOST_POLLS = 64
"""Servers that an arrival looks at in lockstep, for the room that their numbers take."""


def kernel_for(system: System, policy: Policy) -> type[Replica]:
    """Choose the kernel: by servers, or by the numbers of servers that hold k jobs."""
    if policy.n_routers:
        return PullReplica
    announced = policy.sampling(system).depends_on_all
    return OccupancyReplica if announced else ServerReplica


def in_lockstep(system: System, policy: Policy, start_tails: np.ndarray) -> bool:
    """Whether replications are simulated together.

    It does not depend on how many there are, as a replication gives something else alone: its
    random numbers are used in another way.
    """
    if kernel_for(system, policy) is not ServerReplica or system.finite_servers > MOST_SERVERS:
        return False
    branches = policy.sampling(system).branches
    polls = max(sum(draw.count for draw in branch.draws) for branch in branches)
    levels = (start_tails[:, 1:] * np.array(system.counts)[:, None] > 0.5).sum()
    return bool(polls <= MOST_POLLS and levels <= MOST_LEVELS)


def make_replica(
    system: System, policy: Policy, start_tails: np.ndarray, seed: Sequence[int]
) -> Replica:
    """Make a replica of a system, see :class:`~manyserver.simulation.replica.Replica`."""
    return kernel_for(system, policy)(system, policy, start_tails, seed)
