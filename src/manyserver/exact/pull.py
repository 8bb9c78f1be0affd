r"""The Markov chain of PULL with several routers (arXiv:1512.07873).

A state holds the queues of every pool, as for policies without memory, and the split of the idle
servers over the routers. With Y idle servers of a pool known to router r, I of all pools, m of R
routers empty and N servers, these Y get arrivals at rate

.. math:: N \lambda \frac{Y}{R} \left(\frac{1}{I} + \frac{m}{N}\right)

from their own router and, at random, from the empty ones; a busy server gets :math:`\lambda m / R`.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from manyserver.exact.chain import Arrivals, Chain, assembled, growths, shrinkages
from manyserver.exact.routers import Splits
from manyserver.exact.states import Caps, States, enumerate_states
from manyserver.model import System

if TYPE_CHECKING:
    from manyserver.exact.stationary import StationaryLaw

__all__ = ["RoutedStates", "build_routed_chain", "router_measures"]


@dataclass(frozen=True)
class RoutedStates(States):
    """States with the routers that have the messages of the idle servers.

    Parameters
    ----------
    messages : numpy.ndarray of int16, shape (state, pool, router)
        Idle servers of the pool that the router knows of; routers in falling order.
    """

    messages: np.ndarray


class _Routed:
    """The states: each is a state of the queues, with a split of its idle servers."""

    def __init__(self, system: System, routers: int, caps: Caps):
        self.queues = enumerate_states(caps)
        bounds = itertools.pairwise(itertools.accumulate(system.counts, initial=0))
        idle = tuple((self.queues.jobs[:, i:j] == 0).sum(axis=1) for i, j in bounds)
        self.splits = Splits([int(own.max()) for own in idle], routers)
        self.sizes = self.splits.sizes[idle]
        # The place of a state is the shift of its queues, plus its split.
        self.first = np.cumsum(self.sizes) - self.sizes
        self.shift = self.first - self.splits.first[idle]

    def states(self) -> RoutedStates:
        """List the states."""
        row, split = self.all_splits(np.arange(len(self.sizes)))
        queues = self.queues
        return RoutedStates(queues.jobs[row], queues.total[row], self.splits.messages[split])

    def all_splits(self, queue: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Repeat rows for each split of their idle servers; return the row and the split."""
        sizes = self.sizes[queue]
        row = np.repeat(np.arange(len(queue)), sizes)
        within = np.arange(len(row)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return row, (self.first - self.shift)[queue[row]] + within

    def place(self, queue: np.ndarray, split: np.ndarray) -> np.ndarray:
        """Find states; -1 where there are no such queues."""
        return np.where(queue < 0, -1, self.shift[queue] + split)


def build_routed_chain(system: System, routers: int, caps: Caps) -> Chain:
    """List the states of PULL and all transitions between them.

    Parameters
    ----------
    system : System
        Finite.
    routers : int
    caps : tuple of tuple of int, shape (pool, server of the pool)
        Most jobs in the i-th longest queue; arrivals that would exceed it are lost.
    """
    routed = _Routed(system, routers, caps)
    arrivals, departures = [], []
    pool_of = np.repeat(np.arange(len(system.pools)), system.counts)
    for server, pool in enumerate(pool_of.tolist()):
        queue, alike, blocked = growths(system, routed.queues.jobs, server)
        idle = routed.queues.jobs[queue, server] == 0
        arrivals += _to_idle(routed, system, server, pool, queue[idle])
        busy = ~idle
        arrivals.append(_to_busy(routed, system, server, queue[busy], alike[busy], blocked[busy]))
        queue, alike = shrinkages(system, routed.queues, server)
        rate = float(system.speeds[pool]) * alike
        departures += _departures(routed, server, pool, queue, rate)
    return assembled(routed.states(), arrivals, departures)


def _to_busy(
    routed: _Routed,
    system: System,
    server: int,
    queue: np.ndarray,
    alike: np.ndarray,
    blocked: np.ndarray,
) -> Arrivals:
    """List the arrivals at empty routers that join a busy server, or are lost there."""
    row, split = routed.all_splits(queue)
    rate = system.arrival_rate * routed.splits.empty[split] / routed.splits.routers * alike[row]
    target = routed.place(routed.queues.more[server, queue[row]], split)
    return Arrivals.to(server, routed.place(queue[row], split), rate, target, blocked[row])


def _to_idle(
    routed: _Routed, system: System, server: int, pool: int, queue: np.ndarray
) -> list[Arrivals]:
    """List the arrivals that join an idle server, by the router that has its message."""
    splits = routed.splits
    row, split = routed.all_splits(queue)
    found = []
    for router in range(splits.routers):
        there = splits.taken[split, pool, router] >= 0
        before, own = queue[row[there]], split[there]
        share = 1 / splits.messages[own, :, router].sum(axis=1) + splits.empty[own] / sum(
            system.counts
        )
        messages = splits.alike[own, router] * splits.messages[own, pool, router]
        rate = system.arrival_rate * system.finite_servers / splits.routers * messages * share
        target = routed.place(routed.queues.more[server, before], splits.taken[own, pool, router])
        kept = np.full(len(own), False)
        found.append(Arrivals.to(server, routed.place(before, own), rate, target, kept))
    return found


def _departures(
    routed: _Routed, server: int, pool: int, queue: np.ndarray, rate: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """List the departures; a server that becomes idle sends a message to any router."""
    splits = routed.splits
    after = routed.queues.less[server, queue]
    idle = routed.queues.jobs[queue, server] == 1
    row, split = routed.all_splits(queue[~idle])
    before, target = queue[~idle][row], after[~idle][row]
    found = [(routed.place(before, split), rate[~idle][row], routed.place(target, split))]
    row, split = routed.all_splits(queue[idle])
    before, target, flow = queue[idle][row], after[idle][row], rate[idle][row]
    for router in range(splits.routers):
        added = splits.added[split, pool, router]
        there = added >= 0
        own = split[there]
        found.append(
            (
                routed.place(before[there], own),
                flow[there] * splits.alike[own, router] / splits.routers,
                routed.place(target[there], added[there]),
            )
        )
    return found


def router_measures(law: StationaryLaw, states: RoutedStates) -> dict[str, float]:
    """Compute how the idle servers are split over the routers, and how often one knows of none.

    Returns
    -------
    dict
        ``empty_router_probability`` and ``idle_concentration``.
    """
    known = states.messages.sum(axis=1, dtype=np.int64)
    idle = known.sum(axis=1)
    return {
        "empty_router_probability": float(law.probabilities @ (known == 0).mean(axis=1)),
        "idle_concentration": float(
            (law.probabilities @ (known**2).sum(axis=1)) / (law.probabilities @ idle**2)
        ),
    }
