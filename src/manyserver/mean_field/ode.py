"""Trajectories of the mean-field equations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from manyserver.mean_field.drift import Drift
from manyserver.mean_field.fixed_point import (
    FEWEST_LEVELS,
    MOST_LEVELS,
    fixed_point,
    refuse_buffers,
)
from manyserver.model import System
from manyserver.policies import Policy
from manyserver.variables import labelled

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["mean_field"]

RELATIVE_TOLERANCE = 1e-10
ABSOLUTE_TOLERANCE = 1e-13
TOP_TAIL = 1e-12
"""Largest tail at the top level, at any time, that needs no further levels."""


def mean_field(
    system: System,
    policy: Policy,
    times: ArrayLike,
    start: str | System | xr.Dataset | ArrayLike = "empty",
) -> xr.Dataset:
    """Follow the mean field in time from a given start.

    Parameters
    ----------
    system : System
        Its number of servers makes no difference.
    policy : Policy
        Any policy that is a sampling and a preference.
    times : array_like, shape (time,)
        Increasing, from 0 on.
    start : "empty", System, Dataset or array_like of shape (pool, level)
        Where to start at time 0: without jobs, in the fixed point of the same policy on another
        system with the same pools (another load), or from queue tails, given as numbers or as a
        dataset that holds ``queue_tail``.

    Returns
    -------
    xarray.Dataset
        ``queue_tail``, ``joining_rate`` (time, pool, level), ``queue_mean`` (time, pool),
        ``jobs_per_server`` and ``waiting_probability`` (time).

    Raises
    ------
    ValueError
        If `times` or `start` is out of its range, or the policy does not fit the system.
    UnstableSystem
        If some pools get more work than they can do.

    Notes
    -----
    LSODA with the exact Jacobian, to a relative 1e-10 and an absolute 1e-13 per step. Levels are
    doubled until the tail at the top stays below 1e-12.

    Examples
    --------
    >>> import manyserver as ms
    >>> system = ms.System(0.5, [ms.Pool(1, 1)])
    >>> path = ms.mean_field(system, ms.policy("sq", d=2), times=[0, 1, 100])
    >>> path.jobs_per_server.values.round(4)
    array([0.    , 0.3199, 0.6328])
    """
    policy.check(system)
    refuse_buffers(system)
    grid = _checked_times(times)
    tails = _start_tails(system, policy, start)
    levels = FEWEST_LEVELS
    while levels < tails.shape[1] + 2:
        levels *= 2
    while levels <= MOST_LEVELS:
        drift = Drift(system, policy, levels)
        path = _integrate(drift, drift.state(tails), grid)
        if path[:, :, -1].max() < TOP_TAIL:
            return _dataset(system, drift, path, grid)
        levels *= 2
    raise RuntimeError(f"start: the tails do not stay below {TOP_TAIL} within {MOST_LEVELS} levels")


def _checked_times(times: ArrayLike) -> np.ndarray:
    grid = np.atleast_1d(np.asarray(times, dtype=float))
    if (
        grid.ndim != 1
        or not len(grid)
        or not np.all(np.isfinite(grid))
        or grid[0] < 0
        or np.any(np.diff(grid) <= 0)
    ):
        raise ValueError(f"times = {times!r}: must be finite, increasing and not negative")
    return grid


def _start_tails(
    system: System, policy: Policy, start: str | System | xr.Dataset | ArrayLike
) -> np.ndarray:
    if isinstance(start, str):
        if start != "empty":
            raise ValueError(
                f"start = {start!r}: must be 'empty', a System, or queue tails (pool, level)"
            )
        return np.eye(1, 2).repeat(len(system.pools), axis=0)
    if isinstance(start, System):
        if start.pools != system.pools:
            raise ValueError("start: must be a system with the same pools")
        start = fixed_point(start, policy)
    tails = np.asarray(getattr(start, "queue_tail", start), dtype=float)
    if (
        tails.ndim != 2
        or tails.shape[0] != len(system.pools)
        or tails.shape[1] < 1
        or not np.all(tails[:, 0] == 1)
        or not np.all(np.diff(tails, axis=1) <= 0)
        or not np.all(tails >= 0)
    ):
        raise ValueError(
            f"start: queue tails of shape {tails.shape} must have shape ({len(system.pools)}, "
            "level), start with 1 at level 0 and not increase with the level"
        )
    return tails


def _integrate(drift: Drift, state: np.ndarray, times: np.ndarray) -> np.ndarray:
    from scipy.integrate import solve_ivp

    if times[-1] == 0:
        return drift.tails(state)[None]
    solution = solve_ivp(
        lambda _, state: drift(state),
        (0.0, times[-1]),
        state,
        method="LSODA",
        jac=lambda _, state: drift.jacobian(state),
        t_eval=times,
        rtol=RELATIVE_TOLERANCE,
        atol=ABSOLUTE_TOLERANCE,
    )
    if not solution.success:
        raise RuntimeError(f"the mean-field equations were not integrated: {solution.message}")
    return np.stack([drift.tails(state) for state in solution.y.T])


def _dataset(system: System, drift: Drift, path: np.ndarray, times: np.ndarray) -> xr.Dataset:
    densities = np.stack([drift.law.densities(tails) for tails in path])
    means = path[:, :, 1:].sum(axis=2)
    occupancy = -np.diff(path, axis=2, append=0.0)
    joins = densities * occupancy * system.fractions[:, None]
    values = {
        "queue_tail": path,
        "queue_mean": means,
        "jobs_per_server": means @ system.fractions,
        "waiting_probability": joins[:, :, 1:].sum(axis=(1, 2)),
        "joining_rate": system.arrival_rate * densities,
    }
    return labelled(values, system, time=times, attrs={"method": "mean-field trajectory"})
