"""The fixed point of the mean-field equations: the stationary state of the limit system."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from manyserver.disciplines import Discipline
from manyserver.disciplines.service import checked_service
from manyserver.mean_field.followed import turns_fixed_point, work_fixed_point
from manyserver.mean_field.phase_type import with_sizes
from manyserver.mean_field.pull import checked_split, routed_fixed_point
from manyserver.mean_field.regimes import regime_of
from manyserver.model import System
from manyserver.origin import with_origin
from manyserver.policies import Policy, check_fit
from manyserver.sizes import SizeLaw
from manyserver.variables import QUANTILES, labelled

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["fixed_point", "pull_fixed_point"]


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
        Any policy.
    sizes : SizeLaw, optional
        Law of the job sizes, of mean one, from :func:`manyserver.size_law`; exponential by default.
    discipline : {"ps", "fcfs"} or Discipline, optional
        Processor sharing (the default), where the law makes no difference (conjectured for
        policies that draw servers, see :mod:`manyserver.mean_field.phase_type`), or first come,
        first served, which needs a law of phase type. They differ for other than exponential
        sizes only. First come, first served is the default for policies that are simulated job by
        job.

    Returns
    -------
    xarray.Dataset
        ``queue_tail`` and ``queue_log_tail`` (pool, level), ``queue_mean`` (pool),
        ``jobs_per_server``, ``sojourn_mean``, ``pool_share`` (pool) of the jobs accepted,
        ``pool_utilization`` (pool), ``waiting_probability``, ``blocking_probability``,
        ``joining_rate`` (pool, level), and the errors ``residual`` and ``truncation_error``, both
        relative. For least work of d servers, ``sojourn_mean``, ``sojourn_variance`` and
        ``sojourn_quantile`` (quantile), the same of ``waiting``, ``work_mean`` and
        ``work_quantile`` (quantile) in place of the queues, see
        :mod:`manyserver.mean_field.followed.work`.

    Raises
    ------
    ValueError
        If the policy does not fit the system, or nothing is known for these sizes (`NotKnown` if
        nothing is for this policy).
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
    check_fit(system, policy)
    service = checked_service(sizes, discipline, policy)
    if policy.follows_jobs:
        solution = _followed(system, policy, *service)
        return with_origin(solution, system, policy, sizes=service[0], discipline=service[1])
    solution = _dataset(system, regime_of(system, policy).stationary())
    if sizes is None and discipline is None:
        return with_origin(solution, system, policy)
    solution = with_sizes(system, policy, solution, *service)
    return with_origin(solution, system, policy, sizes=service[0], discipline=service[1])


def _followed(system: System, policy: Policy, sizes: SizeLaw, discipline: Discipline) -> xr.Dataset:
    if policy.turns(system) is not None:
        return _dataset(system, turns_fixed_point(system, policy, sizes, discipline))
    if not policy.memoryless.sampling(system).branches:
        # All servers are known, so that an arrival finds an idle one, whatever its size.
        return _dataset(system, regime_of(system, policy.memoryless).stationary())
    values = work_fixed_point(system, policy, sizes, discipline)
    return _dataset(system, values, {"quantile": np.array(QUANTILES)})


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
        ``idle_concentration``, ``empty_router_probability`` and ``messages_per_job``. Nothing
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
    if not policy.n_routers:
        raise ValueError(f"policy = {policy}: must be a policy 'pull'")
    parts = checked_split(policy.n_routers, split)
    solution = _dataset(system, routed_fixed_point(system, policy, parts))
    return with_origin(solution, system, policy, split=None if split is None else parts.tolist())


def _dataset(
    system: System, values: dict[str, Any], coords: dict[str, np.ndarray] | None = None
) -> xr.Dataset:
    return labelled(values, system, coords=coords, attrs={"method": "mean-field fixed point"})
