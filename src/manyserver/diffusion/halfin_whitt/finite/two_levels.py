r"""The queues with at most two customers per server, solved level by level of Q2.

State: i = n - Q1 idle servers and k = Q2. Q2 rises only from i = 0, so that the law on level k is
p_k = a p_{k-1}(0) r_k with a = n lambda, and balance on level k reads

    r_k(i) (a + n - i) = a r_k(i+1) + (n - i + 1 - k) r_k(i-1) + 1(i=0) + a r_k(0) g(i),

g = (k + 1) r_{k+1}: tridiagonal but for one column, solved from the top level down. Elimination
from the largest i leaves a pivot a + e_i, with e_i the rate at which level k is left downwards
before i falls by one (Grassmann, Taksar and Heyman's form):

    e_i = k + (n - i - k) e_{i+1} / (a + e_{i+1}),

and everything is a sum of positive terms, so that small probabilities are relatively accurate.
The same pivots with the decay gamma subtracted from every rate give the measures that fall like
exp(-gamma t), and with them the relaxation rate of the queues.

Vectors of a level are stored from the largest i to i = 0. Pivots are computed for many levels at
a time and the two sweeps along i are banded triangular solves, which leaves little to Python.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import blas

__all__ = ["LevelLaw", "Levels", "level_law", "secular_logarithm"]

NEGLIGIBLE = 40.0
"""Minus the logarithm of what is left out along i."""
TOP = 44.0
"""Levels go to TOP / -log(lambda), where the law of Q2 has fallen below 1e-16."""
BLOCK = 4_000_000
"""States whose pivots are held at a time."""


@dataclass(frozen=True)
class Levels:
    """Which states are kept.

    Parameters
    ----------
    n : int
        Servers.
    arrivals : float
        Arrival rate of the whole system, a.
    top : int
        Largest Q2.
    """

    n: int
    arrivals: float
    top: int

    @classmethod
    def choose(cls, n: int, beta: float) -> Levels:
        """Keep the states that matter in the stationary law."""
        arrivals = n - beta * math.sqrt(n)
        return cls(n, arrivals, min(n, math.ceil(TOP / -math.log(arrivals / n)) + 1))

    def width(self, level: int) -> int:
        """Return the number of i kept on a level.

        The law falls at least like that of the level alone, a walk with drift and Gaussian tails.
        """
        root = math.sqrt(self.n)
        drift = level / root + root * math.log(self.arrivals / self.n)
        reach = math.sqrt(max(drift, 0.0) ** 2 + 2 * NEGLIGIBLE) - drift
        return min(self.n - level, math.ceil(root * reach) + 8) + 1


@dataclass(frozen=True)
class _Level:
    """Coefficients of the sweeps on one level; vectors run from the largest i to 0."""

    number: int
    leave: np.ndarray
    pivot: np.ndarray
    down: np.ndarray
    up: np.ndarray


def _levels(states: Levels, decay: float) -> Iterator[_Level]:
    """Yield the levels from the top down."""
    high = states.top
    while high >= 0:
        count = max(1, min(BLOCK // states.width(max(high - 512, 0)), 512))
        low = max(high - count + 1, 0)
        yield from _block(states, decay, low, high)
        high = low - 1


def _block(states: Levels, decay: float, low: int, high: int) -> Iterator[_Level]:
    n, arrivals, width = states.n, states.arrivals, states.width(low)
    numbers = np.arange(low, high + 1, dtype=float)
    idle = np.arange(width - 1, -1, -1, dtype=float)
    busy = n - idle  # less k: the rate at which i rises
    leave = np.empty((width, len(numbers)))
    stay = numbers - decay
    leave[0] = stay
    ratio = np.empty(len(numbers))
    rise = np.empty(len(numbers))
    for p in range(1, width):
        before = leave[p - 1]
        np.add(before, arrivals, out=ratio)
        np.divide(before, ratio, out=ratio)
        np.subtract(busy[p], numbers, out=rise)
        np.maximum(rise, 0.0, out=rise)
        np.multiply(ratio, rise, out=ratio)
        np.add(ratio, stay, out=leave[p])
    by_level = np.ascontiguousarray(leave.T)
    pivots = by_level + arrivals
    down = np.empty((len(numbers), width, 2))
    np.divide(-arrivals, pivots, out=down[:, :, 1])
    up = np.empty((len(numbers), width, 2))
    np.divide(np.minimum(numbers[:, None] - busy[1:], 0.0), pivots[:, :-1], out=up[:, 1:, 0])
    for row in range(len(numbers) - 1, -1, -1):
        number = low + row
        kept = slice(width - states.width(number), None)
        yield _Level(
            number, by_level[row, kept], pivots[row, kept], down[row, kept].T, up[row, kept].T
        )


def _arrive(level: _Level, inflow: np.ndarray) -> np.ndarray:
    """Sweep towards i = 0: the flow that ever enters each i from above."""
    return np.asarray(blas.dtbsv(1, level.down, inflow, lower=1, diag=1, overwrite_x=1))


def _spread(level: _Level, source: np.ndarray) -> np.ndarray:
    """Sweep away from i = 0, whose value is the last of `source`."""
    return np.asarray(blas.dtbsv(1, level.up, source, lower=0, diag=1, overwrite_x=1))


@dataclass(frozen=True)
class LevelLaw:
    """Stationary law of the queues cut at Q3 = 0.

    Parameters
    ----------
    q1 : numpy.ndarray
        P(Q1 = n - len(q1) + 1 + index).
    q2 : numpy.ndarray
        P(Q2 = index).
    full : numpy.ndarray
        P(Q1 = n, Q2 = index).
    idle_q2_mean : float
        E (n - Q1) Q2.
    n_states : int
    joint : numpy.ndarray, shape (kept, kept)
        P(Q1 = n - i, Q2 = k), with i along rows and k along columns, as far as it was kept.
    """

    q1: np.ndarray
    q2: np.ndarray
    full: np.ndarray
    idle_q2_mean: float
    n_states: int
    joint: np.ndarray


def level_law(states: Levels, keep: tuple[int, int] = (0, 0)) -> LevelLaw:
    """Solve the stationary law.

    Parameters
    ----------
    states : Levels
    keep : tuple of int, optional
        Numbers of i and of levels of which to keep the joint law.

    Returns
    -------
    LevelLaw
    """
    arrivals, top, width = states.arrivals, states.top, states.width(0)
    corner = np.empty(top + 1)  # r_k(0)
    idle_sum = np.empty(top + 1)  # sum of i r_k(i)
    idle = np.arange(width - 1, -1, -1, dtype=float)
    marginal = np.zeros(width)  # sum over levels >= k, per unit of a p_{k-1}(0)
    above = np.zeros(0)  # (k + 1) r_{k+1}
    n_states = 0
    joint = np.zeros(keep)  # r_k(i) / r_k(0)
    for level in _levels(states, 0.0):
        size = len(level.leave)
        inflow = np.zeros(size)
        inflow[size - len(above) :] = above
        entering = _arrive(level, inflow)
        source = entering / level.pivot
        if level.number == 0:
            corner[0] = 1.0
        else:
            # The flow from above that leaves downwards before it reaches i = 0.
            lost = source[:-1] @ level.leave[:-1] if level.number < top else 1.0
            rate = arrivals if level.number < top else 0.0
            corner[level.number] = 1.0 / (level.leave[-1] + rate * lost)
        source *= arrivals * corner[level.number]
        source[-1] = corner[level.number]
        law = _spread(level, source)
        marginal *= arrivals * corner[level.number]
        marginal[width - size :] += law
        idle_sum[level.number] = law @ idle[width - size :]
        above = level.number * law
        n_states += size
        if level.number < keep[1]:
            kept = law[::-1][: keep[0]]
            joint[: len(kept), level.number] = kept / law[-1]
    # In proportion to P(Q1 = n, Q2 = 0); the flow up to each level equals that down from it.
    factors = arrivals * corner
    factors[0] = 1.0
    total = marginal.sum()
    full = np.cumprod(factors) / total
    flow = arrivals * full[:-1]
    number = np.arange(1, top + 1)
    q2 = np.concatenate([[law.sum() / total], flow / number])
    idle_q2_mean = float((number * flow) @ idle_sum[1:])
    joint[:, : top + 1] *= full[: keep[1]]
    return LevelLaw(marginal / total, q2, full, idle_q2_mean, n_states, joint)


def secular_logarithm(states: Levels, decay: float) -> tuple[float, float]:
    """Return sign and logarithm of a function that is zero where `decay` is a rate of the chain.

    The determinant of the balance equations with `decay` taken off every rate, but for factors
    that have no zero below 3.

    Parameters
    ----------
    states : Levels
    decay : float
        At least 0 and less than 3.
    """
    arrivals, top = states.arrivals, states.top
    above = np.zeros(0)
    sign, logarithm = 1.0, 0.0
    for level in _levels(states, decay):
        size = len(level.leave)
        source = np.zeros(size)
        determinant = level.leave[-1]
        if level.number < top:
            inflow = np.zeros(size)
            inflow[size - len(above) :] = above
            entering = _arrive(level, inflow)
            determinant += arrivals * (1.0 - entering[-1])
            source = entering / level.pivot * (arrivals / determinant)
        source[-1] = 1.0 / determinant
        above = level.number * _spread(level, source)
        factors = np.array([determinant])
        if level.number < 3:
            factors = np.append(factors, level.pivot[:-1] / arrivals)
        sign *= float(np.prod(np.sign(factors)))
        logarithm += float(np.log(np.abs(factors)).sum())
    return sign, logarithm
