r"""Quantities of the simulated state that are known to have mean zero.

With s the queue tails and P the joining law at the present state, the drift of the number of
servers with at least k jobs has mean zero in the stationary state:

.. math::

    Z_{jk} = C_j \gamma_j s_{jk} - \lambda P(\text{an arrival joins pool } j \text{ at a server
    with at least } k - 1 \text{ jobs}),

and so have those of products of the jobs per server l, the work rate w, and the work rate v of the
servers with two jobs or more (E[G f] = 0 with the generator G, as in Lemma 2 of Braverman,
arXiv:1801.05121; :mod:`manyserver.simulation.observations` has the drifts). With finite buffers P
is the law of the arrivals that are accepted.

If h solves Poisson's equation :math:`G h = E L - L`, that is, L + G h is constant, G h explains
everything. For many servers h is nearly linear, with a quadratic part of order 1/N: this is why so
few functions explain so much.
"""

import math
from collections.abc import Sequence

import numpy as np

from manyserver.model import System
from manyserver.simulation.observations import DRIFTS, Observations
from manyserver.simulation.replica import Measured
from manyserver.statistics.estimates import Controls

__all__ = ["VISITS", "make_controls", "often_visited", "sampled"]

VISITS = 10
"""Arrivals that make a server reach a level, in a batch on average, if its balance is to be used.

The sample mean of the balance of a level that is hardly ever reached is biased: most often the
rare departures from it did not happen. In a sum with the levels below that does not matter.
"""
BATCHES_PER_CONTROL = 4
"""Batches for each control variate, at least."""
LEVELS_SHARE = 0.6
"""Part of the control variates that are balances of levels, if there are so many."""
PRODUCTS = ("ll", "lw", "ww", "lv", "wv", "vv", "lll")
"""Products whose drifts are used, the most useful ones first; letters as in `DRIFTS`."""
BATCHES_FOR_CUBES = 128
"""Fewest batches with products of three: under high load few batches have large ones, and decide on
the coefficient, so that with 48 batches 95 % intervals of 10 servers at load 0.97 covered 89 %."""


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


def sampled(system: System, observations: Observations) -> tuple[np.ndarray, np.ndarray]:
    """Return means over the observations of the queue tails and of the joining law.

    Returns
    -------
    tails, joining : numpy.ndarray, shape (batch, pool, level)
    """
    count = observations.taken[:, None, None]
    servers = np.array(system.counts)[:, None]
    return observations.tails / (count * servers), observations.joining / count


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
    if most <= max(len(system.pools) for system in systems):
        return None
    pairs = zip(systems, runs, strict=True)
    return Controls(np.concatenate([*(_columns(*pair, most) for pair in pairs), *more], axis=1))


def _columns(system: System, batches: Measured, most: int) -> np.ndarray:
    """Return at most so many control variates of a run: levels, products, then more levels."""
    tails, joining = sampled(system, batches.observations)
    levels = often_visited(batches.joins).sum(axis=1) - 1
    first = _within(levels, LEVELS_SHARE * most)
    wanted = _often(system, batches)[: most - first.sum()]
    used = _within(levels, most - len(wanted))
    drifts = _drifts(system, batches, tails)
    columns = [drifts[name][:, None] for name in wanted]
    joining = np.cumsum(joining[:, :, ::-1], axis=2)[:, :, ::-1]
    work = system.speeds[:, None] * system.fractions[:, None] * tails
    balance = work[:, :, 1:] - system.arrival_rate * joining[:, :, :-1]
    for pool, own in enumerate(used - 1):
        # The last one is the sum over all levels above, also those that are hardly ever reached:
        # it goes with the jobs at these levels, which would otherwise be left unexplained.
        if own >= 0:
            rest = balance[:, pool, own:].sum(axis=1, keepdims=True)
            columns += [balance[:, pool, :own], rest]
    return np.concatenate([np.zeros((len(tails), 0)), *columns], axis=1)


def _within(levels: np.ndarray, most: float) -> np.ndarray:
    """Return how many levels of each pool make at most so many, all bounded by one number."""
    each = max(k for k in range(levels.max() + 1) if np.minimum(levels, k).sum() <= most)
    return np.asarray(np.minimum(levels, each))


def _often(system: System, batches: Measured) -> list[str]:
    """Return products of what often happens together, as far as the mean number of jobs tells.

    The drift of another differs from that of its factors by what hardly ever happened, and their
    difference is biased.
    """
    servers = np.array(system.counts)
    jobs, second = (
        min(1.0, float(batches.tails[:, :, first:].sum(axis=2).mean(axis=0) @ servers))
        for first in (1, 2)
    )
    expected = {"l": jobs, "w": jobs, "v": second}
    accepted = int(batches.accepted.sum())
    most = 3 if len(batches.tails) >= BATCHES_FOR_CUBES else 2
    return [
        name
        for name in PRODUCTS
        if len(name) <= most
        and accepted * math.prod(expected[letter] for letter in name[1:])
        >= VISITS * len(batches.tails)
    ]


def _drifts(system: System, batches: Measured, tails: np.ndarray) -> dict[str, np.ndarray]:
    """Return the drifts of products of deviations from the means, shape (batch,) each."""
    sums = batches.observations.drifts / batches.observations.taken[:, None]
    drift = dict(zip(DRIFTS, sums.T, strict=True))
    speed = system.speeds * system.fractions
    means = tails.mean(axis=0)
    mean = {
        "l": float(means[:, 1:].sum(axis=1) @ system.fractions),
        "w": float(means[:, 1] @ speed),
        "v": float(means[:, 2] @ speed) if means.shape[1] > 2 else 0.0,
    }
    for name in (name for name in PRODUCTS if len(name) == 2):
        first, second = tuple(name)
        drift[name] = drift[name] - mean[first] * drift[second] - mean[second] * drift[first]
    # "ll" is now that of the square of the deviation.
    centre = mean["l"]
    drift["lll"] = drift["lll"] - 3 * centre * drift["ll"] - 3 * centre**2 * drift["l"]
    return drift
