"""Speed of the Halfin-Whitt laws, against generic sparse elimination.

Run ``uv run python benchmarks/halfin_whitt.py``.
"""

import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.linalg import splu

import manyserver as ms
from manyserver.diffusion.halfin_whitt.laws import law
from manyserver.diffusion.halfin_whitt.march import march
from manyserver.diffusion.halfin_whitt.recursion import Levels, level_law
from manyserver.diffusion.halfin_whitt.stationary import resolution_of

ROUNDS = 5
BETA = 1.0
SMALL = (100, 400, 1600)
LARGE = (10_000, 100_000, 1_000_000)


def sparse_mean(states: Levels) -> float:
    """Mean of Q2 by a sparse LU decomposition of the balance equations of the same states."""
    n, arrivals = states.n, states.arrivals
    widths = np.array([states.width(level) for level in range(states.top + 1)])
    starts = np.concatenate([[0], np.cumsum(widths)])
    idle = np.concatenate([np.arange(width) for width in widths])
    level = np.repeat(np.arange(states.top + 1), widths)
    state = np.arange(starts[-1])
    rows, columns, rates = [], [], []

    def move(there: np.ndarray, target: np.ndarray, rate: np.ndarray) -> None:
        rows.extend([target[there], state[there]])
        columns.extend([state[there]] * 2)
        rates.extend([rate[there], -rate[there]])

    constant = np.full(len(state), arrivals)
    move(idle > 0, state - 1, constant)
    up = starts[np.minimum(level + 1, states.top)]
    move((idle == 0) & (level < states.top), up, constant)
    move(idle < widths[level] - 1, state + 1, np.maximum(n - idle - level, 0.0))
    down = starts[np.maximum(level - 1, 0)] + np.minimum(idle, widths[np.maximum(level - 1, 0)] - 1)
    move(level > 0, down, level.astype(float))
    entries = (np.concatenate(rates), (np.concatenate(rows), np.concatenate(columns)))
    matrix = coo_array(entries, shape=(len(state), len(state))).tocsc()
    right = -matrix[:, [0]].toarray().ravel()[1:]
    rest = splu(matrix[1:, 1:]).solve(right)
    weights = np.concatenate([[1.0], rest])
    return float(level @ weights / weights.sum())


def level_mean(states: Levels) -> float:
    """Return the same by the recursion over levels."""
    found = level_law(states).q2
    return float(np.arange(len(found)) @ found)


def stationary() -> float:
    """Compute the law of the diffusion anew."""
    law.cache_clear()
    return float(ms.halfin_whitt.stationary(BETA).y2_mean)


def seconds(run: Callable[[], float]) -> float:
    """Return the CPU time of a run."""
    start = time.thread_time()
    run()
    return time.thread_time() - start


def main() -> None:
    """Print the tables."""
    print(
        f"{'servers':>8} {'states':>9} {'levels s':>9} {'sparse s':>9} {'ratio':>6} {'differ':>8}"
    )
    for n in SMALL:
        states = Levels.choose(n, BETA)
        mine, other = level_mean(states), sparse_mean(states)
        turns = [
            (seconds(partial(level_mean, states)), seconds(partial(sparse_mean, states)))
            for _ in range(ROUNDS)
        ]
        ours, theirs = (statistics.median(times) for times in zip(*turns, strict=True))
        ratio = statistics.median(b / a for a, b in turns)
        size = level_law(states).n_states
        differ = abs(mine / other - 1)
        print(f"{n:8} {size:9} {ours:9.4f} {theirs:9.3f} {ratio:6.0f} {differ:8.1e}", flush=True)
    ms.halfin_whitt.chain(BETA, 1000)
    print(f"\n{'':20} {'states':>10} {'seconds':>8} {'ns/state':>9}")
    for n in LARGE:
        start = time.thread_time()
        result = ms.halfin_whitt.chain(BETA, n)
        spent, size = time.thread_time() - start, int(result.n_states)
        print(
            f"chain({BETA:g}, {n})".ljust(20), f"{size:10} {spent:8.2f} {1e9 * spent / size:9.1f}"
        )
    stationary()
    spent = statistics.median(seconds(stationary) for _ in range(ROUNDS))
    resolution = resolution_of(BETA)
    alone = statistics.median(
        seconds(lambda: march(BETA, resolution, 1e-12).boundary[-1]) for _ in range(ROUNDS)
    )
    print(
        f"\nstationary({BETA:g}): {spent:.2f} s with errors and laws, {alone:.2f} s for one march"
    )


if __name__ == "__main__":
    main()
