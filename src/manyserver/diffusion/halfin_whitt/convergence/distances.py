"""How far the laws of the scaled queues are from those of the diffusion."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.interpolate import CubicSpline

from manyserver.diffusion.halfin_whitt.finite.law import Marginals, marginals
from manyserver.diffusion.halfin_whitt.labels import labelled
from manyserver.diffusion.halfin_whitt.limit.laws import Law
from manyserver.diffusion.halfin_whitt.limit.stationary import stationary_law

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["distances", "law_distances"]

SPACING = 2e-3
"""Longest distance between two points of a distribution function."""
FIRST = 1024
"""Parts of the first cell."""
FEWEST = 8
"""Fewest parts of the others."""
FAR = 9.0
"""The law of Y1 ends that far below its mean."""
SPLINE = 401
"""Points of the spline for the law of Y1."""
LOWEST_LOG, SPACING_LOG = -30.0, 0.05
"""Start and spacing of the spline for the law of Y2, over log(y); below, it is a pure power."""


def distances(beta: float, n: int) -> xr.Dataset:
    """Compute the distances of the laws of (Q1 - n) / sqrt(n) from Y1 and of Q2 / sqrt(n) from Y2.

    Parameters
    ----------
    beta : float
        Spare capacity, 0.01 to 6.
    n : int
        Number of servers, more than beta**2.

    Returns
    -------
    xarray.Dataset
        ``q1_kolmogorov``, ``q1_wasserstein``, ``q2_kolmogorov``, ``q2_wasserstein``, and
        ``truncation_error`` of the law of the queues.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    The Kolmogorov distance of Q2 is that of its atom at 0, of order n**(-theta / 2) with theta
    the exponent of the law of Y2 at 0: slower than the n**(-1/2) of everything else.

    Examples
    --------
    >>> import manyserver as ms
    >>> round(float(ms.halfin_whitt.distances(1.0, 100).q2_wasserstein), 5)
    0.2141
    """
    queues = marginals(beta, n)
    return labelled(
        {**law_distances(stationary_law(beta), queues), "truncation_error": queues.error},
        {},
        {"method": "distance from the Halfin-Whitt diffusion", "beta": beta, "n_servers": n},
    )


def law_distances(limit: Law, queues: Marginals) -> dict[str, float]:
    """Return the four distances between a law of the diffusion and one of queues, by name."""
    beta, root = limit.profile.beta, math.sqrt(queues.n)
    most_idle = max(len(queues.q1), math.ceil((beta + FAR) * root))
    q1 = _compare(
        np.arange(1 - most_idle, 1) / root,
        np.pad(queues.q1, (most_idle - len(queues.q1), 0)),
        _interpolated_y1(limit),
    )
    most_waiting = max(len(queues.q2), math.ceil(40 / beta * root))
    q2 = _compare(
        np.arange(most_waiting) / root,
        np.pad(queues.q2, (0, most_waiting - len(queues.q2))),
        _interpolated_y2(limit),
    )
    return {
        "q1_kolmogorov": q1[0],
        "q1_wasserstein": q1[1],
        "q2_kolmogorov": q2[0],
        "q2_wasserstein": q2[1],
    }


def _compare(
    values: np.ndarray, probability: np.ndarray, limit: Callable[[np.ndarray], np.ndarray]
) -> tuple[float, float]:
    """Return Kolmogorov and Wasserstein distance of a lattice law and a continuous one.

    The lattice has to reach to where the continuous law ends. Between points SPACING apart the
    continuous distribution function is taken as linear, and then |F_n - F| integrated exactly.
    """
    below = np.cumsum(probability)
    at_values = limit(values)
    jumps = np.abs(below - at_values), np.abs(below - probability - at_values)
    width = values[1] - values[0]
    part = np.linspace(0.0, 1.0, max(math.ceil(width / SPACING), FEWEST) + 1)
    points = values[1:-1, None] + width * part
    gaps = below[1:-1, None] - limit(points.ravel()).reshape(points.shape)
    area = _absolute(gaps, part * width).sum()
    # The law of Y2 is like a small power of y in the first cell.
    part = np.append(0.0, np.geomspace(1e-9, 1.0, FIRST))
    area += _absolute(below[0] - limit(values[0] + width * part), part * width).sum()
    return float(np.max(jumps)), float(area)


def _absolute(values: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Integrate the absolute value of piecewise linear functions between the points."""
    left, right = values[..., :-1], values[..., 1:]
    sizes = np.abs(left) + np.abs(right)
    crossing = left * right < 0
    area = np.where(crossing, (left**2 + right**2) / np.where(crossing, sizes, 1.0), sizes)
    return np.asarray(area * np.diff(points) / 2)


@lru_cache(maxsize=4)
def _interpolated_y1(limit: Law) -> Callable[[np.ndarray], np.ndarray]:
    """Return the distribution function of Y1, which is smooth, by a spline."""
    points = np.linspace(-limit.profile.beta - FAR, 0.0, SPLINE)
    spline = CubicSpline(points, limit.y1(points)[1])
    return lambda x: np.where(x < points[0], 0.0, spline(np.maximum(x, points[0])))


@lru_cache(maxsize=4)
def _interpolated_y2(limit: Law) -> Callable[[np.ndarray], np.ndarray]:
    """Return the distribution function of Y2 by a spline over log(y)."""
    logs = np.arange(LOWEST_LOG, math.log(80 / limit.profile.beta), SPACING_LOG)
    spline = CubicSpline(logs, limit.y2(np.exp(logs))[1])
    tiny = np.finfo(float).tiny

    def cdf(y: np.ndarray) -> np.ndarray:
        log = np.log(np.maximum(y, tiny))
        inside = np.clip(log, logs[0], logs[-1])
        return np.asarray(spline(inside) * np.exp(limit.theta * np.minimum(log - logs[0], 0.0)))

    return cdf
