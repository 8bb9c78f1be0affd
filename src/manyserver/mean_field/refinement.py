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
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from manyserver.checks import checked_kind
from manyserver.mean_field.drift import Drift
from manyserver.mean_field.fixed_point import fixed_point
from manyserver.mean_field.separable import SeparablePool, separable_pools
from manyserver.model import Pool, System
from manyserver.origin import with_origin
from manyserver.policies import Policy
from manyserver.policies.pull import Pull
from manyserver.policies.sq import SQ
from manyserver.variables import CORRECTION, REFINED, labelled

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["NotSmooth", "refine"]

TOP_TAIL = 1e-16
"""Levels whose tail is below this in every pool are left out."""
FEWEST_LEVELS = 3
REFINED_MEANS = (
    "queue_tail",
    "queue_mean",
    "jobs_per_server",
    "sojourn_mean",
    "waiting_probability",
    "blocking_probability",
)
MOST_LEVELS = 512
"""Most levels given for a pool in which an arrival looks at one server only."""
NEGATIVE = 1e-9
"""A negative variance of this size, relative to the largest, is rounding."""


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
    _refuse_jumps(system, policy)
    limit = fixed_point(system, policy)
    tails = limit.queue_tail.values
    pools = separable_pools(system, policy)
    if pools is None:
        expansion = _expand(system, policy, tails)
    else:
        expansion = _expand_separately(system, pools, policy.replacement)
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


def _refuse_jumps(system: System, policy: Policy) -> None:
    """Raise NotSmooth if servers announce themselves, or more are looked at the more there are.

    In the limit an arrival then finds the best of infinitely many servers, and where it goes
    jumps with the state (JSQ: when the last idle server goes). There is no derivative to expand.
    """
    unit = math.lcm(*(pool.fraction.denominator for pool in system.pools))
    if not isinstance(policy, Pull):
        few, many = (policy.sampling(replace(system, n_servers=unit * size)) for size in (1, 2))
    if isinstance(policy, Pull) or few.depends_on_all:
        raise NotSmooth(
            f"policy {policy.name}: servers announce themselves, so that where an arrival goes is "
            "not smooth in the limit; must look at servers it draws to be refined"
        )
    if few != many:
        raise NotSmooth(
            f"policy {policy.name}: looks at more servers the more there are, so that its joining "
            "law is not smooth in the limit; must look at a fixed number of servers to be refined"
        )


@dataclass(frozen=True)
class _Expansion:
    """Terms of order 1/N: of the mean tails (pool, level), of their covariance, of the jobs."""

    correction: np.ndarray
    covariance: np.ndarray
    jobs_variance: float
    residual: float


def _expand(system: System, policy: Policy, tails: np.ndarray) -> _Expansion:
    """Expand around the fixed point with the given tails."""
    used = int(np.flatnonzero((tails > TOP_TAIL).any(axis=0))[-1])
    drift = Drift(system, policy, max(used + 2, FEWEST_LEVELS))
    state = drift.state(tails)
    tails = drift.tails(state)
    jacobian = drift.jacobian(state)
    noise = -2 * (system.speeds / system.fractions)[:, None] * np.diff(tails, append=0.0)[:, 1:]
    shape = drift.shape
    inner = (shape[0], shape[1] - 1)
    covariance = np.zeros(shape * 2)
    covariance[:, 1:, :, 1:] = _covariance(jacobian, noise.ravel()).reshape(inner * 2)
    law = drift.law
    joins = law.size_correction(tails) + law.curvature(tails, covariance) / 2
    correction = np.zeros(shape)
    force = drift.arrivals * joins
    correction[:, 1:] = np.linalg.solve(jacobian, -force[:, :-1].ravel()).reshape(inner)
    spread = covariance.sum(axis=3)
    # How the part of the arrivals that is accepted changes with the tails.
    accepting = law.jacobian(tails).sum(axis=(0, 1))
    change = float(joins.sum() + (accepting * correction).sum())
    return _Expansion(
        correction,
        covariance,
        float(system.fractions @ spread.sum(axis=1) @ system.fractions),
        _residual(system, tails, (correction, change), (spread, accepting)),
    )


