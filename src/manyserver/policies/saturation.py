r"""Pools that can saturate although the load is below one.

Where only some servers announce themselves, an arrival that finds none of them goes where the draws
lead, also to a pool that is slow and has long queues. Let the servers of a set B of pools always
be busy, with queues that never end. They are announced no more, and an arrival joins one of them
if no other server is announced and all that it looks at belong to B. The queues of B grow
without bound if

.. math:: \lambda P(\text{an arrival joins B}) \ge \sum_{j \in B} \gamma_j C_j.

Such a B behaves like pools that are full and never finish a job, and the arrivals that join it
are those that these pools block (at least those, with other pools of finite buffers). So the flow
into B is the blocking of another system (:func:`saturated`), which each method finds in its own
way.
"""

import itertools
from dataclasses import dataclass
from fractions import Fraction

from manyserver.model import Pool, System, UnstableSystem
from manyserver.policies.base import ROUNDING, Policy
from manyserver.policies.pull import Pull
from manyserver.policies.sampling import all_inside

__all__ = ["Saturation", "refuse_saturation", "saturated", "saturations"]

CERTAIN = 2.0
"""Half-widths that a flow must be away from a capacity, about four standard errors."""
STUCK = Fraction(1, 10**15)
"""Speed of a server that finishes no job in the time of any computation."""


@dataclass(frozen=True)
class Saturation:
    """Pools that may saturate together.

    Parameters
    ----------
    pools : tuple of int
        Their positions.
    capacity : float
        Work they can do per unit of time, per server of the system.
    """

    pools: tuple[int, ...]
    capacity: float


def saturations(system: System, policy: Policy) -> list[Saturation]:
    """List the sets of pools that would be overloaded if no server were ever announced.

    No others can saturate. There are none where draws overload nothing, as in a system of equal
    servers; where all servers are announced; or without announcements, when the sampling alone
    decides (:meth:`~manyserver.policies.base.Policy.check`).

    Parameters
    ----------
    system : System
    policy : Policy

    Returns
    -------
    list of Saturation
        Largest sets first. Pools with finite buffers belong to none.
    """
    # With several routers PULL does the same, as seen from one of them.
    sampling = (Pull(1) if isinstance(policy, Pull) else policy).sampling(system)
    if not sampling.depends_on_all or not sampling.branches:
        return []
    bounded = tuple(i for i, own in enumerate(system.pools) if own.buffer is not None)
    endless = [pool for pool, own in enumerate(system.pools) if own.buffer is None]
    found = []
    for size in range(len(endless), 0, -1):
        for pools in itertools.combinations(endless, size):
            forced = system.arrival_rate * sum(
                branch.probability
                * all_inside(branch, pools + bounded, system, sampling.replacement)
                for branch in sampling.branches
            )
            capacity = float(sum(system.pools[i].fraction * system.pools[i].speed for i in pools))
            if forced >= capacity * (1 - ROUNDING):
                found.append(Saturation(pools, capacity))
    return found


def saturated(system: System, pools: tuple[int, ...]) -> System:
    """Return the system in which some pools are full and finish no job.

    Parameters
    ----------
    system : System
    pools : tuple of int
        Positions of these pools.
    """
    changed = [
        Pool(pool.fraction, STUCK, 1) if number in pools else pool
        for number, pool in enumerate(system.pools)
    ]
    return System(system.arrival_rate, changed, system.n_servers)


def refuse_saturation(
    system: System, policy: Policy, saturation: Saturation, flow: float, half_width: float = 0.0
) -> None:
    """Raise UnstableSystem if pools get more than they can serve, beyond the error.

    Parameters
    ----------
    system : System
    policy : Policy
    saturation : Saturation
    flow : float
        Jobs that join these pools while they are always busy, per unit of time and server of the
        system.
    half_width : float
        Of the 95 % interval of `flow`.
    """
    if flow - CERTAIN * half_width < saturation.capacity * (1 - ROUNDING):
        return
    pools = saturation.pools
    which = f"pool {pools[0]}" if len(pools) == 1 else f"pools {list(pools)} together"
    they = "it is" if len(pools) == 1 else "they are"
    error = f" (+- {half_width:.1g})" if half_width else ""
    raise UnstableSystem(
        f"arrival_rate = {system.arrival_rate:g}: policy {policy.name} sends {which} "
        f"{flow:.6g}{error} jobs per unit of time and server of the system while {they} always "
        f"busy, since arrivals that find no announced server go there at random; must be below "
        f"a capacity of {saturation.capacity:.6g}",
        pools=pools,
    )
