"""The load up to which a policy can serve a system."""

import math
from collections.abc import Sequence

from manyserver.model import Pool, System, UnstableSystem, exact_capacity
from manyserver.policies.base import Policy, check_fit

__all__ = ["stability_limit"]

STEPS = 52
"""Halvings of the interval, down to the precision of a float."""


def stability_limit(pools: Sequence[Pool], policy: Policy) -> float:
    """Return the load from which on a policy is unstable.

    Parameters
    ----------
    pools : sequence of Pool
        With unbounded buffers, as others bear every load.
    policy : Policy

    Returns
    -------
    float
        In (0, 1], exact to rounding: 1 if every load below one is stable. An arrival is forced into
        a set B of pools if all servers that it looks at are in it, and the limit is the least load
        at which some set gets more work than it can do; for SQ(d), the least of
        ``capacity(B) / fraction(B)**d / capacity`` over all B. NaN where servers announce
        themselves (JIQ, PULL, thresholds): there it also depends on how often none is announced,
        and :func:`manyserver.fixed_point` says whether a load is stable. Infinite if all pools have
        buffers.

    Raises
    ------
    ValueError
        If the policy does not fit the pools.

    Examples
    --------
    >>> from manyserver import Pool, policy
    >>> pools = [Pool("1/2", "1/5"), Pool("1/2", "9/5")]
    >>> round(stability_limit(pools, policy("sq", d=2)), 12)
    0.4
    >>> stability_limit(pools, policy("scheme1", d=(2, 2)))
    1.0
    """
    check_fit(System(1e-9, pools), policy)
    capacity = float(exact_capacity(pools))

    def is_stable(load: float) -> bool:
        try:
            policy.check(System(load * capacity, pools))
        except UnstableSystem:
            return False
        return True

    if all(pool.buffer is not None for pool in pools):
        return math.inf
    if policy.n_routers > 1:
        return math.nan
    sampling = policy.memoryless.sampling(System(capacity / 2, pools))
    if sampling.depends_on_all and sampling.announced is not None:
        return math.nan
    low, high = 0.0, 1.0
    if is_stable(1 - 1e-12):
        return 1.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_stable(middle) else (low, middle)
    return (low + high) / 2
