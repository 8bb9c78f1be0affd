"""Round robin with many servers: the turns of each come at equal times."""

from typing import Any

import numpy as np

from manyserver.disciplines import Discipline
from manyserver.model import NotKnown, System
from manyserver.policies import Policy
from manyserver.sizes import SizeLaw
from manyserver.statistics.renewal_queue import renewal_outputs

__all__ = ["turns_fixed_point"]


def turns_fixed_point(
    system: System, policy: Policy, sizes: SizeLaw, discipline: Discipline
) -> dict[str, Any]:
    """Compute the stationary state of queues D/M/1, by variable name.

    Between two turns of a server there are as many arrivals as servers, so that the time between
    them is constant. With unequal weights it is not: smooth weighted round robin spreads the turns
    of a server, but servers of equal weight follow one another, and all others wait for them.

    Raises
    ------
    NotKnown
        If weights differ, the sizes are not exponential, or a buffer is finite.
    """
    if set(policy.turns(system) or ()) != {1}:
        raise NotKnown(f"policy {policy.name}: the limit is known for equal weights only")
    if sizes.name != "exponential":
        raise NotKnown(
            f"sizes = {sizes.name}: the limit of policy {policy.name} is known for exponential "
            "sizes only"
        )
    if system.is_bounded:
        raise NotKnown(
            f"policy {policy.name}: the limit is known only if every pool has buffer None"
        )
    rates = np.full(len(system.pools), system.arrival_rate)
    return renewal_outputs(system, rates, None)
