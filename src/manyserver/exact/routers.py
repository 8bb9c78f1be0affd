r"""Where the messages of idle servers are: all ways to split them over routers, up to their order.

Routers are alike, so a split lists the routers by the idle servers of each pool that they know of,
in falling order. Taking a server out, or adding one, leads to another split.
"""

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from functools import cache

import numpy as np

from manyserver.exact.states import Caps, count_by_idle

__all__ = ["Splits", "count_routed_states"]

MOST_PARTITIONED = 20
"""Routers that are told apart when states are counted: more have at least as many states."""

Split = tuple[tuple[int, ...], ...]
"""Idle servers by router and pool, falling."""


class Splits:
    """All splits of up to so many idle servers, those of equally many together.

    Parameters
    ----------
    most_idle : sequence of int, shape (pool,)
        Most idle servers of each pool.
    routers : int

    Attributes
    ----------
    messages : numpy.ndarray of int16, shape (split, pool, router)
        Idle servers of the pool that the router knows of.
    first, sizes : numpy.ndarray of int64, shape (idle servers of pool 0, of pool 1, ...)
        The first split of so many idle servers, and how many there are.
    taken, added : numpy.ndarray of int64, shape (split, pool, router)
        The split with one server of the pool less, or more, at this router. -1 if it has none;
        and if a router before it has the same servers, so that every split is met once.
    alike : numpy.ndarray of int64, shape (split, router)
        Routers with the same servers as this one.
    empty : numpy.ndarray of int64, shape (split,)
        Routers that know of no server.
    """

    def __init__(self, most_idle: Sequence[int], routers: int):
        self.routers = routers
        shape = tuple(most + 1 for most in most_idle)
        found: dict[tuple[int, ...], list[Split]] = {}
        for idle in np.ndindex(shape):
            found[idle] = self._list(idle, found, routers)
        self.sizes = np.array([len(found[idle]) for idle in np.ndindex(shape)]).reshape(shape)
        self.first = (np.cumsum(self.sizes) - self.sizes.ravel()).reshape(shape)
        splits = list(itertools.chain(*found.values()))
        table = np.array(splits, dtype=np.int16).reshape(len(splits), routers, len(shape))
        self.messages = np.ascontiguousarray(table.swapaxes(1, 2))
        self.empty = (table == 0).all(axis=2).sum(axis=1)
        number = {split: i for i, split in enumerate(splits)}
        self.alike = np.array(
            [[Counter(split)[router] for router in split] for split in splits], dtype=np.int64
        )
        self.taken, self.added = (
            self._steps(splits, number, len(shape), change) for change in (-1, 1)
        )

    @staticmethod
    def _list(
        idle: tuple[int, ...], found: dict[tuple[int, ...], list[Split]], routers: int
    ) -> list[Split]:
        if not any(idle):
            return [((0,) * len(idle),) * routers]
        # Every split of these has a server more than one of the splits with one server less.
        pool = next(pool for pool, count in enumerate(idle) if count)
        fewer = found[(*idle[:pool], idle[pool] - 1, *idle[pool + 1 :])]
        return sorted({_changed(split, r, pool, 1) for split in fewer for r in range(routers)})

    @staticmethod
    def _steps(
        splits: list[Split], number: dict[Split, int], n_pools: int, change: int
    ) -> np.ndarray:
        steps = np.full((len(splits), n_pools, len(splits[0])), -1)
        for i, split in enumerate(splits):
            for r, router in enumerate(split):
                if r > 0 and split[r - 1] == router:
                    continue
                for pool in range(n_pools):
                    if router[pool] + change >= 0:
                        # Beyond the most idle servers there is none.
                        steps[i, pool, r] = number.get(_changed(split, r, pool, change), -1)
        return steps


def _changed(split: Split, router: int, pool: int, change: int) -> Split:
    own = list(split[router])
    own[pool] += change
    return tuple(sorted((*split[:router], tuple(own), *split[router + 1 :]), reverse=True))


def count_routed_states(caps: Caps, routers: int) -> int:
    """Count the states within the caps, with all splits of their idle servers over routers.

    Burnside's lemma: the average over all permutations of the routers of the splits that they
    leave as they are. A cycle of routers has equal servers, so that the splits left are a product
    over the pools. With very many routers this is a lower bound.

    Examples
    --------
    Two servers of one pool, each idle or busy, and two routers: of two idle servers either both
    are known to the same router, or not.

    >>> count_routed_states(((1, 1),), 2)
    4
    """
    by_idle = [count_by_idle(own) for own in caps]
    total = 0
    told_apart = min(routers, MOST_PARTITIONED)
    for cycles in _partitions(told_apart, told_apart):
        fixed = math.prod(_fixed(own, cycles) for own in by_idle)
        total += fixed * _permutations(cycles)
    return total // math.factorial(told_apart)


def _fixed(by_idle: Sequence[int], cycles: tuple[int, ...]) -> int:
    """Ways to choose a state of a pool, and a split of its idle servers with these cycles."""
    ways = [1] + [0] * (len(by_idle) - 1)
    for length in cycles:
        for idle in range(length, len(ways)):
            ways[idle] += ways[idle - length]
    return sum(states * splits for states, splits in zip(by_idle, ways, strict=True))


def _permutations(cycles: tuple[int, ...]) -> int:
    """Permutations with cycles of these lengths."""
    repeated = math.prod(math.factorial(count) for count in Counter(cycles).values())
    return math.factorial(sum(cycles)) // (math.prod(cycles) * repeated)


@cache
def _partitions(number: int, largest: int) -> list[tuple[int, ...]]:
    """All ways to write a number as a sum of falling terms."""
    if number == 0:
        return [()]
    return [
        (first, *rest)
        for first in range(min(number, largest), 0, -1)
        for rest in _partitions(number - first, first)
    ]
