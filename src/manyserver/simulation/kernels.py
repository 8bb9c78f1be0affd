"""Which kernel simulates which policy."""

from collections.abc import Sequence

import numpy as np

from manyserver.model import System
from manyserver.policies import Policy
from manyserver.policies.pull import Pull
from manyserver.simulation.counts_replica import CountsReplica
from manyserver.simulation.pull_replica import PullReplica
from manyserver.simulation.replica import Replica
from manyserver.simulation.sampled_replica import SampledReplica

__all__ = ["kernel_for", "make_replica"]


def kernel_for(system: System, policy: Policy) -> type[Replica]:
    """Choose the kernel: by servers, or by the numbers of servers that hold k jobs."""
    if isinstance(policy, Pull):
        return PullReplica
    announced = policy.sampling(system).depends_on_all
    return CountsReplica if announced else SampledReplica


def make_replica(
    system: System, policy: Policy, start_tails: np.ndarray, seed: Sequence[int]
) -> Replica:
    """Make a replica of a system, see :class:`~manyserver.simulation.replica.Replica`."""
    return kernel_for(system, policy)(system, policy, start_tails, seed)
