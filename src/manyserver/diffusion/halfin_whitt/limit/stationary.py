"""The stationary law of the reflected diffusion."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.polynomial.polynomial import polyfit
from numpy.typing import ArrayLike

from manyserver.checks import checked_array, checked_number
from manyserver.diffusion.halfin_whitt.labels import labelled
from manyserver.diffusion.halfin_whitt.limit.laws import Law, law
from manyserver.diffusion.halfin_whitt.limit.method_of_lines import Resolution

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["check_stationary", "resolution_of", "stationary", "stationary_law"]

LARGEST = 6.0
"""For larger beta the boundary is hit too rarely for the resolution of a double."""
SMALLEST = 0.01
GRID = 120
LARGE = (35.0, 50.0, 70.0, 100.0)
"""Levels, times beta, from which the constant of the tail is extrapolated."""


def stationary_law(beta: float) -> Law:
    """Return the stationary law at full resolution; `beta` as in :func:`stationary`."""
    return law(check_stationary(beta), resolution_of(beta))


def stationary(
    beta: float, *, y1: ArrayLike | None = None, y2: ArrayLike | None = None
) -> xr.Dataset:
    r"""Compute the stationary law of the diffusion limit of join the shortest queue.

    Parameters
    ----------
    beta : float
        Spare capacity, 0.01 to 6: n servers get arrivals at rate n - beta sqrt(n).
    y1 : array_like, shape (x1,), optional
        Points, at most 0, at which to give the law of Y1, minus the idle servers over sqrt(n).
    y2 : array_like, shape (x2,), optional
        Points, at least 0, at which to give that of Y2, the servers with a waiting customer
        over sqrt(n). Its density is infinite at 0.

    Returns
    -------
    xarray.Dataset
        Moments: ``y1_mean``, ``y2_mean``, ``y1_variance``, ``y2_variance``,
        ``y1_y2_covariance``, ``y1_y2_correlation``. Laws: ``y1_density`` and ``y1_cdf`` (x1),
        ``y2_density``, ``y2_cdf``, ``y2_tail`` and ``boundary_density`` (x2), ``joint_density``
        (x1, x2). Asymptotics: ``y2_small_exponent``, ``y2_small_constant``, ``y2_tail_rate``,
        ``y2_tail_constant``. Errors: ``identity_residual`` (identity), and differences from a
        coarser resolution, ``y2_mean_error`` and so on.

    Raises
    ------
    ValueError
        If `beta` is out of range, or a point has the wrong sign.

    Notes
    -----
    The reflected diffusion of eq. (2.1) in arXiv:1801.05121,

        dY1 = sqrt(2) dW - (beta + Y1 - Y2) dt - dU,    dY2 = dU - Y2 dt,

    where U grows only when Y1 = 0. The mean of Y2 is also the density of Y1 at 0, and the limit
    of sqrt(n) times the probability of waiting. The law is marched down in y from the balance on
    the boundary, see ``march.py``; the balance of flows across each level of Y2, and with it
    int nu(dy) / y = 1, is imposed. The identities returned are not.

    Examples
    --------
    >>> import manyserver as ms
    >>> result = ms.halfin_whitt.stationary(1.0, y2=[0.5, 1.0, 2.0])
    >>> round(float(result.y2_mean), 10)
    0.8140596635
    >>> result.y2_cdf.values.round(8).tolist()
    [0.55039657, 0.71480715, 0.87926428]
    """
    beta = check_stationary(beta)
    fine = stationary_law(beta)
    resolution = resolution_of(beta)
    coarse = law(beta, Resolution(resolution.degree - 6, resolution.stages - 1))
    x1 = _default_y1(beta) if y1 is None else -_distances_from_zero("y1", y1, -1.0)
    x2 = _default_y2(fine) if y2 is None else _distances_from_zero("y2", y2, 1.0)
    moments, other = _moments(fine), _moments(coarse)
    for name in ("y2_mean", "y2_variance", "y2_small_constant"):
        moments[f"{name}_error"] = abs(moments[name] - other[name])
    laws, others = _laws(fine, x1, x2), _laws(coarse, x1, x2, joint=False)
    for name in ("y1_cdf", "y2_cdf"):
        moments[f"{name}_error"] = float(np.abs(laws[name] - others[name]).max(initial=0.0))
    residuals = _residuals(fine)
    return labelled(
        {**moments, **laws, "identity_residual": np.array(list(residuals.values()))},
        {"x1": x1, "x2": x2, "identity": np.array(list(residuals))},
        {"method": "stationary law of the Halfin-Whitt diffusion", "beta": beta},
    )


def check_stationary(beta: float) -> float:
    """Return a beta in the range of the march, or raise ValueError."""
    number = checked_number("beta", beta)
    if not SMALLEST <= number <= LARGEST:
        raise ValueError(f"beta = {beta!r}: must be from {SMALLEST:g} to {LARGEST:g}")
    return number


def _distances_from_zero(name: str, points: ArrayLike, sign: float) -> np.ndarray:
    """Check a list of points, and return sign times them."""
    array = checked_array(name, points, "a list of numbers")
    if array.ndim != 1:
        raise ValueError(f"{name} has shape {array.shape}: must have one dimension")
    distances = sign * array
    good = np.isfinite(distances) & (distances >= 0)
    if not good.all():
        allowed = "at least 0" if sign > 0 else "at most 0"
        raise ValueError(f"{name} = {array[~good][0]:g}: must be finite and {allowed}")
    return distances


def resolution_of(beta: float) -> Resolution:
    """Return the full resolution; follow the interval in x, which grows with beta."""
    return Resolution(degree=min(44 + 4 * math.ceil(beta), 64), stages=7)


def _default_y1(beta: float) -> np.ndarray:
    return np.linspace(-beta - 6.0, 0.0, GRID + 1)


def _default_y2(fine: Law) -> np.ndarray:
    """Reach a tail of about 1e-6, without 0, where the density is infinite."""
    mean = fine.power_mean(0, 1)
    top = (14.0 + np.log1p(mean)) / fine.profile.beta
    return np.linspace(top / GRID, top, GRID)


def _moments(of: Law) -> dict[str, float]:
    y1, y2 = of.power_mean(1, 0), of.power_mean(0, 1)
    y1_variance = of.power_mean(2, 0) - y1**2
    y2_variance = of.power_mean(0, 2) - y2**2
    covariance = of.power_mean(1, 1) - y1 * y2
    constant, error = _tail_constant(of)
    return {
        "y1_mean": y1,
        "y2_mean": y2,
        "y1_variance": y1_variance,
        "y2_variance": y2_variance,
        "y1_y2_covariance": covariance,
        "y1_y2_correlation": covariance / np.sqrt(y1_variance * y2_variance),
        "y2_small_exponent": of.theta,
        "y2_small_constant": of.small_constant,
        "y2_tail_rate": of.profile.beta,
        "y2_tail_constant": constant,
        "y2_tail_constant_error": error,
    }


def _tail_constant(of: Law) -> tuple[float, float]:
    """Extrapolate nu(y) exp(beta y) / (beta y^2) to y = infinity, in powers of 1 / y."""
    beta = of.profile.beta
    y = np.array(LARGE) / beta
    values = of.scaled_boundary(y) / (beta * y**2)
    best, lower = (polyfit(1 / y[k:], values[k:], len(y) - k - 1)[0] for k in (0, 1))
    return float(best), float(abs(best - lower))


def _laws(of: Law, x1: np.ndarray, x2: np.ndarray, *, joint: bool = True) -> dict[str, np.ndarray]:
    y1_density, y1_cdf = of.y1(x1)
    positive = x2 > 0
    y2_density = np.full(len(x2), np.inf)
    y2_cdf, y2_tail, boundary = np.zeros(len(x2)), np.ones(len(x2)), np.zeros(len(x2))
    y2_density[positive], y2_cdf[positive], y2_tail[positive] = of.y2(x2[positive])
    boundary[positive] = of.boundary_density(x2[positive])
    values = {
        "y1_density": y1_density,
        "y1_cdf": y1_cdf,
        "y2_density": y2_density,
        "y2_cdf": y2_cdf,
        "y2_tail": y2_tail,
        "boundary_density": boundary,
    }
    if joint:
        density = np.full((len(x1), len(x2)), np.inf)
        density[:, positive] = of.joint_density(x1, x2[positive])
        values["joint_density"] = density
    return values


def _residuals(of: Law) -> dict[str, float]:
    """Return the violations of exact identities, relative to the terms that they compare."""
    beta = of.profile.beta
    y2 = of.power_mean(0, 1)
    return {
        "E Y1 = -beta": of.power_mean(1, 0) / -beta - 1,
        "E Y2 = mass of nu": of.boundary_mean(0) / y2 - 1,
        "Cov(Y1, Y2) = beta E Y2 / 2": 2 * of.power_mean(1, 1) / (beta * y2) + 1,
        "Var Y1 = 1 - beta E Y2 / 2": of.power_mean(2, 0) - beta**2 - (1 - beta * y2 / 2),
        "E Y2^2 = integral of y nu": of.boundary_mean(1) / of.power_mean(0, 2) - 1,
        "1 = integral of nu / y": of.boundary_mean(-1) - 1,
        "Laplace transform of nu": of.laplace_identity(),
    }
