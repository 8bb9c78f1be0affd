"""The slope of a straight part of a curve on logarithmic axes, in a window that the data choose."""

import math

import numpy as np
from numpy.typing import ArrayLike

from manyserver.statistics.rates import Rate, checked, no_rate
from manyserver.statistics.windows import unfit, widest_window

__all__ = ["straight_slope"]

LARGEST_SHIFT = 0.005


def straight_slope(x: ArrayLike, y: ArrayLike, largest_shift: float = LARGEST_SHIFT) -> Rate:
    """Fit a straight line to ``log(abs(y))`` over ``log(x)``, near the largest `x`.

    Parameters
    ----------
    x : array_like, shape (point,)
        Positive and increasing.
    y : array_like, shape (point,)
        Exact values of one sign; NaN is a missing point.
    largest_shift : float, optional
        Smallest `x` are dropped one by one while dropping the next one moves the slope by more
        than this, as long as three points are left.

    Returns
    -------
    Rate
        The standard error has two parts, added in quadrature: the scatter around the line, and
        how far the slope moves without the smallest `x` of the window.

    Raises
    ------
    ValueError
        If the shapes differ, or `x` is not positive and increasing.

    Examples
    --------
    >>> rate = straight_slope([1, 10, 100, 1000, 10000], [0.2, 0.07, 0.01, 0.001, 0.0001])
    >>> round(rate.estimate, 3), rate.excluded
    (-1.0, (1.0, 10.0))
    """
    values, _ = checked(y, None)
    places = np.asarray(x, dtype=float)
    if places.shape != values.shape or not (places > 0).all() or (np.diff(places) <= 0).any():
        raise ValueError("x: must be positive and increasing, with one value for every y")
    keep = np.isfinite(values) & (values != 0)
    excluded = places[~keep]
    places, values = places[keep], values[keep]
    if reason := unfit(values, one_sign=True):
        return no_rate(places, excluded, [reason])
    log_x, log_y = np.log(places), np.log(np.abs(values))
    lines = [_slope(log_x[k:], log_y[k:]) for k in range(places.size - 1)]
    first, shift = widest_window(
        places.size,
        lambda first: abs(lines[first + 1][0] - lines[first][0]),
        lambda shift: shift <= largest_shift,
    )
    slope, scatter, intercept = lines[first]
    return Rate(
        estimate=slope,
        standard_error=math.hypot(scatter, shift),
        prefactor=float(np.sign(values[0]) * np.exp(intercept)),
        window=(float(places[first]), float(places[-1])),
        n_points=places.size - first,
        excluded=tuple(map(float, np.sort(np.concatenate([excluded, places[:first]])))),
        note=f"not yet straight at {', '.join(f'{p:g}' for p in places[:first])}" if first else "",
    )


def _slope(x: np.ndarray, y: np.ndarray) -> tuple[float, float, float]:
    """Return slope, its standard error by the scatter, and intercept of a straight line."""
    centred = x - x.mean()
    spread = float(centred @ centred)
    slope = float(centred @ y) / spread
    rest = y - y.mean() - slope * centred
    scatter = math.sqrt(float(rest @ rest) / max(1, x.size - 2) / spread)
    return slope, scatter, float(y.mean() - slope * x.mean())
