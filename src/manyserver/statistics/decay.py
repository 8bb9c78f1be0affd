"""How a probability vanishes with the number of servers: exponentially, or like a power of it.

Rare events come in few, so that what is measured of them is noisy in a way that its own estimate of
the error does not tell well. A series is therefore cut at its first point whose error is more than
a quarter of its value, about sixteen events or fewer, or where nothing was seen at all: larger
systems are left out even if some event happened to occur there, because such points are kept only
when they are too large.

Corrections to these laws fall slowly. To the standard error of a fit a part of what its second term
changes is added, in quadrature, for the terms that follow it. Without a second term, a relative
correction of the size ``x**-0.5`` at the largest `x` is allowed for, of which a flat stretch tells
nothing, to what goes like a power.
"""

import dataclasses
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from manyserver.statistics.laws import Fit, decay_fit, root_exponent_fit, root_leading_fit
from manyserver.statistics.rates import Law, Rate, fitted
from manyserver.statistics.windows import FEWEST_POINTS, widest_window

__all__ = ["Decay", "LawName", "decay", "leading_coefficient", "resolved"]

LawName = Literal["exponential", "power"]
LEAST_SIGNAL = 4.0
"""A point is resolved when its value is at least so many standard errors."""
NEXT_TERMS = 0.5
"""Effect of the terms left out on an estimate, relative to that of the second term."""


@dataclass(frozen=True)
class Decay:
    """A fitted decay.

    Attributes
    ----------
    law : {"exponential", "power"}
        ``a * x**p * exp(-b * x + e / x)`` or ``a * x**b * exp(e / sqrt(x))``.
    rate : Rate
        Its estimate is b, the decay of the first law, or the exponent of the second; the second
        term is e.
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

    The laws are ``a * x**p * exp(-b * x + e / x)`` with a given p, and
    ``a * x**b * exp(e / sqrt(x))``; with three points only there is no last term. With standard
    errors, the fit is by weighted least squares in `y`, and small `x` are dropped one by one while
    chi-square rejects the law. Without, it is linear regression of the logarithms.

    Parameters
    ----------
    x : array_like, shape (point,)
        Positive and increasing.
    y : array_like, shape (point,)
        Not negative; NaN and 0 mean that nothing was seen.
    standard_errors : array_like, shape (point,), optional
        Standard errors of `y`.
    law : {"exponential", "power"}, optional
        The law. If left out, the one that chi-square accepts in the wider window; if it accepts
        both there, or neither anywhere, or without errors, the one with less chi-square, and the
        note says so.
    power : float
        The exponent p of the exponential law.

    Returns
    -------
    Decay
        Points from the first one on that is not resolved are excluded (see the module). The
        estimate is NaN if fewer than three points are left.

    Raises
    ------
    ValueError
        If the shapes differ, `x` is not positive and increasing, or a standard error is negative.

    Examples
    --------
    >>> n = np.array([10, 20, 40, 80, 160])
    >>> found = decay(n, 0.3 * np.exp(-0.05 * n))
    >>> found.law, round(found.rate.estimate, 6)
    ('exponential', 0.05)
    >>> found = decay(n, [3e-1, 1.5e-1, 7.5e-2, 0, 0], [1e-3, 1e-3, 1e-3, np.nan, np.nan])
    >>> found.law, round(found.rate.estimate, 6), found.rate.excluded
    ('power', -1.0, (80.0, 160.0))
    """
    places, values, errors, note = resolved(x, y, standard_errors)
    tilted = places**-power

    def exponential(x: np.ndarray, y: np.ndarray, errors: np.ndarray | None, second: bool) -> Fit:
        tilt = x**-power
        return decay_fit(x, y * tilt, None if errors is None else errors * tilt, second)

    laws: dict[LawName, Law] = {"exponential": exponential, "power": root_exponent_fit}
    keep = np.isfinite(values)
    notes = [note]
    if law is None:
        known = None if errors is None else errors[keep]
        law, told = _choose(laws, places[keep], values[keep], known)
        notes.insert(0, told)
    if law == "power":
        rate = _widened(root_exponent_fit, places, values, errors, one_sign=True)
    else:
        scaled = None if errors is None else errors * tilted
        rate = _widened(decay_fit, places, values * tilted, scaled, one_sign=True)
        rate = dataclasses.replace(rate, estimate=-rate.estimate)
    return Decay(law, _noted(rate, notes))


def leading_coefficient(
    x: ArrayLike, y: ArrayLike, standard_errors: ArrayLike | None = None
) -> Rate:
    """Fit the coefficient c of ``y = c / x + d / x**1.5``, for large `x`.

    With three points only there is no second term.

    Parameters
    ----------
    x, y, standard_errors
        As for :func:`decay`.

    Returns
    -------
    Rate
        Points are excluded as by :func:`decay`; small `x` are dropped one by one while chi-square
        rejects the law.

    Raises
    ------
    ValueError
        As for :func:`decay`.

    Examples
    --------
    >>> n = np.array([16, 64, 256, 1024])
    >>> rate = leading_coefficient(n, 2 / n + 3 / n**1.5)
    >>> round(rate.estimate, 6), round(rate.second_term, 6)
    (2.0, 3.0)
    """
    places, values, errors, note = resolved(x, y, standard_errors)
    return _noted(_widened(root_leading_fit, places, values, errors, one_sign=False), [note])


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


def _choose(
    laws: dict[LawName, Law], x: np.ndarray, y: np.ndarray, errors: np.ndarray | None
) -> tuple[LawName, str]:
    """Find the law that chi-square accepts in the wider window."""
    if x.size < FEWEST_POINTS:
        return "power", ""

    def fit(first: int) -> dict[LawName, Fit]:
        known = None if errors is None else errors[first:]
        spare = x.size - first > FEWEST_POINTS
        return {name: law(x[first:], y[first:], known, spare) for name, law in laws.items()}

    def accepted(fits: dict[LawName, Fit]) -> list[LawName]:
        return [name for name, found in fits.items() if errors is None or found.consistent]

    _, fits = widest_window(x.size, fit, lambda fits: bool(accepted(fits)))
    good, better = accepted(fits), min(fits, key=lambda name: fits[name].chi_square)
    if errors is None:
        return better, ""
    if len(good) == 1:
        return good[0], ""
    return better, f"chi-square {'accepts' if good else 'rejects'} both laws"


def _widened(
    law: Law, x: np.ndarray, y: np.ndarray, errors: np.ndarray | None, one_sign: bool
) -> Rate:
    """Fit, and add to the error what the second term changes, times `NEXT_TERMS`."""
    rate = fitted(law, x, y, errors, one_sign)
    if math.isnan(rate.estimate):
        return rate
    used = np.isfinite(y) & ~np.isin(x, rate.excluded)
    known = None if errors is None else errors[used]
    with_term, without = (law(x[used], y[used], known, second) for second in (True, False))
    change = abs(with_term.estimate - without.estimate)
    if law is not decay_fit and math.isnan(rate.second_term):
        size = 0.5 if law is root_exponent_fit else abs(rate.estimate)
        change = max(change, size / math.sqrt(rate.window[1]))
    error = math.hypot(rate.standard_error, NEXT_TERMS * change)
    return dataclasses.replace(rate, standard_error=error)


def _noted(rate: Rate, notes: list[str]) -> Rate:
    note = "; ".join(text for text in [*notes, rate.note] if text)
    return dataclasses.replace(rate, note=note)
