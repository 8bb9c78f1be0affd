"""Whether pools saturate although the load is below one, without approximation."""

import numpy as np

from manyserver.exact.stationary import stationary_law
from manyserver.model import System
from manyserver.policies import Policy
from manyserver.policies.saturation import refuse_saturation, saturated, saturations

__all__ = ["refuse_unstable"]

TOLERANCE = 1e-6
"""Relative error of the flow into pools that are always busy."""


def refuse_unstable(system: System, policy: Policy, max_states: int) -> float | None:
    """Raise UnstableSystem if some pools get more work than they can do.

    Parameters
    ----------
    system : System
        Finite.
    policy : Policy
    max_states : int
        Largest number of states of the Markov chain with these pools always busy.

    Returns
    -------
    float or None
        The part of the capacity that the fullest set of pools would have left while always busy;
        None if no set needs to be looked at.
    """
    margins = []
    for saturation in saturations(system, policy):
        law = stationary_law(
            saturated(system, saturation.pools), policy, tolerance=TOLERANCE, max_states=max_states
        )
        arrivals = law.arrivals
        lost = arrivals.blocked & np.isin(law.pool_of[arrivals.server], saturation.pools)
        rate = float(arrivals.rate[lost] @ law.probabilities[arrivals.state[lost]])
        flow = rate / system.finite_servers
        refuse_saturation(system, policy, saturation, flow)
        margins.append(1 - flow / saturation.capacity)
    return min(margins, default=None)
