"""The simulation, started from the mean field."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from manyserver import defaults
from manyserver.disciplines import Discipline
from manyserver.disciplines.service import checked_service
from manyserver.model import System
from manyserver.origin import with_origin
from manyserver.policies import Policy, check_fit
from manyserver.sizes import SizeLaw
from manyserver.start import limit_start

if TYPE_CHECKING:
    import xarray as xr

    from manyserver.simulation.replications import Cache

__all__ = ["simulate"]


def simulate(
    system: System,
    policy: Policy,
    *,
    sizes: SizeLaw | None = None,
    discipline: str | Discipline | None = None,
    seed: int | Sequence[int] = 1,
    precision: float | None = None,
    horizon: float | None = None,
    replications: int = defaults.REPLICATIONS,
    threads: int | None = None,
    max_events: float = defaults.MAX_EVENTS,
    start: np.ndarray | None = None,
    control_variates: bool = defaults.CONTROL_VARIATES,
    moments: bool = defaults.MOMENTS,
    progress: Callable[[str], None] | None = None,
    cache: Cache | None = None,
) -> xr.Dataset:
    """Simulate a system, with exponential job sizes or any others.

    The first simulation after an installation compiles for some seconds.

    Every replication starts at the mean-field fixed point with its 1/N correction. Where that
    correction is at most 0.1 of the mean sojourn time there are many short independent
    replications, of five relaxation times or more. Elsewhere, and for a given horizon or start,
    replications warm up for ten relaxation times and are so long that they can be cut into
    batches. Where servers announce themselves the limit does not tell how slowly the system
    settles; then a pilot does, also for a given horizon.

    Where jobs are followed, replications are long. The warm-up also lasts until nearly all large
    jobs that are in service at the start have left, at most as long as what is measured, and both
    are longer by the mean of what is left of a job at a random time. With sizes of infinite
    variance no interval is reliable, and a note in the attributes says so. Quantiles come from
    histograms with bins of 0.8 %.

    Parameters
    ----------
    system : System
        With a number of servers.
    policy : Policy
    sizes : SizeLaw, optional
        Law of the job sizes, of mean one, from :func:`manyserver.size_law`; then every job is
        followed. Only the numbers of jobs are simulated, for exponential sizes, if neither this
        nor `discipline` is given, and the policy needs no more.
    discipline : {"ps", "fcfs"} or Discipline, optional
        Processor sharing (the default with `sizes`), or first come, first served (the default
        for policies that need jobs to be followed: round robin, least work, central queue).
    seed : int or sequence of int
        Integers >= 0; the same seed gives the same result, whatever the number of threads.
    precision : float, optional
        Wanted half-width of ``sojourn_mean``, relative to it, in (0, 1); 0.0005 if neither this
        nor `horizon` is given, and 0.005 where jobs are followed. The length of a replication
        does not depend on it; there are as many as it takes. From 100 servers on, the fewest
        that an interval may rest on are about as precise as 0.0005 if jobs are not followed, so
        that asking for less saves nothing.
    horizon : float, optional
        Measured time of each replication, instead of a precision.
    replications : int
        Independent runs; for a precision, as many more as it takes, and 32 at least where they are
        short.
    threads : int, optional
        Replications simulated at a time; all cores by default.
    max_events : float
        Most arrivals and potential departures, over all replications; a run that would need more to
        reach its precision stops before, and says so. A `horizon` that would need more is refused.
    start : numpy.ndarray, shape (pool, level), optional
        Queue tails to start from instead; replications are then long.
    control_variates : bool
        Whether to use that jobs arrive at every level of a pool as often as they leave it, and
        that products of the numbers of jobs and busy servers do not drift. This makes the
        variance smaller by a factor of 1000 or more, the more servers the more. Where jobs are
        followed, that arrivals are Poisson, and that servers do as much work as arrives.
    moments : bool
        Whether to give ``occupancy_covariance`` too, up to level 11.
    progress : callable, optional
        Called with one line of text when the length of the run is known.
    cache : Cache, optional
        Has ``load()``, which returns a dictionary of arrays, empty at first, and ``save(arrays)``.
        The replications are kept there for later calls that differ in `precision`,
        `replications`, `control_variates` or `threads` alone; others ignore them. The result is
        the same without. Its attributes ``reused`` and ``needed`` are set to the number of
        replications that were found, and of all that the result rests on.

    Returns
    -------
    xarray.Dataset
        ``queue_tail`` (pool, level), ``queue_mean`` (pool), ``jobs_per_server``,
        ``sojourn_mean`` and ``pool_share`` (pool) (both of accepted jobs), ``pool_utilization``
        (pool),
        ``waiting_probability`` (that an arrival is accepted at a busy server) and
        ``blocking_probability`` (both of all arrivals), ``joining_rate``
        (pool, level) and ``messages_per_job`` (accepted, see
        :mod:`manyserver.policies.messages`); over time and N times, ``queue_tail_variance`` (pool,
        level), ``jobs_per_server_variance`` and ``occupancy_covariance`` (pool, level, other_pool,
        other_level). Each with its ``_half_width`` (95 %, from batch means); levels go up to the
        highest that was reached, and what was never seen is NaN. Then ``n_events``,
        ``simulated_time``, ``n_replications``, ``n_batches``, ``n_controls``,
        ``autocorrelation_time`` (NaN where replications are short), ``interval_reliable`` (at
        least 32 short replications whose halves agree, or 32 batches, 48 with control variates,
        each at least 20 autocorrelation times and 20 relaxation times of the mean field), and
        ``precision_met`` if a precision was asked. Where pools could saturate below a
        load of one (:mod:`manyserver.policies.saturation`), ``stability_margin`` is what they
        would have left of their capacity; if it is not above zero by twice its half-width, whether
        the system is stable at all remains open, and the interval is not reliable. For PULL,
        ``empty_router_probability`` and ``idle_concentration``, the mean of the squared numbers of
        idle servers that the routers know of over that of all.

        Where jobs are followed: ``sojourn_mean``, ``sojourn_variance``, ``sojourn_quantile``
        (quantile: 0.5, 0.9, 0.99, 0.999) over the jobs that arrive in the measured time, each
        followed until it leaves; the same for each pool as ``pool_sojourn_mean`` (pool) and so
        on; under "fcfs" also ``waiting_mean`` and so on, and under "ps" ``slowdown_mean``
        (size_decile). ``longest_queue_tail`` (level) and ``longest_queue_mean``, of the jobs at
        the fullest server; ``little_residual``, by how much the time
        in system differs if it is summed over jobs or over servers, zero up to rounding;
        ``n_jobs`` and ``n_unfinished``, the jobs that had not left when the events were used up.
        Not the messages.

        The attributes say what was simulated: system, policy, sizes, discipline, seed, options,
        and the version of this package.

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
    >>> sizes = ms.size_law("hyperexponential", scv=4)
    >>> jobs = ms.simulate(system, ms.policy("sq", d=2), sizes=sizes, discipline="fcfs")
    >>> bool(jobs.precision_met), round(float(jobs.sojourn_quantile.sel(quantile=0.99)))
    (True, 15)
    """
    check_fit(system, policy)
    # Imported here because numba takes a second to load, and reads its settings when it is loaded.
    from manyserver.simulation import Run, checked_settings, make_estimator

    order: Discipline | None = None
    if simulates_jobs := (sizes is not None or discipline is not None or policy.follows_jobs):
        sizes, order = checked_service(sizes, discipline, policy)
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
        simulates_jobs=simulates_jobs,
    )
    limit = limit_start(system, policy)
    if start is not None:
        limit = limit._replace(tails=start, correction=math.inf)
    run = Run(make_estimator(system, policy, *limit, settings, sizes, order), cache)
    run.simulate(progress or (lambda _: None))
    return with_origin(
        run.result(),
        system,
        policy,
        sizes=sizes,
        discipline=order,
        seed=seed,
        precision=settings.precision,
        horizon=horizon,
        replications=replications,
        max_events=max_events,
        control_variates=control_variates,
        moments=moments,
        start=None if start is None else "given",
    )
