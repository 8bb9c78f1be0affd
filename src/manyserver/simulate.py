"""The simulation, started from the mean field."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from manyserver.mean_field import fixed_point, relaxation_time
from manyserver.model import System
from manyserver.policies import Policy

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["simulate"]


def simulate(
    system: System,
    policy: Policy,
    *,
    seed: int | Sequence[int] = 1,
    precision: float | None = None,
    horizon: float | None = None,
    replications: int = 8,
    threads: int | None = None,
    max_events: float = 1e10,
    start: np.ndarray | None = None,
    control_variates: bool = True,
    moments: bool = False,
    progress: Callable[[str], None] | None = None,
) -> xr.Dataset:
    """Simulate a system with exponential job sizes.

    Every replication starts at the mean-field fixed point and warms up for ten relaxation times.

    Parameters
    ----------
    system : System
        With a number of servers, and unbounded buffers.
    policy : Policy
        Any policy that is a sampling and a preference.
    seed : int or sequence of int
        Integers >= 0; the same seed gives the same result, whatever the number of threads.
    precision : float, optional
        Wanted half-width of ``sojourn_mean``, relative to it, in (0, 1); 0.0005 if neither this
        nor `horizon` is given. A pilot tells how long to measure; what is measured after it
        decides. From 100 servers on, the shortest run that an interval may rest on is about as
        precise as that, so that asking for less saves nothing.
    horizon : float, optional
        Measured time of each replication, instead of a precision.
    replications : int
        Independent runs.
    threads : int, optional
        Replications simulated at a time; all cores by default.
    max_events : float
        Most arrivals and tries to depart, over all replications; a run that would need more to
        reach its precision stops before, and says so.
    start : numpy.ndarray, shape (pool, level), optional
        Queue tails to start from instead.
    control_variates : bool
        Whether to use that jobs arrive at every level of a pool as often as they leave it, and
        that the square of the number of jobs does not drift. This makes the variance smaller by
        a factor of 100 to 10**6, the more servers the more.
    moments : bool
        Whether to give ``occupancy_covariance`` too, up to level 11.
    progress : callable, optional
        Called with one line of text when the length of the run is known.

    Returns
    -------
    xarray.Dataset
        ``queue_tail`` (pool, level), ``queue_mean`` (pool), ``jobs_per_server``,
        ``sojourn_mean``, ``waiting_probability``, ``joining_rate`` (pool, level) and
        ``blocking_probability``; over time and N times, ``queue_tail_variance`` (pool, level),
        ``jobs_per_server_variance`` and ``occupancy_covariance`` (pool, level, other_pool,
        other_level). Each with its ``_half_width`` (95 %, from batch means); levels go up to the
        highest that was reached, and what was never seen is NaN. Then ``n_events``,
        ``simulated_time``, ``n_batches``, ``n_controls``, ``autocorrelation_time``,
        ``interval_reliable`` (at least 32 batches, 48 with control variates, each at least 20
        autocorrelation times and 20 relaxation times of the mean field), and ``precision_met``
        if a precision was asked.

    Raises
    ------
    ValueError
        If a parameter is out of its range, or the policy does not fit the system.
    UnstableSystem
        If some pools get more work than they can do.

    Examples
    --------
    >>> import manyserver as ms
    >>> system = ms.System(0.5, [ms.Pool(1, 1)], n_servers=100)
    >>> result = ms.simulate(system, ms.policy("sq", d=2), precision=0.0005)
    >>> bool(result.precision_met), round(float(result.sojourn_mean), 2)
    (True, 1.27)
    """
    # Imported here because numba takes a second to load, and reads its settings when it is loaded.
    from manyserver.simulation import Run, checked_settings

    settings = checked_settings(
        system,
        seed=seed,
        precision=precision,
        horizon=horizon,
        replications=replications,
        threads=threads,
        max_events=max_events,
        control_variates=control_variates,
        moments=moments,
    )
    policy.check(system)
    limit = fixed_point(system, policy)
    if start is None:
        start = limit.queue_tail.values
    run = Run(system, policy, start, relaxation_time(system, policy, limit), settings)
    run.simulate(progress or (lambda _: None))
    return run.result()
