r"""The mean-field drift: the flows between levels in the limit of many servers.

.. math::

    \frac{d u^{(j)}_{k+1}}{dt} = \frac{\lambda}{\gamma_j} p^{(j)}_k(u)
        - C_j (u^{(j)}_{k+1} - u^{(j)}_{k+2}),

eq. (4.2)-(4.9) of arXiv:1502.05786, with p the joining law. No arrival joins a full server. The
top level is cut off: arrivals that would go beyond it are lost, which is harmless only while
hardly any server is there.
"""

from typing import Protocol

import numpy as np

from manyserver.joining import JoiningLaw
from manyserver.joining.branch import occupancy
from manyserver.model import System
from manyserver.policies import Policy

__all__ = ["Drift", "Flows", "Law", "most_levels"]


class Law(Protocol):
    """Where an arrival goes, as a function of the queue tails, with its derivatives.

    Attributes
    ----------
    ranks : numpy.ndarray of int, shape (pool, level)
        The order of preference, from 0.
    """

    ranks: np.ndarray

    def probabilities(self, tails: np.ndarray) -> np.ndarray:
        """Probability that an arrival joins each class, shape (pool, level)."""

    def jacobian(self, tails: np.ndarray) -> np.ndarray:
        """Differentiate the probabilities by the tails, shape (pool, level, pool, level)."""


def most_levels(system: System) -> int | None:
    """Return how many levels there are, 0 included; None if a buffer is unbounded."""
    buffers = [pool.buffer for pool in system.pools]
    return None if None in buffers else 1 + max(buffer for buffer in buffers if buffer is not None)


class Flows:
    """The drift and its Jacobian, as functions of the tails of levels 1 to ``levels - 1``.

    Parameters
    ----------
    system : System
    law : Law
        The joining law, of that many levels.
    levels : int
        Number of levels, 0 included.
    held : numpy.ndarray of bool, shape (pool, level), optional
        Tails that are one and stay so.
    """

    def __init__(self, system: System, law: Law, levels: int, held: np.ndarray | None = None):
        self.law = law
        self.shape = (len(system.pools), levels)
        self.arrivals = (system.arrival_rate / system.fractions)[:, None]
        self.speeds = system.speeds[:, None]
        self.weights = (system.fractions / system.arrival_rate)[:, None]
        self.held = np.zeros(self.shape, dtype=bool) if held is None else held

    def tails(self, state: np.ndarray) -> np.ndarray:
        """Put the level 0, where every tail is one, before a state of levels 1 and up."""
        inner = state.reshape(self.shape[0], self.shape[1] - 1)
        tails = np.concatenate([np.ones((self.shape[0], 1)), inner], axis=1)
        tails[self.held] = 1.0
        return tails

    def state(self, tails: np.ndarray) -> np.ndarray:
        """Cut or fill tails to the levels kept here, without level 0, in one dimension."""
        state = np.zeros((self.shape[0], self.shape[1] - 1))
        kept = min(tails.shape[1], self.shape[1]) - 1
        state[:, :kept] = tails[:, 1 : 1 + kept]
        return state.ravel()

    def __call__(self, state: np.ndarray) -> np.ndarray:
        """Rate of change of the state; tails that are held return to one."""
        tails = self.tails(state)
        departures = self.speeds * occupancy(tails)
        joins = self.arrivals * self.law.probabilities(tails)
        change = joins[:, :-1] - departures[:, 1:]
        astray = 1.0 - state.reshape(change.shape)
        return np.where(self.held[:, 1:], self.speeds * astray, change).ravel()

    def jacobian(self, state: np.ndarray) -> np.ndarray:
        """Differentiate the drift by the state."""
        n_pools, levels = self.shape
        slopes = self.law.jacobian(self.tails(state))[:, :-1, :, 1:]
        matrix = (self.arrivals[:, :, None, None] * slopes).reshape((n_pools * (levels - 1),) * 2)
        out = np.repeat(self.speeds[:, 0], levels - 1)
        diagonal = np.arange(len(out))
        matrix[diagonal, diagonal] -= out
        inner = diagonal[diagonal % (levels - 1) < levels - 2]
        matrix[inner, inner + 1] += out[inner]
        held = self.held[:, 1:].ravel()
        matrix[held] = 0.0
        matrix[:, held] = 0.0
        matrix[held, held] = -out[held]
        return np.asarray(matrix)

    def imbalance(self, state: np.ndarray) -> float:
        """Largest difference of the flows up and down across a level, over the arrival rate."""
        tails = self.tails(state)
        joins = self.law.probabilities(tails)[:, -2::-1]
        up = np.cumsum(joins, axis=1)[:, ::-1]
        down = self.weights * self.speeds * tails[:, 1:]
        return float(np.abs(up - down).max())


class Drift(Flows):
    """The drift of a policy to which no server announces itself.

    Parameters
    ----------
    system : System
    policy : Policy
    levels : int
        Number of levels, 0 included.
    """

    law: JoiningLaw

    def __init__(self, system: System, policy: Policy, levels: int):
        super().__init__(system, JoiningLaw(system, policy, levels), levels)
