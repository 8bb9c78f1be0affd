"""Which states to keep: the longest queues that still matter.

An arrival is lost where it would lead out of the states that are kept. In M/M/1, losing the
fraction f of the arrivals, all of which find n jobs, lowers the mean number of jobs by (n + 1) f
of itself, to first order. The sum of (n + 1) f over all states is the estimate of the truncation
error here, and how it falls with the length of the ``i``-th longest queue says which states are
needed.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from manyserver.exact.chain import Chain
from manyserver.exact.states import Caps, count_states
from manyserver.model import System

__all__ = [
    "TooManyStates",
    "first_caps",
    "loss_by_level",
    "lowered_caps",
    "raised_caps",
    "refuse",
    "refuse_few",
    "refuse_foreseen",
    "truncation_error",
]

FIRST_CAP = 4
FIRST_STATES = 50_000
TENS = 100
FASTEST_GROWTH = 8
"""The number of states grows at most by this factor at a time,"""
FREE_STATES = 5000
"""or up to this number."""
SMALLEST_STEP = 1e-3
FORESEEN = {200_000: 4, 5000: 20}
"""From so many states on, those that are foreseen to be needed are right to this factor."""
FAR = 30_000
"""Longer queues than are ever listed."""
BYTES_PER_TRANSITION = 55
"""Peak memory, as measured."""


class TooManyStates(ValueError):
    """Raised for a system whose chain needs more states than are allowed."""


def first_caps(system: System) -> Caps:
    """Return caps to begin with, lower ones for tens of servers; with more, all is too much."""
    for cap in range(FIRST_CAP, 0 if system.finite_servers <= TENS else FIRST_CAP - 1, -1):
        caps = tuple(
            (cap if pool.buffer is None else min(cap, pool.buffer),) * servers
            for pool, servers in zip(system.pools, system.counts, strict=True)
        )
        if count_states(caps) <= FIRST_STATES:
            break
    return caps


def loss_by_level(system: System, chain: Chain, probabilities: np.ndarray) -> np.ndarray:
    """Estimate the truncation error if a queue, by its rank in its pool, could not pass a level.

    Parameters
    ----------
    system : System
    chain : Chain
    probabilities : numpy.ndarray, shape (state,)

    Returns
    -------
    numpy.ndarray, shape (server, level)
    """
    arrivals, states = chain.arrivals, chain.states
    levels = int(states.jobs.max()) + 1
    lost = ~arrivals.blocked
    row = arrivals.state[lost]
    place = (
        arrivals.server[lost].astype(np.int64) * levels + states.jobs[row, arrivals.server[lost]]
    )
    flow = probabilities[row] * arrivals.rate[lost] * (states.total[row] + 1)
    loss = np.bincount(place, weights=flow, minlength=states.jobs.shape[1] * levels)
    return np.asarray(loss.reshape(-1, levels) / (system.arrival_rate * system.finite_servers))


def truncation_error(system: System, chain: Chain, probabilities: np.ndarray) -> float:
    """Estimate the relative error of the mean number of jobs from states left out."""
    arrivals = chain.arrivals
    lost = (arrivals.target < 0) & ~arrivals.blocked
    row = arrivals.state[lost]
    flow = float((probabilities[row] * arrivals.rate[lost]) @ (chain.states.total[row] + 1.0))
    return flow / (system.arrival_rate * system.finite_servers)


def raised_caps(
    system: System,
    caps: Caps,
    loss: np.ndarray,
    target: float,
    *,
    count: Callable[[Caps], int],
    step: float,
    max_states: int,
) -> Caps:
    """Raise the caps towards those at which no queue loses more than `target`.

    Caps far above what is needed come from earlier rounds, in which other queues were cut too
    short, and are lowered.

    Parameters
    ----------
    system : System
    caps : tuple of tuple of int, shape (pool, server of the pool)
        Present caps.
    loss : numpy.ndarray, shape (server, level)
        From :func:`loss_by_level`.
    target : float
        Largest loss at the cap of a queue.
    count : callable
        Counts the states within caps.
    step : float
        Largest growth of a cap, as a part of it.
    max_states : int
        Not to be passed, if some growth is possible below it.
    """
    wanted = _wanted(caps, loss, target)
    most = min(max(FASTEST_GROWTH * count(caps), FREE_STATES), max_states)
    while True:
        limited = [
            [
                min(want, cap + 1 + int(step * cap)) if want > cap else min(cap, 2 + 5 * want // 4)
                for cap, want in zip(own, wants, strict=True)
            ]
            for own, wants in zip(caps, wanted, strict=True)
        ]
        new = _ordered(system, limited)
        if count(new) <= most or step < SMALLEST_STEP:
            return new
        step /= 2


def lowered_caps(system: System, caps: Caps, loss: np.ndarray, target: float) -> Caps:
    """Lower the caps to those at which no queue loses more than `target`; never raise one."""
    wanted = _wanted(caps, loss, target)
    lower = [
        [min(cap, want) for cap, want in zip(own, wants, strict=True)]
        for own, wants in zip(caps, wanted, strict=True)
    ]
    return _ordered(system, lower)


def _wanted(caps: Caps, loss: np.ndarray, target: float) -> list[list[int]]:
    rows = iter(loss)
    return [[_level_below(next(rows)[: cap + 1], target) for cap in own] for own in caps]


def _level_below(loss: np.ndarray, target: float) -> int:
    """Return the level from which on the loss is below the target, by extrapolation if need be."""
    large = np.flatnonzero(loss > target)
    if not len(large):
        return 0
    last = int(large[-1])
    # Where a longer queue has the same cap, this one loses nothing at the cap, but it would once
    # the longer one may grow.
    if last + 1 < len(loss) and loss[last + 1] > 0:
        return last + 1
    # Near the cap the loss is larger than it will be without the cap: look further down.
    upper = last - 1 - last // 10
    lower = upper - max(1, upper // 3)
    if lower < 0 or not 0 < loss[upper] < loss[lower]:
        return FAR
    slope = math.log(loss[upper] / loss[lower]) / (upper - lower)
    return max(last + 1, min(upper + math.ceil(math.log(target / loss[upper]) / slope), FAR))


def _ordered(system: System, caps: Sequence[Sequence[int]]) -> Caps:
    """Let no queue have a larger cap than a longer one, nor than its buffer."""
    ordered = []
    for pool, own in zip(system.pools, caps, strict=True):
        falling = np.maximum.accumulate(own[::-1])[::-1]
        ordered.append(
            tuple(
                int(cap) if pool.buffer is None else min(int(cap), pool.buffer) for cap in falling
            )
        )
    return tuple(ordered)


def refuse(caps: Caps, states: int, max_states: int) -> None:
    """Raise TooManyStates if there are too many states within the caps."""
    if states <= max_states:
        return
    groups = sum(min(len(own), own[0] + 1) for own in caps)
    memory = 2 * groups * states * BYTES_PER_TRANSITION / 1e9
    servers = sum(len(own) for own in caps)
    raise TooManyStates(
        f"n_servers = {servers}: the exact chain needs at least {states:.2g} states and "
        f"{memory:.2g} GB of memory; must need at most max_states = {max_states} states. Fewer "
        "servers or a lower load need fewer; simulation has no such bound"
    )


def refuse_few(system: System, max_states: int) -> None:
    """Raise TooManyStates if there are too many even if no server held more than one job."""
    states = math.prod(count + 1 for count in system.counts)
    if states > max_states:
        raise TooManyStates(
            f"n_servers = {system.finite_servers}: the exact chain needs more than {states:.2g} "
            "states, as so many say how many servers of each pool are busy; must need at most "
            f"max_states = {max_states} states. Fewer servers need fewer; simulation has no such "
            "bound"
        )


def refuse_foreseen(
    system: System,
    caps: Caps,
    loss: np.ndarray,
    target: float,
    *,
    count: Callable[[Caps], int],
    max_states: int,
) -> None:
    """Raise TooManyStates if far more states will be needed than are allowed.

    Where the loss does not tell how long a queue will be, its cap is taken to remain.

    Parameters
    ----------
    system, caps, loss, target, count, max_states
        As for :func:`raised_caps`.
    """
    present = count(caps)
    factor = next((factor for states, factor in FORESEEN.items() if present >= states), None)
    if factor is None:
        return
    wanted = _wanted(caps, loss, target)
    cautious = [
        [cap if want == FAR else want for cap, want in zip(own, wants, strict=True)]
        for own, wants in zip(caps, wanted, strict=True)
    ]
    states = count(_ordered(system, cautious))
    if states > factor * max_states:
        refuse(caps, states // factor, max_states)
