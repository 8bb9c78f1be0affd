"""Trajectories of the mean-field equations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from manyserver.checks import checked_array, refusal
from manyserver.mean_field.drift import most_levels
from manyserver.mean_field.fixed_point import fixed_point
from manyserver.mean_field.path import Path
from manyserver.mean_field.regimes import regime_of
from manyserver.mean_field.solver import FEWEST_LEVELS, MOST_LEVELS
from manyserver.model import System
from manyserver.origin import with_origin
from manyserver.policies import Policy, check_fit
from manyserver.variables import labelled

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["checked_times", "mean_field", "start_tails"]

TOLERANCES = (1e-10, 1e-13)
"""Relative and absolute error of a step."""
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
        Any policy that is a sampling and a preference, or PULL.
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
        ``jobs_per_server``, ``waiting_probability`` and ``blocking_probability`` (time).

    Raises
    ------
    ValueError
        If `times` or `start` is out of its range, or the policy does not fit the system.
    UnstableSystem
        If some pools get more work than they can do.

    Notes
    -----
    LSODA with the exact Jacobian, to a relative 1e-10 and an absolute 1e-13 per step. Levels are
    doubled until the tail at the top stays below 1e-12. Where servers announce themselves (JSQ,
    SED, JIQ, thresholds) the drift jumps when the best of them run out, and the solution slides
    along these states: see :func:`manyserver.mean_field.announced.follow`. The tails are then
    right to better than 1e-8. PULL gives ``router_idle`` (time, pool, router) and
    ``empty_router_probability`` (time) too; a dataset to start from may hold ``router_idle``
    (pool, router), and its routers are alike without.

    Examples
    --------
    >>> import manyserver as ms
    >>> system = ms.System(0.5, [ms.Pool(1, 1)])
    >>> path = ms.mean_field(system, ms.policy("sq", d=2), times=[0, 1, 100])
    >>> path.jobs_per_server.values.round(4)
    array([0.    , 0.3199, 0.6328])
    """
    check_fit(system, policy)
    grid = checked_times(times)
    tails = start_tails(system, policy, start)
    integrate = regime_of(system, policy).integrator(tails, getattr(start, "router_idle", None))
    all_levels = most_levels(system)
    levels = FEWEST_LEVELS
    while levels < tails.shape[1] + 2:
        levels *= 2
    while levels <= MOST_LEVELS:
        levels = levels if all_levels is None else min(levels, all_levels)
        path = integrate(levels, tails, grid, TOLERANCES)
        if levels == all_levels or path.tails[:, :, -1].max() < TOP_TAIL:
            told = start if isinstance(start, (str, System)) else "given"
            return with_origin(_dataset(system, path, grid), system, policy, start=told)
        levels *= 2
    raise RuntimeError(f"start: the tails do not stay below {TOP_TAIL} within {MOST_LEVELS} levels")


def checked_times(times: ArrayLike) -> np.ndarray:
    """Return times as an array, or raise ValueError."""
    allowed = "finite, increasing and not negative"
    grid = np.atleast_1d(checked_array("times", times, allowed))
    if (
        grid.ndim != 1
        or not len(grid)
        or not np.all(np.isfinite(grid))
        or grid[0] < 0
        or np.any(np.diff(grid) <= 0)
    ):
        raise refusal("times", times, allowed)
    return grid


def start_tails(
    system: System, policy: Policy, start: str | System | xr.Dataset | ArrayLike
) -> np.ndarray:
    """Return the queue tails that a start stands for, shape (pool, level), or raise ValueError."""
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
    allowed = "'empty', a System, or queue tails (pool, level)"
    tails = checked_array("start", getattr(start, "queue_tail", start), allowed)
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
    for number, (row, pool) in enumerate(zip(tails, system.pools, strict=True)):
        if pool.buffer is not None and np.any(row[pool.buffer + 1 :] > 0):
            raise ValueError(
                f"start: queue tails of pool {number} reach beyond its buffer of {pool.buffer}; "
                "must be zero there"
            )
    return tails


def _dataset(system: System, path: Path, times: np.ndarray) -> xr.Dataset:
    means = path.tails[:, :, 1:].sum(axis=2)
    values = {
        "queue_tail": path.tails,
        "queue_mean": means,
        "jobs_per_server": means @ system.fractions,
        "waiting_probability": path.joins[:, :, 1:].sum(axis=(1, 2)),
        "blocking_probability": np.maximum(1 - path.joins.sum(axis=(1, 2)), 0.0)
        if system.is_bounded
        else np.zeros(len(times)),
        "joining_rate": system.arrival_rate * path.rates,
    }
    values |= path.more
    return labelled(values, system, time=times, attrs={"method": "mean-field trajectory"})
