"""The slowest mode of a smooth drift."""

import numpy as np
import scipy

from manyserver.mean_field.drift import Drift
from manyserver.model import System
from manyserver.policies import Policy

__all__ = ["slowest_mode"]

DENSE = 400
"""Matrices of up to this order are diagonalised in full."""
SMALLEST_TAIL = 1e-14


def slowest_mode(system: System, policy: Policy, tails: np.ndarray) -> float:
    """Return the time constant of the slowest mode at the fixed point with given tails."""
    levels = int(np.flatnonzero((tails > SMALLEST_TAIL).any(axis=0))[-1]) + 2
    drift = Drift(system, policy, max(levels, 3))
    matrix = drift.jacobian(drift.state(tails))
    there = (np.arange(1, drift.shape[1]) <= system.buffers[:, None]).ravel()
    matrix = matrix[np.ix_(there, there)]
    if len(matrix) <= DENSE:
        eigenvalues = np.linalg.eigvals(matrix)
    else:
        start = np.ones(len(matrix))
        eigenvalues = scipy.sparse.linalg.eigs(
            matrix, k=4, sigma=0.0, v0=start, return_eigenvectors=False
        )
    return float(-1 / eigenvalues.real.max())
