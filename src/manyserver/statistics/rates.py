"""Rates at which quantities approach their limits, fitted with standard errors.

Points whose error exceeds their signal are excluded by rule, never by eye, and are listed. Small
systems are not yet on the asymptotic law: all terms that follow the first one are part of the fit
(:mod:`manyserver.statistics.extrapolation`), and the standard error covers the noise of the data
and what is not known of these terms. Where a fit cannot tell, it says so in words: if the quantity
changes its sign, or if the following terms may still be large at the largest system.
"""

import dataclasses
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaincc

from manyserver.statistics.extrapolation import Extrapolation, averaged, extrapolate

__all__ = [
    "FEWEST_POINTS",
    "ORDERS",
    "SIGNAL_TO_NOISE",
    "Points",
    "Rate",
    "checked",
    "coefficient",
    "no_rate",
    "positive_fit",
    "power_law",
    "rate_of",
    "usable",
]

SIGNAL_TO_NOISE = 2.0
"""A point counts when its size is at least this many standard errors."""
FEWEST_POINTS = 3
MOST_LEFT = 1.0
"""Largest part of the law at the last point that the terms after the first may be."""
WORST_P_VALUE = 0.01
"""Below this p-value of chi-square, the errors of the data are taken to be too small."""
ORDERS = (0.5, 1.0, 2.0)
"""Orders of the next term that are tried where it is not known."""
SMALLEST_ERROR = 1e-11
"""Relative error that numbers have at least."""
MOST_STEPS = 20
SMALL_STEP = 1e-8


