"""The stationary law of a finite system, with as many states as its accuracy needs."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from manyserver.checks import checked_count, checked_number
from manyserver.exact.balance import Balance
from manyserver.exact.chain import Arrivals, Chain, build_chain
from manyserver.exact.pull import build_routed_chain
from manyserver.exact.routers import count_routed_states
from manyserver.exact.states import Caps, States, count_states
from manyserver.exact.truncation import (
    first_caps,
    loss_by_level,
    lowered_caps,
    raised_caps,
    refuse,
    refuse_few,
    refuse_foreseen,
    truncation_error,
)
from manyserver.model import System
from manyserver.policies import Policy, check_fit

__all__ = ["MOST_STATES", "StationaryLaw", "stationary_law"]

MOST_STATES = 3_000_000
SMALLEST_TOLERANCE = 1e-13
LARGEST_TOLERANCE = 0.01
ROUGH = 1e-7
"""Residual at which the law is good enough to choose the states."""
LEAST_RESIDUAL = 4e-15
"""Rounding does not allow much less."""
MOST_ROUNDS = 100
LARGE_STEP = 1.0
SMALL_STEP = 0.05
"""Largest growth of a queue's cap from one round to the next."""


@dataclass(frozen=True)
class StationaryLaw:
    """The stationary law of a finite system.

    Parameters
    ----------
    system : System
    states : States
        All states, and for PULL which routers know of which idle servers.
    probabilities : numpy.ndarray, shape (state,)
        They sum to one.
    arrivals : Arrivals
        Every way in which an arrival can join a queue.
    residual : float
        Sum of the imbalances of all states over the sum of all flows.
    truncation_error : float
        Estimate of the relative error of the mean number of jobs from states left out; the
        probability of these states is smaller.
    """

    system: System
    states: States
    probabilities: np.ndarray
    arrivals: Arrivals
    residual: float
    truncation_error: float

    @property
    def jobs(self) -> np.ndarray:
        """Jobs at every server: pool after pool, and longest queue first, shape (state, server)."""
        return self.states.jobs

    @property
    def pool_of(self) -> np.ndarray:
        """The pool of every server, shape (server,)."""
        return np.repeat(np.arange(len(self.system.pools)), self.system.counts)

    @property
    def levels(self) -> int:
        """Number of levels, from 0 to the most jobs at a server."""
        return int(self.jobs.max()) + 1

    def tails(self) -> np.ndarray:
        """Queue tails of every state, as :class:`manyserver.joining.JoiningLaw` takes them.

        Returns
        -------
        numpy.ndarray, shape (state, pool, level)
            Fraction of the pool's servers with at least k jobs.
        """
        first = np.cumsum([0, *self.system.counts])
        tails = np.empty((len(self.jobs), len(first) - 1, self.levels))
        for level in range(self.levels):
            at_least = self.jobs >= level
            for pool, (start, end) in enumerate(itertools.pairwise(first)):
                tails[:, pool, level] = at_least[:, start:end].mean(axis=1)
        return tails


def stationary_law(
    system: System, policy: Policy, *, tolerance: float = 1e-12, max_states: int = MOST_STATES
) -> StationaryLaw:
    """Compute the stationary law of a finite system, state by state.

    Parameters
    ----------
    system : System
        Finite; its buffers may be finite too.
    policy : Policy
        Any policy that is a sampling and a preference, or PULL.
    tolerance : float
        Largest relative error of the mean number of jobs from states left out, and largest
        relative imbalance of the flows, in [1e-13, 0.01].
    max_states : int
        Largest number of states.

    Returns
    -------
    StationaryLaw

    Raises
    ------
    ValueError
        If the system is infinite, a parameter is out of its range, the policy does not fit the
        system, or more than `max_states` states are needed.
    UnstableSystem
        If some pools get more work than they can do.
    RuntimeError
        If the balance equations were not solved to `tolerance`.

    Examples
    --------
    Two servers, join the shorter queue: how likely is it that both are idle?

    >>> import manyserver as ms
    >>> system = ms.System(0.5, [ms.Pool(1, 1)], n_servers=2)
    >>> law = stationary_law(system, ms.policy("sq", d=2))
    >>> float(law.probabilities[(law.jobs == 0).all(axis=1)].sum().round(10))
    0.315967498
    """
    tolerance = checked_number("tolerance", tolerance, closed=True)
    if not SMALLEST_TOLERANCE <= tolerance <= LARGEST_TOLERANCE:
        raise ValueError(
            f"tolerance = {tolerance!r}: must lie in [{SMALLEST_TOLERANCE:g}, "
            f"{LARGEST_TOLERANCE:g}]"
        )
    max_states = checked_count("max_states", max_states)
    check_fit(system, policy)
    refuse_few(system, max_states)
    build, count = _methods(system, policy)
    caps = _sufficient_caps(system, build, count, tolerance, max_states)
    for _ in range(MOST_ROUNDS):
        refuse(caps, count(caps), max_states)
        chain = build(caps)
        probabilities, residual = Balance(chain).solve(max(0.01 * tolerance, LEAST_RESIDUAL))
        error = truncation_error(system, chain, probabilities)
        if error <= tolerance:
            return StationaryLaw(
                system, chain.states, probabilities, chain.arrivals, residual, error
            )
        loss = loss_by_level(system, chain, probabilities)
        target = tolerance / (2 * len(loss))
        caps = raised_caps(
            system, caps, loss, target, count=count, step=SMALL_STEP, max_states=max_states
        )
        del chain
    raise RuntimeError(f"the states needed were not found within {MOST_ROUNDS} rounds")


def _methods(
    system: System, policy: Policy
) -> tuple[Callable[[Caps], Chain], Callable[[Caps], int]]:
    """Return what builds the chain within given caps, and what counts its states."""
    if policy.n_routers:
        routers = policy.n_routers
        return (
            partial(build_routed_chain, system, routers),
            lambda caps: count_routed_states(caps, routers),
        )
    return partial(build_chain, system, policy), count_states


def _sufficient_caps(
    system: System,
    build: Callable[[Caps], Chain],
    count: Callable[[Caps], int],
    tolerance: float,
    max_states: int,
) -> Caps:
    """Grow the caps until the truncation error is small, then drop what was not needed."""
    caps = first_caps(system)
    for _ in range(MOST_ROUNDS):
        refuse(caps, count(caps), max_states)
        chain = build(caps)
        probabilities, _ = Balance(chain).solve(ROUGH)
        loss = loss_by_level(system, chain, probabilities)
        target = tolerance / (2 * len(loss))
        if truncation_error(system, chain, probabilities) <= tolerance:
            return lowered_caps(system, caps, loss, target)
        del chain
        refuse_foreseen(system, caps, loss, target, count=count, max_states=max_states)
        caps = raised_caps(
            system, caps, loss, target, count=count, step=LARGE_STEP, max_states=max_states
        )
    raise RuntimeError(f"the states needed were not found within {MOST_ROUNDS} rounds")
