"""Simulating several policies or systems with common random numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

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

__all__ = ["compare"]


def compare(
    systems: System | Sequence[System],
    policies: Policy | Sequence[Policy],
    *,
    sizes: SizeLaw | None = None,
    discipline: str | Discipline | None = None,
    against: str = "first",
    seed: int | Sequence[int] = 1,
    precision: float | None = None,
    horizon: float | None = None,
    replications: int = defaults.REPLICATIONS,
    threads: int | None = None,
    max_events: float = defaults.MAX_EVENTS,
    control_variates: bool = defaults.CONTROL_VARIATES,
    progress: Callable[[str], None] | None = None,
) -> xr.Dataset:
    """Simulate policies on one system, or one policy on systems, and tell how they differ.

    All see the same arrivals and departures, or the same arrivals and sizes where jobs are
    followed, so that their difference is known far better than from runs on their own; control
    variates make it better still.

    Parameters
    ----------
    systems : System or sequence of System
        With a number of servers, and the same number of pools.
    policies : Policy or sequence of Policy
        If both are sequences, they have the same length and are paired.
    sizes, discipline
        As for :func:`manyserver.simulate`; then every job is followed.
    against : {"first", "previous"}
        Which run to subtract from each; the previous one for a grid of arrival rates.
    seed, replications, threads, control_variates, progress
        As for :func:`manyserver.simulate`.
    precision, horizon : float, optional
        As for :func:`manyserver.simulate`. The run that needs the longest to know its own
        ``sojourn_mean`` decides for all.
    max_events : float
        Most arrivals and potential departures of each run, over all replications.

    Returns
    -------
    xarray.Dataset
        What :func:`manyserver.simulate` returns, with a dimension ``run`` (coordinates
        ``policy`` and ``arrival_rate``), and ``sojourn_mean_difference`` and
        ``jobs_per_server_difference`` with their half-widths, and ``waiting_mean_difference`` if
        the discipline is "fcfs". ``variance_ratio`` is how many
        times larger the variance of the difference in ``sojourn_mean`` would be from two
        independent runs of this length, and ``variance_ratio_plain`` the same without control
        variates; they are NaN where a run is compared with itself.

    Raises
    ------
    ValueError
        If a parameter is out of its range, or the numbers of systems and policies do not match.
    UnstableSystem
        If some pools get more work than they can do.

    Notes
    -----
    Time is matched step by step, or arrival by arrival, not by the clock: with a higher arrival
    rate a step takes less of it. Policies that differ in where an arrival may look, as Hybrid
    SQ(d) from SQ(d), see different departures in part; the ratios say what is left.

    Examples
    --------
    >>> import manyserver as ms
    >>> system = ms.System(0.7, [ms.Pool(1, 1)], n_servers=100)
    >>> result = compare(system, [ms.policy("sq", d=2), ms.policy("sq", d=3)], precision=0.01)
    >>> round(float(result.sojourn_mean_difference[1]), 2), bool(result.variance_ratio_plain[1] > 9)
    (-0.26, True)
    """
    # Imported here since numba takes a second to load.
    import xarray as xr

    from manyserver.simulation import Run, checked_settings, make_estimator, run_together

    pairs = _pairs(systems, policies)
    if against not in ("first", "previous"):
        raise ValueError(f"against = {against!r}: must be 'first' or 'previous'")
    order: Discipline | None = None
    strictest = max(
        (policy for _, policy in pairs), key=lambda own: (own.central, own.follows_jobs)
    )
    if simulates_jobs := (sizes is not None or discipline is not None or strictest.follows_jobs):
        sizes, order = checked_service(sizes, discipline, strictest)
    runs = []
    for system, policy in pairs:
        settings = checked_settings(
            system,
            seed=seed,
            precision=precision,
            horizon=horizon,
            replications=replications,
            threads=threads,
            max_events=max_events,
            control_variates=control_variates,
            simulates_jobs=simulates_jobs,
        )
        limit = limit_start(system, policy)
        runs.append(Run(make_estimator(system, policy, *limit, settings, sizes, order)))
    results = run_together(runs, progress or (lambda _: None), previous=against == "previous")
    joined = xr.concat(
        results, "run", data_vars="all", coords="different", compat="equals", join="outer"
    )
    labels = {
        "policy": ("run", [str(policy) for _, policy in pairs]),
        "arrival_rate": ("run", [system.arrival_rate for system, _ in pairs]),
    }
    return with_origin(
        joined.assign_coords(labels),
        systems,
        policies,
        sizes=sizes,
        discipline=order,
        seed=seed,
        against=against,
        precision=runs[0].settings.precision,
        horizon=horizon,
        replications=replications,
        max_events=max_events,
        control_variates=control_variates,
    )


def _pairs(
    systems: System | Sequence[System], policies: Policy | Sequence[Policy]
) -> list[tuple[System, Policy]]:
    some_systems = list(systems) if isinstance(systems, Sequence) else [systems]
    some_policies = list(policies) if isinstance(policies, Sequence) else [policies]
    most = max(len(some_systems), len(some_policies))
    if len(some_systems) == 1:
        some_systems *= most
    if len(some_policies) == 1:
        some_policies *= most
    if most < 2 or len(some_systems) != len(some_policies):
        raise ValueError(
            f"{len(some_systems)} systems and {len(some_policies)} policies: there must be two or "
            "more of one kind, and one or as many of the other"
        )
    for system, policy in zip(some_systems, some_policies, strict=True):
        check_fit(system, policy)
    n_pools = {len(system.pools) for system in some_systems}
    if len(n_pools) > 1:
        raise ValueError(f"systems: have {sorted(n_pools)} pools; must all have as many")
    return list(zip(some_systems, some_policies, strict=True))
