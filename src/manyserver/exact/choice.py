"""Where an arrival goes, for many states of a finite system at once.

The joining law of :mod:`manyserver.joining`, read from tables: in a finite system the numbers of
servers ranked with and after a server are integers, and few pairs of them occur. A full server
ranks after all that are not full, so that an arrival is blocked only if all servers that it looks
at are full.
"""

import numpy as np

from manyserver.joining.draw import power
from manyserver.model import System
from manyserver.policies import Branch, Policy, Sampling

__all__ = ["Choice"]


class Choice:
    """The joining law, state by state.

    Parameters
    ----------
    system : System
        Finite.
    policy : Policy
        Read through its sampling and its rank table.
    jobs : numpy.ndarray of int, shape (state, server)
        Jobs at every server, pool after pool.
    """

    def __init__(self, system: System, policy: Policy, jobs: np.ndarray):
        sampling = policy.sampling(system)
        self.pool_of = np.repeat(np.arange(len(system.pools)), system.counts)
        table = policy.rank_table(system, int(jobs.max()) + 1)
        # By server and not by state first, as everything below works on whole rows.
        self._ranks = np.stack(
            [table[pool][jobs[:, i]] for i, pool in enumerate(self.pool_of)]
        ).astype(np.int32)
        self._announced = _Announced(sampling, system, jobs, self.pool_of, self._ranks)
        self._branches = [
            _BranchTables(branch, system, sampling.replacement) for branch in sampling.branches
        ]

    def probabilities(self, server: int, states: np.ndarray) -> np.ndarray:
        """Probability that an arrival joins this server.

        Parameters
        ----------
        server : int
            Its position; servers of a pool with equally many jobs are equally likely.
        states : numpy.ndarray of int, shape (chosen state,)
            The states asked for.

        Returns
        -------
        numpy.ndarray, shape (chosen state,)
        """
        total, unknown = self._announced.probabilities(server, states)
        total[unknown] = self._by_draws(server, states[unknown])
        return total

    def _by_draws(self, server: int, states: np.ndarray) -> np.ndarray:
        """Probability that an arrival joins this server, where none is announced."""
        ranks = self._ranks[:, states]
        rank = ranks[server]
        pool = int(self.pool_of[server])
        total = np.zeros(len(states))
        for branch in self._branches:
            number = branch.draw_of.get(pool)
            if number is not None:
                pairs = [
                    branch.pair(draw, ranks[np.isin(self.pool_of, pools)], rank)
                    for draw, pools in enumerate(branch.pools)
                ]
                total += branch.density(number, pairs)
        return total


class _Announced:
    """The best announced servers of every state."""

    def __init__(
        self,
        sampling: Sampling,
        system: System,
        jobs: np.ndarray,
        pool_of: np.ndarray,
        ranks: np.ndarray,
    ):
        levels = int(jobs.max()) + 1
        known = sampling.announced_levels(system, levels)
        if not sampling.branches:
            known[:] = True  # Full servers rank last, and are chosen only if all are full.
        if not known.any():
            self.best, self.shares = None, np.zeros(len(jobs))
            return
        announced = np.stack([known[pool][jobs[:, i]] for i, pool in enumerate(pool_of)])
        ranked = np.where(announced, ranks, ranks.max() + 1)
        self.best = announced & (ranked == ranked.min(axis=0))
        count = self.best.sum(axis=0)
        self.shares = np.divide(1.0, count, out=np.zeros(len(jobs)), where=count > 0)

    def probabilities(self, server: int, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Probability of joining a server, and whether none is announced, (chosen state,)."""
        shares = self.shares[states]
        if self.best is None:
            return shares, np.full(len(states), True)
        return np.where(self.best[server, states], shares, 0.0), shares == 0


class _BranchTables:
    """What each draw of a branch adds to the law, by the numbers of servers tied and after."""

    def __init__(self, branch: Branch, system: System, replacement: bool):
        self.pools = [draw.pools for draw in branch.draws]
        self.sizes = [sum(system.counts[pool] for pool in pools) for pools in self.pools]
        self.draw_of = {pool: g for g, pools in enumerate(self.pools) for pool in pools}
        looked_at = sum(draw.count for draw in branch.draws)
        nodes, weights = np.polynomial.legendre.leggauss((looked_at - 1) // 2 + 1)
        weights = branch.probability * weights / 2
        self.tables: list[list[np.ndarray]] = []
        for chosen, own in enumerate(self.sizes):
            tables: list[np.ndarray] = []
            for draw, size in zip(branch.draws, self.sizes, strict=True):
                of_rank_or_after, after = np.divmod(np.arange((size + 1) ** 2), size + 1)
                law = power(
                    of_rank_or_after[:, None] / size,
                    after[:, None] / size,
                    (1 + nodes) / 2,
                    draw.count,
                    len(tables) == chosen,
                    None if replacement else size,
                    order=0,
                )
                tables.append(np.maximum(law.value, 0.0).T)
            tables[chosen] = weights[:, None] / own * tables[chosen]
            if len(tables) == 1:
                tables = [tables[0].sum(axis=0, keepdims=True)]
            self.tables.append(tables)

    def pair(self, draw: int, ranks: np.ndarray, rank: np.ndarray) -> np.ndarray:
        """Row of the table: how many servers of a draw are of this rank or after, and after."""
        of_rank_or_after = np.count_nonzero(ranks >= rank, axis=0)
        after = np.count_nonzero(ranks > rank, axis=0)
        return np.asarray(of_rank_or_after * (self.sizes[draw] + 1) + after)

    def density(self, chosen: int, pairs: list[np.ndarray]) -> np.ndarray:
        """Probability of joining a server of draw `chosen`, by quadrature over its mark."""
        total = np.zeros(pairs[0].shape)
        for rows in zip(*self.tables[chosen], strict=True):
            product = rows[0][pairs[0]]
            for row, pair in zip(rows[1:], pairs[1:], strict=True):
                product *= row[pair]
            total += product
        return total
