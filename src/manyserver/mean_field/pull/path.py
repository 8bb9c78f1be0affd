"""Trajectories of PULL, which slide along the states in which some routers have no messages."""

from collections.abc import Callable

import numpy as np
import scipy
from numpy.typing import ArrayLike

from manyserver.mean_field.path import Path
from manyserver.mean_field.pull.flow import OVERSHOOT, RoutedFlow
from manyserver.model import System
from manyserver.outputs import occupancy
from manyserver.policies import Policy

__all__ = ["follow_routers", "start_messages"]

ROUNDING = 1e-9
MOST_EVENTS = 10_000


def start_messages(
    system: System, routers: int, tails: np.ndarray, given: ArrayLike | None
) -> np.ndarray:
    """Return the idle servers by pool and router to start from; split equally by default.

    Raises
    ------
    ValueError
        If they are not the idle servers of the tails.
    """
    idle = system.fractions * (1 - tails[:, 1] if tails.shape[1] > 1 else np.ones(len(tails)))
    if given is None:
        return np.asarray(idle[:, None] / np.full(routers, routers))
    messages = np.asarray(given, dtype=float)
    shape = (len(tails), routers)
    if (
        messages.shape != shape
        or not np.all(messages >= 0)
        or np.abs(messages.sum(axis=1) - idle).max() > ROUNDING
    ):
        raise ValueError(
            f"start: router_idle of shape {messages.shape} must have shape {shape}, be at least "
            "zero, and sum to the idle servers of each pool"
        )
    return messages


def follow_routers(
    system: System,
    policy: Policy,
    levels: int,
    start: np.ndarray,
    times: np.ndarray,
    tolerances: tuple[float, float],
    messages: np.ndarray,
) -> Path:
    """Integrate from given tails and messages at time 0.

    Parameters
    ----------
    system : System
    policy : Policy
        With routers.
    levels : int
    start : numpy.ndarray, shape (pool, level)
    times : numpy.ndarray, shape (time,)
        Increasing, from 0 on.
    tolerances : tuple of float
        Relative and absolute error of a step.
    messages : numpy.ndarray, shape (pool, router)
        From :func:`start_messages`.
    """
    flow = RoutedFlow(system, policy.n_routers, max(levels, 3))
    state, time = flow.settle(flow.state(start, messages)), 0.0
    found: list[tuple[np.ndarray, np.ndarray, np.ndarray, float]] = []
    for _ in range(MOST_EVENTS):
        time, state, passed = _advance(flow, time, state, times[len(found) :], tolerances)
        for one in passed:
            idle, tails = flow.parts(one)
            random = flow.flows(one)[2] / system.arrival_rate
            found.append((_tidy(tails), flow.joins(one), np.maximum(idle, 0.0), random))
        if len(found) == len(times):
            return _path(system, found, levels)
        state = flow.settle(state)
    raise RuntimeError(f"routers ran out of messages {MOST_EVENTS} times until time {time:g}")


def _advance(
    flow: RoutedFlow,
    time: float,
    state: np.ndarray,
    times: np.ndarray,
    tolerances: tuple[float, float],
) -> tuple[float, np.ndarray, np.ndarray]:
    """Integrate until routers become empty or fill again, or to the last of the times.

    Returns
    -------
    time : float
    state : numpy.ndarray
        The last one.
    passed : numpy.ndarray, shape (time passed, element)
        States at those of `times` that were passed.
    """
    if time == times[-1]:
        return time, state, state[None]

    def filling(_: float, state: np.ndarray) -> float:
        return flow.excess(flow.parts(state)[1]) - OVERSHOOT

    def running_out(_: float, state: np.ndarray) -> float:
        known = flow.parts(state)[0].sum(axis=0)
        return float(np.where(flow.empty, 1.0, known).min()) + OVERSHOOT

    filling.direction, running_out.direction = 1.0, -1.0  # type: ignore[attr-defined]
    events: list[Callable[[float, np.ndarray], float]] = [running_out]
    if flow.empty.any():
        events.append(filling)
    for event in events:
        event.terminal = True  # type: ignore[attr-defined]
    solution = scipy.integrate.solve_ivp(
        flow,
        (time, times[-1]),
        state,
        method="LSODA",
        jac=flow.jacobian,
        t_eval=times,
        events=events,
        rtol=tolerances[0],
        atol=tolerances[1],
    )
    if not solution.success:
        raise RuntimeError(f"the mean-field equations were not integrated: {solution.message}")
    for when, where in zip(solution.t_events or (), solution.y_events or (), strict=True):
        if len(when):
            time, state = float(when[0]), where[0]
    return time, state, solution.y.T if len(solution.y) else np.empty((0, len(state)))


def _tidy(tails: np.ndarray) -> np.ndarray:
    """Undo what rounding did to the order of the tails."""
    return np.minimum.accumulate(np.clip(tails, 0.0, 1.0), axis=1)


def _path(
    system: System,
    found: list[tuple[np.ndarray, np.ndarray, np.ndarray, float]],
    levels: int,
) -> Path:
    tails, joins, messages, empty = (np.array(part) for part in zip(*found, strict=True))
    held = system.fractions[:, None] * occupancy(tails)
    rates = np.full(joins.shape, np.nan)
    np.divide(joins, held, out=rates, where=held > OVERSHOOT)
    more = {"router_idle": messages, "empty_router_probability": empty}
    return Path(tails[:, :, :levels], joins[:, :, :levels], rates[:, :, :levels], more)