def _covariance(jacobian: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Solve A V + V A' + diag(noise) = 0; V is a covariance if and only if A is stable."""
    from scipy.linalg import solve_continuous_lyapunov

    covariance = solve_continuous_lyapunov(jacobian, -np.diag(noise))
    covariance = (covariance + covariance.T) / 2
    eigenvalues = np.linalg.eigvalsh(covariance)
    if eigenvalues[0] < -NEGATIVE * abs(eigenvalues[-1]):
        raise RuntimeError("the mean-field fixed point is not stable, so that it has no covariance")
    return np.asarray(covariance)


def _residual(
    system: System,
    tails: np.ndarray,
    mean: tuple[np.ndarray, float],
    covariance: tuple[np.ndarray, np.ndarray],
) -> float:
    """Largest error of the conservation laws.

    Parameters
    ----------
    system : System
    tails : numpy.ndarray, shape (pool, level)
    mean : tuple
        Corrections of the tails, (pool, level), and of the part of the arrivals accepted.
    covariance : tuple
        Of tails and jobs, (pool, level, pool), and derivatives of the part that is accepted by
        the tails, (pool, level).
    """
    work = system.fractions * system.speeds
    correction, accepted = mean
    balance = work @ correction[:, 1] - system.arrival_rate * accepted
    spread, accepting = covariance
    flow = work @ spread[:, 1] - system.arrival_rate * np.tensordot(accepting, spread, axes=2)
    error = flow @ system.fractions - work @ tails[:, 1]
    scale = max(1.0, np.abs(correction).max())
    return float(max(abs(balance) / scale, abs(error)) / system.arrival_rate)


def _expand_separately(system: System, pools: list[SeparablePool], replacement: bool) -> _Expansion:
    """Put together pools that do not see each other; pool j has fraction_j N servers."""
    parts = [
        _expand_alone(pool, speed, replacement)
        for pool, speed in zip(pools, (pool.speed for pool in system.pools), strict=True)
    ]
    levels = max(part.correction.shape[1] for part in parts)
    correction = np.zeros((len(parts), levels))
    covariance = np.zeros(correction.shape * 2)
    for pool, (part, fraction) in enumerate(zip(parts, system.fractions, strict=True)):
        kept = part.correction.shape[1]
        correction[pool, :kept] = part.correction[0] / fraction
        covariance[pool, :kept, pool, :kept] = part.covariance[0, :, 0] / fraction
    return _Expansion(
        correction,
        covariance,
        float(system.fractions @ [part.jobs_variance for part in parts]),
        max(part.residual for part in parts),
    )


def _expand_alone(pool: SeparablePool, speed: Fraction, replacement: bool) -> _Expansion:
    """Expand a pool of equal servers with its own arrivals."""
    top = pool.level_reaching(math.log(TOP_TAIL))
    if pool.d > 1:
        alone = System(pool.arrival_rate, [Pool(1, speed, buffer=pool.buffer)])
        tails = np.exp(pool.log_tail(np.arange(top + 1)))
        return _expand(alone, SQ(pool.d, replacement=replacement), tails[None])
    # Independent M/M/1/B queues: Cov(u_k, u_l) = u_max(k, l) - u_k u_l.
    levels = np.arange(min(max(top + 1, FEWEST_LEVELS), MOST_LEVELS))
    tails = np.exp(pool.log_tail(levels))
    covariance = tails[np.maximum.outer(levels, levels)] - np.outer(tails, tails)
    nothing = np.zeros((1, len(levels)))
    return _Expansion(nothing, covariance[None, :, None, :], pool.queue_variance(), 0.0)


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
