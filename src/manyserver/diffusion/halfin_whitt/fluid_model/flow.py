r"""The fluid model of join the shortest queue in the Halfin-Whitt regime, in closed form.

*Scaling.* Here and in the whole package a point is :math:`X = \sqrt n\,x`, in the notation of
arXiv:1801.05121: the first coordinate is minus the number of idle servers and the second the
number of servers with a waiting customer, both divided by :math:`\sqrt n`. Nothing depends on n.

The fluid path solves

.. math:: \dot v_1 = -\beta - v_1 + v_2 - \dot u,\qquad \dot v_2 = \dot u - v_2,

with :math:`v_1 \le 0`, and u grows only while :math:`v_1 = 0`. In the interior the solution is
elementary. The time to reach the axis :math:`v_1 = 0` is the smaller root of a convex function,

.. math:: h(\tau) = \beta (e^\tau - 1) - X_1 - \tau X_2 = 0,

whose least value is at :math:`e^\tau = X_2/\beta`. Counted back from there, with
:math:`\delta = \log(X_2/\beta) - \tau`, the equation has a single parameter,

.. math:: e^{-\delta} - 1 + \delta = c,\qquad c = X_1/X_2 + \log(X_2/\beta) - 1 + \beta/X_2,

and :math:`\delta = 1 + c + W_0(-e^{-1-c})`. The argument of Lambert's W lies in
:math:`[-1/e, 0)` and never overflows. The path reaches the axis if and only if
:math:`X_2 \ge \beta` and :math:`c \ge 0`, at the height :math:`v_2 = \beta e^\delta`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import lambertw, wrightomega

from manyserver.checks import checked_array
from manyserver.diffusion.halfin_whitt.checks import check_beta, check_level, check_points

__all__ = ["Hit", "first_hit", "fluid", "gamma_curve", "hitting_time", "time_below"]

POLISH = 2
"""Newton steps after Lambert's W."""
NEAR_BRANCH = 1e-4
TANGENT = 1e-12
"""Smallest slope of an equation whose root is polished."""


def fluid(x: ArrayLike, t: ArrayLike, beta: float) -> np.ndarray:
    r"""Follow the fluid model from a point.

    Parameters
    ----------
    x : array_like, shape (..., 2)
        Start, with ``x[..., 0] <= 0`` and ``x[..., 1] >= 0``, scaled by :math:`\sqrt n`.
    t : array_like
        Times, >= 0; broadcast against ``x[..., 0]``.
    beta : float
        Spare capacity, > 0: the arrival rate per server is :math:`1 - \beta/\sqrt n`.

    Returns
    -------
    numpy.ndarray, shape (..., 2)

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Notes
    -----
    The dynamical system (4.1) of arXiv:1801.05121, solved as in its Appendix B.

    Examples
    --------
    The path reaches the axis, slides down to ``(0, beta)`` and leaves it there for
    ``(-beta, 0)``.

    >>> fluid([-1.0, 3.0], [0.0, 1.0, 2.0, 3.0], beta=1.0).round(4)
    array([[-1.    ,  3.    ],
           [ 0.    ,  1.2344],
           [-0.1789,  0.4651],
           [-0.5268,  0.1711]])
    """
    beta = check_beta(beta)
    x1, x2 = check_points(x)
    times = np.asarray(t, float)
    if not (np.isfinite(times) & (times >= 0)).all():
        raise ValueError(f"t = {t!r}: must be finite and at least 0")
    x1, x2, times = np.broadcast_arrays(x1, x2, times)
    hit = first_hit(x1, x2, beta)
    decay = np.exp(-times)
    v1 = x1 * decay + beta * np.expm1(-times) + times * x2 * decay
    v2 = x2 * decay

    on_axis = times >= hit.time
    excess = hit.excess - beta * np.where(on_axis, times - hit.time, 0.0)
    v1 = np.where(on_axis, 0.0, v1)
    v2 = np.where(on_axis, beta + excess, v2)

    left = on_axis & (excess < 0)
    since = np.where(left, -excess / beta, 0.0)
    v1 = np.where(left, beta * (np.expm1(-since) + since * np.exp(-since)), v1)
    v2 = np.where(left, beta * np.exp(-since), v2)
    return np.stack([np.minimum(v1, 0.0), v2], axis=-1)


def hitting_time(x: ArrayLike, beta: float) -> np.ndarray:
    r"""Time at which the fluid path reaches the axis, where all servers are busy.

    Parameters
    ----------
    x : array_like, shape (..., 2)
        Start, with ``x[..., 0] <= 0`` and ``x[..., 1] >= 0``, scaled by :math:`\sqrt n`.
    beta : float
        Spare capacity, > 0.

    Returns
    -------
    numpy.ndarray, shape (...)
        Infinite if the path never gets there, and also if it starts there with
        ``x[..., 1] < beta``, as it then leaves at once for ever.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Notes
    -----
    Eq. (4.7) and Lemma 6 of arXiv:1801.05121, the smallest root of
    :math:`\beta - (X_1+\beta)e^{-\tau} - \tau X_2e^{-\tau}`.

    Examples
    --------
    >>> hitting_time([[-1.0, 3.0], [-1.0, 0.5], [0.0, 2.0]], beta=1.0).round(6)
    array([0.619061,      inf, 0.      ])
    """
    beta = check_beta(beta)
    x1, x2 = check_points(x)
    return first_hit(x1, x2, beta).time


