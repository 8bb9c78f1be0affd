r"""Policies that split a system into pools which do not see each other.

If every arrival looks at servers of one pool only, or at one server only, then pool ``j`` is a
system of equal servers under SQ(d) with load ``rho_j``, and in the limit of many servers its
queue tail is ``rho_j**((d**k - 1) / (d - 1))``, or ``rho_j**k`` for ``d = 1``. With buffers of
``B`` jobs the flows across every level balance as

.. math:: u_{k+1} = \rho (u_k^d - u_B^d), \qquad u_0 = 1,

which is solved from the top, so that nothing is subtracted. For ``d = 1`` servers are M/M/1/B
queues.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from manyserver.model import System
from manyserver.policies import Policy
from manyserver.policies.split import tail_exponent

__all__ = ["IndependentPool", "independent_pools"]

UNFELT = -100.0
"""With a tail of this logarithm at the buffer, nobody is blocked in double precision."""


@dataclass(frozen=True)
class IndependentPool:
    """A pool of equal servers that gets its own stream of arrivals.

    Parameters
    ----------
    arrival_rate : float
        Per server of this pool.
    speed : float
    d : int
        Number of its servers that an arrival looks at.
    buffer : int or None
        Most jobs at a server.
    """

    arrival_rate: float
    speed: float
    d: int
    buffer: int | None = None

    @property
    def load(self) -> float:
        """Arrival rate over speed."""
        return self.arrival_rate / self.speed

    def log_tail(self, levels: np.ndarray) -> np.ndarray:
        """Natural logarithm of the queue tail, shape (level,)."""
        if self.buffer is None:
            return self._unbounded(levels)
        inside = levels <= self.buffer
        result = np.full(levels.shape, -np.inf)
        result[inside] = self._bounded[levels[inside]]
        return result

    def _unbounded(self, levels: np.ndarray) -> np.ndarray:
        exponents = tail_exponent(self.d, levels)
        if self.load == 0:
            return np.where(exponents > 0, -np.inf, 0.0)
        return np.asarray(exponents * math.log(self.load))

    @cached_property
    def _bounded(self) -> np.ndarray:
        """Logarithm of the queue tail up to the buffer."""
        assert self.buffer is not None
        unbounded = self._unbounded(np.arange(self.buffer + 1))
        if self.load == 0 or (self.d > 1 and unbounded[-1] < UNFELT):
            return unbounded
        if self.d == 1:
            tails = self._from_top(0.0)
            return np.asarray(tails - tails[0])

        lowest = -1.0
        while self._from_top(lowest)[0] > 0:
            lowest *= 2
        top = scipy.optimize.brentq(
            lambda value: self._from_top(value)[0], lowest, 0.0, xtol=1e-300, rtol=1e-15
        )
        tails = self._from_top(float(top))
        tails[0] = 0.0
        return tails

    def _from_top(self, log_top: float) -> np.ndarray:
        """Logarithm of the tails with the given one at the buffer, whatever that of level 0."""
        assert self.buffer is not None
        tails = np.empty(self.buffer + 1)
        tails[-1] = log_top
        blocked, log_load = self.d * log_top, math.log(self.load)
        for level in range(self.buffer, 0, -1):
            tails[level - 1] = np.logaddexp(tails[level] - log_load, blocked) / self.d
        return tails

    @property
    def blocking(self) -> float:
        """Probability that all servers looked at are full."""
        return 0.0 if self.buffer is None else math.exp(self.d * self._bounded[-1])

    @property
    def waiting(self) -> float:
        """Probability that an arrival joins a busy server."""
        busy = math.exp(self.d * float(self.log_tail(np.array([1]))[0]))
        return busy - self.blocking

    @property
    def gap(self) -> float:
        """Spectral gap of a server, for ``d = 1``."""
        turn = 1.0 if self.buffer is None else math.cos(math.pi / (self.buffer + 1))
        total = self.arrival_rate + self.speed
        return total - 2 * turn * math.sqrt(self.arrival_rate * self.speed)

    def joining_rate(self, levels: np.ndarray) -> np.ndarray:
        """Rate of arrivals to one server with k jobs, shape (level,)."""
        tail = np.exp(self.log_tail(np.append(levels, len(levels))))
        powers = [tail[:-1] ** i * tail[1:] ** (self.d - 1 - i) for i in range(self.d)]
        rates = np.asarray(self.arrival_rate * sum(powers))
        return rates if self.buffer is None else np.where(levels < self.buffer, rates, 0.0)

    def queue_mean(self) -> float:
        """Mean number of jobs at a server."""
        if self.buffer is not None:
            return float(np.exp(self._bounded[1:]).sum())
        if self.d == 1:
            return self.load / (1 - self.load)
        total, k = 0.0, 1
        while True:
            term = float(np.exp(self.log_tail(np.array([k])))[0])
            total += term
            if term <= 1e-18 * total or term == 0:
                return total
            k += 1

    def queue_variance(self) -> float:
        """Variance of the number of jobs at a server, for ``d = 1``."""
        if self.buffer is None:
            return self.load / (1 - self.load) ** 2
        tails = np.exp(self._bounded[1:])
        odd = 2 * np.arange(self.buffer) + 1
        return float(odd @ tails - tails.sum() ** 2)

    def level_reaching(self, log_tail: float) -> int:
        """First level whose tail is below ``exp(log_tail)``, or the buffer if that is lower."""
        if self.load == 0:
            return 1
        if self.buffer is not None:
            below = np.flatnonzero(self._bounded < log_tail)
            return int(below[0]) if len(below) else self.buffer
        exponent = log_tail / math.log(self.load)
        if self.d == 1:
            return math.ceil(exponent) + 1
        return math.ceil(math.log1p(exponent * (self.d - 1)) / math.log(self.d)) + 1


def independent_pools(system: System, policy: Policy) -> list[IndependentPool] | None:
    """Return the pools as systems of their own, or None if the policy ties them together."""
    found: dict[int, IndependentPool] = {}
    sampling = policy.sampling(system)
    if sampling.depends_on_all:
        return None
    for branch in sampling.branches:
        if len(branch.draws) != 1:
            return None
        draw = branch.draws[0]
        if (len(draw.pools) > 1 and draw.count > 1) or found.keys() & set(draw.pools):
            return None
        share = system.fractions[list(draw.pools)].sum()
        rate = float(system.arrival_rate * branch.probability / share)
        for pool in draw.pools:
            buffer = system.pools[pool].buffer
            found[pool] = IndependentPool(rate, float(system.speeds[pool]), draw.count, buffer)
    return [
        found.get(pool, IndependentPool(0.0, float(speed), 1))
        for pool, speed in enumerate(system.speeds)
    ]
