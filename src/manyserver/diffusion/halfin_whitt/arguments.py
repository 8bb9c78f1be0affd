"""Checks of what users hand in: each error names the parameter, its value and what is allowed."""

from __future__ import annotations

import math
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["check_beta", "check_integer", "check_level", "check_n", "check_number", "check_points"]


def check_number(
    name: str, value: object, *, above: float = -math.inf, below: float = math.inf
) -> float:
    """Return a finite number strictly between two bounds, or raise ValueError."""
    allowed = "a finite number"
    if above > -math.inf:
        allowed += f" greater than {above:g}"
    if below < math.inf:
        allowed += f"{' and' if above > -math.inf else ''} less than {below:g}"
    message = f"{name} = {value!r}: must be {allowed}"
    if isinstance(value, str | bytes | bool):
        raise ValueError(message)
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ValueError(message) from None
    if not (math.isfinite(number) and above < number < below):
        raise ValueError(message)
    return number


def check_integer(name: str, value: object, *, least: int) -> int:
    """Return an integer of at least some value, or raise ValueError."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or int(value) < least:  # type: ignore[call-overload]
        raise ValueError(f"{name} = {value!r}: must be an integer, at least {least}")
    return int(value)  # type: ignore[call-overload,no-any-return]


def check_beta(beta: object) -> float:
    """Return the spare capacity beta, or raise ValueError."""
    return check_number("beta", beta, above=0)


def check_n(n: object, beta: float) -> int:
    """Return the number of servers, or raise ValueError if lambda = 1 - beta / sqrt(n) <= 0."""
    number = check_integer("n", n, least=1)
    if beta * beta >= number:
        raise ValueError(
            f"n = {number}: must be greater than beta**2 = {beta * beta:g}, so that the arrival "
            "rate 1 - beta / sqrt(n) is positive"
        )
    return number


def check_level(kappa: object, beta: float) -> float:
    """Return a level kappa > beta, or raise ValueError."""
    number = check_number("kappa", kappa)
    if number <= beta:
        raise ValueError(f"kappa = {kappa!r}: must be greater than beta = {beta:g}")
    return number


def check_points(x: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Split points of the state space into their two coordinates, or raise ValueError.

    Parameters
    ----------
    x : array_like, shape (..., 2)
        With ``x[..., 0] <= 0`` and ``x[..., 1] >= 0``.
    """
    points = np.asarray(x, float)
    if points.ndim == 0 or points.shape[-1] != 2:
        raise ValueError(f"x has shape {points.shape}; must be (..., 2)")
    for column, allowed in enumerate(("at most 0", "at least 0")):
        values = points[..., column]
        fine = np.isfinite(values) & ((values <= 0) if column == 0 else (values >= 0))
        if not fine.all():
            raise ValueError(f"x[..., {column}] = {values[~fine][0]}: must be finite and {allowed}")
    return points[..., 0], points[..., 1]
