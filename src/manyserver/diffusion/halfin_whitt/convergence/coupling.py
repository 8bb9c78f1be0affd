r"""Poisson counts and Brownian increments from the same normal numbers.

A Poisson process of rate r and a Brownian motion B are drawn together so that the counts stay
close to :math:`rt+\sqrt r\,B(t)`: the total is the Poisson quantile of the normal number that
gives B at the end, and each half of an interval gets the binomial quantile of the normal number
that gives B at the middle. This dyadic scheme is that of Komlós, Major and Tusnády; the distance
is of the order of log(r t) while both processes are of the order of sqrt(r t).
"""

from __future__ import annotations

import numpy as np
import scipy
from scipy.special import ndtr

__all__ = ["poisson_and_brownian"]


def poisson_and_brownian(
    rng: np.random.Generator, rate: float, horizon: float, depth: int, replications: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draw both processes on ``2**depth`` intervals of equal length.

    Parameters
    ----------
    rng : numpy.random.Generator
    rate : float
        Of the Poisson process.
    horizon : float
        Length of all intervals together.
    depth : int
    replications : int

    Returns
    -------
    counts : numpy.ndarray of int64, shape (replication, interval)
        Independent Poisson numbers.
    increments : numpy.ndarray, shape (replication, interval)
        Of a standard Brownian motion; independent normal numbers.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> counts, increments = poisson_and_brownian(rng, 1e4, 2.0, depth=3, replications=2)
    >>> np.abs((counts - 2500) / 100 - increments).max() < 0.05
    np.True_
    """
    # Imported here as it takes long.

    normal = rng.standard_normal((replications, 1))
    counts = scipy.stats.poisson.ppf(ndtr(normal), rate * horizon).astype(np.int64)
    increments = normal * np.sqrt(horizon)
    for level in range(depth):
        normal = rng.standard_normal(counts.shape)
        half = np.where(counts > 0, scipy.stats.binom.ppf(ndtr(normal), counts, 0.5), 0).astype(
            np.int64
        )
        middle = increments / 2 + normal * np.sqrt(horizon / 2**level) / 2
        counts = _interleaved(half, counts - half)
        increments = _interleaved(middle, increments - middle)
    return counts, increments


def _interleaved(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return np.stack([left, right], axis=-1).reshape(len(left), -1)