def gamma_curve(x1: ArrayLike, kappa: float, beta: float) -> np.ndarray:
    r"""Height from which the fluid path reaches the axis exactly at ``(0, kappa)``.

    Parameters
    ----------
    x1 : array_like
        First coordinate of the start, at most 0, scaled by :math:`\sqrt n`.
    kappa : float
        Height at the axis, at least `beta`.
    beta : float
        Spare capacity, > 0.

    Returns
    -------
    numpy.ndarray
        Second coordinate of the start. The curve falls to `kappa` at ``x1 = 0``; paths that start
        above it reach the axis above `kappa`. With `kappa` equal to `beta` it is the separatrix:
        paths that start below it never reach the axis, but come to rest with idle servers.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Notes
    -----
    The curve :math:`\Gamma^{(\kappa)}` of arXiv:1801.05121 (Lemma 5). With eta the time to reach
    the axis, :math:`\eta = \beta/\kappa + W_0(-\frac{X_1+\beta}{\kappa}e^{-\beta/\kappa})` and
    the height is :math:`\kappa e^\eta`.

    Examples
    --------
    >>> gamma_curve([0.0, -1.0, -10.0], kappa=2.0, beta=1.0).round(6)
    array([2.      , 3.297443, 8.98168 ])
    >>> gamma_curve([0.0, -1.0, -10.0], kappa=1.0, beta=1.0).round(6)
    array([1.      , 2.718282, 8.174365])
    """
    beta = check_beta(beta)
    kappa = check_level(kappa, beta, closed=True)
    start = checked_array("x1", x1, "finite numbers")
    if not (np.isfinite(start) & (start <= 0)).all():
        raise ValueError(f"x1 = {x1!r}: must be finite and at most 0")
    ratio = beta / kappa
    # Rounding must not pass the branch point, where the separatrix touches the axis.
    argument = np.maximum(-(start + beta) / kappa * np.exp(-ratio), -np.exp(-1.0))
    eta = np.maximum(ratio + np.nan_to_num(lambertw(argument).real, nan=-1.0), 0.0)
    for _ in range(POLISH):
        decayed = (start + beta) * np.exp(-eta)
        slope = kappa - decayed
        # On the axis the separatrix is tangent to it.
        change = np.divide(
            kappa * eta - beta + decayed, slope, out=np.zeros_like(eta), where=slope > TANGENT
        )
        eta = np.maximum(eta - change, 0.0)
    return np.asarray(kappa * np.exp(eta))


class Hit(NamedTuple):
    """Where and when fluid paths reach the axis; infinite time if they never do.

    Parameters
    ----------
    time : numpy.ndarray
    excess : numpy.ndarray
        Height above beta; 0 if the axis is not reached.
    """

    time: np.ndarray
    excess: np.ndarray


def first_hit(x1: np.ndarray, x2: np.ndarray, beta: float) -> Hit:
    """Find where paths first reach the axis, without checking the arguments."""
    reaches = x2 >= beta
    height = np.where(reaches, x2, beta)
    logarithm = np.log1p((height - beta) / beta)
    c = x1 / height + (logarithm - (height - beta) / height)
    reaches &= c >= 0
    c = np.where(reaches, c, 0.0)
    # The path that starts on the axis is there at once; rounding must not say otherwise.
    back = np.where(x1 == 0, logarithm, np.minimum(_time_from_tangent(c), logarithm))
    time = _polished(x1, height, logarithm - back, beta)
    excess = beta * np.expm1(logarithm - time)
    return Hit(np.where(reaches, time, np.inf), np.where(reaches, excess, 0.0))


def _time_from_tangent(c: np.ndarray) -> np.ndarray:
    """Solve ``exp(-d) - 1 + d = c`` for d >= 0, with c >= 0."""
    # Next to its branch point W has half the digits only, and a series is the better start.
    root = np.sqrt(2 * np.minimum(c, NEAR_BRANCH))
    series = root * (1 + root / 6 + root**2 / 36)
    start = np.where(c < NEAR_BRANCH, series, 1 + c + lambertw(-np.exp(-1 - c)).real)
    for _ in range(POLISH):
        slope = -np.expm1(-start)
        value = c - start + slope
        start = start + np.divide(value, slope, out=np.zeros_like(value), where=slope > 0)
    return np.maximum(start, 0.0)


def _polished(x1: np.ndarray, x2: np.ndarray, time: np.ndarray, beta: float) -> np.ndarray:
    """Make small times relatively exact, by one Newton step away from the tangent."""
    slope = beta * np.exp(time) - x2
    value = beta * np.expm1(time) - x1 - time * x2
    steep = slope < -0.1 * x2
    step = np.divide(value, slope, out=np.zeros_like(value), where=steep)
    return np.asarray(np.maximum(time - step, 0.0))


def time_below(x1: np.ndarray, x2: np.ndarray, level: float, beta: float) -> np.ndarray:
    """Time until the fluid path rises to ``v1 = -level``, for level > beta.

    It is 0 if ``x1 >= -level`` already.

    Notes
    -----
    Lemma 11 of arXiv:1801.05121 in the form log(X2 W / (level - beta)), with W = W0 of an argument
    that overflows and of which Wright's omega function only takes the logarithm.
    """
    below = x1 < -level
    depth = np.where(below, -x1 - beta, level - beta)
    # Smaller heights change nothing, and the quotient must not overflow.
    height = np.maximum(x2, 1e-30 * depth)
    ratio = depth / height
    # depth * omega / ratio stays finite.
    omega = wrightomega(np.log((level - beta) / height) + ratio)
    time = np.log(omega * height / (level - beta))
    # The logarithm is exact to rounding; a Newton step makes small times so relatively.
    value = (level - beta) * np.expm1(time) - (depth - (level - beta)) + time * x2
    time = time - value / ((level - beta) * np.exp(time) + x2)
    return np.where(below, np.maximum(time, 0.0), 0.0)
