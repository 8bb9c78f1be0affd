"""The Markov chain of a finite system: all transitions between its states, with their rates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import scipy

from manyserver.exact.choice import Choice
from manyserver.exact.states import Caps, Lattice, States, enumerate_states
from manyserver.model import System
from manyserver.policies import Policy

__all__ = ["Arrivals", "Chain", "assembled", "build_chain", "growths", "shrinkages"]


@dataclass(frozen=True)
class Arrivals:
    """Every way in which an arrival can join a queue, one row each.

    Parameters
    ----------
    state, server : numpy.ndarray of int, shape (row,)
        State that the arrival finds, and the server it joins; of several servers of a pool with
        equally many jobs only the first is listed.
    rate : numpy.ndarray, shape (row,)
        Jobs per unit of time.
    target : numpy.ndarray of int, shape (row,)
        State that the arrival leaves behind; -1 if it is not among the states.
    blocked : numpy.ndarray of bool, shape (row,)
        Whether the server is full. Other arrivals without a target are lost to the truncation.
    """

    state: np.ndarray
    server: np.ndarray
    rate: np.ndarray
    target: np.ndarray
    blocked: np.ndarray

    @classmethod
    def to(
        cls,
        server: int,
        state: np.ndarray,
        rate: np.ndarray,
        target: np.ndarray,
        blocked: np.ndarray,
    ) -> Arrivals:
        """List arrivals that join the same server."""
        return cls(state, np.full(len(state), server, dtype=np.int16), rate, target, blocked)


@dataclass(frozen=True)
class Chain:
    """A finite Markov chain.

    Parameters
    ----------
    states : States
    arrivals : Arrivals
    up, down : scipy.sparse.csr_array, shape (state, state)
        Element ``[y, x]`` is the rate of arrivals, or departures, that lead from state x to y.
    """

    states: States
    arrivals: Arrivals
    up: scipy.sparse.csr_array
    down: scipy.sparse.csr_array


def build_chain(system: System, policy: Policy, caps: Caps) -> Chain:
    """List the states and all transitions between them.

    Parameters
    ----------
    system : System
        Finite.
    policy : Policy
    caps : tuple of tuple of int, shape (pool, server of the pool)
        Most jobs in the i-th longest queue; arrivals that would exceed it are lost.
    """
    states = enumerate_states(caps)
    choice = Choice(system, policy, states.jobs)
    total_rate = system.arrival_rate * len(choice.pool_of)
    arrivals, departures = [], []
    for server, pool in enumerate(choice.pool_of):
        state, alike, blocked = growths(system, states.jobs, server)
        rate = total_rate * alike * choice.probabilities(server, state)
        arrivals.append(Arrivals.to(server, state, rate, states.more[server, state], blocked))
        state, alike = shrinkages(system, states, server)
        rate = float(system.speeds[pool]) * alike
        departures.append((state, rate, states.less[server, state]))
    return assembled(states, arrivals, departures)


def growths(
    system: System, jobs: np.ndarray, server: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """List the states in which this server is the first of its pool with as many jobs.

    A queue that grows becomes the first of its equals.

    Parameters
    ----------
    system : System
    jobs : numpy.ndarray of int, shape (state, server)
    server : int

    Returns
    -------
    state, alike : numpy.ndarray of int, shape (row,)
        The states, and how many servers of the pool have as many jobs.
    blocked : numpy.ndarray of bool, shape (row,)
        Whether these servers are full.
    """
    own, place, pool = _pool(system, jobs, server)
    level = own[:, place]
    alike = np.count_nonzero(own == level[:, None], axis=1)
    state = _rows(own[:, place - 1] > level if place else np.ones(len(own), bool))
    buffer = system.pools[pool].buffer
    blocked = np.full(len(state), False) if buffer is None else level[state] >= buffer
    return state, alike[state], blocked


def shrinkages(system: System, states: Lattice, server: int) -> tuple[np.ndarray, np.ndarray]:
    """List the states in which this server is the last of its pool with as many jobs, and busy.

    A queue that shrinks was the last of its equals.

    Returns
    -------
    state, alike : numpy.ndarray of int, shape (row,)
        The states, and how many servers of the pool have as many jobs.
    """
    state = _rows(states.less[server] >= 0)
    own, place, _ = _pool(system, states.jobs[state], server)
    return state, np.count_nonzero(own == own[:, place, None], axis=1)


def _pool(system: System, jobs: np.ndarray, server: int) -> tuple[np.ndarray, int, int]:
    """Return the queues of a server's pool, its place among them, and the pool."""
    first = np.cumsum([0, *system.counts])
    pool = int(np.searchsorted(first, server, side="right")) - 1
    return jobs[:, first[pool] : first[pool + 1]], server - int(first[pool]), pool


def assembled(
    states: States,
    arrivals: Sequence[Arrivals],
    departures: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]],
) -> Chain:
    """Make a chain from arrivals, and from departures: state, rate and the state they lead to."""
    names = [field.name for field in fields(Arrivals)]
    table = Arrivals(*(np.concatenate([getattr(a, name) for a in arrivals]) for name in names))
    kept = (table.target >= 0) & (table.rate > 0)
    source, rate, target = (np.concatenate(column) for column in zip(*departures, strict=True))
    shape = (len(states.total), len(states.total))
    return Chain(
        states,
        table,
        scipy.sparse.csr_array(
            (table.rate[kept], (table.target[kept], table.state[kept])), shape=shape
        ),
        scipy.sparse.csr_array((rate, (target, source)), shape=shape),
    )


def _rows(chosen: np.ndarray) -> np.ndarray:
    return np.flatnonzero(chosen).astype(np.int32)
