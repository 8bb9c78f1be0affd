"""The Markov chain of a finite system: all transitions between its states, with their rates."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from manyserver.exact.choice import Choice
from manyserver.exact.states import Caps, States, enumerate_states
from manyserver.model import System
from manyserver.policies import Policy

__all__ = ["Arrivals", "Chain", "build_chain"]


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
    up: sparse.csr_array
    down: sparse.csr_array


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
    first = np.cumsum([0, *system.counts])
    choice = Choice(system, policy, states.jobs)
    arrivals, departures = [], []
    for server, pool in enumerate(choice.pool_of):
        own = states.jobs[:, first[pool] : first[pool + 1]]
        place = server - first[pool]
        level = own[:, place]
        alike = np.count_nonzero(own == level[:, None], axis=1)
        # A queue that grows becomes the first of its equals; one that shrinks was the last.
        grows = _rows(own[:, place - 1] > level if place else np.ones(len(own), bool))
        rate = system.arrival_rate * first[-1] * alike[grows] * choice.probabilities(server, grows)
        buffer = system.pools[pool].buffer
        blocked = np.full(len(grows), False) if buffer is None else level[grows] >= buffer
        arrivals.append(
            (
                grows,
                np.full(len(grows), server, dtype=np.int16),
                rate,
                states.more[server, grows],
                blocked,
            )
        )
        shrinks = _rows(states.less[server] >= 0)
        rate = float(system.speeds[pool]) * alike[shrinks]
        departures.append((shrinks, rate, states.less[server, shrinks]))
    table = Arrivals(*(np.concatenate(column) for column in zip(*arrivals, strict=True)))
    kept = (table.target >= 0) & (table.rate > 0)
    source, rate, target = (np.concatenate(column) for column in zip(*departures, strict=True))
    shape = (len(states.total), len(states.total))
    return Chain(
        states,
        table,
        sparse.csr_array((table.rate[kept], (table.target[kept], table.state[kept])), shape=shape),
        sparse.csr_array((rate, (target, source)), shape=shape),
    )


def _rows(chosen: np.ndarray) -> np.ndarray:
    return np.flatnonzero(chosen).astype(np.int32)
