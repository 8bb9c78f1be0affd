r"""The mean field to order 1/N: how much N servers fluctuate, and where their mean is.

With N servers the queue tails are ``u + v / N`` on average, with the covariance ``V / N``. A job
that arrives at or leaves a server of pool j changes a tail by :math:`\pm 1 / (\gamma_j N)`. With
f the drift of the limit, ``f + g / N`` that of N servers, A the Jacobian of f at the fixed point
and H its Hessian,

.. math::

    A V + V A^\top + Q = 0, \qquad A v + \tfrac12 H : V + g = 0, \qquad
    Q = \operatorname{diag} \bigl( 2 C_j (u^{(j)}_k - u^{(j)}_{k+1}) / \gamma_j \bigr),

the refined mean field of Gast and Van Houdt (SIGMETRICS 2018, hal-01622054). Here g comes from
sampling without replacement: the servers looked at are distinct, which is felt at order 1/N.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from manyserver.checks import checked_kind
from manyserver.mean_field.fixed_point import fixed_point
from manyserver.mean_field.regimes import Smooth, regime_of
from manyserver.model import System
from manyserver.origin import with_origin
from manyserver.policies import Policy
from manyserver.variables import CORRECTION, REFINED, labelled

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["REFINED_MEANS", "NotSmooth", "refine"]

REFINED_MEANS = (
    "queue_tail",
    "queue_mean",
    "jobs_per_server",
    "sojourn_mean",
    "waiting_probability",
    "blocking_probability",
)


class NotSmooth(ValueError):
    """Raised for a policy whose joining law has no derivatives in the limit."""


def refine(system: System, policy: Policy) -> xr.Dataset:
    r"""Compute the 1/N correction of the mean field, and the covariance of the fluctuations.

    Parameters
    ----------
    system : System
        With a number of servers N the refined values are given too; corrections and covariances
        do not depend on it.
    policy : Policy
        Any policy that looks at a fixed number of servers.

    Returns
    -------
    xarray.Dataset
        - ``queue_tail`` (pool, level), ``queue_mean`` (pool), ``jobs_per_server``,
          ``sojourn_mean``, ``waiting_probability`` and ``blocking_probability`` of the limit.
        - ``<name>_correction`` for each of these: c in :math:`x_N = x + c / N + o(1 / N)`.
        - ``<name>_refined`` for each of these, if `system` has a number of servers: x + c / N,
          which may leave the possible range when N is small.
        - ``queue_tail_covariance`` (pool, level, other_pool, other_level) and
          ``jobs_per_server_variance``: N times the covariance and the variance, in the limit.
        - The errors ``residual``, ``truncation_error`` and ``refinement_residual``.

    Raises
    ------
    ValueError
        If the policy does not fit the system.
    NotSmooth
        If the policy looks at more servers the more there are, or servers announce themselves:
        then the joining law is not smooth; a ValueError.
    UnstableSystem
        If some pools get more work than they can do.
    RuntimeError
        If the fixed point is not stable, or was not found.

    Notes
    -----
    Derivatives are analytic. The conservation laws behind ``refinement_residual``, both exact at
    every N: as many jobs leave as are accepted, so that without buffers the mean work rate of the
    busy servers has no correction; and the square of the number of jobs does not drift, so that N
    times the covariance of this number per server with the work rate, less that with the rate of
    the accepted, is the mean of the latter. Sampling with and without replacement differ in the
    correction, not in the covariance. Where arrivals look at one server only, servers are
    independent: there is no correction, and at most 512 levels are given.

    Examples
    --------
    >>> import manyserver as ms
    >>> result = ms.refine(ms.System(0.7, [ms.Pool(1, 1)], n_servers=10), ms.policy("sq", d=2))
    >>> float(result.jobs_per_server_correction.round(5))
    0.39066
    >>> float(result.jobs_per_server_refined.round(4))
    1.1692
    """
    checked_kind("system", system, System, "a System")
    checked_kind("policy", policy, Policy, "a policy, as manyserver.policy makes it")
    regime = _smooth_regime(system, policy)
    limit = fixed_point(system, policy)
    tails = limit.queue_tail.values
    expansion = regime.expand(tails)
    levels = min(expansion.correction.shape[1], tails.shape[1])
    means = {name: limit[name].values for name in REFINED_MEANS}
    means["queue_tail"] = tails[:, :levels]
    corrections = _corrections(system, limit, expansion.correction)
    corrections["queue_tail"] = expansion.correction[:, :levels]
    values = {
        **means,
        **{name + CORRECTION: value for name, value in corrections.items()},
        "queue_tail_covariance": expansion.covariance[:, :levels, :, :levels],
        "jobs_per_server_variance": expansion.jobs_variance,
        "residual": limit.residual.values,
        "truncation_error": limit.truncation_error.values,
        "refinement_residual": expansion.residual,
    }
    if system.n_servers is not None:
        for name, value in means.items():
            values[name + REFINED] = value + corrections[name] / system.n_servers
    result = labelled(values, system, attrs={"method": "refined mean field"})
    return with_origin(result, system, policy)


def _smooth_regime(system: System, policy: Policy) -> Smooth:
    """Raise NotSmooth if servers announce themselves, or more are looked at the more there are.

    In the limit an arrival then finds the best of infinitely many servers, and where it goes
    jumps with the state (JSQ: when the last idle server goes). There is no derivative to expand.
    """
    unit = math.lcm(*(pool.fraction.denominator for pool in system.pools))
    few, many = (replace(system, n_servers=unit * size) for size in (1, 2))
    regime = regime_of(few, policy)
    if not isinstance(regime, Smooth):
        raise NotSmooth(
            f"policy {policy.name}: servers announce themselves, so that where an arrival goes is "
            "not smooth in the limit; must look at servers it draws to be refined"
        )
    if policy.sampling(few) != policy.sampling(many):
        raise NotSmooth(
            f"policy {policy.name}: looks at more servers the more there are, so that its joining "
            "law is not smooth in the limit; must look at a fixed number of servers to be refined"
        )
    return replace(regime, system=system)


def _corrections(
    system: System, limit: xr.Dataset, correction: np.ndarray
) -> dict[str, np.ndarray]:
    """Return the coefficients of 1/N by variable, given those of the queue tails."""
    queue_mean = correction[:, 1:].sum(axis=1)
    jobs = system.fractions @ queue_mean
    work = system.fractions * system.speeds / system.arrival_rate
    # As many jobs are accepted as busy servers serve, at every N.
    bounded = system.is_bounded
    blocking = -work @ correction[:, 1] if bounded else np.zeros(())
    accepted = 1 - float(limit.blocking_probability)
    # As many jobs join busy servers as leave a server that holds at least two.
    waiting = work @ correction[:, 2]
    return {
        "queue_tail": correction,
        "queue_mean": queue_mean,
        "jobs_per_server": jobs,
        "sojourn_mean": (jobs / system.arrival_rate + float(limit.sojourn_mean) * blocking)
        / accepted,
        "waiting_probability": waiting,
        "blocking_probability": blocking,
    }
