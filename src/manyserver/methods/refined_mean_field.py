"""The mean field with its 1/N correction, and the covariance of the fluctuations."""

from typing import Any

from pydantic import BaseModel, ConfigDict

from manyserver.model import System
from manyserver.policies import Policy

TITLE = "Mean field to order 1/N, at finite n_servers."
RANDOM = False
STARTS_FROM = ()
REFINED = (
    "queue_tail",
    "queue_mean",
    "jobs_per_server",
    "sojourn_mean",
    "waiting_probability",
    "blocking_probability",
)
COVARIANCE_LEVELS = 12
"""Levels between which covariances are kept, as many as a simulation measures."""


class Options(BaseModel):
    """Options of the refined mean field."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    moments: bool = False
    """Whether to add the covariances of the numbers of servers with k jobs."""


def applies(system: System) -> bool:
    """Whether the system has a finite number of servers."""
    return system.n_servers is not None


def refusal(system: System, policy: Policy, options: Options) -> str:
    """Nothing is known to be impossible before it is tried."""
    return ""


def compute(system: System, policy: Policy, options: Options, seed: int) -> Any:
    """Expand around the fixed point; where that is impossible the result is a status alone."""
    import numpy as np
    import xarray as xr

    from manyserver.mean_field import NotSmooth, refine
    from manyserver.variables import labelled

    try:
        result = refine(system, policy)
    except NotSmooth as error:
        return xr.Dataset(attrs={"status": "not smooth", "reason": str(error)})
    covariance = result.queue_tail_covariance.values
    values = {name: result[f"{name}_refined"].values for name in REFINED}
    values |= {f"{name}_correction": result[f"{name}_correction"].values for name in REFINED}
    for name in ("jobs_per_server_variance", "residual", "truncation_error", "refinement_residual"):
        values[name] = result[name].values
    # In the limit N times a variance over time is the variance of the expansion.
    values["queue_tail_variance"] = np.einsum("jkjk->jk", covariance)
    if options.moments:
        occupancy = np.diff(np.diff(covariance, axis=1, append=0.0), axis=3, append=0.0)
        occupancy[:, COVARIANCE_LEVELS:] = occupancy[..., COVARIANCE_LEVELS:] = np.nan
        values["occupancy_covariance"] = occupancy
    return labelled(values, system, attrs=result.attrs)
