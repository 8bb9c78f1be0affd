r"""Solving the balance equations of a chain in which every step adds or takes one job.

States with an even number of jobs lead only to states with an odd number, and back. In the
equations ``x[y] out[y] = sum_x x[x] rate[x, y]`` the even states can therefore be renewed all at
once from the odd ones, and the odd ones from the even ones (red-black Gauss-Seidel). After each
such sweep the numbers of jobs are given the weights of the birth-and-death process that they
form at the present mix of states with equally many jobs (aggregation): at high load this total
is what relaxes slowly. Sweeps are over-relaxed, with the factor

.. math:: \omega = \frac{2}{1 + \sqrt{1 - \mu^2}}, \qquad
          (\gamma + \omega - 1)^2 = \gamma \omega^2 \mu^2,

from the rate of convergence :math:`\gamma` seen so far (D. M. Young, Iterative Solution of Large
Linear Systems, 1971, section 5.2). Nothing is subtracted but in the over-relaxation, so that
small probabilities are as accurate as large ones.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import scipy

from manyserver.exact.chain import Chain

__all__ = ["Balance"]

TINY = 1e-280
"""Keeps states that are hardly ever visited from underflowing."""
MOST_SWEEPS = 20_000
PERIOD = 20
"""Sweeps between two looks at the residual."""
LARGEST_FACTOR = 1.98
LEAST_PART = 0.05
"""Over-relaxation leaves at least this part of the plain step, so that nothing turns negative."""


class Balance:
    """The balance equations of a chain.

    Parameters
    ----------
    chain : Chain
    """

    def __init__(self, chain: Chain):
        total = chain.states.total
        # Totals do not fall from state to state, so that equal ones lie together.
        self.starts = np.searchsorted(total, np.arange(total[-1] + 1))
        self.sizes = np.diff(self.starts, append=len(total))
        self.up = np.asarray(chain.up.sum(axis=0))
        self.down = np.asarray(chain.down.sum(axis=0))
        self.out = self.up + self.down
        inflow = scipy.sparse.diags_array(1 / self.out) @ (chain.up + chain.down)
        self.parts = [np.flatnonzero(total % 2 == parity) for parity in (0, 1)]
        even, odd = self.parts
        self.steps = [
            scipy.sparse.csr_array(inflow[even][:, odd]),
            scipy.sparse.csr_array(inflow[odd][:, even]),
        ]
        self.start = self._first_sweep(scipy.sparse.csr_array(inflow))

    def solve(self, tolerance: float) -> tuple[np.ndarray, float]:
        """Find the stationary law.

        Parameters
        ----------
        tolerance : float
            Residual to reach.

        Returns
        -------
        probabilities : numpy.ndarray, shape (state,)
        residual : float
            Sum of all imbalances, in- against outflow of a state, over the sum of all flows.

        Raises
        ------
        RuntimeError
            If the tolerance is not reached.
        """
        x, residual = self.start, math.inf
        factor, ceiling = 1.0, LARGEST_FACTOR
        for _ in range(MOST_SWEEPS // PERIOD):
            for _ in range(PERIOD):
                x = self._sweep(x, factor)
            before, residual = residual, self.residual(x)
            if residual < tolerance:
                return x, residual
            rate = (residual / before) ** (1 / PERIOD)
            if rate >= 1:
                # Some chains circulate, and the formula asks for too much: never again so far.
                ceiling = 1 + 0.7 * (factor - 1)
            factor = min(_best_factor(factor, rate), ceiling)
        raise RuntimeError(
            f"the balance equations of {len(x)} states were solved to a residual of "
            f"{residual:.2g} only; must be below {tolerance:g}"
        )

    def residual(self, x: np.ndarray) -> float:
        """Sum of the imbalances of all states over the sum of all flows."""
        even, odd = self.parts
        imbalance = 0.0
        for own, other, step in zip((even, odd), (odd, even), self.steps, strict=True):
            imbalance += float(np.abs(step @ x[other] - x[own]) @ self.out[own])
        return imbalance / float(self.out @ x)

    def _sweep(self, x: np.ndarray, factor: float) -> np.ndarray:
        x = x.copy()
        even, odd = self.parts
        for own, other, step in ((odd, even, self.steps[1]), (even, odd, self.steps[0])):
            plain = step @ x[other]
            x[own] = np.maximum(factor * plain + (1 - factor) * x[own], LEAST_PART * plain)
        return self._aggregate(x)

    def _aggregate(self, x: np.ndarray) -> np.ndarray:
        """Balance the flows between n and n + 1 jobs in the system, for all n."""
        x = np.maximum(x, TINY)
        mass, up, down = (
            np.add.reduceat(flow, self.starts) for flow in (x, self.up * x, self.down * x)
        )
        log_mass = np.log(mass)
        # An arrival that is lost has no rate upwards: with no other, nobody has more jobs.
        rise = np.log(np.maximum(up, TINY)) - log_mass
        fall = np.log(np.maximum(down, TINY)) - log_mass
        log_weight = np.concatenate([[0.0], np.cumsum(rise[:-1] - fall[1:])])
        log_weight -= np.logaddexp.reduce(log_weight)
        return np.asarray(x * np.repeat(np.exp(log_weight - log_mass), self.sizes))

    def _first_sweep(self, inflow: scipy.sparse.csr_array) -> np.ndarray:
        """Fill the states from those without jobs, by arrivals only."""
        x = np.zeros(len(self.out))
        x[: self.sizes[0]] = 1.0
        for first, end in itertools.pairwise([*self.starts[1:], len(x)]):
            x[first:end] = np.maximum(inflow[first:end] @ x, TINY)
        return self._aggregate(x)


def _best_factor(factor: float, rate: float) -> float:
    """Choose the over-relaxation for the rate at which the residual fell under `factor`."""
    if rate <= 1.05 * (factor - 1) or rate >= 1:
        # Faster than the best factor would allow: this factor is large enough, if not too large.
        return factor
    squared = (rate + factor - 1) ** 2 / (rate * factor**2) if rate > 0 else 0.0
    return max(factor, 2 / (1 + math.sqrt(max(1 - squared, 0.0))))
