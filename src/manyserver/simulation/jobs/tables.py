"""A system and a policy as plain arrays, for the kernel in :mod:`manyserver.simulation.jobs`."""

from functools import lru_cache

import numpy as np

from manyserver.model import System
from manyserver.policies import Policy, full
from manyserver.simulation.jobs.kernel import Rules
from manyserver.simulation.tables import NOBODY, Polls, intervals, make_polls
from manyserver.sizes import SizeLaw
from manyserver.variables import DECILES

__all__ = ["arrival_polls", "make_rules", "sizes_between_deciles"]


# The replications of a run share their inputs, which no kernel changes.
@lru_cache(maxsize=16)
def arrival_polls(system: System, policy: Policy) -> Polls:
    """Keep what an arrival looks at; nothing if it never has to draw servers."""
    polls = make_polls(system, policy)
    branches = policy.sampling(system).branches
    events = polls.arrival.size

    def cut(flat: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(flat.reshape(-1, events)[:, : len(branches)]).ravel()

    if not branches:
        return polls._replace(fresh=polls.fresh[:0])
    bound, inverse = intervals([branch.probability for branch in branches])
    return polls._replace(
        bound=bound,
        inverse=inverse,
        arrival=polls.arrival[: len(branches)],
        first=cut(polls.first),
        size=cut(polls.size),
        last=cut(polls.last),
    )


@lru_cache(maxsize=16)
def sizes_between_deciles(sizes: SizeLaw) -> np.ndarray:
    """Return the sizes that a tenth, two tenths and so on of the jobs do not exceed, (9,)."""
    return sizes.quantile(np.arange(1, DECILES) / DECILES)


@lru_cache(maxsize=16)
def make_rules(system: System, policy: Policy, levels: int) -> Rules:
    """Tabulate the policy and the speeds for a number of levels, a power of two."""
    ranks = policy.rank_table(system, levels).astype(np.uint64)
    no_room = full(system, levels)
    worst = int(ranks[~no_room].max()) + 1
    ranks[no_room] = worst
    ranks = ranks.ravel() << np.uint64(32)
    ranks[-1] = NOBODY
    level = np.arange(levels)
    slowness = level / system.speeds[:, None]
    speed = system.speeds[:, None] / np.maximum(level, 1) * (level > 0)
    return Rules(
        ranks,
        np.uint64(worst << 32),
        speed.ravel(),
        slowness.ravel(),
        np.repeat(np.arange(len(system.pools)), levels),
        np.int64(levels - 1),
    )
