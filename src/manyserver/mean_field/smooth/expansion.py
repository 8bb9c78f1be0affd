"""The terms of order 1/N of a smooth drift, see :mod:`manyserver.mean_field.refinement`."""

from dataclasses import dataclass

import numpy as np
import scipy

from manyserver.mean_field.drift import Drift
from manyserver.model import System
from manyserver.policies import Policy

__all__ = ["FEWEST_LEVELS", "TOP_TAIL", "Expansion", "expand"]

TOP_TAIL = 1e-16
"""Levels whose tail is below this in every pool are left out."""
FEWEST_LEVELS = 3
NEGATIVE = 1e-9
"""A negative variance of this size, relative to the largest, is rounding."""


@dataclass(frozen=True)
class Expansion:
    """Terms of order 1/N: of the mean tails (pool, level), of their covariance, of the jobs."""

    correction: np.ndarray
    covariance: np.ndarray
    jobs_variance: float
    residual: float


def expand(system: System, policy: Policy, tails: np.ndarray) -> Expansion:
    """Expand around the fixed point with the given tails."""
    used = int(np.flatnonzero((tails > TOP_TAIL).any(axis=0))[-1])
    drift = Drift(system, policy, max(used + 2, FEWEST_LEVELS))
    state = drift.state(tails)
    tails = drift.tails(state)
    jacobian = drift.jacobian(state)
    noise = -2 * (system.speeds / system.fractions)[:, None] * np.diff(tails, append=0.0)[:, 1:]
    shape = drift.shape
    inner = (shape[0], shape[1] - 1)
    covariance = np.zeros(shape * 2)
    covariance[:, 1:, :, 1:] = _covariance(jacobian, noise.ravel()).reshape(inner * 2)
    law = drift.law
    joins = law.size_correction(tails) + law.curvature(tails, covariance) / 2
    correction = np.zeros(shape)
    force = drift.arrivals * joins
    correction[:, 1:] = np.linalg.solve(jacobian, -force[:, :-1].ravel()).reshape(inner)
    spread = covariance.sum(axis=3)
    # How the part of the arrivals that is accepted changes with the tails.
    accepting = law.jacobian(tails).sum(axis=(0, 1))
    change = float(joins.sum() + (accepting * correction).sum())
    return Expansion(
        correction,
        covariance,
        float(system.fractions @ spread.sum(axis=1) @ system.fractions),
        _residual(system, tails, (correction, change), (spread, accepting)),
    )


def _covariance(jacobian: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Solve A V + V A' + diag(noise) = 0; V is a covariance if and only if A is stable."""
    covariance = scipy.linalg.solve_continuous_lyapunov(jacobian, -np.diag(noise))
    covariance = (covariance + covariance.T) / 2
    eigenvalues = np.linalg.eigvalsh(covariance)
    if eigenvalues[0] < -NEGATIVE * abs(eigenvalues[-1]):
        raise RuntimeError("the mean-field fixed point is not stable, so that it has no covariance")
    return np.asarray(covariance)


def _residual(
    system: System,
    tails: np.ndarray,
    mean: tuple[np.ndarray, float],
    covariance: tuple[np.ndarray, np.ndarray],
) -> float:
    """Largest error of the conservation laws.

    Parameters
    ----------
    system : System
    tails : numpy.ndarray, shape (pool, level)
    mean : tuple
        Corrections of the tails, (pool, level), and of the part of the arrivals accepted.
    covariance : tuple
        Of tails and jobs, (pool, level, pool), and derivatives of the part that is accepted by
        the tails, (pool, level).
    """
    work = system.fractions * system.speeds
    correction, accepted = mean
    balance = work @ correction[:, 1] - system.arrival_rate * accepted
    spread, accepting = covariance
    flow = work @ spread[:, 1] - system.arrival_rate * np.tensordot(accepting, spread, axes=2)
    error = flow @ system.fractions - work @ tails[:, 1]
    scale = max(1.0, np.abs(correction).max())
    return float(max(abs(balance) / scale, abs(error)) / system.arrival_rate)
