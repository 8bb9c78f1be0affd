"""Trajectories of PULL, which slide along the states in which some routers have no messages."""

import numpy as np
from numpy.typing import ArrayLike

from manyserver.mean_field.path import Event, Path, event, in_order, integrate_piece
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
        left = times[len(found) :]
        time, state, passed, _ = integrate_piece(
            lambda state: flow(0.0, state),
            lambda state: flow.jacobian(0.0, state),
            (time, state),
            left,
            _events(flow),
            tolerances,
        )
        for one in passed:
            idle, tails = flow.parts(one)
            random = flow.flows(one)[2] / system.arrival_rate
            found.append((in_order(tails), flow.joins(one), np.maximum(idle, 0.0), random))
        if len(found) == len(times):
            return _path(system, found, levels)
        state = flow.settle(state)
    raise RuntimeError(f"routers ran out of messages {MOST_EVENTS} times until time {time:g}")


def _events(flow: RoutedFlow) -> list[Event]:
    """Return where routers become empty, or fill again."""

    def left(state: np.ndarray) -> float:
        known = flow.parts(state)[0].sum(axis=0)
        return float(np.where(flow.empty, 1.0, known).min()) + OVERSHOOT

    def excess(state: np.ndarray) -> float:
        return flow.excess(flow.parts(state)[1]) - OVERSHOOT

    return [event(left), *([event(excess, rises=True)] if flow.empty.any() else [])]


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
