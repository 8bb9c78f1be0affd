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

Of pools that belong to the same draws, B has the slowest. Let a pool of B and a faster one of as
many servers outside change places: B can do more by the part that the gain is of its capacity, and
gets more as the others are announced less often. By the balance of an announced server of speed C,
a change of C changes the probability that no server is announced by less than the part
:math:`C / (N \lambda P(\text{an arrival joins B}))`, if the others are a loss system of equal
servers (where it is the derivative of the inverse Mills ratio, below one, for many of them). So
where B is overloaded, the swap that gives it slower pools leaves it overloaded. For unequal servers
and other policies it held in all of 189 random exact chains of up to five servers.
"""

from dataclasses import dataclass
from fractions import Fraction

from manyserver.model import Pool, System, UnstableSystem
from manyserver.policies.base import Policy
from manyserver.policies.stability import capacity_of, is_overloaded, worst_sets

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
    """List the sets of the slowest pools that would be overloaded if no server were announced.

    If any set saturates, so does one of these. There are none where draws overload nothing, as in
    a system of equal servers; where all servers are announced; or without announcements, when the
    sampling alone decides (:meth:`~manyserver.policies.base.Policy.check`).

    Parameters
    ----------
    system : System
    policy : Policy

    Returns
    -------
    list of Saturation
        Those of :func:`~manyserver.policies.stability.worst_sets`, largest first. Pools with
        finite buffers belong to none.
    """
    # With several routers PULL does the same, as seen from one of them.
    sampling = policy.memoryless.sampling(system)
    if not sampling.depends_on_all or not sampling.branches:
        return []
    full = tuple(pool for pool, own in enumerate(system.pools) if own.buffer is not None)
    return [
        Saturation(pools, float(capacity_of(system, pools)))
        for pools in reversed(worst_sets(system, sampling))
        if is_overloaded(system, sampling, pools, full)
    ]


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
    if flow - CERTAIN * half_width < saturation.capacity:
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
