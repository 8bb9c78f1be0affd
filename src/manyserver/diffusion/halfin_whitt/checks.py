"""Checks of what users hand in: each error names the parameter, its value and what is allowed."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from manyserver.checks import checked_array, checked_count, checked_number

__all__ = ["check_beta", "check_level", "check_n", "check_points"]


def check_beta(beta: object) -> float:
    """Return the spare capacity beta, or raise ValueError."""
    return checked_number("beta", beta)


def check_n(n: object, beta: float) -> int:
    """Return the number of servers, or raise ValueError if lambda = 1 - beta / sqrt(n) <= 0."""
    number = checked_count("n", n)
    if beta * beta >= number:
        raise ValueError(
            f"n = {number}: must be greater than beta**2 = {beta * beta:g}, so that the arrival "
            "rate 1 - beta / sqrt(n) is positive"
        )
    return number


def check_level(kappa: object, beta: float, *, closed: bool = False) -> float:
    """Return a level kappa > beta, or kappa >= beta if `closed`, or raise ValueError."""
    number = checked_number("kappa", kappa, -math.inf)
    if number < beta or (number == beta and not closed):
        allowed = "at least" if closed else "greater than"
        raise ValueError(f"kappa = {kappa!r}: must be {allowed} beta = {beta:g}")
    return number


def check_points(x: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Split points of the state space into their two coordinates, or raise ValueError.

    Parameters
    ----------
    x : array_like, shape (..., 2)
        With ``x[..., 0] <= 0`` and ``x[..., 1] >= 0``.
    """
    points = checked_array("x", x, "pairs of finite numbers")
    if points.ndim == 0 or points.shape[-1] != 2:
        raise ValueError(f"x has shape {points.shape}; must be (..., 2)")
    for column, allowed in enumerate(("at most 0", "at least 0")):
        values = points[..., column]
        fine = np.isfinite(values) & ((values <= 0) if column == 0 else (values >= 0))
        if not fine.all():
            raise ValueError(f"x[..., {column}] = {values[~fine][0]}: must be finite and {allowed}")
    return points[..., 0], points[..., 1]
