"""The fluid model of join the shortest queue: its paths, and the cost of them."""

from typing import TYPE_CHECKING

from pydantic import Field

from manyserver.methods.base import Draws, Role, Strict
from manyserver.methods.halfin_whitt import HalfinWhittMethod, HalfinWhittProblem

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Fluid", "Options"]


class Options(Strict):
    """Options of the fluid model."""

    levels: tuple[float, ...] = Field(default=(1.0, 1.5, 2.0, 3.0), min_length=1)
    """Levels kappa over beta, at least 1, of the curves Gamma, of which that of 1 is the
    separatrix; the Stein equation is solved for the first that is greater."""
    reach: float = Field(default=4.0, gt=0)
    """How far the grid goes in both directions."""


class Fluid(HalfinWhittMethod[Options]):
    """Evaluate closed forms."""

    name = "fluid"
    title = "Paths of the fluid model and the solution of the Stein equation, at n_servers = limit."
    role = Role.PATHS
    options_class = Options
    primary_variable = "excess_level"

    def compute(self, problem: HalfinWhittProblem, options: Options, draws: Draws) -> "xr.Dataset":
        """Evaluate closed forms."""
        from manyserver.diffusion.halfin_whitt.fluid_model.phase_portrait import portrait

        beta = problem.beta
        return portrait(beta, levels=[x * beta for x in options.levels], reach=options.reach)
