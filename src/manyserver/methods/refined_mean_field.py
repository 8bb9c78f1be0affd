"""The mean field with its 1/N correction, and the covariance of the fluctuations."""

from typing import TYPE_CHECKING

from manyserver.methods.base import NOT_KNOWN, Draws, Method, Role, Strict
from manyserver.methods.dispatching import DispatchingProblem
from manyserver.model import NotKnown

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Options", "RefinedMeanField"]


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

        from manyserver.mean_field.refinement import REFINED_MEANS, NotSmooth, refine
        from manyserver.variables import CORRECTION, MOMENT_LEVELS, REFINED, labelled

        try:
            result = refine(problem.system, problem.policy)
        except NotKnown as error:
            return xr.Dataset(attrs={"status": NOT_KNOWN, "reason": str(error)})
        except NotSmooth as error:
            return xr.Dataset(attrs={"status": "not smooth", "reason": str(error)})
        covariance = result.queue_tail_covariance.values
        values = {name: result[name + REFINED].values for name in REFINED_MEANS}
        values |= {name + CORRECTION: result[name + CORRECTION].values for name in REFINED_MEANS}
        others = ("jobs_per_server_variance", "residual", "truncation_error", "refinement_residual")
        for name in others:
            values[name] = result[name].values
        # In the limit N times a variance over time is the variance of the expansion.
        values["queue_tail_variance"] = np.einsum("jkjk->jk", covariance)
        if options.moments:
            occupancy = np.diff(np.diff(covariance, axis=1, append=0.0), axis=3, append=0.0)
            occupancy[:, MOMENT_LEVELS:] = occupancy[..., MOMENT_LEVELS:] = np.nan
            values["occupancy_covariance"] = occupancy
        return labelled(values, problem.system, attrs=result.attrs)
