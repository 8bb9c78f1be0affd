"""Finding where the mean field stands still.

Newton's method, and implicit Euler steps that grow as the residual falls (pseudo-transient
continuation) where Newton's method fails. The number of levels is doubled until neither the tails
at the top nor the mean number of jobs matter.
"""

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from manyserver.mean_field.drift import Flows, most_levels
from manyserver.model import System, UnstableSystem

__all__ = ["FEWEST_LEVELS", "MOST_LEVELS", "solve", "solve_levels"]

TOP_TAIL = 1e-17
"""Tails below this need no further levels."""
FEWEST_LEVELS = 8
MOST_LEVELS = 4096
NEWTON_STEPS = 100
TRANSIENT_STEPS = 2000
RESIDUAL = 1e-13
STEP = 1e-11
TRUNCATION = 1e-12
SAME_LOSS = 0.75
"""In a stable system twice the levels lose at most about half as many jobs at the top."""
DECISIVE_LEVELS = 512
"""With so many, pools that no queue leads to another one never meet."""
LEAST_LOSS = 1e-6
"""A part of the arrivals lost at the top that is worth looking at."""

Kind = TypeVar("Kind", bound=Flows)


def solve_levels(
    system: System,
    flows_of: Callable[[int], Kind],
    guess: Callable[[Kind], np.ndarray],
    name: str,
    fewest: int = FEWEST_LEVELS,
) -> tuple[Kind, np.ndarray, float]:
    """Find the zero of a drift, and double the number of levels until nothing changes.

    Parameters
    ----------
    system : System
    flows_of : callable
        Makes the drift of a number of levels.
    guess : callable
        Makes the tails to start from, the first time.
    name : str
        The policy's, for errors.
    fewest : int
        Levels to start with, if there are so many.

    Returns
    -------
    flows : Flows
        The drift of the last number of levels.
    state : numpy.ndarray
        Its zero.
    truncation : float
        Relative change of the jobs when the levels were doubled; 0 if there are no more levels.

    Raises
    ------
    UnstableSystem
        If the jobs lost at the top level do not become fewer with more levels.
    RuntimeError
        If there is no zero, or it needs too many levels.
    """
    all_levels = most_levels(system)
    levels, tails, jobs, lost = fewest, None, np.nan, np.nan
    while levels <= MOST_LEVELS:
        levels = levels if all_levels is None else min(levels, all_levels)
        flows = flows_of(levels)
        state = solve(flows, flows.state(tails if tails is not None else guess(flows)))
        tails = flows.tails(state)
        before, jobs = jobs, float(system.fractions @ tails[:, 1:].sum(axis=1))
        if levels == all_levels:
            return flows, state, 0.0
        truncation = abs(jobs - before) / jobs
        if tails[:, -1].max() < TOP_TAIL and truncation < TRUNCATION:
            return flows, state, truncation
        lost_before, lost = lost, float(flows.law.probabilities(tails)[:, -1].sum())
        told = levels >= DECISIVE_LEVELS or _pools_meet(flows.law.ranks)
        if told and lost > LEAST_LOSS and lost > SAME_LOSS * lost_before:
            _refuse_unstable(system, tails, lost, name)
        levels *= 2
    raise RuntimeError(
        f"arrival_rate = {system.arrival_rate:g}: the tails of policy {name} do not fall "
        f"below {TOP_TAIL} within {MOST_LEVELS} levels"
    )


def _pools_meet(ranks: np.ndarray) -> bool:
    """Whether the longer half of the queues of before ranks after every idle server.

    While it does not, as with SED where one pool is much faster, further levels cannot lead jobs to
    another pool, and lose as many of them.
    """
    return bool(ranks[:, ranks.shape[1] // 4].min() >= ranks[:, 0].max())


def _refuse_unstable(system: System, tails: np.ndarray, lost: float, name: str) -> None:
    pools = tuple(
        j
        for j, pool in enumerate(system.pools)
        if pool.buffer is None and tails[j, -1] > 0.1 * tails[:, -1].max()
    )
    which = f"pool {pools[0]}" if len(pools) == 1 else f"pools {list(pools)} together"
    raise UnstableSystem(
        f"arrival_rate = {system.arrival_rate:g}: policy {name} sends {which} about "
        f"{lost * system.arrival_rate:.2g} jobs per unit of time and server of the system more "
        "than can be served there; the arrival rate or another pool's share must be smaller",
        pools=pools,
    )


def solve(flows: Flows, state: np.ndarray) -> np.ndarray:
    """Find a zero of the drift with tails in [0, 1].

    Raises
    ------
    RuntimeError
        If the flows do not balance to 1e-13 of the arrival rate.
    """
    for method in (newton, pseudo_transient):
        found = method(flows, state)
        if found is not None:
            return found
    raise RuntimeError(
        "the mean-field equations were not solved: no method balances the flows to "
        f"{RESIDUAL} of the arrival rate"
    )


def newton(flows: Flows, state: np.ndarray) -> np.ndarray | None:
    """Take Newton steps from a state, cut to [0, 1]."""
    flow = flows(state)
    if not flow.any():
        return state
    for _ in range(NEWTON_STEPS):
        try:
            step = np.linalg.solve(flows.jacobian(state), -flow)
        except np.linalg.LinAlgError:
            return None
        if not np.all(np.isfinite(step)):
            return None
        state = np.clip(state + step, 0.0, 1.0)
        if np.abs(step).max() < STEP and _is_solution(flows, state):
            return state
        flow = flows(state)
    return None


def pseudo_transient(flows: Flows, state: np.ndarray) -> np.ndarray | None:
    """Take implicit Euler steps from the empty system, longer as the residual falls."""
    state = np.zeros_like(state)
    flow = flows(state)
    duration, norm = 1.0, float(np.linalg.norm(flow))
    identity = np.eye(len(state))
    for _ in range(TRANSIENT_STEPS):
        step = np.linalg.solve(identity / duration - flows.jacobian(state), flow)
        state = np.clip(state + step, 0.0, 1.0)
        flow = flows(state)
        before, norm = norm, float(np.linalg.norm(flow))
        if np.abs(step).max() < STEP and _is_solution(flows, state):
            return state
        duration = min(duration * before / max(norm, 1e-300), 1e12)
    return None


def _is_solution(flows: Flows, state: np.ndarray) -> bool:
    tails = flows.tails(state)
    return flows.imbalance(state) < RESIDUAL and bool(np.all(np.diff(tails, axis=1) < 1e-14))
