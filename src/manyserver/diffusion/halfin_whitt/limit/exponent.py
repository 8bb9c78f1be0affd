"""The exponent of the law of Y2 at zero."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import hyp1f1, rgamma

__all__ = ["small_exponent"]


def small_exponent(beta: float) -> float:
    """Return theta in P(Y2 <= y) ~ c y**theta for small y.

    The rate at which an Ornstein-Uhlenbeck process around -beta, with variance 1, hits zero: the
    smallest zero v of the parabolic cylinder function D_v(-beta).

    Parameters
    ----------
    beta : float
        Spare capacity, > 0.

    Returns
    -------
    float
        Between 0 and 1, to a relative error of 1e-12.

    Examples
    --------
    >>> round(small_exponent(1.0), 12)
    0.388238294707
    """
    half_square = beta * beta / 2

    def cylinder(v: float) -> float:
        """D_v(-beta), but for a positive factor, by Kummer's functions."""
        even = hyp1f1(-v / 2, 0.5, half_square) * rgamma((1 - v) / 2)
        odd = hyp1f1((1 - v) / 2, 1.5, half_square) * rgamma(-v / 2)
        return float(even + np.sqrt(2) * beta * odd)

    return float(brentq(cylinder, 0.0, 1.0, xtol=1e-300, rtol=1e-14))
