"""What one draw of servers adds to the joining law, with its derivatives.

Of the servers that a draw may look at, the fraction `lo` is ranked after a rank and the fraction
``hi`` is of this rank or after it. Every server has a uniform mark, and `t` is the probability
that a mark is large enough. All servers looked at are then ranked after, or are tied and have a
large enough mark, with probability ``(t hi + (1 - t) lo)**d`` (with replacement, or infinitely
many servers).
"""

import math
from dataclasses import dataclass

import numpy as np

__all__ = ["DrawLaw", "by_inverse_size", "power"]


@dataclass(frozen=True)
class DrawLaw:
    """A probability and its derivatives by hi and lo, in this order, each of shape (rank, t)."""

    value: np.ndarray
    first: tuple[np.ndarray, ...]
    second: tuple[tuple[np.ndarray, ...], ...]


def power(
    hi: np.ndarray,
    lo: np.ndarray,
    t: np.ndarray,
    d: int,
    chosen: bool,
    size: int | None,
    order: int,
) -> DrawLaw:
    """Probability that the servers looked at leave the arrival to a given one.

    Parameters
    ----------
    hi, lo : numpy.ndarray, shape (rank, 1)
        Fractions of the servers of this rank or after, and after it.
    t : numpy.ndarray, shape (t,)
        Probability that a tied server has a large enough mark.
    d : int
        Servers looked at.
    chosen : bool
        Whether the given server is one of these; then the others count, times `d`.
    size : int or None
        Number of servers to draw distinct ones from; None for the limit or with replacement.
    order : int
        How many derivatives are needed, 0 to 2.
    """
    scale = float(d) if chosen else 1.0
    exponent = d - 1 if chosen else d
    if size is None:
        return _power(hi, lo, t, scale, exponent, order)
    others = size - int(chosen)
    s, sv, sw, svv, svw, sww = _hypergeometric(
        size * lo, size * (hi - lo) - int(chosen), t, exponent, others
    )
    slope, bend = scale * size, scale * size**2
    return DrawLaw(
        scale * s,
        (slope * sw, slope * (sv - sw)),
        (
            (bend * sww, bend * (svw - sww)),
            (bend * (svw - sww), bend * (svv - 2 * svw + sww)),
        ),
    )


def by_inverse_size(hi: np.ndarray, lo: np.ndarray, t: np.ndarray, d: int, chosen: bool) -> DrawLaw:
    """Value of `power` in the limit, and its one derivative, by 1 / size, for distinct servers.

    Let a server count 1 if ranked after, t if tied and 0 if ranked before: the value is the
    expected product over the servers looked at. Two distinct ones have the covariance
    -variance / (size - 1); if one is the given server, the others are drawn from the rest.

    Parameters
    ----------
    hi, lo, t, d, chosen
        As for :func:`power`.
    """
    scale = float(d) if chosen else 1.0
    exponent = d - 1 if chosen else d
    mean = t * hi + (1 - t) * lo
    variance = t**2 * (hi - lo) + lo - mean**2
    slope = -math.comb(exponent, 2) * mean ** max(exponent - 2, 0) * variance
    if chosen:
        slope += exponent * mean ** max(exponent - 1, 0) * (mean - t)
    return DrawLaw(scale * mean**exponent, (scale * slope,), ())


def _power(
    hi: np.ndarray, lo: np.ndarray, t: np.ndarray, scale: float, exponent: int, order: int
) -> DrawLaw:
    base = t * hi + (1 - t) * lo
    value = scale * base**exponent
    if order == 0:
        return DrawLaw(value, (), ())
    slope = scale * exponent * base ** max(exponent - 1, 0)
    first = (t * slope, (1 - t) * slope)
    if order == 1:
        return DrawLaw(value, first, ())
    bend = scale * exponent * (exponent - 1) * base ** max(exponent - 2, 0)
    mixed = t * (1 - t) * bend
    return DrawLaw(value, first, ((t**2 * bend, mixed), (mixed, (1 - t) ** 2 * bend)))


def _hypergeometric(
    worse: np.ndarray, tied: np.ndarray, t: np.ndarray, d: int, size: int
) -> tuple[np.ndarray, ...]:
    """Draw d of `size` distinct servers: E[t**(tied ones); none better], with derivatives.

    With falling factorials (x)_k this is sum_k C(d, k) (worse)_{d-k} (tied)_k t**k / (size)_d, a
    polynomial in the counts `worse` and `tied`. Returned are its value and its derivatives by
    worse, tied, worse twice, both, tied twice, each of shape (rank, t).
    """
    k = np.arange(d + 1)
    coefficients = np.array(
        [
            math.comb(d, int(i))
            * math.perm(size, d - int(i))
            * math.perm(size, int(i))
            / math.perm(size, d)
            for i in k
        ]
    )
    powers = coefficients[:, None] * t[None, :] ** k[:, None]
    v = [part[::-1] for part in _falling(worse[:, 0], d, size)]
    w = _falling(tied[:, 0], d, size)
    pairs = ((0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2))
    return tuple((v[a] * w[b]).T @ powers for a, b in pairs)


def _falling(x: np.ndarray, d: int, size: int) -> list[np.ndarray]:
    """Return ``(x)_k / (size)_k`` for k = 0 .. d and two derivatives, each of shape (k, rank)."""
    values = np.zeros((3, d + 1, len(x)))
    values[0, 0] = 1.0
    for k in range(d):
        step = (x - k) / (size - k)
        values[0, k + 1] = values[0, k] * step
        values[1, k + 1] = values[1, k] * step + values[0, k] / (size - k)
        values[2, k + 1] = values[2, k] * step + 2 * values[1, k] / (size - k)
    return list(values)
