r"""Which pools are forced to do more work than they can.

An arrival is forced into a set B of pools when all servers that it looks at belong to B. A system
is stable if every set can serve what is forced into it,

.. math:: \lambda f(B) < c(B), \qquad
          f(B) = \sum_b p_b \prod_h P(\text{draw } h \text{ of branch } b \text{ stays in } B),

with c the capacity. There are too many sets to look at each, and no need to. The probability of
a draw is a convex, increasing function of how many of the servers drawn from belong to B, and f
is a sum of products of these. So

- of pools that belong to the same draws, the worst sets have the slowest: where a fast pool makes
  matters worse, a slower one does too. If all draws are from the whole system, only the first
  pools by speed are looked at;
- f is supermodular, and :math:`F = c - \lambda f` is submodular. It is positive everywhere if there
  is a positive vector x with :math:`x(B) \le F(B)` for all B. Such vectors are the mixtures of
  those that list how F grows as pools are added in some order. The shortest mixture [1]_ is
  positive if any is; else F is smallest at the pools where it is not.

References
----------
.. [1] S. Fujishige, "Submodular Functions and Optimization", 2nd ed., Elsevier 2005, section 7.1.
"""

import itertools
import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from manyserver.model import System
from manyserver.policies.sampling import Draw, Sampling

__all__ = ["capacity_of", "forced_into", "is_overloaded", "overloaded_pools", "worst_sets"]

MOST_SETS = 1000
"""So many sets are looked at one by one."""
CLEAR = 1e-9
"""Flows that differ from a capacity by this part of it are compared in floating point."""
LARGEST_DENOMINATOR = 10**6
MOST_STEPS = 10_000
ROUNDING = 1e-13

Element = tuple[int, ...]
"""Pools that belong to a set together or not at all."""


def overloaded_pools(system: System, sampling: Sampling) -> tuple[int, ...] | None:
    """Find pools that are forced to do more work than they can.

    Parameters
    ----------
    system : System
    sampling : Sampling
        Without announcements.

    Returns
    -------
    tuple of int or None
        A set of which no pool can be left out; None if there is none. Pools with finite buffers
        belong to no such set.
    """
    chains = _chains(system, sampling)
    if not chains:
        return None
    if _n_sets(chains) <= MOST_SETS:
        sets = worst_sets(system, sampling)
        found = next((pools for pools in sets if is_overloaded(system, sampling, pools)), None)
    else:
        found = _by_shortest_vector(system, sampling, list(itertools.chain(*chains)))
    return None if found is None else _without_dispensable(system, sampling, found)


def worst_sets(system: System, sampling: Sampling) -> list[tuple[int, ...]]:
    """List sets of pools among which one is overloaded if any set is, smallest first.

    Raises
    ------
    ValueError
        If there are very many, as draws are from many different sets of pools.
    """
    chains = _chains(system, sampling)
    if _n_sets(chains) > MOST_SETS:
        raise ValueError(
            f"policy: draws from the pools in {len(chains)} different ways, so that "
            f"{_n_sets(chains):.2g} sets of pools may be overloaded; must be at most {MOST_SETS}"
        )
    sizes = itertools.product(*(range(len(chain) + 1) for chain in chains))
    sets = [
        _joined(itertools.chain(*(chain[:size] for chain, size in zip(chains, own, strict=True))))
        for own in sizes
    ]
    return sorted((pools for pools in sets if pools), key=lambda pools: (len(pools), pools))


def forced_into(system: System, sampling: Sampling, pools: tuple[int, ...]) -> float:
    """Jobs forced into a set of pools, per unit of time and server of the system."""
    inside = np.zeros((1, len(system.pools)), dtype=bool)
    inside[0, list(pools)] = True
    return float(_forced(system, sampling, inside)[0])


def capacity_of(system: System, pools: tuple[int, ...]) -> Fraction:
    """Work that a set of pools can do per unit of time, per server of the system."""
    return sum(
        (system.pools[pool].fraction * system.pools[pool].speed for pool in pools),
        start=Fraction(0),
    )


