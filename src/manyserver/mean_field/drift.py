r"""The mean-field drift: the flows between levels in the limit of many servers.

.. math::

    \frac{d u^{(j)}_{k+1}}{dt} = \frac{\lambda}{\gamma_j} p^{(j)}_k(u)
        - C_j (u^{(j)}_{k+1} - u^{(j)}_{k+2}),

eq. (4.2)-(4.9) of arXiv:1502.05786, with p the joining law. The top level is cut off: arrivals
that would go beyond it are lost, which is harmless only while hardly any server is there.
"""

import numpy as np

from manyserver.joining import JoiningLaw
from manyserver.model import System
from manyserver.policies import Policy

__all__ = ["Drift"]


class Drift:
    """The drift and its Jacobian, as functions of the tails of levels 1 to ``levels - 1``.

    Parameters
    ----------
    system : System
    policy : Policy
    levels : int
        Number of levels, 0 included.
    """

    def __init__(self, system: System, policy: Policy, levels: int):
        self.law = JoiningLaw(system, policy, levels)
        self.shape = (len(system.pools), levels)
        self.arrivals = (system.arrival_rate / system.fractions)[:, None]
        self.speeds = system.speeds[:, None]
        self.weights = (system.fractions / system.arrival_rate)[:, None]

    def tails(self, state: np.ndarray) -> np.ndarray:
        """Put the level 0, where every tail is one, before a state of levels 1 and up."""
        inner = state.reshape(self.shape[0], self.shape[1] - 1)
        return np.concatenate([np.ones((self.shape[0], 1)), inner], axis=1)

    def state(self, tails: np.ndarray) -> np.ndarray:
        """Cut or fill tails to the levels kept here, without level 0, in one dimension."""
        state = np.zeros((self.shape[0], self.shape[1] - 1))
        kept = min(tails.shape[1], self.shape[1]) - 1
        state[:, :kept] = tails[:, 1 : 1 + kept]
        return state.ravel()

    def __call__(self, state: np.ndarray) -> np.ndarray:
        """Rate of change of the state."""
        tails = self.tails(state)
        departures = -self.speeds * np.diff(tails, axis=1, append=0.0)
        joins = self.arrivals * self.law.probabilities(tails)
        return np.asarray(joins[:, :-1] - departures[:, 1:]).ravel()

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
        return np.asarray(matrix)

    def imbalance(self, state: np.ndarray) -> float:
        """Largest difference of the flows up and down across a level, over the arrival rate."""
        joins = self.law.probabilities(self.tails(state))[:, -2::-1]
        up = np.cumsum(joins, axis=1)[:, ::-1]
        down = self.weights * self.speeds * self.tails(state)[:, 1:]
        return float(np.abs(up - down).max())
