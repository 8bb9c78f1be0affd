"""The exact stationary law of join the shortest queue for few servers, by linear algebra."""

from __future__ import annotations

import itertools
import math

import numpy as np
import scipy.sparse
import scipy.sparse.linalg


def stationary_law(beta: float, n: int, levels: int) -> tuple[np.ndarray, np.ndarray]:
    """States (state, level) and their probabilities; a full system loses its arrivals."""
    states = [
        state
        for state in itertools.product(*[range(n, -1, -1)] * levels)
        if all(a >= b for a, b in itertools.pairwise(state))
    ]
    number = {state: index for index, state in enumerate(states)}
    rows, columns, rates = [], [], []

    def flow(state: tuple[int, ...], level: int, change: int, rate: float) -> None:
        after = list(state)
        after[level] += change
        if rate > 0:
            rows.append(number[state])
            columns.append(number[tuple(after)])
            rates.append(rate)

    for state in states:
        open_levels = [level for level in range(levels) if state[level] < n]
        if open_levels:
            flow(state, open_levels[0], 1, n - beta * math.sqrt(n))
        for level in range(levels):
            following = state[level + 1] if level + 1 < levels else 0
            flow(state, level, -1, state[level] - following)
    size = len(states)
    q = scipy.sparse.coo_array((rates, (rows, columns)), shape=(size, size)).tocsr()
    balance = (q - scipy.sparse.diags_array(q.sum(axis=1))).T.tolil()
    balance[0] = 1.0
    right = np.zeros(size)
    right[0] = 1.0
    law = scipy.sparse.linalg.spsolve(balance.tocsc(), right)
    return np.array(states), np.maximum(law, 0.0)