def is_overloaded(
    system: System, sampling: Sampling, pools: tuple[int, ...], full: tuple[int, ...] = ()
) -> bool:
    """Say whether as much work as pools can do, or more, is forced into them.

    Parameters
    ----------
    system : System
    sampling : Sampling
    pools : tuple of int
    full : tuple of int
        Further pools, which are full, so that arrivals that look at these join `pools`.
    """
    capacity = capacity_of(system, pools)
    forced = forced_into(system, sampling, pools + full)
    if abs(forced - float(capacity)) > CLEAR * float(capacity):
        return forced > capacity
    return _exactly_forced(system, sampling, pools + full) >= capacity


def _chains(system: System, sampling: Sampling) -> list[list[Element]]:
    """List the pools, slowest first, by the draws that they belong to.

    Pools of which every branch looks at servers make one element: without one of them nothing is
    forced into the others.
    """
    draws = [set(draw.pools) for branch in sampling.branches for draw in branch.draws]
    alone = [
        {draw.pools[0] for draw in branch.draws if len(draw.pools) == 1}
        for branch in sampling.branches
    ]
    together = set.intersection(*alone) if alone else set()
    endless = [pool for pool, own in enumerate(system.pools) if own.buffer is None]
    chains: dict[tuple[bool, ...], list[Element]] = {}
    for pool in sorted(endless, key=lambda pool: system.pools[pool].speed):
        of = tuple(pool in draw for draw in draws)
        if any(of) and pool not in together:
            chains.setdefault(of, []).append((pool,))
    bound = tuple(pool for pool in endless if pool in together)
    return [*([[bound]] if bound else []), *chains.values()]


def _n_sets(chains: list[list[Element]]) -> int:
    return math.prod(len(chain) + 1 for chain in chains)


def _joined(elements: Iterable[Element]) -> tuple[int, ...]:
    return tuple(sorted(itertools.chain(*elements)))


def _without_dispensable(
    system: System, sampling: Sampling, pools: tuple[int, ...]
) -> tuple[int, ...]:
    """Leave out pools, fast ones first, as long as the others are still overloaded."""
    for pool in sorted(pools, key=lambda pool: -system.pools[pool].speed):
        fewer = tuple(other for other in pools if other != pool)
        if fewer and is_overloaded(system, sampling, fewer):
            return _without_dispensable(system, sampling, fewer)
    return pools


def _forced(system: System, sampling: Sampling, inside: np.ndarray) -> np.ndarray:
    """Jobs forced into sets of pools, shape (set,), per unit of time and server of the system.

    Parameters
    ----------
    system : System
    sampling : Sampling
    inside : numpy.ndarray of bool, shape (set, pool)
    """
    total = np.zeros(len(inside))
    for branch in sampling.branches:
        stays = [_stays(system, draw, inside, sampling.replacement) for draw in branch.draws]
        total += branch.probability * np.prod(stays, axis=0)
    return system.arrival_rate * total


def _stays(system: System, draw: Draw, inside: np.ndarray, replacement: bool) -> np.ndarray:
    """Probability that all servers of a draw belong to sets of pools, shape (set,)."""
    own = inside[:, list(draw.pools)]
    if system.n_servers is None or replacement:
        fractions = system.fractions[list(draw.pools)]
        return np.where(own.all(axis=1), 1.0, (own @ fractions / fractions.sum()) ** draw.count)
    counts = np.array(system.counts)[list(draw.pools)]
    different, where = np.unique(own @ counts, return_inverse=True)
    chances = [_distinct(int(count), int(counts.sum()), draw.count) for count in different]
    return np.array(chances)[where]


def _distinct(inside: int, available: int, count: int) -> float:
    """Probability that distinct servers all are among those inside, of the available ones."""
    if count > inside:
        return 0.0
    # The servers looked at miss those outside, and those outside miss the servers looked at.
    fewer = np.arange(min(count, available - inside))
    kept = inside if len(fewer) == count else available - count
    return float(np.prod((kept - fewer) / (available - fewer)))


