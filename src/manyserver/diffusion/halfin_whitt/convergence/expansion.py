r"""How the mean number of waiting customers approaches its limit: the next two terms."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from manyserver.diffusion.halfin_whitt.finite.law import marginals
from manyserver.diffusion.halfin_whitt.labels import labelled
from manyserver.diffusion.halfin_whitt.limit.stationary import check_stationary, stationary_law

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["expansion"]

SPARE = 22.0
"""Least beta sqrt(n), beyond which a third customer at a server is too rare to matter."""
SMALLEST = 28.0
"""Least sqrt(n)."""
GROWTH = 1.3
POINTS = 6


def expansion(beta: float) -> xr.Dataset:
    r"""Compute the terms after the limit of the mean number of waiting customers.

    Parameters
    ----------
    beta : float
        Spare capacity, 0.1 to 6; for small beta the laws of many servers are needed, a minute for
        0.1 and a second for 1.

    Returns
    -------
    xarray.Dataset
        ``first_coefficient`` and ``second_coefficient``, c1 and c2 in
        :math:`E Y_2 - E Q_2/\sqrt n = c_1/\sqrt n + c_2/n + O(n^{-3/2})`; each with its
        ``_error``, the difference from a fit with one term less.

    Raises
    ------
    ValueError
        If `beta` is out of range.

    Notes
    -----
    A polynomial in :math:`n^{-1/2}` through exact values. The convergence is Proposition 1 of
    arXiv:1801.05121; its rate is seen, not proven.

    Examples
    --------
    >>> import manyserver as ms
    >>> result = ms.halfin_whitt.expansion(1.0)
    >>> round(float(result.first_coefficient), 4), round(float(result.second_coefficient), 2)
    (2.4675, -3.65)
    """
    beta = check_stationary(beta)
    if beta < 0.1:
        raise ValueError(f"beta = {beta:g}: must be at least 0.1, as too many servers are needed")
    limit = stationary_law(beta).power_mean(0, 1)
    roots = max(SMALLEST, SPARE / beta) * GROWTH ** np.arange(POINTS)
    servers = [math.ceil(root) ** 2 for root in roots]
    steps = 1 / np.sqrt(servers)
    slopes = (limit - np.array([_mean(beta, n) for n in servers])) / steps
    best, lower = (np.polyfit(steps[k:], slopes[k:], POINTS - 1 - k)[::-1] for k in (0, 1))
    values = {
        "first_coefficient": best[0],
        "second_coefficient": best[1],
        "first_coefficient_error": abs(best[0] - lower[0]),
        "second_coefficient_error": abs(best[1] - lower[1]),
    }
    return labelled(values, {}, {"method": "expansion of the mean Q2", "beta": beta})


def _mean(beta: float, n: int) -> float:
    law = marginals(beta, n, method="levels").q2
    return float(np.arange(len(law)) @ law) / math.sqrt(n)
