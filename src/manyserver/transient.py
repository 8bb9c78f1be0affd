"""Sample paths of finite systems: what is at given times, from a given start."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from manyserver.checks import checked_count, checked_kind
from manyserver.mean_field.ode import checked_times, start_tails
from manyserver.model import System, UnstableSystem
from manyserver.origin import with_origin
from manyserver.policies import Policy, check_fit
from manyserver.schema import HALF_WIDTH
from manyserver.variables import DEVIATION, labelled

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["transient"]

LEVEL = 0.975
"""Of the Student quantile of a half-width."""


def transient(
    system: System,
    policy: Policy,
    times: ArrayLike,
    start: str | System | xr.Dataset | ArrayLike = "empty",
    *,
    replications: int = 100,
    paths: int = 0,
    seed: int = 1,
) -> xr.Dataset:
    """Simulate a system from a given start, and look at it at given times.

    Parameters
    ----------
    system : System
        With a number of servers.
    policy : Policy
        One for which numbers of jobs say where an arrival goes.
    times : array_like, shape (time,)
        Increasing, from 0 on.
    start : "empty", System, Dataset or array_like of shape (pool, level)
        As for :func:`manyserver.mean_field`: without jobs, in the fixed point of the same policy on
        another system with the same pools, or from queue tails. The numbers of servers with so
        many jobs are those of the tails, rounded up or down by chance.
    replications : int, optional
        Independent ones, at least two.
    paths : int, optional
        How many of them are returned.
    seed : int, optional
        Runs with the same seed have common random numbers.

    Returns
    -------
    xarray.Dataset
        ``queue_tail`` (time, pool, level), ``queue_mean`` (time, pool) and ``jobs_per_server``
        (time): means over replications with their ``_half_width`` at 95 %, and the standard
        deviation of one replication as ``_deviation``. With `paths`, ``queue_tail_path`` (path,
        time, pool, level) and ``jobs_per_server_path`` (path, time).

    Raises
    ------
    ValueError
        If a parameter is out of its range, or the policy does not fit the system.

    Notes
    -----
    The chain is uniformised: between two times, as many steps as a Poisson variable says lead from
    one state to the next, so that the law at each time is exact.

    Examples
    --------
    >>> import manyserver as ms
    >>> system = ms.System(0.5, [ms.Pool(1, 1)], n_servers=1000)
    >>> found = ms.transient(system, ms.policy("sq", d=2), [0, 1, 20], replications=20)
    >>> found.jobs_per_server.values.round(2)
    array([0.  , 0.32, 0.63])
    """
    from scipy.special import stdtrit

    checked_kind("system", system, System, "a System").finite_servers  # noqa: B018
    # For a while every load can be borne.
    with suppress(UnstableSystem):
        check_fit(system, policy)
    if policy.follows_jobs:
        raise ValueError(f"policy {policy.name}: needs jobs to be followed; has no such paths")
    grid = checked_times(times)
    tails = start_tails(system, policy, start)
    count = checked_count("replications", replications, 2)
    shown = checked_count("paths", paths, 0, most=count)
    found = _simulated(system, policy, grid, tails, count, checked_count("seed", seed, 0))
    means = found[..., 1:].sum(axis=3)
    values = {
        "queue_tail": found,
        "queue_mean": means,
        "jobs_per_server": means @ system.fractions,
    }
    factor = float(stdtrit(count - 1, LEVEL)) / np.sqrt(count)
    told: dict[str, np.ndarray] = {}
    for name, value in values.items():
        deviation = value.std(axis=0, ddof=1)
        told[name] = value.mean(axis=0)
        told[name + HALF_WIDTH], told[name + DEVIATION] = factor * deviation, deviation
    result = labelled(told, system, time=grid, attrs={"method": "simulated paths"})
    if shown:
        result["queue_tail_path"] = (("path", "time", "pool", "level"), found[:shown])
        result["jobs_per_server_path"] = (("path", "time"), values["jobs_per_server"][:shown])
    told_start = start if isinstance(start, (str, System)) else "given"
    return with_origin(
        result, system, policy, start=told_start, replications=count, paths=shown, seed=seed
    )


def _simulated(
    system: System, policy: Policy, times: np.ndarray, tails: np.ndarray, count: int, seed: int
) -> np.ndarray:
    """Return the queue tails of all replications, shape (replication, time, pool, level)."""
    from manyserver.simulation.kernels import make_replica

    servers = np.array(system.counts)[:, None]
    states: list[list[np.ndarray]] = []
    for number in range(count):
        replica = make_replica(system, policy, tails, (seed, number))
        generator = np.random.default_rng((seed, number, 1))
        states.append([])
        for time in np.diff(times, prepend=0.0):
            replica.warm_up(int(generator.poisson(replica.rate * time)))
            states[-1].append(replica.tail_counts() / servers)
    levels = max(int(np.count_nonzero(state.any(axis=0))) for row in states for state in row) + 1
    found = np.zeros((count, len(times), len(servers), levels))
    for i, row in enumerate(states):
        for j, state in enumerate(row):
            kept = min(levels, state.shape[1])
            found[i, j, :, :kept] = state[:, :kept]
    return found
