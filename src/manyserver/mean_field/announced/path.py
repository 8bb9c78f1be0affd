r"""Trajectories where servers announce themselves.

The mean field jumps where the last announced server of a rank is taken, and slides along these
states as long as all that fall back to this rank are taken at once. Between two changes of the
best rank that is left, the drift is smooth and is integrated as any other; a change comes

- up, when the servers of the best rank run out, or
- down, when more servers fall back to an announced level than there are arrivals: then those of
  the last rank stay.

Both are found as roots along the solution, so that the error is that of the integration.
"""

from collections.abc import Callable
from functools import cache
from typing import Literal

import numpy as np

from manyserver.mean_field.announced.law import Sliding, SlidingLaw
from manyserver.mean_field.announced.order import Order
from manyserver.mean_field.path import Event, Path, event, in_order, integrate_piece
from manyserver.model import System
from manyserver.policies import Policy

__all__ = ["follow"]

EMPTY = 1e-10
"""A fraction of servers below this is none."""
OVERSHOOT = 1e-13
"""How far below zero a root is looked for, so that rounding does not look like one."""
FEW = 1e-4
"""With fewer servers left of a rank, who they are changes fast, and the drift is stiff."""
MOST_CHANGES = 10_000

Tolerances = tuple[float, float]
"""Relative and absolute error of a step."""
Change = Literal["gone", "returning", ""]


def follow(
    system: System,
    policy: Policy,
    levels: int,
    start: np.ndarray,
    times: np.ndarray,
    tolerances: Tolerances,
) -> Path:
    """Integrate from the given tails at time 0.

    Parameters
    ----------
    system : System
    policy : Policy
    levels : int
    start : numpy.ndarray, shape (pool, level)
    times : numpy.ndarray, shape (time,)
        Increasing, from 0 on.
    tolerances : Tolerances
    """
    order = Order(system, policy, levels)

    @cache
    def drift_of(rank: int) -> Sliding:
        return Sliding(order, rank)

    shape = (len(times), *order.ranks.shape)
    path = Path(np.zeros(shape), np.zeros(shape), np.zeros(shape))
    tails = _fit(start, levels)
    rank, time, done = _settle(drift_of, order, tails, 0), 0.0, 0
    for _ in range(MOST_CHANGES):
        drift = drift_of(rank)
        state = _hold(drift, drift.state(tails))
        time, state, states, change = _advance(drift, time, state, times[done:], tolerances)
        for passed in states:
            path.tails[done] = tails = in_order(drift.tails(passed))
            path.joins[done] = drift.law.probabilities(tails)
            path.rates[done] = drift.law.rates(tails)
            done += 1
        if done == len(times):
            return path
        tails = in_order(drift.tails(state))
        if change == "gone":
            rank = _settle(drift_of, order, tails, rank + 1)
        elif change == "returning":
            rank = _returning(drift.law, tails)
    raise RuntimeError(
        f"policy {policy.name}: the best announced servers changed {MOST_CHANGES} times until "
        f"time {time:g}"
    )


def _fit(tails: np.ndarray, levels: int) -> np.ndarray:
    """Cut or fill tails to a number of levels."""
    fitted = np.zeros((len(tails), levels))
    kept = min(levels, tails.shape[1])
    fitted[:, :kept] = tails[:, :kept]
    return fitted


def _hold(drift: Sliding, state: np.ndarray) -> np.ndarray:
    return drift.state(drift.tails(state))


def _settle(drift_of: Callable[[int], Sliding], order: Order, tails: np.ndarray, rank: int) -> int:
    """Find the first rank, from the given one on, of which servers are left or stay."""
    while rank < order.n_ranks:
        if drift_of(rank).law.mass(tails) > EMPTY:
            return rank
        after = drift_of(rank + 1)
        if after.law.remainder(after.tails(after.state(tails))) < -OVERSHOOT:
            return rank
        rank += 1
    return rank


def _returning(law: SlidingLaw, tails: np.ndarray) -> int:
    """Find the last rank to which servers fall back."""
    falling = law.returns(tails) > EMPTY
    return int(law.order.ranks[law.taken & falling[:, None]].max())


def _advance(
    drift: Sliding, time: float, state: np.ndarray, times: np.ndarray, tolerances: Tolerances
) -> tuple[float, np.ndarray, np.ndarray, Change]:
    """Integrate until the best rank changes, or to the last of the times.

    Returns
    -------
    time : float
    state : numpy.ndarray
        The last one.
    states : numpy.ndarray, shape (time passed, level)
        At those of `times` that were passed.
    change : "gone", "returning" or ""
        Whether the servers of the rank ran out, or more fall back than arrive, or neither: then
        another method goes on, or it is the last time.
    """
    law = drift.law
    last = law.rank == law.order.n_ranks
    # LSODA tries a method for smooth equations first, and takes too long to leave it if wrong.
    stiff = not last and bool(law.classes.sum() > 1) and law.mass(drift.tails(state)) < FEW

    def below(quantity: Callable[[np.ndarray], float], level: float, rises: bool = False) -> Event:
        return event(lambda state: quantity(drift.tails(state)) - level, rises)

    events: list[tuple[Change, Event]] = [("returning", below(law.remainder, -OVERSHOOT))]
    if not last:
        events += [("gone", below(law.mass, level)) for level in (EMPTY, -OVERSHOOT)]
        if law.classes.sum() > 1:
            events.append(("", below(law.mass, 2 * FEW if stiff else FEW / 2, rises=stiff)))
    time, state, passed, which = integrate_piece(
        drift,
        drift.jacobian,
        (time, state),
        times,
        [event for _, event in events],
        tolerances,
        "Radau" if stiff else "LSODA",
    )
    return time, state, passed, "" if which is None else events[which][0]
