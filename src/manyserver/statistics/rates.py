"""Rates at which quantities approach their limits, fitted with standard errors.

A fit uses a *window* of the data and says which. Points whose error exceeds their signal are
excluded by rule, never by eye, and are listed. The standard error of a fit has two parts, added in
quadrature: the noise of the data, and the *window error*, how far the estimate moves when the
window begins nearer to the limit.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, stats

__all__ = ["Rate", "growth_per_level", "power_law"]

SIGNAL_TO_NOISE = 2.0
"""A point counts when its size is at least this many standard errors."""
FEWEST_POINTS = 3
SLOWEST_CONTRACTION = 0.6
"""From one growth to the next, the changes of a convergent one shrink at least by this factor."""
LEAST_ERROR = 0.1
"""Least window error of a growth, over its last change."""
WORST_P_VALUE = 0.05
"""Below this p-value of chi-square, a power law is not supported by a window."""


@dataclass(frozen=True)
class Rate:
    """A fitted rate.

    Attributes
    ----------
    estimate : float
        The exponent, or the growth per level; NaN if the data do not support a fit.
    standard_error : float
        Noise and window error, in quadrature.
    prefactor : float
        ``a`` in ``y = a * x**b``; NaN for a growth per level.
    window : tuple of float
        Smallest and largest abscissa used.
    n_points : int
        Number of points used.
    excluded : tuple of float
        Abscissae left out, in increasing order.
    note : str
        Why points were left out, or why there is no estimate; empty if there is nothing to say.
    """

    estimate: float
    standard_error: float
    prefactor: float
    window: tuple[float, float]
    n_points: int
    excluded: tuple[float, ...]
    note: str


def power_law(
    x: ArrayLike,
    y: ArrayLike,
    standard_errors: ArrayLike | None = None,
) -> Rate:
    """Fit the exponent of ``y = a * x**b`` for large `x`.

    With standard errors, the fit is by weighted least squares in `y` (not in its logarithm, whose
    mean is biased by noise), and small `x` are dropped one by one while chi-square rejects the
    power law. Without, it is linear regression of the logarithms.

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
    values, errors = _checked(y, standard_errors)
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
    places, values, errors = places[keep], values[keep], errors[keep]
    reason = None
    if places.size < FEWEST_POINTS:
        reason = f"{places.size} usable points, {FEWEST_POINTS} needed"
    elif np.unique(np.sign(values)).size > 1:
        reason = "the signal changes sign"
    if reason is not None:
        return _no_rate(places, excluded, [reason, *notes])

    first, consistent = 0, True
    if standard_errors is not None:
        first, consistent = _consistent_window(places, values, errors)
    if first:
        notes.append(f"not yet a power law at {_list(places[:first])}")
        excluded = np.sort(np.concatenate([excluded, places[:first]]))
        places, values, errors = places[first:], values[first:], errors[first:]
    if not consistent:
        notes.append("scatter exceeds the errors, standard error widened")
    exponent, prefactor, variance = _fit(places, values, errors, widen=not consistent)
    rest = slice(places.size // 2 if standard_errors is None else 1, None)
    moved, _, _ = _fit(places[rest], values[rest], errors[rest], widen=False)
    return Rate(
        estimate=exponent,
        standard_error=math.hypot(math.sqrt(variance), moved - exponent),
        prefactor=prefactor,
        window=(float(places[0]), float(places[-1])),
        n_points=places.size,
        excluded=tuple(map(float, excluded)),
        note="; ".join(notes),
    )


def growth_per_level(
    log_tail: ArrayLike, standard_errors: ArrayLike | None = None, period: int = 1
) -> Rate:
    """Measure the doubly exponential growth of ``-log(tail)`` with the level.

    If ``log_tail[k + 1] = a + g * log_tail[k]`` then the ratio of successive differences is `g`
    at every level, free of `a`. Where this holds only for deep levels, the ratio converges
    geometrically: the estimate is the last ratio plus the sum of the changes still to come
    (Aitken), and that sum is the window error. A preference that compares speeds repeats itself
    after several levels; differences are then taken over that period, and the estimate is the
    mean growth per level.

    Parameters
    ----------
    log_tail : array_like, shape (level,)
        Natural logarithm of the fraction of servers with at least k jobs, k = 0, 1, ...; zero,
        then decreasing. NaN and -inf are missing.
    standard_errors : array_like, shape (level,), optional
        Standard errors of `log_tail` (relative errors of the tail). As those of different levels
        are correlated in an unknown way, they are added up, not in quadrature.
    period : int, optional
        Levels after which the preference repeats itself, at least one.

    Returns
    -------
    Rate
        Growth per level. Excluded are the levels from the first one that is missing, has a
        standard error of one half or more, or, with standard errors, does not decrease. The
        estimate is NaN if fewer than ``3 * period + 1`` levels are left.

    Raises
    ------
    ValueError
        If the shapes differ, `period` is below one, or a tail without errors does not decrease.

    Examples
    --------
    SQ(2) at load 0.9, where the tail is ``0.9 ** (2**k - 1)``:

    >>> rate = growth_per_level([math.log(0.9) * (2**k - 1) for k in range(8)])
    >>> round(rate.estimate, 9), rate.n_points
    (2.0, 8)
    """
    if period < 1:
        raise ValueError(f"period = {period}: must be at least 1")
    tail, errors = _checked(log_tail, standard_errors)
    errors = np.maximum(errors, np.finfo(float).eps * np.abs(tail))
    levels = np.arange(tail.size)
    missing = ~np.isfinite(tail)
    noisy = ~missing & (SIGNAL_TO_NOISE * errors >= 1)
    if standard_errors is not None:
        noisy |= np.diff(tail, prepend=np.inf) >= 0
    end = int(np.argmax(missing | noisy)) if (missing | noisy).any() else tail.size
    excluded = levels[end:]
    if np.any(np.diff(tail[:end]) >= 0):
        raise ValueError("log_tail: must decrease with the level")
    notes = [f"error exceeds signal from level {end}"] if noisy[end:].any() else []
    if end < 3 * period + 1:
        notes.insert(0, f"{end} usable levels, {3 * period + 1} needed")
        return _no_rate(levels[:end], excluded, notes)

    steps = tail[period:end] - tail[: end - period]
    growths = (steps[period:] / steps[:-period]) ** (1 / period)
    # The last ratio is (t2 - t1) / (t1 - t0) at levels one period apart.
    e0, e1, e2 = errors[[end - 1 - 2 * period, end - 1 - period, end - 1]]
    ratio, step = growths[-1] ** period, abs(steps[-1 - period])
    noise = (e2 + (1 + ratio) * e1 + ratio * e0) / step * growths[-1] / (ratio * period)
    growth, window_error, converging = _limit(growths[::-period][:3][::-1], noise)
    if not converging:
        notes.append("the growth is not seen to converge")
    return Rate(
        estimate=growth,
        standard_error=math.hypot(noise, window_error),
        prefactor=math.nan,
        window=(0.0, float(end - 1)),
        n_points=end,
        excluded=tuple(map(float, excluded)),
        note="; ".join(notes),
    )


def _limit(growths: np.ndarray, noise: float) -> tuple[float, float, bool]:
    """Return the limit of a sequence, its error, and whether the sequence is seen to converge."""
    last = float(growths[-1])
    changes = np.diff(growths)
    if abs(changes[-1]) <= noise:
        return last, noise, True
    contraction = abs(changes[-1] / changes[0]) if changes.size > 1 else math.inf
    if contraction > SLOWEST_CONTRACTION:
        return last, abs(float(changes[-1])), False
    # Aitken: the changes go on shrinking by the same factor, so this much is still to come.
    factor = float(changes[-1] / changes[0])
    correction = float(changes[-1]) * factor / (1 - factor)
    return last + correction, max(abs(correction), LEAST_ERROR * abs(float(changes[-1]))), True


def _checked(values: ArrayLike, errors: ArrayLike | None) -> tuple[np.ndarray, np.ndarray]:
    """Return values and errors as float arrays; a value without an error is missing."""
    known = np.asarray(values, dtype=float)
    of_known = np.zeros_like(known) if errors is None else np.asarray(errors, dtype=float)
    if known.shape != of_known.shape or known.ndim != 1:
        raise ValueError(f"shapes {known.shape}, {of_known.shape}: must be equal, with one axis")
    if np.any(of_known < 0):
        raise ValueError("standard_errors: must not be negative")
    return np.where(np.isnan(of_known), np.nan, known), np.nan_to_num(of_known)


def _repeats(values: np.ndarray) -> bool:
    return np.unique(values).size < values.size


def _consistent_window(x: np.ndarray, y: np.ndarray, errors: np.ndarray) -> tuple[int, bool]:
    """Find the widest window, up to the largest `x`, in which chi-square accepts a power law."""
    for first in range(x.size - FEWEST_POINTS + 1):
        exponent, prefactor, _ = _fit(x[first:], y[first:], errors[first:], widen=False)
        residuals = (y[first:] - prefactor * x[first:] ** exponent) / errors[first:]
        if stats.chi2.sf(np.sum(residuals**2), residuals.size - 2) >= WORST_P_VALUE:
            return first, True
    return x.size - FEWEST_POINTS, False


def _fit(
    x: np.ndarray, y: np.ndarray, errors: np.ndarray, widen: bool
) -> tuple[float, float, float]:
    """Return exponent, prefactor and the variance of the exponent."""
    log_x, log_y = np.log(x), np.log(np.abs(y))
    sign = float(np.sign(y[0]))
    if not np.all(errors > 0):
        line = stats.linregress(log_x, log_y)
        variance = float(line.stderr) ** 2 if x.size > 2 else 0.0
        return float(line.slope), sign * math.exp(line.intercept), variance

    # At the centre of the weights the two parameters are nearly uncorrelated.
    weights = (y / errors) ** 2
    centre = float(np.sum(weights * log_x) / np.sum(weights))
    slope, intercept = np.polyfit(log_x - centre, log_y, 1, w=np.sqrt(weights))

    def law(shifted: np.ndarray, log_scale: float, exponent: float) -> np.ndarray:
        return sign * np.exp(log_scale + exponent * shifted)

    (log_scale, exponent), covariance = optimize.curve_fit(
        law, log_x - centre, y, p0=(intercept, slope), sigma=errors, absolute_sigma=True
    )
    variance = float(covariance[1, 1])
    if widen and x.size > 2:
        residuals = (y - law(log_x - centre, log_scale, exponent)) / errors
        variance *= max(1.0, float(np.sum(residuals**2)) / (x.size - 2))
    return float(exponent), sign * math.exp(log_scale - exponent * centre), variance


def _no_rate(x: np.ndarray, excluded: np.ndarray, notes: list[str]) -> Rate:
    nan = math.nan
    window = (float(x[0]), float(x[-1])) if x.size else (nan, nan)
    return Rate(nan, nan, nan, window, x.size, tuple(map(float, excluded)), "; ".join(notes))


def _list(values: np.ndarray) -> str:
    return ", ".join(f"{value:g}" for value in values)
