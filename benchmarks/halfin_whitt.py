"""Speed of the Halfin-Whitt laws, against generic sparse elimination."""

from collections.abc import Iterator
from functools import partial

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.linalg import splu

import manyserver as ms
from benchmarks.driver import Row, benchmark, in_turns, ratios
from manyserver.diffusion.halfin_whitt.finite.two_levels import Levels, level_law
from manyserver.diffusion.halfin_whitt.limit.laws import law
from manyserver.diffusion.halfin_whitt.limit.method_of_lines import march
from manyserver.diffusion.halfin_whitt.limit.stationary import resolution_of

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


def stationary() -> None:
    """Compute the law of the diffusion anew."""
    law.cache_clear()
    ms.halfin_whitt.stationary(BETA)


@benchmark("servers", costs=["levels, s", "over sparse"])
def exact(quick: bool) -> Iterator[Row]:
    """Join the shortest queue, exact: the recursion over levels, and sparse elimination.

    CPU seconds for the law of the number of waiting jobs from the balance equations of the same
    states, with beta = 1, by the recursion over levels and by SciPy's sparse LU decomposition, in
    turns.
    """
    for n in SMALL[: 2 if quick else None]:
        states = Levels.choose(n, BETA)
        differ = abs(level_mean(states) / sparse_mean(states) - 1)
        runs = {"levels": partial(level_mean, states), "sparse": partial(sparse_mean, states)}
        spent = in_turns(runs, ROUNDS)
        yield {
            "servers": n,
            "states": level_law(states).n_states,
            "levels, s": spent["levels"],
            "sparse, s": spent["sparse"],
            "over sparse": ratios(spent["levels"], spent["sparse"]),
            "means differ by": differ,
        }


@benchmark("what", costs=["seconds"])
def laws(quick: bool) -> Iterator[Row]:
    """Join the shortest queue in the Halfin-Whitt regime: a chain and the diffusion.

    CPU seconds with beta = 1; `chain(N)` is the exact law of N servers with its errors, and
    `stationary` that of the diffusion, beside one march through its equation.
    """
    for n in LARGE[: 2 if quick else None]:
        rounds = 1 if n == LARGE[-1] else ROUNDS
        spent = in_turns({"chain": partial(ms.halfin_whitt.chain, BETA, n)}, rounds)["chain"]
        states = int(ms.halfin_whitt.chain(BETA, n).n_states)
        each = [1e9 * one / states for one in spent]
        yield {"what": f"chain({n:,})", "states": states, "seconds": spent, "ns/state": each}
    resolution = resolution_of(BETA)
    runs = {
        "stationary, errors and laws": stationary,
        "stationary, one march": lambda: march(BETA, resolution, 1e-12).boundary[-1],
    }
    for name, spent in in_turns(runs, ROUNDS).items():
        yield {"what": name, "seconds": spent}
