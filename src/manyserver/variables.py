"""Every variable that a result on dispatching policies can hold.

Methods hand bare arrays to :func:`labelled`, which checks them against the schema and adds
names, units and coordinates, so that all results look the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import numpy as np

from manyserver.model import System
from manyserver.schema import HALF_WIDTH, Purpose, Schema, Suffix, Variable

if TYPE_CHECKING:
    import xarray as xr

__all__ = [
    "CORRECTION",
    "DECILES",
    "DEVIATION",
    "DIFFERENCE",
    "DIMENSIONS",
    "MOMENT_LEVELS",
    "QUANTILES",
    "REFINED",
    "SCHEMA",
    "MeanName",
    "labelled",
]

CORRECTION = "_correction"
"""Suffix of the coefficient c of 1/N in a variable, x_N = x + c/N with N servers."""
DEVIATION = "_deviation"
"""Suffix of the standard deviation of a variable over replications."""
DIFFERENCE = "_difference"
"""Suffix of the difference of a variable from that of another run."""
REFINED = "_refined"
"""Suffix of a variable to order 1/N, at the number of servers asked for."""

DIAGNOSTIC, RELATIVE_ERROR = Purpose.DIAGNOSTIC, Purpose.RELATIVE_ERROR
_VARIABLES = {
    "queue_tail": Variable(
        ("pool", "level"), "1", "u_k^{(j)}", "fraction of the pool's servers with at least k jobs"
    ),
    "queue_log_tail": Variable(
        ("pool", "level"), "1", r"\log u_k^{(j)}", "natural logarithm of the queue tail"
    ),
    "queue_mean": Variable(("pool",), "jobs", "L^{(j)}", "mean number of jobs at a server"),
    "jobs_per_server": Variable((), "jobs", "L", "mean number of jobs per server, all pools"),
    "sojourn_mean": Variable((), "time", "W", "mean sojourn time of a job (Little's law)"),
    "waiting_probability": Variable(
        (), "1", "P_w", "probability that an arrival joins a busy server"
    ),
    "blocking_probability": Variable((), "1", "P_b", "probability that an arrival is lost"),
    "stability_limit": Variable(
        (),
        "1",
        r"\rho^*",
        "largest stable load of the policy",
    ),
    "messages_per_job": Variable(
        (), "1", "m", "messages between servers and dispatcher per accepted job"
    ),
    "empty_router_probability": Variable(
        (), "1", "P_e", "probability that an arrival finds its router without messages"
    ),
    "empty_router_lower": Variable(
        (), "1", "P_e", "lower bound of the probability that an arrival finds its router empty"
    ),
    "empty_router_upper": Variable(
        (), "1", "P_e", "upper bound of the probability that an arrival finds its router empty"
    ),
    "empty_router_decay": Variable(
        (),
        "1",
        r"-\log(P_e) / N",
        "exponential decay of the probability of an empty router, per server",
    ),
    "router_idle": Variable(
        ("pool", "router"),
        "1",
        "y_{jr}",
        "idle servers of the pool that the router knows of, over all servers",
    ),
    "idle_concentration": Variable(
        (),
        "1",
        r"\textstyle\sum_r E I_r^2 / E I^2",
        "mean square of the idle servers that a router knows of, all routers, over that of all",
    ),
    "stability_margin": Variable(
        (), "1", "", "part of their capacity that pools would have left while they are always busy"
    ),
    "sojourn_variance": Variable(
        (), "time^2", r"\operatorname{Var} S", "variance of the sojourn time of a job"
    ),
    "sojourn_quantile": Variable(
        ("quantile",), "time", "S_q", "sojourn time that this part of the jobs does not exceed"
    ),
    "sojourn_cdf": Variable(
        ("duration",), "1", r"P(S \le t)", "probability that a sojourn is not longer"
    ),
    "pool_sojourn_mean": Variable(
        ("pool",), "time", "W^{(j)}", "mean sojourn time of a job that joins the pool"
    ),
    "pool_sojourn_variance": Variable(
        ("pool",), "time^2", "", "variance of the sojourn time of a job that joins the pool"
    ),
    "pool_sojourn_quantile": Variable(
        ("pool", "quantile"), "time", "S_q^{(j)}", "quantile of the sojourn time in the pool"
    ),
    "waiting_mean": Variable((), "time", "V", "mean time until the service of a job begins"),
    "waiting_variance": Variable(
        (), "time^2", r"\operatorname{Var} V", "variance of the time until service begins"
    ),
    "waiting_quantile": Variable(
        ("quantile",), "time", "V_q", "quantile of the time until service begins"
    ),
    "pool_waiting_mean": Variable(
        ("pool",), "time", "V^{(j)}", "mean time until service begins, of a job of the pool"
    ),
    "pool_waiting_variance": Variable(
        ("pool",), "time^2", "", "variance of the time until service begins, in the pool"
    ),
    "pool_waiting_quantile": Variable(
        ("pool", "quantile"), "time", "V_q^{(j)}", "quantile of the time until service begins"
    ),
    "pool_share": Variable(("pool",), "1", "p_j", "part of the accepted jobs that join the pool"),
    "work_mean": Variable(
        (), "time", "", "mean time until a server would be idle if nobody joined"
    ),
    "work_quantile": Variable(
        ("quantile",), "time", "", "quantile of the time until a server would be idle"
    ),
    "pool_utilization": Variable(
        ("pool",), "1", r"\rho_j", "part of the time that a server of the pool is busy"
    ),
    "longest_queue_tail": Variable(
        ("level",), "1", r"P(M \ge k)", "probability that some server has at least k jobs"
    ),
    "longest_queue_mean": Variable((), "jobs", "E M", "mean of the jobs at the fullest server"),
    "slowdown_mean": Variable(
        ("size_decile",),
        "1",
        "",
        "mean sojourn time over the time alone at a server of speed 1, by size",
    ),
    "little_residual": Variable(
        (), "1", "", "relative difference of the time in system, by jobs and by servers", DIAGNOSTIC
    ),
    "n_jobs": Variable((), "1", "n", "accepted jobs that arrived while measuring", DIAGNOSTIC),
    "n_unfinished": Variable(
        (), "1", "", "of these, jobs that had not left when the simulation ended", DIAGNOSTIC
    ),
    "joining_rate": Variable(
        ("pool", "level"),
        "1/time",
        r"\lambda_k^{(j)}",
        "arrivals per unit of time to one server of the pool that holds k jobs",
    ),
    "residual": Variable((), "1", "r", "relative imbalance of the flows", RELATIVE_ERROR),
    "truncation_error": Variable(
        (),
        "1",
        r"\epsilon",
        "relative error of the mean number of jobs from levels left out",
        RELATIVE_ERROR,
    ),
    "simulated_time": Variable((), "time", "T", "measured time, all replications", DIAGNOSTIC),
    "n_events": Variable((), "1", "n_e", "arrivals and departures while measuring", DIAGNOSTIC),
    "n_replications": Variable((), "1", "R", "independent runs behind the half-widths", DIAGNOSTIC),
    "n_batches": Variable((), "1", "b", "batches behind the half-widths", DIAGNOSTIC),
    "n_controls": Variable((), "1", "p", "control variates behind the half-widths", DIAGNOSTIC),
    "autocorrelation_time": Variable(
        (),
        "time",
        r"\tau",
        "autocorrelation time of the number of jobs, if batches need it",
        DIAGNOSTIC,
    ),
    "interval_reliable": Variable(
        (), "1", "", "whether the half-widths rest on enough batches", DIAGNOSTIC
    ),
    "precision_met": Variable(
        (), "1", "", "whether the precision asked for was reached", DIAGNOSTIC
    ),
    "n_states": Variable((), "1", "", "states of the Markov chain", DIAGNOSTIC),
    "queue_tail_covariance": Variable(
        ("pool", "level", "other_pool", "other_level"),
        "1",
        r"N \operatorname{Cov}(u_k^{(j)}, u_l^{(i)})",
        "N times the covariance of two queue tails, many servers",
    ),
    "jobs_per_server_variance": Variable(
        (), "jobs^2", r"N \operatorname{Var} L", "N times the variance of the jobs per server"
    ),
    "queue_tail_variance": Variable(
        ("pool", "level"),
        "1",
        r"N \operatorname{Var} u_k^{(j)}",
        "N times the variance of the queue tail over time, N servers",
    ),
    "occupancy_covariance": Variable(
        ("pool", "level", "other_pool", "other_level"),
        "1",
        r"N \operatorname{Cov}(x_k^{(j)}, x_l^{(i)})",
        "N times the covariance over time of the fractions of servers with k and with l jobs",
    ),
    "variance_ratio": Variable(
        (),
        "1",
        "",
        "variance of the difference of two independent runs, over that of this one",
        DIAGNOSTIC,
    ),
    "variance_ratio_plain": Variable(
        (), "1", "", "the same for independent runs without control variates", DIAGNOSTIC
    ),
    "refinement_residual": Variable(
        (), "1", "", "largest relative error of the conservation laws at order 1/N", RELATIVE_ERROR
    ),
}
SCHEMA = Schema(
    _VARIABLES,
    {
        HALF_WIDTH: Suffix("95 % half-width", Purpose.HALF_WIDTH),
        DEVIATION: Suffix("standard deviation over replications"),
        DIFFERENCE: Suffix("difference from another run"),
        CORRECTION: Suffix("coefficient of 1/N, N servers"),
        REFINED: Suffix("mean field with the 1/N correction"),
    },
)

QUANTILES = (0.5, 0.9, 0.99, 0.999)
"""Coordinates of ``quantile`` unless others are asked for."""
DECILES = 10
"""Length of ``size_decile``."""
MOMENT_LEVELS = 12
"""Levels between which covariances are given."""

MeanName = Literal["sojourn_mean", "jobs_per_server", "waiting_probability"]
"""Variables of a point that every method has, from which figures and fits choose."""
DIMENSIONS: dict[str, dict[str, str]] = {
    "quantile": {"units": "1", "symbol": "q", "long_name": "part of the jobs"},
    "duration": {"units": "time", "symbol": "t", "long_name": "length of a sojourn"},
    "size_decile": {"units": "1", "long_name": "tenth of the jobs, by size, the smallest first"},
}
"""Attributes of dimensions that a method gives the coordinates of."""


def labelled(
    values: Mapping[str, object],
    system: System,
    *,
    time: np.ndarray | None = None,
    coords: Mapping[str, np.ndarray] | None = None,
    attrs: Mapping[str, object] | None = None,
) -> xr.Dataset:
    """Turn bare arrays into a dataset with names, units and coordinates.

    Parameters
    ----------
    values : mapping of str to array_like
        By variable name; the shape is that of the variable's dimensions.
    system : System
        Gives the coordinates of ``pool``.
    time : numpy.ndarray, shape (time,), optional
        Puts a dimension ``time`` before those of every variable.
    coords : mapping of str to numpy.ndarray, optional
        Coordinates of further dimensions, of those in `DIMENSIONS`.
    attrs : mapping, optional
        Attributes of the dataset.

    Returns
    -------
    xarray.Dataset

    Raises
    ------
    KeyError
        If a name is not in the registry.
    """
    # Imported here so that a study can be checked without waiting for xarray.
    import xarray as xr

    data = SCHEMA.described(values, () if time is None else ("time",))
    levels = max(
        (array.shape[dims.index("level")] for dims, array, _ in data.values() if "level" in dims),
        default=0,
    )
    known = _coordinates(system, levels, time)
    for dim, values_along in (coords or {}).items():
        known[dim] = (dim, values_along, DIMENSIONS[dim])
    if any("other_level" in dims for dims, _, _ in data.values()):
        for dim in ("pool", "level"):
            known[f"other_{dim}"] = (f"other_{dim}", *known[dim][1:])
    return xr.Dataset(data, coords=known, attrs=dict(attrs or {}))


def _coordinates(
    system: System, levels: int, time: np.ndarray | None
) -> dict[str, tuple[str, np.ndarray, dict[str, str]]]:
    coords = {
        "pool": ("pool", np.arange(len(system.pools)), {"long_name": "pool, in the order given"}),
        "pool_fraction": (
            "pool",
            system.fractions,
            {"units": "1", "symbol": r"\gamma_j", "long_name": "fraction of the servers"},
        ),
        "pool_speed": (
            "pool",
            system.speeds,
            {"units": "1", "symbol": "C_j", "long_name": "speed of a server of the pool"},
        ),
    }
    if levels:
        coords["level"] = (
            "level",
            np.arange(levels),
            {"units": "jobs", "symbol": "k", "long_name": "number of jobs at a server"},
        )
    if time is not None:
        coords["time"] = ("time", time, {"units": "time", "symbol": "t", "long_name": "time"})
    return coords
