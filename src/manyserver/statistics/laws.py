"""The laws that are fitted to what tends to zero, by least squares in one window."""

import math
from dataclasses import dataclass

import numpy as np
import scipy

__all__ = [
    "Fit",
    "decay_fit",
    "exponent_fit",
    "leading_fit",
    "root_exponent_fit",
    "root_leading_fit",
]

WORST_P_VALUE = 0.05
"""Below this p-value of chi-square, a law is not supported by a window."""
MOST_STEPS = 50
SMALL_STEP = 1e-10


@dataclass(frozen=True)
class Fit:
    """Least squares in one window; `spare` is the number of points beyond that of parameters."""

    estimate: float
    variance: float
    prefactor: float
    second: float
    chi_square: float
    spare: int
    following: np.ndarray
    """Second term over the first one at every point; empty without a second term."""

    @property
    def consistent(self) -> bool:
        """Whether chi-square accepts the fit."""
        if self.spare < 1:
            return True
        return bool(scipy.special.gammaincc(self.spare / 2, self.chi_square / 2) >= WORST_P_VALUE)


def exponent_fit(x: np.ndarray, y: np.ndarray, errors: np.ndarray | None, second: bool) -> Fit:
    """Fit ``a * x**b * exp(e / x)``; the exponent of the law is linear in its parameters."""
    return _exponential_fit(np.log(x), x.min() / x, float(x.min()), y, errors, second)


def root_exponent_fit(x: np.ndarray, y: np.ndarray, errors: np.ndarray | None, second: bool) -> Fit:
    """Fit ``a * x**b * exp(e / sqrt(x))``."""
    root = float(np.sqrt(x.min()))
    return _exponential_fit(np.log(x), root / np.sqrt(x), root, y, errors, second)


def decay_fit(x: np.ndarray, y: np.ndarray, errors: np.ndarray | None, second: bool) -> Fit:
    """Fit ``a * exp(b * x + e / x)``."""
    return _exponential_fit(x, x.min() / x, float(x.min()), y, errors, second)


def _exponential_fit(
    variable: np.ndarray,
    correction: np.ndarray,
    unit: float,
    y: np.ndarray,
    errors: np.ndarray | None,
    second: bool,
) -> Fit:
    """Fit ``a * exp(b * variable + f * correction)``, where the second term is ``f * unit``."""
    second = second and y.size >= 3
    centre = float(variable.mean())
    columns = [np.ones_like(y), variable - centre, correction]
    terms = np.stack(columns[: 3 if second else 2], axis=1)
    sign, log_y = float(np.sign(y[0])), np.log(np.abs(y))
    weights = np.ones_like(y) if errors is None else np.abs(y) / errors
    parameters, _, _ = _least_squares(terms, log_y, weights)
    residuals = weights * (log_y - terms @ parameters)
    if errors is not None:
        for _ in range(MOST_STEPS):
            law = np.exp(terms @ parameters)
            weights = law / errors
            step, _, _ = _least_squares(terms, (np.abs(y) - law) / law, weights)
            # A step changes the law by less than a factor e, so that none leads astray.
            parameters = parameters + step / max(1.0, float(np.abs(terms @ step).max()))
            if np.abs(terms @ step).max() < SMALL_STEP:
                break
        residuals = (np.abs(y) - np.exp(terms @ parameters)) / errors
    _, covariance, spare = _least_squares(terms, log_y, weights)
    scale, exponent = float(parameters[0]), float(parameters[1])
    return Fit(
        estimate=exponent,
        variance=float(covariance[1, 1]),
        prefactor=sign * math.exp(scale - exponent * centre),
        second=float(parameters[2] * unit) if second else math.nan,
        chi_square=float(np.sum(residuals**2)),
        spare=spare,
        following=parameters[2] * correction if second else np.zeros(0),
    )


def root_leading_fit(x: np.ndarray, y: np.ndarray, errors: np.ndarray | None, second: bool) -> Fit:
    """Fit ``c / x + d / x**1.5``, or the first term alone."""
    return _power_fit(1.0, 1.5, x, y, errors, second)


def leading_fit(x: np.ndarray, y: np.ndarray, errors: np.ndarray | None, second: bool) -> Fit:
    """Fit ``c / x + d / x**2``."""
    return _power_fit(1.0, 2.0, x, y, errors)


def _power_fit(
    first: float,
    following: float,
    x: np.ndarray,
    y: np.ndarray,
    errors: np.ndarray | None,
    second: bool = True,
) -> Fit:
    unit = float(x.min() ** (following - first))
    terms = np.stack([x**-first, unit * x**-following], axis=1)[:, : 1 + second]
    weights = 1 / np.abs(y) if errors is None else 1 / errors
    parameters, covariance, spare = _least_squares(terms, y, weights)
    residuals = weights * (y - terms @ parameters)
    return Fit(
        estimate=float(parameters[0]),
        variance=float(covariance[0, 0]),
        prefactor=math.nan,
        second=float(parameters[1] * unit) if second else math.nan,
        chi_square=float(np.sum(residuals**2)),
        spare=spare,
        following=parameters[1] * terms[:, 1] / (parameters[0] * terms[:, 0])
        if second
        else np.zeros(0),
    )


def _least_squares(
    terms: np.ndarray, y: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the parameters of a linear fit, their covariance, and the number of spare points."""
    weighted = terms * weights[:, None]
    scale = np.linalg.norm(weighted, axis=0)
    inverse = np.linalg.pinv(weighted / scale) / scale[:, None]
    return inverse @ (y * weights), inverse @ inverse.T, len(y) - terms.shape[1]
