"""The mean field with its 1/N correction, and the covariance of the fluctuations."""

from typing import TYPE_CHECKING

from manyserver.methods.base import Draws, Method, Role, Strict
from manyserver.methods.dispatching import DispatchingProblem

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Options", "RefinedMeanField"]

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


class Options(Strict):
    """Options of the refined mean field."""

    moments: bool = False
    """Whether to add the covariances of the numbers of servers with k jobs."""


class RefinedMeanField(Method[DispatchingProblem, Options]):
    """Expand around the fixed point of the mean field."""

    name = "refined_mean_field"
    title = "Mean field to order 1/N, at finite n_servers."
    role = Role.EXPANSION
    options_class = Options
    seconds = (0.02, 2.0)

    def compute(self, problem: DispatchingProblem, options: Options, draws: Draws) -> "xr.Dataset":
        """Expand around the fixed point; where that is impossible the result is a status alone."""
        import numpy as np
        import xarray as xr

        from manyserver.mean_field import NotSmooth, refine
        from manyserver.variables import labelled

        try:
            result = refine(problem.system, problem.policy)
        except NotSmooth as error:
            return xr.Dataset(attrs={"status": "not smooth", "reason": str(error)})
        covariance = result.queue_tail_covariance.values
        values = {name: result[f"{name}_refined"].values for name in REFINED}
        values |= {f"{name}_correction": result[f"{name}_correction"].values for name in REFINED}
        others = ("jobs_per_server_variance", "residual", "truncation_error", "refinement_residual")
        for name in others:
            values[name] = result[name].values
        # In the limit N times a variance over time is the variance of the expansion.
        values["queue_tail_variance"] = np.einsum("jkjk->jk", covariance)
        if options.moments:
            occupancy = np.diff(np.diff(covariance, axis=1, append=0.0), axis=3, append=0.0)
            occupancy[:, COVARIANCE_LEVELS:] = occupancy[..., COVARIANCE_LEVELS:] = np.nan
            values["occupancy_covariance"] = occupancy
        return labelled(values, problem.system, attrs=result.attrs)
