"""The fixed point of a smooth drift.

Newton's method is exact to about 1e-16 of the largest tail; the small tails are then iterated in
logarithms from the balance of the flows across each level, so that they are relatively exact
far below the smallest floating-point number.
"""

from typing import Any

import numpy as np

from manyserver.mean_field.drift import Drift, most_levels
from manyserver.mean_field.solver import solve_levels
from manyserver.model import System
from manyserver.outputs import stationary_outputs
from manyserver.policies import Policy
from manyserver.policies.split import tail_exponent

__all__ = ["EXTRA_LEVELS", "LOWEST_LOG_TAIL", "joint_fixed_point"]

EXTRA_LEVELS = 64
LOWEST_LOG_TAIL = -1e7
"""Levels go on to tails of this logarithm, if at most EXTRA_LEVELS are needed; smaller is -inf."""
BULK = 1e-8
"""Tails below this are iterated in logarithms."""
HIGH_LOAD = 0.999
"""With buffers the load may be higher; tails are not guessed from more than this."""


def joint_fixed_point(system: System, policy: Policy) -> dict[str, Any]:
    """Solve for the tails of all pools together; outputs by variable name."""
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
