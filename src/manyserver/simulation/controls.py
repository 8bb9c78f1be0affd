r"""Quantities of the simulated state that are known to have mean zero.

With s the queue tails and P the joining law at the present state, the drift of the number of
servers with at least k jobs has mean zero in the stationary state, and so has that of the square
of the number of jobs:

.. math::

    Z_{jk} = C_j \gamma_j s_{jk} - \lambda P(\text{an arrival joins pool } j \text{ at a server
    with at least } k - 1 \text{ jobs}), \qquad
    G = 2 (L - L_0) (w - \lambda) - (\lambda + w) / N,

with :math:`w = \sum_j C_j \gamma_j s_{j1}` and any constant :math:`L_0` (E[G f] = 0 with the
generator G, as in Lemma 2 of Braverman, arXiv:1801.05121). With finite buffers P is the law of
the arrivals that are accepted, and :math:`\lambda` in G the rate at which they would be at the
present state, so that both still have mean zero.
"""

from collections.abc import Sequence

import numpy as np

from manyserver.model import System
from manyserver.simulation.replica import Measured
from manyserver.simulation.samples import Samples
from manyserver.statistics.estimates import Controls

__all__ = ["VISITS", "make_controls", "often_visited", "sampled"]

VISITS = 10
"""Arrivals that make a server reach a level, in a batch on average, if its balance is to be used.

The sample mean of the balance of a level that is hardly ever reached is biased: most often the
rare departures from it did not happen. In a sum with the levels below that does not matter.
"""
BATCHES_PER_CONTROL = 6
"""Batches for each control variate, at least."""


def often_visited(joins: np.ndarray) -> np.ndarray:
    """Which levels are visited often enough, shape (pool, level).

    Parameters
    ----------
    joins : numpy.ndarray, shape (batch, pool, level)
        Accepted arrivals by the level that they found.
    """
    often = joins.sum(axis=0) >= VISITS * len(joins)
    often = np.concatenate([np.ones((len(often), 1), dtype=bool), often[:, :-1]], axis=1)
    return np.asarray(np.logical_and.accumulate(often, axis=1))


def sampled(system: System, samples: Samples) -> tuple[np.ndarray, np.ndarray]:
    """Return means over the samples of the queue tails and of the joining law.

    Returns
    -------
    tails, choices : numpy.ndarray, shape (batch, pool, level)
    """
    count = samples.taken[:, :1, None]
    servers = np.array(system.counts)[:, None]
    return samples.tails / (count * servers), samples.choices / count


def make_controls(
    systems: Sequence[System], runs: Sequence[Measured], more: Sequence[np.ndarray] = ()
) -> Controls | None:
    """Choose the control variates of one run, or of several together; none for few batches.

    Parameters
    ----------
    systems : sequence of System
    runs : sequence of Measured
        The same batches of each system.
    more : sequence of numpy.ndarray, shape (batch, column)
        Further quantities of mean zero.
    """
    most = len(runs[0].tails) // BATCHES_PER_CONTROL // len(runs)
    each = min((most - 1) // len(system.pools) for system in systems)
    if each < 1:
        return None
    pairs = zip(systems, runs, strict=True)
    return Controls(np.concatenate([*(_columns(*pair, each) for pair in pairs), *more], axis=1))


def _columns(system: System, batches: Measured, each: int) -> np.ndarray:
    """Return the control variates of a run, at most `each` levels of a pool."""
    tails, choices = sampled(system, batches.samples)
    joining = np.cumsum(choices[:, :, ::-1], axis=2)[:, :, ::-1]
    work = system.speeds[:, None] * system.fractions[:, None] * tails
    balance = work[:, :, 1:] - system.arrival_rate * joining[:, :, :-1]
    columns = [np.zeros((len(tails), 0))]
    if _often_together(system, batches):
        columns.append(_quadratic(system, batches, tails))
    for pool, levels in enumerate(often_visited(batches.joins).sum(axis=1) - 1):
        # The last one is the sum over all levels above, also those that are hardly ever reached:
        # it goes with the jobs at these levels, which would otherwise be left unexplained.
        own = min(levels, each) - 1
        if own >= 0:
            rest = balance[:, pool, own:].sum(axis=1, keepdims=True)
            columns += [balance[:, pool, :own], rest]
    return np.concatenate(columns, axis=1)


def _often_together(system: System, batches: Measured) -> bool:
    """Whether arrivals often find another job somewhere; else the square tells what the sum does.

    The two then differ by what hardly ever happened, and their difference is biased.
    """
    jobs = float(batches.tails[:, :, 1:].sum(axis=2).mean(axis=0) @ np.array(system.counts))
    return int(batches.accepted.sum()) * min(1.0, jobs) >= VISITS * len(batches.tails)


def _quadratic(system: System, batches: Measured, tails: np.ndarray) -> np.ndarray:
    jobs = tails[:, :, 1:].sum(axis=2) @ system.fractions
    work = tails[:, :, 1] @ (system.speeds * system.fractions)
    totals = batches.samples.totals / batches.samples.taken[:, :1]
    accepted = system.arrival_rate * (1 - totals[:, 2])
    centred = totals[:, 1] - jobs.mean() * (work - accepted)
    jumps = (accepted + work) / sum(system.counts)
    return np.asarray(2 * centred - jumps)[:, None]