@dataclass(frozen=True)
class Rate:
    """A fitted rate.

    Attributes
    ----------
    estimate : float
        The exponent, the coefficient, or the growth per level; NaN if the data do not support a
        fit.
    standard_error : float
        Of noise and of the terms that follow.
    prefactor : float
        ``a`` in ``y = a * x**b``; NaN for other fits.
    window : tuple of float
        Smallest and largest abscissa used.
    n_points : int
        Number of points used.
    excluded : tuple of float
        Abscissae left out, in increasing order.
    note : str
        Why points were left out, or why there is no estimate; empty if there is nothing to say.
    second_term : float
        Relative coefficient of the second term, ``e`` in ``y = a * x**b * (1 + e / x**order)``;
        NaN if the fit has none.
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
    *,
    order: float | None = 1.0,
) -> Rate:
    """Fit the exponent with which `y` goes to zero for large `x`.

    The law is ``y = a * x**b * (1 + series in x**-order)``.

    Parameters
    ----------
    x : array_like, shape (point,)
        Positive and distinct.
    y : array_like, shape (point,)
        The quantity that tends to zero; NaN is a missing point.
    standard_errors : array_like, shape (point,), optional
        Standard errors of `y`; without, all have the same relative error, which is not known.
    order : float or None
        Each term is smaller than the one before by this power of `x`; None if it is not known, and
        any of :data:`ORDERS` may be right.

    Returns
    -------
    Rate
        Points with ``abs(y)`` below two standard errors are excluded. The estimate is NaN, and the
        note says why, if fewer than three points are left, if they do not all have the same sign,
        or if the series may still be large at the largest `x`.

    Raises
    ------
    ValueError
        If the shapes differ, an `x` is not positive or repeated, or a standard error is negative.

    Examples
    --------
    >>> n = [10, 100, 1000, 10000]
    >>> rate = power_law(n, [0.23, 0.0203, 0.002003, 0.00020003])
    >>> round(rate.estimate, 3), rate.standard_error < 0.01, round(rate.second_term, 1)
    (-1.0, True, 1.5)
    """
    points = usable(x, y, standard_errors)
    if points.reason or not points.one_sign:
        return no_rate(points, points.reason or "the signal changes sign")
    logarithm = np.log(points.x)
    terms = np.stack([np.ones_like(logarithm), logarithm - logarithm[-1]], axis=1)
    found = averaged([positive_fit(terms, points, one) for one in _orders(order)])
    scale = math.exp(found.parameters[0] - found.parameters[1] * logarithm[-1])
    prefactor = math.copysign(scale, points.y[0])
    return rate_of(points, found, 1, order, prefactor=prefactor)


def coefficient(
    x: ArrayLike,
    y: ArrayLike,
    standard_errors: ArrayLike | None = None,
    *,
    power: float = 1.0,
    order: float | None = 1.0,
) -> Rate:
    """Fit the coefficient c of ``y = c * x**-power * (1 + series in x**-order)``, for large `x`.

    Parameters
    ----------
    x, y, standard_errors, order
        As for :func:`power_law`.
    power : float, optional
        The exponent that is known.

    Returns
    -------
    Rate
        As by :func:`power_law`, but `y` may change its sign where `x` is small: then the series is
        added to c, and else it is a factor, whose logarithm is a series.

    Raises
    ------
    ValueError
        As for :func:`power_law`.

    Examples
    --------
    >>> rate = coefficient([10, 100, 1000, 10000], [0.23, 0.0203, 0.002003, 0.00020003])
    >>> round(rate.estimate, 3), rate.standard_error < 0.01, round(rate.second_term, 1)
    (2.0, True, 1.5)
    """
    points = usable(x, y, standard_errors)
    if points.reason:
        return no_rate(points, points.reason)
    scaled = points.y * points.x**power
    errors = None if points.errors is None else points.errors * points.x**power
    terms = np.ones((scaled.size, 1))
    if points.one_sign:
        positive = dataclasses.replace(points, y=scaled, errors=errors)
        found = averaged([positive_fit(terms, positive, one) for one in _orders(order)])
        unit = math.copysign(math.exp(found.parameters[0]), scaled[0])
        rate = rate_of(points, found, 0, order, unit=unit)
        return rate if math.isnan(rate.estimate) else dataclasses.replace(rate, estimate=unit)
    unit = scaled[-1]
    errors = None if errors is None else errors / abs(unit)
    found = averaged(
        [extrapolate(terms, scaled / unit, errors, points.closeness(one)) for one in _orders(order)]
    )
    return rate_of(points, found, 0, order, unit=unit)


def _orders(order: float | None) -> tuple[float, ...]:
    return ORDERS if order is None else (order,)


@dataclass(frozen=True)
class Points:
    """The points that a fit uses, in increasing order of `x`.

    Attributes
    ----------
    x, y : numpy.ndarray, shape (point,)
    errors : numpy.ndarray, shape (point,), or None
        Standard errors of `y`, positive; None if they are not known.
    excluded : tuple of float
        Abscissae left out.
    note : str
        Why.
    """

    x: np.ndarray
    y: np.ndarray
    errors: np.ndarray | None
    excluded: tuple[float, ...]
    note: str

    @property
    def reason(self) -> str:
        """Why there are too few; empty if there are enough."""
        enough = self.x.size >= FEWEST_POINTS
        return "" if enough else f"{self.x.size} usable points, {FEWEST_POINTS} needed"

    @property
    def one_sign(self) -> bool:
        """Whether all have the same sign."""
        return np.unique(np.sign(self.y)).size == 1

    def closeness(self, order: float) -> np.ndarray:
        """Return the variable of a series, which is one at the smallest `x`."""
        return np.asarray((self.x[0] / self.x) ** order)


def usable(x: ArrayLike, y: ArrayLike, standard_errors: ArrayLike | None) -> Points:
    """Leave out what is missing, and what is less than two standard errors.

    Raises
    ------
    ValueError
        As for :func:`power_law`.
    """
    values, errors = checked(y, standard_errors)
    places = np.asarray(x, dtype=float)
    distinct = np.unique(places).size == places.size
    if places.shape != values.shape or np.any(~(places > 0)) or not distinct:
        raise ValueError("x: must be positive and distinct, with one value for every y")
    order = np.argsort(places)
    places, values, errors = places[order], values[order], errors[order]
    keep = np.isfinite(values)
    noisy = keep & (np.abs(values) < SIGNAL_TO_NOISE * errors)
    keep &= ~noisy & (values != 0)
    known = standard_errors is not None and bool(np.all(errors[keep] > 0))
    listed = ", ".join(f"{place:g}" for place in places[noisy])
    return Points(
        places[keep],
        values[keep],
        np.maximum(errors[keep], SMALLEST_ERROR * np.abs(values[keep])) if known else None,
        tuple(map(float, places[~keep])),
        f"error exceeds signal at {listed}" if listed else "",
    )


def positive_fit(terms: np.ndarray, points: Points, order: float) -> Extrapolation:
    """Fit ``exp(terms @ parameters) * (1 + series)`` to the sizes of `y`.

    The noise is that of `y`, not of its logarithm, whose mean is biased.
    """
    size = np.abs(points.y)
    closeness = points.closeness(order)
    if points.errors is None:
        return extrapolate(terms, np.log(size), None, closeness)
    found = extrapolate(terms, np.log(size), points.errors / size, closeness)
    for _ in range(MOST_STEPS):
        before = found.values
        law = np.exp(before)
        found = extrapolate(terms, before + (size - law) / law, points.errors / law, closeness)
        # A step changes the law by less than a factor e, so that none leads astray.
        step = found.values - before
        found = found._replace(values=before + step / max(1.0, float(np.abs(step).max())))
        if np.abs(step).max() < SMALL_STEP:
            break
    return found


def rate_of(
    points: Points,
    found: Extrapolation,
    parameter: int,
    order: float | None,
    *,
    prefactor: float = math.nan,
    unit: float = 1.0,
) -> Rate:
    """Return a parameter of a fit as a rate, times `unit`, or say why it cannot be told."""
    if found.left > MOST_LEFT:
        left = f"{100 * found.left:.0f} %"
        return no_rate(
            points, f"not near the limit: at {points.x[-1]:g} the law may be off by {left}"
        )
    notes = [points.note] if points.note else []
    error = float(found.errors[parameter] * abs(unit))
    scatter = found.chi_square / found.freedom
    if (
        points.errors is not None
        and gammaincc(found.freedom / 2, found.chi_square / 2) < WORST_P_VALUE
    ):
        notes.append("scatter exceeds the errors, standard error widened")
        error *= math.sqrt(scatter)
    return Rate(
        estimate=float(found.parameters[parameter] * unit),
        standard_error=error,
        prefactor=prefactor,
        window=(float(points.x[0]), float(points.x[-1])),
        n_points=points.x.size,
        excluded=points.excluded,
        note="; ".join(notes),
        second_term=found.second * float(points.x[0]) ** (order or 0),
    )


def checked(values: ArrayLike, errors: ArrayLike | None) -> tuple[np.ndarray, np.ndarray]:
    """Return values and errors as float arrays; a value without an error is missing."""
    known = np.asarray(values, dtype=float)
    of_known = np.zeros_like(known) if errors is None else np.asarray(errors, dtype=float)
    if known.shape != of_known.shape or known.ndim != 1:
        raise ValueError(f"shapes {known.shape}, {of_known.shape}: must be equal, with one axis")
    if np.any(of_known < 0):
        raise ValueError("standard_errors: must not be negative")
    return np.where(np.isnan(of_known), np.nan, known), np.nan_to_num(of_known)


def no_rate(points: Points, reason: str) -> Rate:
    """Return that the data do not support a fit, and why."""
    nan, x = math.nan, points.x
    window = (float(x[0]), float(x[-1])) if x.size else (nan, nan)
    note = "; ".join(filter(None, (reason, points.note)))
    return Rate(nan, nan, nan, window, x.size, points.excluded, note)
