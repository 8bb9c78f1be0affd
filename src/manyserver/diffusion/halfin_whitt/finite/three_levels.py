r"""The queues with at most three customers per server, by a recursion within a recursion.

State: i = n - Q1, k = Q2 and l = Q3. Q3 rises only from the corner i = 0, k = n, so that the law
on the plane of one l is P_l = a P_{l-1}(corner) R_l with

    T R_l = e_corner + a R_l(corner) (l + 1) R_{l+1},

and T couples the levels k of a plane as in :mod:`.recursion`: k rises only from i = 0. A system
T z = b is solved from the top level down with z_k = a z_{k-1}(0) r_k + s_k, then upwards. Sums of
positive terms replace all differences.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

__all__ = ["PlaneLaw", "plane_law"]

TOP = 40.0
"""Planes go to Q3 = TOP sqrt(n) / beta."""
NEVER = 1e-250
"""Smaller probabilities are taken as zero."""


@dataclass(frozen=True)
class PlaneLaw:
    """Stationary law of the queues cut at Q4 = 0.

    Parameters
    ----------
    q1, q2, q3 : numpy.ndarray
        P(Q1 = index) and so on; `q3` may stop before n.
    full : float
        P(Q1 = n).
    balance : float
        2 E (n - Q1) Q2 - E (n + 1 - Q2 + n - Q1) Q3.
    overflow : float
        P(Q1 = Q2 = Q3 = n).
    n_states : int
    """

    q1: np.ndarray
    q2: np.ndarray
    q3: np.ndarray
    full: float
    balance: float
    overflow: float
    n_states: int


class _Level:
    """Balance within one level k, the same on all planes: vectors run from Q1 = k to n."""

    def __init__(self, n: int, arrivals: float, level: int) -> None:
        size = n - level + 1
        rise = np.arange(size, dtype=float)  # rate at which i rises: Q1 - Q2
        pivot = np.empty(size)
        leave = float(level)
        for index in range(size):
            pivot[index] = arrivals + leave
            if index + 1 < size:
                leave = level + rise[index + 1] * leave / pivot[index]
        self.number = level
        self.pivot = pivot
        self.lower = -arrivals / pivot[:-1]
        self.upper = -rise[1:]
        self.second = np.zeros(max(0, size - 2))
        self.order = np.arange(1, size + 1, dtype=np.int32)
        unit = np.zeros((size, 1))
        unit[-1] = 1.0
        self.entry = self.solve(unit)[:, 0]

    def solve(self, right: np.ndarray) -> np.ndarray:
        """Solve for each column, with the pivots at hand."""
        if len(right) < 3:  # too small for LAPACK
            right = right.copy()
            for index in range(1, len(right)):
                right[index] -= self.lower[index - 1] * right[index - 1]
            right[-1] /= self.pivot[-1]
            for index in range(len(right) - 2, -1, -1):
                right[index] -= self.upper[index] * right[index + 1]
                right[index] /= self.pivot[index]
            return right
        solution, _ = lapack.dgttrs(
            self.lower, self.pivot, self.upper, self.second, self.order, right
        )
        return np.asarray(solution)


def plane_law(n: int, beta: float) -> PlaneLaw:
    """Solve the stationary law.

    Parameters
    ----------
    n : int
        Servers; time grows like n**3 and memory like n**2.
    beta : float
        Spare capacity.

    Returns
    -------
    PlaneLaw
    """
    arrivals = n - beta * math.sqrt(n)
    levels = [_Level(n, arrivals, level) for level in range(n + 1)]
    top = min(n, math.ceil(TOP * math.sqrt(n) / beta) + 1)
    above = np.zeros((n + 1, n + 1))
    corner = np.empty(top + 1)
    sums = np.empty((top + 1, 2 * n + 4))
    for plane in range(top, -1, -1):
        exit_rate = arrivals if plane < top else 0.0
        entry, source = _plane(levels, arrivals, exit_rate, plane, above)
        if plane == 0:
            law = source
        elif plane == top:
            law = entry
        else:
            law = entry + (arrivals * entry[-1, -1] / (plane * source.sum())) * source
        corner[plane] = law[-1, -1]
        sums[plane] = _sums(law, plane)
        above = plane * law
    factors = arrivals * corner
    weights = np.concatenate([[1.0], np.cumprod(factors[:-1])])
    total = sums[:, : n + 1].sum(axis=1) @ weights
    planes = sums * (weights / total)[:, None]
    q1, q2, rest = np.split(planes.sum(axis=0), [n + 1, 2 * n + 2])
    return PlaneLaw(
        q1=q1,
        q2=q2,
        q3=planes[:, : n + 1].sum(axis=1),
        full=float(q1[-1]),
        balance=float(rest[0] - rest[1]),
        overflow=float(weights[-1] * corner[-1] / total) if top == n else 0.0,
        n_states=sum((n - k + 1) * (min(k, top) + 1) for k in range(n + 1)),
    )


def _sums(law: np.ndarray, plane: int) -> np.ndarray:
    """Sum over a plane: by Q1, by Q2, and of the two sides of the balance."""
    n = len(law) - 1
    by_q1, by_q2 = law.sum(axis=0), law.sum(axis=1)
    count = np.arange(n + 1)
    idle_q2 = count @ law @ (n - count)
    q3 = plane * ((n + 1 - count) @ by_q2 + (n - count) @ by_q1)
    return np.concatenate([by_q1, by_q2, [2 * idle_q2, q3]])


def _plane(
    levels: list[_Level], arrivals: float, exit_rate: float, plane: int, above: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Solve T z = b for one entry at the corner, and for entries `above`: both (Q2, Q1).

    A chain that enters level k + 1 returns to level k unless it leaves the plane, downwards at
    rate `plane` or upwards from the corner: with probability `leaves`.
    """
    n = len(levels) - 1
    rise = np.zeros((n + 1, n + 1))  # r of the module
    parts = np.zeros((n + 1, n + 1, 2))  # s of the module, both right-hand sides
    corner = 1.0 / (n + exit_rate)
    rise[n, n] = corner
    parts[n, n] = corner, corner * above[n, n]
    stay = corner
    for level in levels[n - 1 : plane - 1 if plane else None : -1]:
        k = level.number
        right = np.empty((n - k + 1, 3))
        right[:, 0] = (k + 1 - plane) * rise[k + 1, k:]
        right[:, 1:] = (k + 1 - plane) * parts[k + 1, k:]
        right[:, 2] += above[k, k:]
        solved = level.solve(right)
        back = solved[:, 0]
        leaves = plane * stay + exit_rate * corner
        rest = leaves + k * back.sum()  # 1 - arrivals * back[-1]
        if rest < NEVER:
            # On level 0 of plane 0, if the corner is never reached: in proportion to its law.
            parts[:] = 0.0
            parts[k, k:] = arrivals * back[:, None]
            break
        at_idle = level.entry[-1] / rest
        rise[k, k:] = level.entry + arrivals * at_idle * back
        parts[k, k:] = solved[:, 1:] + back[:, None] * (arrivals / rest * solved[-1, 1:])
        stay = rise[k].sum() + arrivals * at_idle * stay
        corner *= arrivals * at_idle
    for k in range(plane + 1, n + 1):
        parts[k] += arrivals * rise[k][:, None] * parts[k - 1, -1]
    return parts[:, :, 0], parts[:, :, 1]
