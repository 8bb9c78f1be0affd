"""Rates at which quantities approach their limits, fitted with standard errors.

A fit uses a *window* of the data and says which. Points whose error exceeds their signal are
excluded by rule, never by eye, and are listed. Small systems are often not yet on the asymptotic
law: fits have a second term for what is left of that, and drop the smallest systems while
chi-square still rejects the fit. The standard error of a fit has three parts, added in quadrature:
the noise of the data; the *window error*, how far the estimate moves, beyond what noise
explains, when the window begins nearer to the limit; and the *error of the next order*, how far a
third term moves it that is to the first one as the square of the second.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from manyserver.statistics.laws import Fit, exponent_fit, leading_fit
from manyserver.statistics.windows import FEWEST_POINTS, unfit, widest_window

__all__ = [
    "SIGNAL_TO_NOISE",
    "Law",
    "Rate",
    "checked",
    "coefficient",
    "fitted",
    "no_rate",
    "power_law",
]

SIGNAL_TO_NOISE = 2.0
"""A point counts when its size is at least this many standard errors."""


@dataclass(frozen=True)
class Rate:
    """A fitted rate.

    Attributes
    ----------
    estimate : float
        The exponent, the coefficient, or the growth per level; NaN if the data do not support a
        fit.
    standard_error : float
        Noise and window error, in quadrature.
    prefactor : float
        ``a`` in ``y = a * x**b * exp(e / x)``; NaN for other fits.
    window : tuple of float
        Smallest and largest abscissa used.
    n_points : int
        Number of points used.
    excluded : tuple of float
        Abscissae left out, in increasing order.
    note : str
        Why points were left out, or why there is no estimate; empty if there is nothing to say.
    second_term : float
        ``e`` in ``y = a * x**b * exp(e / x)``, or ``d`` in ``y = c / x + d / x**2``; NaN if the
        fit has none.
    """

    estimate: float
    standard_error: float
    prefactor: float
    window: tuple[float, float]
    n_points: int
    excluded: tuple[float, ...]
    note: str
    second_term: float = math.nan


def power_law(
    x: ArrayLike,
    y: ArrayLike,
    standard_errors: ArrayLike | None = None,
) -> Rate:
    """Fit the exponent with which `y` goes to zero for large `x`.

    The law is ``y = a * x**b * exp(e / x)``, where the last factor, ``1 + e / x + ...``, is what
    small `x` add to the power law; with three points only, there is no such factor. With standard
    errors, the fit is by weighted least squares in `y` (not in its logarithm, whose mean is
    biased by noise), and small `x` are dropped one by one while chi-square rejects the law.
    Without, it is linear regression of the logarithms.

    Parameters
    ----------
    x : array_like, shape (point,)
        Positive and distinct.
    y : array_like, shape (point,)
        The quantity that tends to zero; NaN is a missing point.
    standard_errors : array_like, shape (point,), optional
        Standard errors of `y`.

    Returns
    -------
    Rate
        Points with ``abs(y)`` below two standard errors are excluded. The estimate is NaN if
        fewer than three points are left or if they do not all have the same sign.

    Raises
    ------
    ValueError
        If the shapes differ, an `x` is not positive or repeated, or a standard error is negative.

    Examples
    --------
    >>> n = [10, 100, 1000, 10000]
    >>> rate = power_law(n, [0.2, 0.02, 0.002, -0.0003], [0.002, 0.0002, 0.0002, 0.0002])
    >>> round(rate.estimate, 6), rate.n_points, rate.note
    (-1.0, 3, 'error exceeds signal at 10000')
    """
    return fitted(exponent_fit, x, y, standard_errors, one_sign=True)


def coefficient(x: ArrayLike, y: ArrayLike, standard_errors: ArrayLike | None = None) -> Rate:
    """Fit the coefficient c of ``y = c / x + d / x**2``, for large `x`.

    By weighted least squares, dropping small `x` one by one while chi-square rejects the law.
    Without standard errors, all points have the same relative error.

    Parameters
    ----------
    x, y, standard_errors
        As for :func:`power_law`.

    Returns
    -------
    Rate
        Points with ``abs(y)`` below two standard errors are excluded. The estimate is NaN if
        fewer than three points are left.

    Raises
    ------
    ValueError
        As for :func:`power_law`.

    Examples
    --------
    >>> rate = coefficient([10, 100, 1000], [0.23, 0.0203, 0.002003])
    >>> round(rate.estimate, 6), round(rate.second_term, 6)
    (2.0, 3.0)
    """
    return fitted(leading_fit, x, y, standard_errors, one_sign=False)


Law = Callable[[np.ndarray, np.ndarray, np.ndarray | None, bool], Fit]


def fitted(
    law: Law, x: ArrayLike, y: ArrayLike, standard_errors: ArrayLike | None, one_sign: bool
) -> Rate:
    """Exclude what cannot be fitted, find the window, and fit a law in it.

    The arguments are those of :func:`power_law`; `one_sign` says whether the law cannot change its
    sign.
    """
    values, errors = checked(y, standard_errors)
    places = np.asarray(x, dtype=float)
    if places.shape != values.shape or np.any(~(places > 0)) or _repeats(places):
        raise ValueError("x: must be positive and distinct, with one value for every y")
    order = np.argsort(places)
    places, values, errors = places[order], values[order], errors[order]
    keep = np.isfinite(values)
    noisy = keep & (np.abs(values) < SIGNAL_TO_NOISE * errors)
    keep &= ~noisy & (values != 0)
    notes = [f"error exceeds signal at {_list(places[noisy])}"] if noisy.any() else []
    excluded = places[~keep]
    places, values = places[keep], values[keep]
    if reason := unfit(values, one_sign):
        return no_rate(places, excluded, [reason, *notes])

    known = None if standard_errors is None or not np.all(errors[keep] > 0) else errors[keep]
    first, fit = widest_window(
        places.size,
        lambda first: law(
            places[first:],
            values[first:],
            None if known is None else known[first:],
            places.size - first > FEWEST_POINTS,
        ),
        lambda fit: known is None or fit.consistent,
    )
    if first:
        notes.append(f"not yet on the law at {_list(places[:first])}")
        excluded = np.sort(np.concatenate([excluded, places[:first]]))
        places, values = places[first:], values[first:]
        known = None if known is None else known[first:]
    variance = fit.variance
    if known is None:
        variance *= fit.chi_square / max(1, fit.spare)
    elif not fit.consistent:
        notes.append("scatter exceeds the errors, standard error widened")
        variance *= fit.chi_square / fit.spare
    return Rate(
        estimate=fit.estimate,
        standard_error=math.hypot(
            math.sqrt(variance),
            _window_error(law, fit, places, values, known),
            _next_order_error(law, fit, places, values, known),
        ),
        prefactor=fit.prefactor,
        window=(float(places[0]), float(places[-1])),
        n_points=places.size,
        excluded=tuple(map(float, excluded)),
        note="; ".join(notes),
        second_term=fit.second,
    )


def _window_error(
    law: Law, fit: Fit, x: np.ndarray, y: np.ndarray, errors: np.ndarray | None
) -> float:
    """How far the estimate moves when the window begins nearer to the limit."""
    second = not math.isnan(fit.second)
    if errors is None:
        rest = slice(max(1, min(x.size // 2, x.size - FEWEST_POINTS)), None)
        return abs(law(x[rest], y[rest], None, second).estimate - fit.estimate)
    if not second:
        return abs(law(x[1:], y[1:], errors[1:], second).estimate - fit.estimate)
    largest = 0.0
    for first in range(1, max(2, x.size - FEWEST_POINTS)):
        moved = law(x[first:], y[first:], errors[first:], second)
        # The noise of such a shift has the difference of the two variances (Hausman, 1978).
        noise = max(0.0, moved.variance - fit.variance)
        largest = max(largest, (moved.estimate - fit.estimate) ** 2 - noise)
    return math.sqrt(largest)


def _next_order_error(
    law: Law, fit: Fit, x: np.ndarray, y: np.ndarray, errors: np.ndarray | None
) -> float:
    """How far a third term moves the estimate, if it is the square of the second one."""
    if not fit.following.size:
        return 0.0
    moved = law(x, y * (1 + np.minimum(fit.following**2, 1.0)), errors, True)
    return abs(moved.estimate - fit.estimate)


def checked(values: ArrayLike, errors: ArrayLike | None) -> tuple[np.ndarray, np.ndarray]:
    """Return values and errors as float arrays; a value without an error is missing."""
    known = np.asarray(values, dtype=float)
    of_known = np.zeros_like(known) if errors is None else np.asarray(errors, dtype=float)
    if known.shape != of_known.shape or known.ndim != 1:
        raise ValueError(f"shapes {known.shape}, {of_known.shape}: must be equal, with one axis")
    if np.any(of_known < 0):
        raise ValueError("standard_errors: must not be negative")
    return np.where(np.isnan(of_known), np.nan, known), np.nan_to_num(of_known)


def no_rate(x: np.ndarray, excluded: np.ndarray, notes: list[str]) -> Rate:
    """Say why the data do not support a fit."""
    nan = math.nan
    window = (float(x[0]), float(x[-1])) if x.size else (nan, nan)
    return Rate(nan, nan, nan, window, x.size, tuple(map(float, excluded)), "; ".join(notes))


def _repeats(values: np.ndarray) -> bool:
    return np.unique(values).size < values.size


def _list(values: np.ndarray) -> str:
    return ", ".join(f"{value:g}" for value in values)
