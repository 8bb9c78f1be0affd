"""The joint law of idle servers and waiting customers as a density on a grid."""

from __future__ import annotations

import math

import numpy as np

from manyserver.diffusion.halfin_whitt.finite.two_levels import Levels, level_law

__all__ = ["joint_law", "limit_grid"]

CELL = 0.1
"""Side of a cell, about."""
DEEP, FAR = 4.0, 7.0
"""The grid goes to y1 = -beta - DEEP and y2 = FAR / (beta + 1/2)."""


def joint_law(beta: float, n: int) -> dict[str, np.ndarray]:
    """Compute the law of n servers with at most two customers, on cells of lattice points.

    Parameters
    ----------
    beta : float
        Spare capacity, > 0.
    n : int
        Servers, more than beta**2.

    Returns
    -------
    dict
        ``y1_grid`` (x1) and ``y2_grid`` (x2), the centres of the cells in the scale of the
        diffusion, and ``joint_density`` (x1, x2), the probability of a cell over its area.
    """
    root = math.sqrt(n)
    side = max(1, round(CELL * root))
    cells = [math.ceil(reach * root / side) for reach in _reach(beta)]
    shape = (cells[0] * side, cells[1] * side)
    states = Levels.choose(n, beta)
    law = level_law(states, (min(shape[0], states.width(0)), min(shape[1], states.top + 1))).joint
    whole = np.zeros(shape)
    whole[: law.shape[0], : law.shape[1]] = law
    density = whole.reshape(cells[0], side, cells[1], side).sum(axis=(1, 3)) * (root / side) ** 2
    centres = [((np.arange(count) + 0.5) * side - 0.5) / root for count in cells]
    return {"y1_grid": -centres[0][::-1], "y2_grid": centres[1], "joint_density": density[::-1]}


def limit_grid(beta: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the centres of cells of the same size and extent for the diffusion."""
    deep, far = (math.ceil(reach / CELL) for reach in _reach(beta))
    return (np.arange(-deep, 0) + 0.5) * CELL, (np.arange(far) + 0.5) * CELL


def _reach(beta: float) -> tuple[float, float]:
    return beta + DEEP, FAR / (beta + 0.5)
