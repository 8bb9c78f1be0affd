"""Doubly exponential growth of ``-log(queue_tail)`` with the level, measured with its error."""

import math

import numpy as np
from numpy.typing import ArrayLike

from manyserver.statistics.rates import SIGNAL_TO_NOISE, Points, Rate, checked, no_rate

__all__ = ["growth_per_level"]

SLOWEST_CONTRACTION = 0.6
"""From one growth to the next, the changes of a convergent one shrink at least by this factor."""
LEAST_ERROR = 0.1
"""Least window error of a growth, over its last change."""


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
    tail, errors = checked(log_tail, standard_errors)
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
        told = f"{end} usable levels, {3 * period + 1} needed"
        left = tuple(map(float, excluded))
        points = Points(levels[:end].astype(float), tail[:end], None, left, "; ".join(notes))
        return no_rate(points, told)

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
