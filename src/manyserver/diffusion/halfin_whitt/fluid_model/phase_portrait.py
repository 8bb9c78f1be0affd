"""The phase portrait of the fluid model: paths, curves Gamma, and the cost of waiting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from manyserver.checks import checked_array, checked_number, refusal
from manyserver.diffusion.halfin_whitt.checks import check_beta
from manyserver.diffusion.halfin_whitt.fluid_model.flow import fluid, gamma_curve
from manyserver.diffusion.halfin_whitt.fluid_model.stein import SteinSolution
from manyserver.diffusion.halfin_whitt.labels import labelled

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["portrait"]

GRID = 161
PATHS = 7
STEPS = 400
TIME = 9.0
"""Longest time that a path is followed; by then it has come to rest."""


def portrait(beta: float, *, levels: Sequence[float], reach: float = 4.0) -> xr.Dataset:
    r"""Evaluate the fluid model on a square of the state space.

    Parameters
    ----------
    beta : float
        Spare capacity, > 0.
    levels : sequence of float
        Levels kappa, each at least `beta` and one greater, of the curves
        :math:`\Gamma^{(\kappa)}`; that of `beta` is the separatrix.
    reach : float
        Side of the square, scaled by :math:`\sqrt n`.

    Returns
    -------
    xarray.Dataset
        ``excess_cost`` (x1, x2): the solution of the Stein equation for the first level above beta,
        on the grid ``y1_grid`` (x1), ``y2_grid`` (x2); ``gamma_curve`` (curve, x1) for every
        ``curve_level`` (curve); ``fluid_y1`` and ``fluid_y2`` (path, step): paths from the left
        and upper sides of the square, at equal steps of time; ``excess_level``.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Notes
    -----
    Eq. (4.1), (4.14) and Lemma 5 of arXiv:1801.05121.

    Examples
    --------
    >>> round(float(portrait(1.0, levels=[2.0]).excess_cost[-1, -1]), 4)
    2.0
    """
    beta = check_beta(beta)
    reach = checked_number("reach", reach)
    y1, y2 = np.linspace(-reach, 0, GRID), np.linspace(0, reach, GRID)
    allowed = "a list of numbers from beta on, at least one greater than beta"
    levels = checked_array("levels", levels, allowed).tolist()
    above_beta = [level for level in levels if level > beta] if isinstance(levels, list) else []
    if not above_beta:
        raise refusal("levels", levels, allowed)
    solution = SteinSolution(beta, above_beta[0])
    grid = np.stack(np.meshgrid(y1, y2, indexing="ij"), axis=-1)
    along = np.arange(1, PATHS + 1) / PATHS * reach
    left = np.stack([np.full(PATHS, -reach), along], axis=-1)
    above = np.stack([along[:-1] - reach, np.full(PATHS - 1, reach)], axis=-1)
    paths = fluid(np.concatenate([left, above])[:, None], np.linspace(0, TIME, STEPS), beta)
    values = {
        "y1_grid": y1,
        "y2_grid": y2,
        "excess_cost": solution.evaluate(grid).value,
        "excess_level": solution.kappa,
        "curve_level": np.array(levels, float),
        "gamma_curve": np.stack([gamma_curve(y1, level, beta) for level in levels]),
        "fluid_y1": paths[..., 0],
        "fluid_y2": paths[..., 1],
    }
    return labelled(values, {}, {"method": "fluid model of join the shortest queue", "beta": beta})
