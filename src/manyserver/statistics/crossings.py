"""Where two sampled curves cross, with an error that covers the interpolation and the noise."""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["Crossing", "crossings"]

DEGREES = (5, 3, 1)
"""Of the polynomials through the points nearest to a change of the sign."""
Z = 1.959963984540054
NOTHING = 1e-9
"""Differences that are smaller, relative to the largest one, have no sign."""


@dataclass(frozen=True)
class Crossing:
    """A zero of a difference.

    Attributes
    ----------
    place : float
        Where it is.
    half_width : float
        Of a 95 % interval; NaN if there are too few points to tell.
    window : tuple of float
        The abscissae between which the sign changes.
    rises : bool
        Whether the difference is negative before.
    """

    place: float
    half_width: float
    window: tuple[float, float]
    rises: bool


def crossings(
    x: ArrayLike, y: ArrayLike, standard_errors: ArrayLike | None = None
) -> list[Crossing]:
    """Find where a sampled function changes its sign.

    Parameters
    ----------
    x : array_like, shape (point,)
        In increasing order.
    y : array_like, shape (point,)
        Values; NaN for missing ones, next to which no crossing is looked for.
    standard_errors : array_like, shape (point,), optional
        Of independent normal errors of `y`; none by default.

    Returns
    -------
    list of Crossing
        By place; values that do not differ from zero at 95 % have no sign. The place is the zero of
        the polynomial of degree 5, or less, through the nearest points; its error is how far that
        of the next lower degree is away, and how far the noise moves it.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(0, 1, 8)
    >>> (found,) = crossings(x, np.exp(x) - 1.5)
    >>> round(found.place, 6), round(math.log(1.5), 6), found.half_width < 1e-4
    (0.405465, 0.405465, True)
    """
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    noise = (
        np.zeros(y.size) if standard_errors is None else np.asarray(standard_errors, dtype=float)
    )
    known = np.abs(y) > np.maximum(Z * noise, NOTHING * np.nanmax(np.abs(y), initial=0.0))
    pairs = pairwise(np.flatnonzero(known | np.isnan(y)))
    return [_crossing(x, y, noise, int(a), int(b)) for a, b in pairs if y[a] * y[b] < 0]


def _crossing(x: np.ndarray, y: np.ndarray, noise: np.ndarray, a: int, b: int) -> Crossing:
    zeros = [_zero(x, y, noise, a, b, degree) for degree in DEGREES]
    (place, moved), *others = [zero for zero in zeros if zero is not None]
    bias = abs(place - others[0][0]) if others else math.nan
    window = (float(x[a]), float(x[b]))
    return Crossing(place, math.hypot(bias, Z * moved), window, bool(y[a] < 0))


def _zero(
    x: np.ndarray, y: np.ndarray, noise: np.ndarray, a: int, b: int, degree: int
) -> tuple[float, float] | None:
    """Return the zero of the polynomial through the nearest points, and how far noise moves it.

    None if there are too few points.
    """
    from scipy.interpolate import KroghInterpolator
    from scipy.optimize import brentq

    # What lies between the two has no certain sign, so that the curve is one through the ends.
    there = np.flatnonzero(np.isfinite(y) & ~((np.arange(x.size) > a) & (np.arange(x.size) < b)))
    order = np.argsort(np.abs(x[there] - (x[a] + x[b]) / 2), kind="stable")
    nearest = there[order][: degree + 1]
    if len(nearest) <= degree or not {a, b} <= set(nearest.tolist()):
        return None
    curve = KroghInterpolator(x[nearest], y[nearest])
    place = float(brentq(lambda at: float(curve(at)), x[a], x[b], xtol=1e-14))
    weights = KroghInterpolator(x[nearest], np.eye(degree + 1))(place)
    error = float(np.linalg.norm(weights * noise[nearest]))
    return place, abs(error / float(curve.derivative(place)))
