"""Rates at which the diffusion and the queues relax: roots of two secular functions."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq, minimize_scalar, newton

from manyserver.diffusion.halfin_whitt.finite.two_levels import Levels, secular_logarithm
from manyserver.diffusion.halfin_whitt.limit.exponent import small_exponent
from manyserver.diffusion.halfin_whitt.limit.method_of_lines import Profile, Resolution, march

__all__ = ["chain_edge", "chain_rate", "diffusion_rate", "essential_spectrum_bottom"]

LOWEST = 0.01
"""Level at which the march meets the power series in y."""
TERMS = 8
"""Terms of that series."""
FASTEST = 1.0
"""Without waiting the busy servers relax at this rate, which bounds the gap of the diffusion."""
FASTEST_CHAIN = 1.987
"""No rate of the queues is looked for above this."""
STEPS = 16
"""Steps of the search up to the edge of the continuous spectrum."""
PRECISION = 1e-11
LAST_STEP = 1e-7
"""The secant method ends with a step of this part of the edge; its error is far smaller."""
ROUGH = Resolution(degree=30, stages=4)
"""Resolution of the search for a root, to some 1e-6 of it."""
DOUBLE = 1e-10
"""A dip to this part of the values around it is a double root, to 1e-5 of a step."""
REACH = 90.0
"""Levels of the chain go to REACH / -log(lambda); a solution falls at least half as fast."""


def essential_spectrum_bottom(beta: float) -> float:
    """Return the bottom of the continuous spectrum of the diffusion, beta**2 / 4.

    For large Y2 the diffusion moves with drift -beta and variance 2.
    """
    return beta * beta / 4


def chain_edge(beta: float, n: int) -> float:
    """Return the rate at which n busy servers with an infinite queue relax.

    It tends to :func:`essential_spectrum_bottom`.
    """
    return n * (1 - math.sqrt(1 - beta / math.sqrt(n))) ** 2


def diffusion_rate(beta: float, resolution: Resolution, near: float | None = None) -> float:
    """Return the smallest positive rate gamma at which smooth functions relax.

    A smooth eigenfunction has a power series f = f_0(x) + y f_1(x) + ..., which its rate
    determines up to a factor, and for every solution q of the march with decay gamma

        int f q dx - f(0, y) nu    is the same for all y.

    It is zero for large y, and for small y exactly when gamma is a rate. With `near`, the root
    near that is returned without a search; the search is at a rough resolution.
    """
    theta = small_exponent(beta)
    edge = min(essential_spectrum_bottom(beta), FASTEST)

    def secular(decay: float, resolution: Resolution) -> float:
        # The solution that falls fastest for large y, and takes over as y decreases.
        rate = beta / 2 + math.sqrt(max(essential_spectrum_bottom(beta) - decay, 0.0))
        profile = march(beta, resolution, LOWEST, decay=decay, rate=rate)
        return _pairing(profile, decay, theta) / decay

    if near is None:
        near = _first_root(lambda decay: secular(decay, ROUGH), edge, edge)
    found = newton(secular, near, x1=near * (1 - 1e-6), args=(resolution,), tol=LAST_STEP * edge)
    return float(found)


def _pairing(profile: Profile, decay: float, theta: float) -> float:
    basis, size, y = profile.x_basis, profile.length[-1], profile.y[-1]
    series = _series(profile, decay, theta)
    powers = y ** np.arange(TERMS)
    function = powers @ series
    flow = profile.flow[-1]
    value = size * (basis.weights * function) @ flow - function[0] * profile.boundary[-1]
    return float(value / np.abs(flow).max())


def _series(profile: Profile, decay: float, theta: float) -> np.ndarray:
    """Terms f_k at the nodes of x, shape (term, node).

    f_k'' - (beta + x) f_k' + (gamma - k) f_k = -f_{k-1}' and k f_k(0) = f_{k-1}'(0); at the far
    end the second derivative is dropped, which leaves only solutions of polynomial growth. The
    factor theta - gamma of f_0(0) cancels the pole where gamma is a rate of the process that
    is stopped at 0.
    """
    basis, size = profile.x_basis, profile.length[-1]
    first = -basis.derivative / size
    x = -size * basis.nodes
    series = np.zeros((TERMS, len(x)))
    slope = np.zeros(len(x))
    for term in range(TERMS):
        matrix = first @ first
        matrix[-1] = 0.0
        matrix -= (profile.beta + x)[:, None] * first
        matrix[np.diag_indices(len(x))] += decay - term
        matrix[0] = 0.0
        matrix[0, 0] = 1.0
        right = -slope
        right[0] = slope[0] / term if term else theta - decay
        series[term] = np.linalg.solve(matrix, right)
        slope = first @ series[term]
    return series


def chain_rate(beta: float, n: int) -> float:
    """Return the smallest positive rate of the queues with at most two customers per server."""
    arrivals = n - beta * math.sqrt(n)
    top = min(n, math.ceil(REACH / -math.log(arrivals / n)) + 1)
    states = Levels(n, arrivals, top)
    shift = secular_logarithm(states, 1e-3 * min(essential_spectrum_bottom(beta), FASTEST))[1]

    def secular(decay: float) -> float:
        sign, logarithm = secular_logarithm(states, decay)
        return sign * math.exp(logarithm - shift) / decay

    return _first_root(secular, min(essential_spectrum_bottom(beta), FASTEST), FASTEST_CHAIN)


def _first_root(function: Callable[[float], float], edge: float, top: float) -> float:
    """Return the smallest root up to `top`, in steps of a part of `edge`.

    Two roots within a step show as a dip of the absolute value.

    Raises
    ------
    RuntimeError
        If there is none.
    """
    step = edge / STEPS
    points = [step / 2]
    values = [function(points[0])]
    while points[-1] < top:
        points.append(min(points[-1] + step, top))
        values.append(function(points[-1]))
        if values[-2] * values[-1] <= 0:
            return _root(function, points[-2], points[-1], edge)
        sizes = np.abs(values[-3:])
        if len(sizes) == 3 and sizes[1] <= min(sizes[0], sizes[2]):
            lowest = _dip(function, points[-3], points[-1])
            value = function(lowest)
            if value * values[-1] <= 0:
                return _root(function, points[-3], lowest, edge)
            if abs(value) < DOUBLE * min(sizes[0], sizes[2]):
                return lowest
    raise RuntimeError(f"no relaxation rate was found up to {top:.4g}")


def _dip(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function comes closest to zero, or passes it."""
    sign = math.copysign(1.0, function(high))
    found = minimize_scalar(
        lambda x: sign * function(x),
        bounds=(low, high),
        method="bounded",
        options={"xatol": PRECISION * (high - low)},
    )
    return float(found.x)


def _root(function: Callable[[float], float], low: float, high: float, edge: float) -> float:
    return float(brentq(function, low, high, xtol=PRECISION * edge, rtol=PRECISION))
