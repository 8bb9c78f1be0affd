"""The fixed point of the mean-field equations: the stationary state of the limit system.

Newton's method from the tails of SQ(d) at the same load, and implicit Euler steps that grow as
the residual falls (pseudo-transient continuation) where Newton's method fails. The number of
levels is doubled until neither the tails at the top nor the mean number of jobs matter. Newton's
method is exact to about 1e-16 of the largest tail; the small tails are then iterated in
logarithms from the balance of the flows across each level, so that they are relatively exact
far below the smallest floating-point number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from manyserver.mean_field.drift import Drift
from manyserver.mean_field.separable import SeparablePool, separable_pools
from manyserver.model import System
from manyserver.policies import Policy
from manyserver.policies.split import tail_exponent
from manyserver.variables import labelled

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["fixed_point"]

TOP_TAIL = 1e-17
"""Tails below this need no further levels."""
FEWEST_LEVELS = 8
MOST_LEVELS = 4096
EXTRA_LEVELS = 64
LOWEST_LOG_TAIL = -1e7
"""Levels go on to tails of this logarithm, if at most EXTRA_LEVELS are needed; smaller is -inf."""
BULK = 1e-8
"""Tails below this are iterated in logarithms."""
NEWTON_STEPS = 100
TRANSIENT_STEPS = 2000
RESIDUAL = 1e-13
STEP = 1e-11
TRUNCATION = 1e-12


def fixed_point(system: System, policy: Policy) -> xr.Dataset:
    """Compute the stationary state in the limit of infinitely many servers.

    Parameters
    ----------
    system : System
        Its number of servers makes no difference.
    policy : Policy
        Any policy that is a sampling and a preference.

    Returns
    -------
    xarray.Dataset
        ``queue_tail`` and ``queue_log_tail`` (pool, level), ``queue_mean`` (pool),
        ``jobs_per_server``, ``sojourn_mean``, ``waiting_probability``,
        ``blocking_probability``, ``joining_rate`` (pool, level), and the errors ``residual`` and
        ``truncation_error``, both relative.

    Raises
    ------
    ValueError
        If the policy does not fit the system.
    UnstableSystem
        If some pools get more work than they can do.
    RuntimeError
        If no solution was found to the accuracy that this function promises; never seen for a
        load up to 0.999.

    Notes
    -----
    Solves eq. (4.11) and (4.12) of arXiv:1502.05786, or the closed form ``rho**((d**k - 1) /
    (d - 1))`` where pools do not see each other; ``joining_rate`` is eq. (5.1).

    Examples
    --------
    >>> import manyserver as ms
    >>> system = ms.System(0.9, [ms.Pool("1/2", "2/3"), ms.Pool("1/2", "4/3")])
    >>> float(ms.fixed_point(system, ms.policy("scheme1", d=[2, 2])).sojourn_mean.round(10))
    1.7549913643
    """
    policy.check(system)
    refuse_buffers(system)
    pools = separable_pools(system, policy)
    values = _joint(system, policy) if pools is None else _separate(system, pools)
    jobs = float(system.fractions @ values["queue_mean"])
    values["jobs_per_server"] = jobs
    values["sojourn_mean"] = jobs / system.arrival_rate
    values["blocking_probability"] = 0.0
    return labelled(values, system, attrs={"method": "mean-field fixed point"})


def refuse_buffers(system: System) -> None:
    """Raise ValueError if a pool has a finite buffer."""
    for number, pool in enumerate(system.pools):
        if pool.buffer is not None:
            raise ValueError(
                f"pools[{number}].buffer = {pool.buffer}: must be None here, as the mean field "
                "is computed for infinite buffers"
            )


def _separate(system: System, pools: list[SeparablePool]) -> dict[str, object]:
    needed = [
        max(
            pool.level_reaching(np.log(TOP_TAIL)),
            min(pool.level_reaching(LOWEST_LOG_TAIL), EXTRA_LEVELS),
        )
        for pool in pools
    ]
    levels = np.arange(min(max(needed) + 1, MOST_LEVELS))
    log_tail = np.stack([pool.log_tail(levels) for pool in pools])
    flows = np.array([pool.arrival_rate for pool in pools]) * system.fractions
    loads = np.array([pool.load for pool in pools])
    return {
        "queue_tail": np.exp(log_tail),
        "queue_log_tail": log_tail,
        "queue_mean": np.array([pool.queue_mean() for pool in pools]),
        "joining_rate": np.stack([pool.joining_rate(levels) for pool in pools]),
        "waiting_probability": _waiting(flows, loads, pools) / system.arrival_rate,
        "residual": 0.0,
        "truncation_error": 0.0,
    }


def _waiting(flows: np.ndarray, loads: np.ndarray, pools: list[SeparablePool]) -> float:
    """Flow of the arrivals that see only busy servers."""
    return float(flows @ loads ** np.array([pool.d for pool in pools]))


def _joint(system: System, policy: Policy) -> dict[str, object]:
    drift, state, truncation = _solve_levels(system, policy)
    residual = drift.imbalance(state)
    log_tails = _log_tails(system, policy, drift.tails(state))
    tails = np.exp(log_tails)
    law = Drift(system, policy, tails.shape[1]).law
    joins = law.probabilities(tails)
    return {
        "queue_tail": tails,
        "queue_log_tail": log_tails,
        "queue_mean": tails[:, 1:].sum(axis=1),
        "joining_rate": system.arrival_rate * law.densities(tails),
        "waiting_probability": joins[:, 1:].sum(),
        "residual": residual,
        "truncation_error": truncation,
    }


def _solve_levels(system: System, policy: Policy) -> tuple[Drift, np.ndarray, float]:
    """Double the number of levels until nothing changes."""
    levels, tails, jobs = FEWEST_LEVELS, None, np.nan
    while levels <= MOST_LEVELS:
        drift = Drift(system, policy, levels)
        state = solve(drift, drift.state(tails if tails is not None else _guess(drift, system)))
        tails = drift.tails(state)
        before, jobs = jobs, float(system.fractions @ tails[:, 1:].sum(axis=1))
        truncation = abs(jobs - before) / jobs
        if tails[:, -1].max() < TOP_TAIL and truncation < TRUNCATION:
            return drift, state, truncation
        levels *= 2
    raise RuntimeError(
        f"arrival_rate = {system.arrival_rate:g}: the tails of policy {policy.name} do not fall "
        f"below {TOP_TAIL} within {MOST_LEVELS} levels"
    )


def _guess(drift: Drift, system: System) -> np.ndarray:
    """Tails of SQ(d) at the same load, with d all the servers that an arrival looks at."""
    d = max(sum(draw.count for draw in branch.draws) for branch in drift.law.branches)
    with np.errstate(over="ignore", under="ignore"):
        exponents = tail_exponent(d, np.arange(drift.shape[1]))
        return np.tile(np.exp(exponents * np.log(system.load)), (drift.shape[0], 1))


def solve(drift: Drift, state: np.ndarray) -> np.ndarray:
    """Find a zero of the drift with tails in [0, 1].

    Raises
    ------
    RuntimeError
        If the flows do not balance to 1e-13 of the arrival rate.
    """
    for method in (_newton, _pseudo_transient):
        found = method(drift, state)
        if found is not None:
            return found
    raise RuntimeError(
        "the mean-field equations were not solved: no method balances the flows to "
        f"{RESIDUAL} of the arrival rate"
    )


def _newton(drift: Drift, state: np.ndarray) -> np.ndarray | None:
    for _ in range(NEWTON_STEPS):
        try:
            step = np.linalg.solve(drift.jacobian(state), -drift(state))
        except np.linalg.LinAlgError:
            return None
        if not np.all(np.isfinite(step)):
            return None
        state = np.clip(state + step, 0.0, 1.0)
        if np.abs(step).max() < STEP and _is_solution(drift, state):
            return state
    return None


def _pseudo_transient(drift: Drift, state: np.ndarray) -> np.ndarray | None:
    """Implicit Euler steps from the empty system, longer as the residual falls."""
    state = np.zeros_like(state)
    flow = drift(state)
    duration, norm = 1.0, float(np.linalg.norm(flow))
    identity = np.eye(len(state))
    for _ in range(TRANSIENT_STEPS):
        step = np.linalg.solve(identity / duration - drift.jacobian(state), flow)
        state = np.clip(state + step, 0.0, 1.0)
        flow = drift(state)
        before, norm = norm, float(np.linalg.norm(flow))
        if np.abs(step).max() < STEP and _is_solution(drift, state):
            return state
        duration = min(duration * before / max(norm, 1e-300), 1e12)
    return None


def _is_solution(drift: Drift, state: np.ndarray) -> bool:
    tails = drift.tails(state)
    return drift.imbalance(state) < RESIDUAL and bool(np.all(np.diff(tails, axis=1) < 1e-14))


def _log_tails(system: System, policy: Policy, tails: np.ndarray) -> np.ndarray:
    """Extend the tails to small values by the balance of flows, in logarithms.

    With l = log u: l[j, k+1] = log(lambda / C_j) + log sum_{i >= k} (p[j, i] / fraction_j), where
    p is almost free of l[j, k+1]: plain iteration settles one level at a time.
    """
    with np.errstate(divide="ignore"):
        bulk = np.log(np.clip(tails, 0.0, 1.0))
    levels = tails.shape[1]
    while True:
        start = np.full((len(tails), levels), -np.inf)
        kept = min(levels, tails.shape[1])
        start[:, :kept] = bulk[:, :kept]
        log_tails = _iterate_small(Drift(system, policy, levels), start, system)
        if log_tails[:, -1].max() < LOWEST_LOG_TAIL or levels >= max(EXTRA_LEVELS, tails.shape[1]):
            break
        levels = min(2 * levels, max(EXTRA_LEVELS, tails.shape[1]))
    log_tails = np.where(log_tails < LOWEST_LOG_TAIL, -np.inf, log_tails)
    used = np.flatnonzero((log_tails > -np.inf).any(axis=0))
    return log_tails[:, : min(used[-1] + 2, levels)]


def _iterate_small(drift: Drift, log_tails: np.ndarray, system: System) -> np.ndarray:
    small = log_tails < np.log(BULK)
    offset = np.log(system.arrival_rate / system.speeds)[:, None]
    for _ in range(20 * log_tails.shape[1]):
        ratio = np.exp(
            np.append(log_tails[:, 1:], np.full((len(log_tails), 1), -np.inf), axis=1)
            - np.where(np.isneginf(log_tails), 0.0, log_tails)
        )
        with np.errstate(divide="ignore"):
            joins = drift.law.log_densities(log_tails) + log_tails + np.log1p(-np.minimum(ratio, 1))
        above = np.logaddexp.accumulate(joins[:, ::-1], axis=1)[:, ::-1]
        new = log_tails.copy()
        new[:, 1:] = np.where(small[:, 1:], offset + above[:, :-1], log_tails[:, 1:])
        with np.errstate(invalid="ignore"):
            change = np.abs(new - log_tails) / np.maximum(1.0, np.abs(new))
        log_tails = new
        settled = (change < 1e-14) | (log_tails < 10 * LOWEST_LOG_TAIL)
        if np.all(settled):
            return log_tails
    raise RuntimeError("the small tails of the mean-field fixed point did not settle")