def _exactly_forced(system: System, sampling: Sampling, pools: tuple[int, ...]) -> Fraction:
    """Return what :func:`_forced` does as a ratio, of probabilities that sum to one exactly."""
    probabilities = [_ratio(branch.probability) for branch in sampling.branches]
    stays = (
        math.prod(
            (_exactly_stays(system, draw, pools, sampling.replacement) for draw in branch.draws),
            start=Fraction(1),
        )
        for branch in sampling.branches
    )
    stay = sum((p * q for p, q in zip(probabilities, stays, strict=True)), start=Fraction(0))
    return Fraction(repr(system.arrival_rate)) * stay / sum(probabilities)


def _ratio(probability: float) -> Fraction:
    """Return the ratio that a float is rounded from, if it is a simple one, or its decimals."""
    near = Fraction(probability).limit_denominator(LARGEST_DENOMINATOR)
    return near if float(near) == probability else Fraction(repr(float(probability)))


def _exactly_stays(
    system: System, draw: Draw, pools: tuple[int, ...], replacement: bool
) -> Fraction:
    inside = [pool for pool in draw.pools if pool in pools]
    if len(inside) == len(draw.pools):
        return Fraction(1)
    if system.n_servers is None or replacement:
        part, whole = (
            sum((system.pools[pool].fraction for pool in of), start=Fraction(0))
            for of in (inside, draw.pools)
        )
        return Fraction(part / whole) ** draw.count
    few, all_ = (sum(system.counts[pool] for pool in of) for of in (inside, draw.pools))
    return Fraction(math.comb(few, draw.count), math.comb(all_, draw.count))


def _by_shortest_vector(
    system: System, sampling: Sampling, elements: list[Element]
) -> tuple[int, ...] | None:
    """Find an overloaded set by Wolfe's algorithm, or a proof that there is none."""
    capacities = np.array([float(capacity_of(system, element)) for element in elements])

    def growth(order: np.ndarray) -> np.ndarray:
        """How F grows as elements are added in this order, shape (element,)."""
        inside = np.zeros((len(order) + 1, len(system.pools)), dtype=bool)
        for size, number in enumerate(order, start=1):
            inside[size:, list(elements[number])] = True
        vector = capacities.copy()
        vector[order] -= np.diff(_forced(system, sampling, inside))
        return vector

    def overloaded(numbers: np.ndarray) -> tuple[int, ...] | None:
        pools = _joined([elements[number] for number in numbers])
        return pools if pools and is_overloaded(system, sampling, pools) else None

    vectors = growth(np.arange(len(elements)))[None]
    mixture = np.ones(1)
    for _ in range(MOST_STEPS):
        shortest = mixture @ vectors
        if shortest.min() > ROUNDING * capacities.max():
            return None
        order = np.argsort(shortest, kind="stable")
        vector = growth(order)
        smallest = int(np.argmin(np.cumsum(vector[order])))
        if (found := overloaded(order[: smallest + 1])) is not None:
            return found
        if shortest @ (shortest - vector) <= ROUNDING * (capacities @ capacities):
            return overloaded(np.flatnonzero(shortest <= math.sqrt(ROUNDING) * capacities.max()))
        vectors, mixture = _mixed(np.vstack([vectors, vector]), np.append(mixture, 0.0))
    raise RuntimeError(f"which pools are overloaded was not found within {MOST_STEPS} steps")


def _mixed(vectors: np.ndarray, mixture: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shorten a mixture of vectors, and drop those that are not needed."""
    while True:
        n = len(vectors)
        matrix = np.ones((n + 1, n + 1))
        matrix[:n, :n] = vectors @ vectors.T
        matrix[n, n] = 0.0
        flat = np.linalg.lstsq(matrix, np.eye(n + 1)[n], rcond=None)[0][:n]
        if np.all(flat > ROUNDING):
            return vectors, flat / flat.sum()
        falling = flat <= ROUNDING
        steps = mixture[falling] / np.maximum(mixture[falling] - flat[falling], 1e-300)
        mixture = mixture + min(1.0, float(steps.min())) * (flat - mixture)
        kept = mixture > ROUNDING
        vectors, mixture = vectors[kept], mixture[kept] / mixture[kept].sum()
