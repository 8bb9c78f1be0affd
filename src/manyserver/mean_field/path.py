"""What an integration of the mean field returns, and how a piece of it is made."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import scipy

__all__ = ["Event", "Path", "event", "in_order", "integrate_piece"]

Event = Callable[[float, np.ndarray], float]


@dataclass
class Path:
    """A trajectory.

    Parameters
    ----------
    tails : numpy.ndarray, shape (time, pool, level)
    joins : numpy.ndarray, shape (time, pool, level)
        Part of the arrivals that join each class.
    rates : numpy.ndarray, shape (time, pool, level)
        Arrivals to one server of each class, over the arrival rate.
    more : dict of str to numpy.ndarray, shape (time, ...)
        Further variables, by name.
    """

    tails: np.ndarray
    joins: np.ndarray
    rates: np.ndarray
    more: dict[str, np.ndarray] = field(default_factory=dict)


def event(quantity: Callable[[np.ndarray], float], rises: bool = False) -> Event:
    """Return what ends a piece where a quantity of the state falls to zero, or rises to it."""

    def found(_: float, state: np.ndarray) -> float:
        return quantity(state)

    found.terminal = True  # type: ignore[attr-defined]
    found.direction = 1.0 if rises else -1.0  # type: ignore[attr-defined]
    return found


def integrate_piece(
    flow: Callable[[np.ndarray], np.ndarray],
    jacobian: Callable[[np.ndarray], np.ndarray],
    start: tuple[float, np.ndarray],
    times: np.ndarray,
    events: Sequence[Event],
    tolerances: tuple[float, float],
    method: Literal["LSODA", "Radau"] = "LSODA",
) -> tuple[float, np.ndarray, np.ndarray, int | None]:
    """Integrate until an event, or to the last of the times.

    Parameters
    ----------
    flow, jacobian : callable
        The drift and its derivative at a state.
    start : tuple of float and numpy.ndarray
        Time and state to start from.
    times : numpy.ndarray, shape (time,)
        At which states are wanted, from the first time on.
    events : sequence of Event
    tolerances : tuple of float
        Relative and absolute error of a step.
    method : str, optional
        Of :func:`scipy.integrate.solve_ivp`.

    Returns
    -------
    time : float
        Of the event, or that of the start.
    state : numpy.ndarray
        There.
    passed : numpy.ndarray, shape (time passed, element)
        States at those of `times` that were passed.
    which : int or None
        The event, if there was one.

    Raises
    ------
    RuntimeError
        If the equations were not integrated.
    """
    time, state = start
    if time == times[-1]:
        return time, state, state[None], None
    solution: Any = scipy.integrate.solve_ivp(
        lambda _, state: flow(state),
        (time, times[-1]),
        state,
        method=method,
        jac=lambda _, state: jacobian(state),
        t_eval=times,
        events=list(events),
        rtol=tolerances[0],
        atol=tolerances[1],
    )
    if not solution.success:
        raise RuntimeError(f"the mean-field equations were not integrated: {solution.message}")
    which = None
    for place, (when, where) in enumerate(zip(solution.t_events, solution.y_events, strict=True)):
        if len(when):
            time, state, which = float(when[0]), where[0], place
    passed = solution.y.T if len(solution.y) else np.empty((0, len(state)))
    return time, state, passed, which


def in_order(tails: np.ndarray) -> np.ndarray:
    """Return queue tails without what rounding did to their order."""
    return np.minimum.accumulate(np.clip(tails, 0.0, 1.0), axis=-1)
