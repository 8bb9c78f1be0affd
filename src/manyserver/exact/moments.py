"""How much the numbers of servers with k jobs vary over time, and with each other."""

import itertools

import numpy as np

from manyserver.exact.stationary import StationaryLaw
from manyserver.variables import MOMENT_LEVELS

__all__ = ["moments"]

BLOCK = 50_000
"""States that are looked at together."""


def moments(law: StationaryLaw) -> dict[str, np.ndarray]:
    """Compute variances and covariances over time, N times, with N the number of servers.

    Parameters
    ----------
    law : StationaryLaw

    Returns
    -------
    dict
        ``queue_tail_variance`` (pool, level), ``jobs_per_server_variance``, and
        ``occupancy_covariance`` (pool, level, other_pool, other_level) of the fractions of servers
        with exactly k jobs, NaN from 12 jobs on.

    Examples
    --------
    Two servers, join the shorter queue; the fraction that is busy is 0, 1/2 or 1:

    >>> import manyserver as ms
    >>> from manyserver.exact import stationary_law
    >>> law = stationary_law(ms.System(0.5, [ms.Pool(1, 1)], n_servers=2), ms.policy("sq", d=2))
    >>> float(moments(law)["queue_tail_variance"][0, 1].round(6))
    0.315967
    """
    probabilities, servers = law.probabilities, len(law.pool_of)
    tails = _Sums(law, law.levels, at_least=True)
    held = _Sums(law, min(law.levels, MOMENT_LEVELS), at_least=False)
    for start in range(0, len(probabilities), BLOCK):
        block = slice(start, start + BLOCK)
        tails.add(law.jobs[block], probabilities[block])
        held.add(law.jobs[block], probabilities[block], products=True)
    jobs = law.jobs.sum(axis=1) / servers
    mean = float(probabilities @ jobs)
    covariance = np.full((*tails.means.shape, *tails.means.shape), np.nan)
    covariance[:, : held.levels, :, : held.levels] = servers * (
        held.products - np.multiply.outer(held.means, held.means)
    )
    return {
        "queue_tail_variance": servers * (tails.squares - tails.means**2),
        "occupancy_covariance": covariance,
        "jobs_per_server_variance": np.asarray(servers * (probabilities @ (jobs - mean) ** 2)),
    }


class _Sums:
    """Means, mean squares and mean products of the fractions of servers at a level."""

    def __init__(self, law: StationaryLaw, levels: int, at_least: bool):
        self.first = np.cumsum([0, *law.system.counts])
        self.levels, self.at_least = levels, at_least
        self.means = np.zeros((len(self.first) - 1, levels))
        self.squares = np.zeros_like(self.means)
        self.products = np.zeros(self.means.shape * 2)

    def add(self, jobs: np.ndarray, weights: np.ndarray, products: bool = False) -> None:
        """Add states with their probabilities."""
        shape = (len(jobs), *self.means.shape)
        fractions = np.empty(shape)
        for level in range(self.levels):
            there = jobs >= level if self.at_least else jobs == level
            for pool, (start, end) in enumerate(itertools.pairwise(self.first)):
                fractions[:, pool, level] = there[:, start:end].mean(axis=1)
        flat = fractions.reshape(len(jobs), -1)
        self.means += (weights @ flat).reshape(shape[1:])
        self.squares += (weights @ flat**2).reshape(shape[1:])
        if products:
            self.products += ((flat * weights[:, None]).T @ flat).reshape(self.products.shape)
