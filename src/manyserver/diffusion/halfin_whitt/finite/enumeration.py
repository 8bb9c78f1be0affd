"""The queues of a few servers by direct solution of the balance equations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.linalg import splu

__all__ = ["CountLaw", "count_generator", "count_law", "highest_level"]

MOST_STATES = 8100
MOST_LEVELS = 400
TAIL = 1e-14


@dataclass(frozen=True)
class CountLaw:
    """Stationary law of the queues cut at a number of customers per server.

    Parameters
    ----------
    counts : numpy.ndarray, shape (state, level)
        Q_1, Q_2, ... of each state.
    probability : numpy.ndarray, shape (state,)
    """

    counts: np.ndarray
    probability: np.ndarray


def highest_level(n: int, beta: float) -> int:
    """Return the number of customers per server at which to cut: by tail, or number of states.

    The number of customers has a geometric tail with ratio lambda**n.
    """
    needed = math.log(TAIL) / (n * math.log1p(-beta / math.sqrt(n)))
    level = 4
    while level < min(2 + needed, MOST_LEVELS) and math.comb(n + level + 1, n) <= MOST_STATES:
        level += 1
    return level


def count_generator(n: int, beta: float, level: int) -> tuple[coo_array, np.ndarray]:
    """Return the transposed generator and the counts Q_1, .., Q_level of its states.

    Row is the state reached; columns sum to zero. Arrivals are lost when every server is full.
    """
    arrivals = n - beta * math.sqrt(n)
    ordered = list(combinations_with_replacement(range(n, -1, -1), level))
    index = {state: number for number, state in enumerate(ordered)}
    rows, columns, rates = [], [], []

    def move(state: tuple[int, ...], at: int, change: int, rate: float) -> None:
        target = (*state[:at], state[at] + change, *state[at + 1 :])
        rows.extend([index[target], index[state]])
        columns.extend([index[state]] * 2)
        rates.extend([rate, -rate])

    for state in ordered:
        shortest = next((at for at, count in enumerate(state) if count < n), None)
        if shortest is not None:
            move(state, shortest, 1, arrivals)
        for at, count in enumerate(state):
            longer = state[at + 1] if at + 1 < level else 0
            if count > longer:
                move(state, at, -1, float(count - longer))
    size = len(ordered)
    return coo_array((rates, (rows, columns)), shape=(size, size)), np.array(ordered)


def count_law(n: int, beta: float, level: int) -> CountLaw:
    """Solve the stationary law.

    Parameters
    ----------
    n : int
        Servers.
    beta : float
        Spare capacity.
    level : int
        Most customers at a server.

    Returns
    -------
    CountLaw
    """
    transposed, counts = count_generator(n, beta, level)
    # One equation is redundant: the empty system is given the weight one.
    matrix = transposed.tocsc()
    reference = len(counts) - 1
    kept = np.arange(len(counts)) != reference
    right = -matrix[:, [reference]].toarray().ravel()[kept]
    solution = splu(matrix[kept][:, kept]).solve(right)
    probability = np.append(solution, 1.0)
    return CountLaw(counts, probability / probability.sum())
