"""How a probability vanishes with the number of servers: exponentially, or like a power of it.

Rare events come in few, so that what is measured of them is noisy in a way that its own estimate of
the error does not tell well. A series is therefore cut at its first point whose error is more than
a quarter of its value, about sixteen events or fewer, or where nothing was seen at all: larger
systems are left out even if some event happened to occur there, because such points are kept only
when they are too large.

Corrections to these laws fall slowly, like powers of ``x**-0.5`` for what goes like a power.
"""

import dataclasses
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from manyserver.statistics.extrapolation import Extrapolation
from manyserver.statistics.rates import (
    Points,
    Rate,
    coefficient,
    no_rate,
    positive_fit,
    power_law,
    rate_of,
    usable,
)

__all__ = ["Decay", "LawName", "decay", "leading_coefficient", "resolved"]

LawName = Literal["exponential", "power"]
LEAST_SIGNAL = 4.0
"""A point is resolved when its value is at least so many standard errors."""
SLOWLY = 0.5
"""Power of x by which each term of what goes like a power is smaller than the one before."""
CLEAR = math.log(20)
"""Below this logarithm of the ratio of their probabilities, data do not tell two laws apart."""


@dataclass(frozen=True)
class Decay:
    """A fitted decay.

    Attributes
    ----------
    law : {"exponential", "power"}
        ``a * x**p * exp(-b * x)`` or ``a * x**b``, times a series.
    rate : Rate
        Its estimate is b, the decay of the first law, or the exponent of the second.
    """

    law: LawName
    rate: Rate


def decay(
    x: ArrayLike,
    y: ArrayLike,
    standard_errors: ArrayLike | None = None,
    law: LawName | None = None,
    power: float = 0.0,
) -> Decay:
    """Fit how `y` vanishes for large `x`, exponentially or like a power.

    The laws are ``a * x**p * exp(-b * x) * (1 + series in 1 / x)`` with a given p, and
    ``a * x**b * (1 + series in x**-0.5)``.

    Parameters
    ----------
    x : array_like, shape (point,)
        Positive and increasing.
    y : array_like, shape (point,)
        Not negative; NaN and 0 mean that nothing was seen.
    standard_errors : array_like, shape (point,), optional
        Standard errors of `y`.
    law : {"exponential", "power"}, optional
        The law. If left out, the one that makes the data more probable; the note says so if it
        does by less than a factor 20.
    power : float
        The exponent p of the exponential law.

    Returns
    -------
    Decay
        Points from the first one on that is not resolved are excluded (see the module). The
        estimate is NaN where :func:`~manyserver.statistics.rates.power_law` has none.

    Raises
    ------
    ValueError
        If the shapes differ, `x` is not positive and increasing, or a standard error is negative.

    Examples
    --------
    >>> n = np.array([10, 20, 40, 80, 160])
    >>> found = decay(n, 0.3 * np.exp(-0.05 * n))
    >>> found.law, round(found.rate.estimate, 4)
    ('exponential', 0.05)
    >>> found = decay(n, [4e-1, 2e-1, 1e-1, 5e-2, 0], [1e-4, 1e-4, 1e-4, 1e-4, np.nan])
    >>> found.law, round(found.rate.estimate, 2), found.rate.excluded
    ('power', -1.0, (160.0,))
    """
    places, values, errors, note = resolved(x, y, standard_errors)
    notes = [note]
    if law is None:
        law, told = _more_probable(usable(places, values, errors), power)
        notes.insert(0, told)
    if law == "power":
        rate = power_law(places, values, errors, order=SLOWLY)
    else:
        rate = _exponential(usable(places, values, errors), power)
    return Decay(law, _noted(rate, notes))


def leading_coefficient(
    x: ArrayLike, y: ArrayLike, standard_errors: ArrayLike | None = None
) -> Rate:
    """Fit the coefficient c of ``y = c / x * (1 + series in x**-0.5)``, for large `x`.

    Parameters
    ----------
    x, y, standard_errors
        As for :func:`decay`.

    Returns
    -------
    Rate
        Points are excluded as by :func:`decay`.

    Raises
    ------
    ValueError
        As for :func:`decay`.

    Examples
    --------
    >>> n = np.array([16, 64, 256, 1024, 4096, 16384])
    >>> rate = leading_coefficient(n, 2 / n + 3 / n**1.5)
    >>> round(rate.estimate, 3), rate.standard_error < 0.01
    (2.0, True)
    """
    places, values, errors, note = resolved(x, y, standard_errors)
    return _noted(coefficient(places, values, errors, order=SLOWLY), [note])


def resolved(
    x: ArrayLike, y: ArrayLike, standard_errors: ArrayLike | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, str]:
    """Make NaN of all points from the first one on that is not resolved.

    Returns
    -------
    tuple
        `x`, `y` and the standard errors as arrays, and a note that lists what was left out.

    Raises
    ------
    ValueError
        As for :func:`decay`.
    """
    places, values = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    errors = None if standard_errors is None else np.asarray(standard_errors, dtype=float)
    if places.shape != values.shape or not (places > 0).all() or (np.diff(places) <= 0).any():
        raise ValueError("x: must be positive and increasing, with one value for every y")
    if errors is not None and errors.shape != values.shape:
        raise ValueError(f"standard_errors: have shape {errors.shape}; must have {values.shape}")
    if errors is not None and (errors < 0).any():
        raise ValueError("standard_errors: must not be negative")
    poor = ~(values > 0)
    if errors is not None:
        poor |= ~(values >= LEAST_SIGNAL * errors)
    end = int(np.argmax(poor)) if poor.any() else values.size
    note = f"too few events from {places[end]:g} on" if poor.any() else ""
    late = np.arange(values.size) >= end
    if errors is not None:
        errors = np.where(late, np.nan, errors)
    return places, np.where(late, np.nan, values), errors, note


def _exponential_fit(points: Points, power: float) -> Extrapolation:
    terms = np.stack([np.ones_like(points.x), points.x - points.x[0]], axis=1)
    tilt = points.x**-power
    errors = None if points.errors is None else points.errors * tilt
    tilted = dataclasses.replace(points, y=points.y * tilt, errors=errors)
    return positive_fit(terms, tilted, 1.0)


def _exponential(points: Points, power: float) -> Rate:
    if points.reason:
        return no_rate(points, points.reason)
    rate = rate_of(points, _exponential_fit(points, power), 1, 1.0)
    return dataclasses.replace(rate, estimate=-rate.estimate)


def _more_probable(points: Points, power: float) -> tuple[LawName, str]:
    """Return the law that makes the data more probable, and whether that is not clear."""
    if points.reason:
        return "power", ""
    logarithm = np.log(points.x)
    terms = np.stack([np.ones_like(logarithm), logarithm - logarithm[-1]], axis=1)
    more = (
        _exponential_fit(points, power).log_evidence
        - positive_fit(terms, points, SLOWLY).log_evidence
    )
    law: LawName = "exponential" if more > 0 else "power"
    return law, "" if abs(more) > CLEAR else "the data fit both laws"


def _noted(rate: Rate, notes: list[str]) -> Rate:
    note = "; ".join(text for text in [*notes, rate.note] if text)
    return dataclasses.replace(rate, note=note)
