"""The exponential rates at which the diffusion and the queues forget their start."""

import math
from typing import TYPE_CHECKING

from pydantic import Field

from manyserver.methods.base import Draws, Role, Strict
from manyserver.methods.halfin_whitt import HalfinWhittMethod, HalfinWhittProblem

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Options", "Relaxation"]

TOO_LARGE, TOO_SMALL = "too large", "too small"
SHORTEST_QUEUES = 15.0
"""Least spare capacity in standard deviations, beta sqrt(n). Queues of three are left out of the
chain; below this the slowest mode is that of the longest queues it has, not that of the system."""


class Options(Strict):
    """Options of the spectral gap."""

    largest: int = Field(default=1600, ge=1)
    """Most servers; more are left out as too large. Time grows like their number."""


class Relaxation(HalfinWhittMethod[Options]):
    """Find how fast the start is forgotten."""

    name = "relaxation"
    title = "Spectral gap, of the queues at finite n_servers and of the diffusion in the limit."
    role = Role.RELAXATION
    options_class = Options
    primary_variable = "spectral_gap"
    betas = (0.1, 5.0)

    def applies(self, problem: HalfinWhittProblem) -> bool:
        """Whether it can, which is always."""
        return True

    def skip_reason(self, problem: HalfinWhittProblem, options: Options) -> str:
        """Say if there are too many servers, or too few for a chain without queues of three."""
        if problem.n_servers is None:
            return ""
        if problem.n_servers > options.largest:
            return TOO_LARGE
        return TOO_SMALL if problem.beta * math.sqrt(problem.n_servers) < SHORTEST_QUEUES else ""

    def compute(self, problem: HalfinWhittProblem, options: Options, draws: Draws) -> "xr.Dataset":
        """Find the smallest root of the secular function, and the edge of the spectrum."""
        from manyserver.diffusion.halfin_whitt.convergence.gap import gap
        from manyserver.diffusion.halfin_whitt.convergence.rates import chain_edge, chain_rate
        from manyserver.diffusion.halfin_whitt.labels import labelled

        if problem.n_servers is None:
            return gap(problem.beta)
        values = {
            "spectral_gap": chain_rate(problem.beta, problem.n_servers),
            "essential_spectrum_bottom": chain_edge(problem.beta, problem.n_servers),
        }
        return labelled(values, {}, {"method": "relaxation of join the shortest queue"})
