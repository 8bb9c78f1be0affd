"""The fixed point of the mean-field equations: the stationary state of the limit system.

Newton's method is exact to about 1e-16 of the largest tail; the small tails are then iterated in
logarithms from the balance of the flows across each level, so that they are relatively exact
far below the smallest floating-point number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from manyserver.disciplines import Discipline
from manyserver.disciplines.service import checked_service
from manyserver.mean_field.announced import stationary
from manyserver.mean_field.drift import Drift, most_levels
from manyserver.mean_field.phase_type import with_sizes
from manyserver.mean_field.pull import checked_split, routed_fixed_point
from manyserver.mean_field.separable import SeparablePool, separable_pools
from manyserver.mean_field.solver import MOST_LEVELS, TOP_TAIL, solve_levels
from manyserver.model import System
from manyserver.origin import with_origin
from manyserver.outputs import stationary_outputs
from manyserver.policies import Policy, check_fit
from manyserver.policies.pull import Pull
from manyserver.policies.split import tail_exponent
from manyserver.sizes import SizeLaw
from manyserver.variables import labelled

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["fixed_point", "pull_fixed_point"]

EXTRA_LEVELS = 64
LOWEST_LOG_TAIL = -1e7
"""Levels go on to tails of this logarithm, if at most EXTRA_LEVELS are needed; smaller is -inf."""
BULK = 1e-8
"""Tails below this are iterated in logarithms."""
HIGH_LOAD = 0.999
"""With buffers the load may be higher; tails are not guessed from more than this."""


def fixed_point(
    system: System,
    policy: Policy,
    *,
    sizes: SizeLaw | None = None,
    discipline: str | Discipline | None = None,
) -> xr.Dataset:
    """Compute the stationary state in the limit of infinitely many servers.

    Parameters
    ----------
    system : System
        Its number of servers makes no difference.
    policy : Policy
        Any policy that is a sampling and a preference, or PULL.
    sizes : SizeLaw, optional
        Law of the job sizes, of mean one, from :func:`manyserver.size_law`; exponential by default.
    discipline : {"ps", "fcfs"} or Discipline, optional
        Processor sharing (the default), where the law makes no difference (conjectured for
        policies that draw servers, see :mod:`manyserver.mean_field.phase_type`), or first come,
        first served, which needs a law of phase type. They differ for other than exponential
        sizes only.

    Returns
    -------
    xarray.Dataset
        ``queue_tail`` and ``queue_log_tail`` (pool, level), ``queue_mean`` (pool),
        ``jobs_per_server``, ``sojourn_mean``, ``pool_share`` (pool) of the jobs accepted,
        ``waiting_probability``, ``blocking_probability``, ``joining_rate`` (pool, level), and the
        errors ``residual`` and ``truncation_error``, both relative.

    Raises
    ------
    ValueError
        If the policy does not fit the system, or nothing is known for these sizes.
    UnstableSystem
        If some pools get more work than they can do.
    CriticalLoad
        If servers announce themselves, and the arrival rate is exactly what some pools can serve,
        so that the limit has many stationary states; a ValueError.
    RuntimeError
        If no solution was found to the accuracy that this function promises; never seen for a
        load up to 0.999.

    Notes
    -----
    Solves eq. (4.11) and (4.12) of arXiv:1502.05786, or the closed form ``rho**((d**k - 1) /
    (d - 1))`` where pools do not see each other; ``joining_rate`` is eq. (5.1). Where servers
    announce themselves (JSQ, SED, JIQ, thresholds) it has a closed form too, see
    :func:`manyserver.mean_field.announced.stationary`; ``joining_rate`` is infinite for servers
    that get an arrival as soon as there is one. PULL has many fixed points; this is the one with
    routers alike, and :func:`pull_fixed_point` gives the others and says what is given besides.

    An arrival is blocked if all servers that it looks at are full. ``sojourn_mean`` is that of
    the arrivals accepted; ``waiting_probability`` and ``blocking_probability`` are of all.

    Examples
    --------
    >>> import manyserver as ms
    >>> system = ms.System(0.9, [ms.Pool("1/2", "2/3"), ms.Pool("1/2", "4/3")])
    >>> float(ms.fixed_point(system, ms.policy("scheme1", d=[2, 2])).sojourn_mean.round(10))
    1.7549913643
    """
    service = checked_service(sizes, discipline)
    check_fit(system, policy)
    if isinstance(policy, Pull):
        solution = pull_fixed_point(system, policy)
    elif policy.sampling(system).depends_on_all:
        solution = _dataset(system, stationary(system, policy))
    else:
        pools = separable_pools(system, policy)
        solution = _dataset(
            system, _joint(system, policy) if pools is None else _separate(system, pools)
        )
    if sizes is None and discipline is None:
        return with_origin(solution, system, policy)
    solution = with_sizes(system, policy, solution, *service)
    return with_origin(solution, system, policy, sizes=service[0], discipline=service[1])


def pull_fixed_point(system: System, policy: Policy, split: ArrayLike | None = None) -> xr.Dataset:
    """Compute a fixed point of PULL, with a given split of the idle servers over the routers.

    Parameters
    ----------
    system : System
        Its number of servers makes no difference.
    policy : Pull
    split : array_like, shape (router,), optional
        Part of the idle servers that each router knows of, at least zero and with sum one; equal
        parts by default, as :func:`fixed_point` has them.

    Returns
    -------
    xarray.Dataset
        As :func:`fixed_point` gives it, and ``router_idle`` (pool, router),
        ``idle_concentration``, ``empty_router_probability`` and ``messages_per_customer``. Nothing
        but the first two depends on the split.

    Raises
    ------
    ValueError
        If the policy is not PULL or does not fit the system, or `split` is not a split.
    UnstableSystem, CriticalLoad
        As in :func:`fixed_point`.

    Notes
    -----
    Every split of the idle servers is that of a fixed point: they are a simplex. The idle servers
    that a router knows of are of each pool in the same proportion. If finite buffers let the load
    be one or more, no server is idle, and there is one fixed point.

    Examples
    --------
    >>> import manyserver as ms
    >>> system = ms.System(0.5, [ms.Pool("1/2", "1/2"), ms.Pool("1/2", "3/2")])
    >>> ms.pull_fixed_point(system, ms.policy("pull", routers=2), [0.9, 0.1]).router_idle.values
    array([[0.13624904, 0.01513878],
           [0.25458365, 0.02828707]])
    """
    check_fit(system, policy)
    if not isinstance(policy, Pull):
        raise ValueError(f"policy = {policy}: must be a policy 'pull'")
    parts = checked_split(policy.routers, split)
    solution = _dataset(system, routed_fixed_point(system, policy, parts))
    return with_origin(solution, system, policy, split=None if split is None else parts.tolist())


def _dataset(system: System, values: dict[str, Any]) -> xr.Dataset:
    return labelled(values, system, attrs={"method": "mean-field fixed point"})


def _separate(system: System, pools: list[SeparablePool]) -> dict[str, Any]:
    needed = [
        max(
            pool.level_reaching(np.log(TOP_TAIL)),
            min(pool.level_reaching(LOWEST_LOG_TAIL), EXTRA_LEVELS),
        )
        for pool in pools
    ]
    levels = np.arange(min(max(needed) + 1, MOST_LEVELS))
    log_tail = np.stack([pool.log_tail(levels) for pool in pools])
    shares = np.array([pool.arrival_rate for pool in pools]) * system.fractions
    shares /= system.arrival_rate
    outputs = stationary_outputs(
        system,
        np.exp(log_tail),
        np.stack([pool.joining_rate(levels) for pool in pools]),
        waiting=float(shares @ [pool.waiting for pool in pools]),
        blocking=float(shares @ [pool.blocking for pool in pools]),
        queue_mean=np.array([pool.queue_mean() for pool in pools]),
    )
    return outputs | {"queue_log_tail": log_tail, "residual": 0.0, "truncation_error": 0.0}


def _joint(system: System, policy: Policy) -> dict[str, Any]:
    drift, state, truncation = solve_levels(
        system,
        lambda levels: Drift(system, policy, levels),
        lambda drift: _guess(drift, system),
        policy.name,
    )
    residual = drift.imbalance(state)
    log_tails = _log_tails(system, policy, drift.tails(state))
    tails = np.exp(log_tails)
    law = Drift(system, policy, tails.shape[1]).law
    joins = law.probabilities(tails)
    outputs = stationary_outputs(
        system,
        tails,
        system.arrival_rate * law.densities(tails),
        waiting=joins[:, 1:].sum(),
        blocking=float(law.blocking(tails).sum()),
    )
    more = {"queue_log_tail": log_tails, "residual": residual, "truncation_error": truncation}
    return outputs | more


def _guess(drift: Drift, system: System) -> np.ndarray:
    """Tails of SQ(d) at the same load, with d all the servers that an arrival looks at."""
    d = max(sum(draw.count for draw in branch.draws) for branch in drift.law.branches)
    with np.errstate(over="ignore", under="ignore"):
        log_load = np.log(min(system.load, HIGH_LOAD))
        tail = np.exp(tail_exponent(d, np.arange(drift.shape[1])) * log_load)
    tails = np.tile(tail, (drift.shape[0], 1))
    for row, pool in zip(tails, system.pools, strict=True):
        if pool.buffer is not None:
            row[pool.buffer + 1 :] = 0.0
    return tails


def _log_tails(system: System, policy: Policy, tails: np.ndarray) -> np.ndarray:
    """Extend the tails to small values by the balance of flows, in logarithms.

    With l = log u: l[j, k+1] = log(lambda / C_j) + log sum_{i >= k} (p[j, i] / fraction_j), where
    p is almost free of l[j, k+1]: plain iteration settles one level at a time.
    """
    with np.errstate(divide="ignore"):
        bulk = np.log(np.clip(tails, 0.0, 1.0))
    levels = tails.shape[1]
    most = max(EXTRA_LEVELS, levels)
    if (all_levels := most_levels(system)) is not None:
        most = min(most, all_levels)
    while True:
        start = np.full((len(tails), levels), -np.inf)
        kept = min(levels, tails.shape[1])
        start[:, :kept] = bulk[:, :kept]
        log_tails = _iterate_small(Drift(system, policy, levels), start, system)
        if log_tails[:, -1].max() < LOWEST_LOG_TAIL or levels >= most:
            break
        levels = min(2 * levels, most)
    log_tails = np.where(log_tails < LOWEST_LOG_TAIL, -np.inf, log_tails)
    used = np.flatnonzero((log_tails > -np.inf).any(axis=0))
    return log_tails[:, : min(used[-1] + 2, levels)]


def _iterate_small(drift: Drift, log_tails: np.ndarray, system: System) -> np.ndarray:
    small = log_tails < np.log(BULK)
    offset = np.log(system.arrival_rate / system.speeds)[:, None]
    following = np.full(log_tails.shape, -np.inf)
    # A tail of zero has the logarithm -inf, and no ratio to itself.
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(20 * log_tails.shape[1]):
            following[:, :-1] = log_tails[:, 1:]
            ratio = np.exp(following - np.where(log_tails == -np.inf, 0.0, log_tails))
            joins = drift.law.log_densities(log_tails) + log_tails + np.log1p(-np.minimum(ratio, 1))
            above = np.logaddexp.accumulate(joins[:, ::-1], axis=1)[:, ::-1]
            new = log_tails.copy()
            new[:, 1:] = np.where(small[:, 1:], offset + above[:, :-1], log_tails[:, 1:])
            change = np.abs(new - log_tails) / np.maximum(1.0, np.abs(new))
            log_tails = new
            if np.all((change < 1e-14) | (log_tails < 10 * LOWEST_LOG_TAIL)):
                return log_tails
    raise RuntimeError("the small tails of the mean-field fixed point did not settle")
