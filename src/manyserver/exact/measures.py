"""What is asked of the stationary law of a finite system."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from manyserver.checks import checked_count, checked_flag
from manyserver.exact.followed import central_outputs, turns_outputs
from manyserver.exact.moments import moments as moments_of
from manyserver.exact.pull import RoutedStates, router_measures
from manyserver.exact.saturation import refuse_unstable
from manyserver.exact.stationary import MOST_STATES, StationaryLaw, stationary_law
from manyserver.model import System
from manyserver.origin import with_origin
from manyserver.outputs import stationary_outputs
from manyserver.policies import Policy, check_fit
from manyserver.policies.messages import messages
from manyserver.variables import QUANTILES, labelled

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["exact"]


def exact(
    system: System,
    policy: Policy,
    *,
    tolerance: float = 1e-12,
    max_states: int = MOST_STATES,
    moments: bool = False,
) -> xr.Dataset:
    """Compute the stationary state of a finite system without approximation.

    Parameters
    ----------
    system : System
        Finite and small; its buffers may be finite too.
    policy : Policy
        Any policy that is a sampling and a preference, or PULL; round robin, and a central queue.
    tolerance : float
        Largest relative error of the mean number of jobs from states left out, and largest
        relative imbalance of the flows, in [1e-13, 0.01].
    max_states : int
        Largest number of states of the Markov chain.
    moments : bool
        Whether to add the variances over time.

    Returns
    -------
    xarray.Dataset
        ``queue_tail`` (pool, level), ``queue_mean`` (pool), ``jobs_per_server``,
        ``sojourn_mean`` and ``pool_share`` (pool) (both of the jobs accepted),
        ``pool_utilization`` (pool), ``longest_queue_tail`` (level) and ``longest_queue_mean`` of
        the jobs at the fullest server,
        ``waiting_probability`` and ``blocking_probability`` (of all arrivals),
        ``messages_per_job`` (accepted, see
        :mod:`manyserver.policies.messages`), ``joining_rate`` (pool, level; NaN at levels
        that no server reaches), the errors ``residual`` and ``truncation_error``, both relative,
        ``n_states``, and where pools could saturate below a load of one ``stability_margin``
        (:mod:`manyserver.policies.saturation`). With `moments`, N times the variances
        ``queue_tail_variance`` (pool, level) and ``jobs_per_server_variance`` and the covariances
        ``occupancy_covariance`` (pool, level, other_pool, other_level; up to 11 jobs), with N
        servers. For PULL, ``empty_router_probability`` and ``idle_concentration``, the mean of
        the squared numbers of idle servers that the routers know of over that of all. For a central
        queue, no more than the means, probabilities, shares and utilisations, ``waiting_mean``,
        ``waiting_variance`` and ``waiting_quantile`` (quantile).

    Raises
    ------
    ValueError
        If the system is infinite, a parameter is out of its range, or the policy does not fit the
        system.
    TooManyStates
        If more than `max_states` states are needed; a ValueError.
    NotKnown
        If a policy compares servers by more than their jobs; a ValueError.
    UnstableSystem
        If some pools get more work than they can do.
    RuntimeError
        If the balance equations were not solved to `tolerance`.

    Notes
    -----
    A full server ranks after all others, so that an arrival is blocked if all servers that it
    looks at are full. ``joining_rate`` is the flow of the arrivals that join servers of a pool
    with k jobs over the mean number of these servers.

    Examples
    --------
    >>> import manyserver as ms
    >>> system = ms.System(0.9, [ms.Pool(1, 1)], n_servers=2)
    >>> float(exact(system, ms.policy("sq", d=2)).jobs_per_server.round(8))
    4.92742154
    """
    check_fit(system, policy)
    moments = checked_flag("moments", moments)
    max_states = checked_count("max_states", max_states)
    if policy.central or policy.turns(system) is not None:
        result = _followed(system, policy, tolerance, max_states)
        return with_origin(
            result, system, policy, tolerance=tolerance, max_states=max_states, moments=False
        )
    margin = refuse_unstable(system, policy, max_states)
    law = stationary_law(system, policy, tolerance=tolerance, max_states=max_states)
    values = _measures(law)
    values["residual"] = law.residual
    values["truncation_error"] = law.truncation_error
    values["n_states"] = len(law.probabilities)
    if margin is not None:
        values["stability_margin"] = margin
    values["messages_per_job"] = _messages_per_job(law, policy)
    if isinstance(law.states, RoutedStates):
        values |= router_measures(law, law.states)
    if moments:
        values |= moments_of(law)
    result = labelled(values, system, attrs={"method": "exact Markov chain"})
    return with_origin(
        result, system, policy, tolerance=tolerance, max_states=max_states, moments=moments
    )


def _followed(system: System, policy: Policy, tolerance: float, max_states: int) -> xr.Dataset:
    """Return what is known where the jobs at every server do not make a chain."""
    attrs = {"method": "exact"}
    if not policy.central:
        return labelled(turns_outputs(system, policy), system, attrs=attrs)

    def loss(bounded: System, idle_first: Policy) -> tuple[float, np.ndarray]:
        law = stationary_law(bounded, idle_first, tolerance=tolerance, max_states=max_states)
        known = _measures(law)
        return float(known["blocking_probability"]), known["pool_utilization"]

    coords = {"quantile": np.array(QUANTILES)}
    return labelled(central_outputs(system, loss), system, coords=coords, attrs=attrs)


def _measures(law: StationaryLaw) -> dict[str, Any]:
    system = law.system
    n_servers = len(law.pool_of)
    occupancy = _occupancy(law)
    above = np.cumsum(occupancy[:, ::-1], axis=1)[:, ::-1]
    tails = above / np.array(system.counts)[:, None]
    joining, blocked = _joining(law)
    total = system.arrival_rate * n_servers
    joining_rate = np.full(joining.shape, np.nan)
    np.divide(joining, occupancy, out=joining_rate, where=occupancy > 0)
    waiting = joining[:, 1:].sum() / total
    outputs = stationary_outputs(system, tails, joining_rate, waiting, blocked / total)
    return outputs | _longest(law)


def _longest(law: StationaryLaw) -> dict[str, object]:
    """Return the law of the jobs at the fullest server."""
    found = np.bincount(law.jobs.max(axis=1), law.probabilities, minlength=law.levels)
    tail = np.minimum(found[::-1].cumsum()[::-1], 1.0)
    return {"longest_queue_tail": tail, "longest_queue_mean": tail[1:].sum()}


def _occupancy(law: StationaryLaw) -> np.ndarray:
    """Mean number of servers that hold k jobs, shape (pool, level)."""
    servers = np.broadcast_to(np.arange(len(law.pool_of)), law.jobs.shape)
    weights = np.broadcast_to(law.probabilities[:, None], law.jobs.shape)
    return _by_class(law, servers, law.jobs, weights)


def _joining(law: StationaryLaw) -> tuple[np.ndarray, float]:
    """Flow of arrivals to servers that hold k jobs, (pool, level), and of those blocked."""
    arrivals = law.arrivals
    level = law.jobs[arrivals.state, arrivals.server]
    flow = arrivals.rate * law.probabilities[arrivals.state]
    accepted = np.where(arrivals.blocked, 0.0, flow)
    return _by_class(law, arrivals.server, level, accepted), float(flow[arrivals.blocked].sum())


def _messages_per_job(law: StationaryLaw, policy: Policy) -> float:
    joining, blocked = _joining(law)
    leaving = law.system.speeds[:, None] * _occupancy(law)
    leaving[:, 0] = 0.0
    accepted = joining.sum()
    sampling = policy.memoryless.sampling(law.system)
    sent = messages(law.system, sampling, accepted + blocked, joining, leaving)
    return float(sent / accepted)


def _by_class(
    law: StationaryLaw, server: np.ndarray, level: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """Add up weights by the pool and the jobs of the servers they belong to."""
    place = law.pool_of[server] * law.levels + level
    n_pools = len(law.system.pools)
    total = np.bincount(place.ravel(), weights=weight.ravel(), minlength=n_pools * law.levels)
    return total.reshape(n_pools, law.levels)
