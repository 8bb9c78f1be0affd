r"""The limit of PULL with R routers (arXiv:1512.07873).

With :math:`y_{jr}` the idle servers of pool j whose message is at router r, over all servers,
:math:`y_r` their sum over the pools, and :math:`a_j = \gamma_j C_j (u^{(j)}_1 - u^{(j)}_2) / R`
the messages that each router gets,

.. math::

    y_{jr}' &= a_j - \frac{\lambda}{R} \frac{y_{jr}}{y_r} - e y_{jr}, \\
    u^{(j)\prime}_k &= e (u^{(j)}_{k-1} - u^{(j)}_k) - C_j (u^{(j)}_k - u^{(j)}_{k+1}),
    \quad k \ge 2.

A router without messages, :math:`y_r = 0`, gives every new one to an arrival at once. While fewer
come than arrivals, :math:`v = \sum_j a_j < \lambda / R`, it stays so, and sends the others to
random servers: all m such routers together :math:`e = m (\lambda / R - v)`. As v is the same for
all of them, they fill again at the same time.

Between two such events the equations are smooth. Where no router is empty, :math:`y_r - y_s` does
not change: whatever the split of the idle servers over the routers, there is a fixed point with it.
"""

import numpy as np

from manyserver.model import System
from manyserver.outputs import occupancy
from manyserver.policies import full

__all__ = ["OVERSHOOT", "RoutedFlow"]

OVERSHOOT = 1e-12
"""How far beyond zero a root is looked for, so that rounding does not look like one."""
FEW = 1e-10
"""A router with fewer servers than this has them mixed as they come: what is taken from a handful
does not depend on who they were."""
TINY = np.finfo(float).tiny


class RoutedFlow:
    """The drift while the same routers are empty; the state is messages and tails from level 2."""

    def __init__(self, system: System, routers: int, levels: int):
        self.system, self.routers = system, routers
        self.shape = (len(system.pools), levels)
        self.own = system.arrival_rate / routers
        self.fractions, self.speeds = system.fractions[:, None], system.speeds[:, None]
        self.room = ~full(system, levels)
        self.empty = np.zeros(routers, dtype=bool)

    def state(self, tails: np.ndarray, messages: np.ndarray) -> np.ndarray:
        """Put the tails, cut or filled to the levels kept here, after the messages."""
        kept = min(tails.shape[1], self.shape[1])
        filled = np.zeros(self.shape)
        filled[:, :kept] = tails[:, :kept]
        return np.concatenate([messages.ravel(), filled[:, 2:].ravel()])

    def parts(self, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the messages (pool, router) and the tails (pool, level)."""
        n_pools, levels = self.shape
        messages = state[: n_pools * self.routers].reshape(n_pools, self.routers)
        tails = np.ones(self.shape)
        tails[:, 1] = 1 - messages.sum(axis=1) / self.system.fractions
        tails[:, 2:] = state[n_pools * self.routers :].reshape(n_pools, levels - 2)
        return messages, tails

    def arriving(self, tails: np.ndarray) -> np.ndarray:
        """Messages to one router per unit of time, shape (pool,)."""
        rates = self.fractions[:, 0] * self.speeds[:, 0] * (tails[:, 1] - tails[:, 2])
        return np.asarray(rates / self.routers)

    def excess(self, tails: np.ndarray) -> float:
        """Messages to a router that are more than its arrivals."""
        return float(self.arriving(tails).sum() - self.own)

    def flows(self, state: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Return messages used by their own routers, those taken back, and the random arrivals.

        Returns
        -------
        used, taken_back : numpy.ndarray, shape (pool, router)
            Per unit of time.
        random : float
            Arrivals at empty routers, per server.
        """
        messages, tails = self.parts(state)
        arriving = self.arriving(tails)
        new = arriving / max(arriving.sum(), TINY)
        mixed = (messages + FEW * new[:, None]) / (messages.sum(axis=0) + FEW)
        random = -float(self.empty.sum()) * self.excess(tails)
        used = np.where(self.empty, arriving[:, None], self.own * mixed)
        return used, np.where(self.empty, 0.0, random * messages), random

    def __call__(self, _: float, state: np.ndarray) -> np.ndarray:
        """Rate of change of the state."""
        tails = self.parts(state)[1]
        used, taken_back, random = self.flows(state)
        change = self.arriving(tails)[:, None] - used - taken_back
        held = occupancy(tails)
        served = self.speeds * held[:, 2:]
        joining = random * np.where(self.room, held, 0.0)[:, 1:-1]
        return np.concatenate([change.ravel(), (joining - served).ravel()])

    def jacobian(self, _: float, state: np.ndarray) -> np.ndarray:
        """Differentiate the drift by the state, shape (element, element)."""
        n_pools, levels = self.shape
        messages, tails = self.parts(state)
        known, arriving = messages.sum(axis=0), self.arriving(tails)
        pool, router = np.divmod(np.arange(messages.size), self.routers)
        # Derivatives have one more axis at the end, the element of the state.
        first = np.zeros((n_pools, levels, len(state)))
        first[pool, 1, np.arange(messages.size)] = -1 / self.system.fractions[pool]
        own, level = np.divmod(np.arange(n_pools * (levels - 2)), levels - 2)
        first[own, level + 2, messages.size + np.arange(len(own))] = 1.0
        held = occupancy(tails)
        of_held = first - np.pad(first[:, 1:], ((0, 0), (0, 1), (0, 0)))
        rates = (self.system.fractions * self.system.speeds / self.routers)[:, None]
        of_arriving = rates * of_held[:, 1]
        total, of_total = arriving.sum(), of_arriving.sum(axis=0)
        random = -float(self.empty.sum()) * self.excess(tails)
        of_random = -float(self.empty.sum()) * of_total
        new = arriving / max(total, TINY)
        of_new = (of_arriving - np.outer(new, of_total)) / max(total, TINY)
        few = known + FEW
        mixed = (messages + FEW * new[:, None]) / few
        of_mixed = (FEW / few)[:, None] * of_new[:, None]
        here = np.arange(messages.size)
        of_mixed[pool, router, here] += 1 / few[router]
        for other in range(n_pools):
            of_mixed[other, router, here] -= mixed[other, router] / few[router]
        change = of_arriving[:, None] - self.own * of_mixed - messages[..., None] * of_random
        change[pool, router, here] -= random
        change[:, self.empty] = 0.0
        room = self.room[:, 1:-1, None]
        tail = room * (random * of_held[:, 1:-1] + held[:, 1:-1, None] * of_random)
        tail -= self.speeds[..., None] * of_held[:, 2:]
        return np.concatenate([change.reshape(-1, len(state)), tail.reshape(-1, len(state))])

    def joins(self, state: np.ndarray) -> np.ndarray:
        """Part of the arrivals that join each class, shape (pool, level)."""
        _, tails = self.parts(state)
        used, taken_back, random = self.flows(state)
        joins = random * self.fractions * np.where(self.room, occupancy(tails), 0.0)
        joins[:, 0] = (used + taken_back).sum(axis=1)
        return np.asarray(joins / self.system.arrival_rate)

    def settle(self, state: np.ndarray) -> np.ndarray:
        """Find out which routers are empty and stay so, and take their last messages out."""
        messages, tails = self.parts(state)
        gone = messages.sum(axis=0) <= 2 * OVERSHOOT
        self.empty = gone & (self.excess(tails) < 0)
        return self.state(tails, np.where(gone, 0.0, messages))
