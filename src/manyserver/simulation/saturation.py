"""Whether pools saturate although the load is below one, by a short simulation."""

from functools import lru_cache

import numpy as np

from manyserver.model import System
from manyserver.policies import Policy
from manyserver.policies.saturation import (
    CERTAIN,
    Saturation,
    refuse_saturation,
    saturated,
    saturations,
)
from manyserver.simulation.kernels import make_replica
from manyserver.simulation.lengths import NEVER_SEEN
from manyserver.statistics.estimates import Estimate, batch_mean

__all__ = ["certainly_stable", "refuse_unstable"]

BATCHES = 32
SHORTEST_TIME = 20.0
"""Length of the first look, in the time that the slowest of the other servers needs for a job;"""
FEWEST_STEPS = 2_000_000
"""and in steps."""
SETTLING = 0.25
"""The same before measuring, as a part of that."""
MOST_STEPS = 100_000_000
"""A look gets no longer than this, if the first is not."""
LOOK = 7
"""Last word of the seed of a look, which those of replications lack."""


# Runs that differ in their options alone need one look.
@lru_cache(maxsize=256)
def refuse_unstable(system: System, policy: Policy, seed: tuple[int, ...]) -> Estimate | None:
    """Raise UnstableSystem if some pools certainly get more work than they can do.

    Parameters
    ----------
    system : System
        Finite.
    policy : Policy
    seed : tuple of int
        Of the run.

    Returns
    -------
    Estimate or None
        The part of the capacity that the fullest set of pools would have left while always busy,
        with the half-width of its 95 % interval; None if no set needs to be looked at. It is
        looked at longer until zero is outside of twice the half-width, up to a bound.
    """
    margins = []
    for saturation in saturations(system, policy):
        flow, half_width = _flow(system, policy, saturation, seed)
        refuse_saturation(system, policy, saturation, float(flow), float(half_width))
        capacity = np.array(saturation.capacity)
        margins.append(Estimate(1 - flow / capacity, half_width / capacity))
    return min(margins, key=lambda margin: float(margin.value), default=None)


def certainly_stable(margin: Estimate | None) -> bool:
    """Whether what :func:`refuse_unstable` returned is above zero beyond its error."""
    return margin is None or float(margin.value) > CERTAIN * float(margin.half_width)


def _flow(
    system: System, policy: Policy, saturation: Saturation, seed: tuple[int, ...]
) -> Estimate:
    """Estimate the jobs that join pools which are always busy, per unit of time and server."""
    reduced = saturated(system, saturation.pools)
    others = [i for i in range(len(system.pools)) if i not in saturation.pools]
    if not others:
        return Estimate(np.array(system.arrival_rate), np.zeros(()))
    start = np.zeros((len(system.pools), 2))
    start[:, 0] = 1.0
    start[list(saturation.pools), 1] = 1.0
    replica = make_replica(reduced, policy, start, (*seed, LOOK))
    shortest = SHORTEST_TIME / float(system.speeds[others].min()) * replica.rate
    steps = round(max(shortest, FEWEST_STEPS) / BATCHES)
    replica.warm_up(round(SETTLING * BATCHES * steps))
    here = list(saturation.pools)
    joins = replica.advance(BATCHES, steps).blocked[:, here].sum(axis=1)
    while True:
        flow = _mean_flow(joins, replica.rate / (steps * system.finite_servers))
        decided = abs(float(flow.value) - saturation.capacity) > CERTAIN * float(flow.half_width)
        if decided or 2 * BATCHES * steps > MOST_STEPS:
            return flow
        more = replica.advance(BATCHES, steps).blocked[:, here].sum(axis=1)
        joins = np.concatenate([joins, more]).reshape(BATCHES, 2).sum(axis=1)
        steps *= 2


def _mean_flow(joins: np.ndarray, unit: float) -> Estimate:
    """Estimate a flow from the jobs in batches, each standing for a flow of `unit`."""
    if joins.any():
        return batch_mean(joins * unit)
    return Estimate(np.zeros(()), np.array(NEVER_SEEN * unit / len(joins)))
