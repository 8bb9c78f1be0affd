r"""Where arrivals go while the announced servers before some rank are gone.

Let rank ``r`` be the best one that is left, with the fraction ``M`` of all servers, and ``m_j``
the number of levels of pool ``j`` that come before it: all servers of the pool hold at least
``m_j`` jobs. Those that hold exactly so many fall back to an announced level at the rate

.. math:: f_j = \gamma_j C_j (1 - u^{(j)}_{m_j + 1}), \qquad m_j \ge 1,

and an arrival takes each of them at once. What remains of the arrivals,
:math:`a = \lambda - \sum_j f_j`, goes to the servers of rank ``r``, each alike, or, if no
announced server is left, where the draws send it. This holds as long as ``a`` is not negative
and ``M`` is positive.
"""

import numpy as np

from manyserver.joining import JoiningLaw
from manyserver.joining.branch import occupancy
from manyserver.mean_field.announced.order import Drawn, Order
from manyserver.mean_field.drift import Flows

__all__ = ["Sliding", "SlidingLaw"]

NONE = 1e-14
"""A fraction of servers that is rounding."""
BLUR = 1e-8
"""Fraction of servers below which those left of a rank are mixed as they appear: what is taken
from a handful does not depend on who they were."""


class SlidingLaw:
    """The joining law while all announced servers before a rank are gone.

    Parameters
    ----------
    order : Order
    rank : int
        From 0; ``order.n_ranks`` if no announced server is left.

    Attributes
    ----------
    held : numpy.ndarray of bool, shape (pool, level)
        The tails that are one.
    """

    def __init__(self, order: Order, rank: int):
        self.order = order
        self.rank = rank
        self.ranks = order.ranks
        system = order.system
        self.flow = system.fractions * system.speeds / system.arrival_rate
        levels = np.arange(order.levels)
        self.filled = order.before[:, rank]
        self.held = levels <= self.filled[:, None]
        # Servers of this class are the ones that fall back, and this is where they fall to.
        self.lowest = (levels == self.filled[:, None]) & (levels > 0)
        self.taken = np.roll(self.lowest, -1, axis=1)
        self.classes = order.ranks == rank if rank < order.n_ranks else np.zeros_like(self.held)
        self.weights = self.classes * system.fractions[:, None]
        after = order.before[:, min(rank + 1, order.n_ranks)]
        self.best_of_next = self.classes & (levels == after[:, None] - 1)
        self.next_lowest = np.roll(self.best_of_next, 1, axis=1)
        self.next_lowest[:, 0] = False
        self.drawn = None
        if rank == order.n_ranks and order.policy.sampling(system).branches:
            self.drawn = JoiningLaw(system, Drawn(order.policy), order.levels)

    def returns(self, tails: np.ndarray) -> np.ndarray:
        """Part of the arrivals that take a server which has just fallen back, by pool, (pool,)."""
        return self._returns(occupancy(tails))

    def _returns(self, held: np.ndarray) -> np.ndarray:
        return np.asarray(self.flow * (held * self.lowest).sum(axis=1))

    def remainder(self, tails: np.ndarray) -> float:
        """Part of the arrivals that is left for this rank, or for the draws."""
        return float(1 - self.returns(tails).sum())

    def mass(self, tails: np.ndarray) -> float:
        """Fraction of all servers that is of this rank."""
        return float((self.weights * occupancy(tails)).sum())

    def _mix(self, held: np.ndarray) -> tuple[np.ndarray, float]:
        """How the servers of this rank are spread over its classes, and how many they are.

        As the last of them go, they are those that have just come from the next ranks.

        Parameters
        ----------
        held : numpy.ndarray, shape (pool, level)
            Fraction of the pool's servers with exactly k jobs.
        """
        left = np.maximum(self.weights * held, 0.0)
        newest = np.zeros_like(left)
        newest[:, :-1] = self.flow[:, None] * (held * self.next_lowest)[:, 1:]
        total = newest.sum()
        newest = newest / total if total > 0 else self.best_of_next / self.best_of_next.sum()
        mass = float(left.sum())
        blur = BLUR**2 / (mass + BLUR)
        return (left + blur * newest) / (mass + blur), mass + blur

    def probabilities(self, tails: np.ndarray) -> np.ndarray:
        """Part of the arrivals that join each class, shape (pool, level)."""
        held = occupancy(tails)
        returns = self._returns(held)
        joins = returns[:, None] * self.taken
        remainder = 1 - returns.sum()
        if self.drawn is not None:
            joins = joins + remainder * self.drawn.probabilities(tails)
        elif self.rank < self.order.n_ranks:
            joins = joins + remainder * self._mix(held)[0]
        return np.asarray(joins)

    def rates(self, tails: np.ndarray) -> np.ndarray:
        """Arrivals to one server of each class, over the arrival rate; infinite before the rank."""
        rates = np.where(self.order.ranks < self.rank, np.inf, 0.0)
        remainder = self.remainder(tails)
        if self.drawn is not None:
            return np.where(np.isinf(rates), np.inf, remainder * self.drawn.densities(tails))
        if self.rank < self.order.n_ranks:
            mass = self.mass(tails)
            rates[self.classes] = remainder / mass if mass > NONE else np.inf
        return rates

    def jacobian(self, tails: np.ndarray) -> np.ndarray:
        """Differentiate the probabilities by the tails, (pool, level, pool, level)."""
        n_pools, levels = tails.shape
        size = tails.size
        own = np.arange(size)
        # Derivatives of the occupancy of every class by the tails.
        spread = np.eye(size)
        inner = own[own % levels < levels - 1]
        spread[inner, inner + 1] = -1.0
        falls = np.repeat(self.flow, levels) * self.lowest.ravel()
        returns = falls[:, None] * spread
        joins = np.zeros((size, size))
        below = np.flatnonzero(self.lowest.ravel())
        joins[below - 1] = returns[below]
        remainder, slope = self.remainder(tails), -returns.sum(axis=0)
        if self.drawn is not None:
            joins += np.outer(self.drawn.probabilities(tails).ravel(), slope)
            joins += remainder * self.drawn.jacobian(tails).reshape(size, size)
        elif self.rank < self.order.n_ranks:
            mix, mass = self._mix(occupancy(tails))
            weights = self.weights.ravel()[:, None] * spread
            joins += np.outer(mix.ravel(), slope)
            joins += remainder / mass * (weights - np.outer(mix.ravel(), weights.sum(axis=0)))
        return joins.reshape(n_pools, levels, n_pools, levels)


class Sliding(Flows):
    """The drift while all announced servers before a rank are gone.

    Parameters
    ----------
    order : Order
    rank : int
    """

    law: SlidingLaw

    def __init__(self, order: Order, rank: int):
        law = SlidingLaw(order, rank)
        super().__init__(order.system, law, order.levels, law.held)
