"""The stationary law of the diffusion limit of join the shortest queue."""

from typing import TYPE_CHECKING

from manyserver.methods.base import Draws, Role, Strict
from manyserver.methods.halfin_whitt import HalfinWhittMethod, HalfinWhittProblem

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Diffusion", "Options"]


class Options(Strict):
    """Options of the diffusion."""

    fluctuations: bool = False
    """Whether to add the asymptotic variances of the averages of Y1 and Y2 over time."""
    joint: bool = False
    """Whether to add the joint density on a grid."""


class Diffusion(HalfinWhittMethod[Options]):
    """Find the stationary law of the diffusion."""

    name = "diffusion"
    title = "Stationary law of the diffusion, at n_servers = limit."
    role = Role.LIMIT
    options_class = Options

    def compute(self, problem: HalfinWhittProblem, options: Options, draws: Draws) -> "xr.Dataset":
        """March the stationary law down from large Y2."""
        from manyserver.diffusion.halfin_whitt.finite.joint import limit_grid
        from manyserver.diffusion.halfin_whitt.labels import labelled
        from manyserver.diffusion.halfin_whitt.limit.fluctuations import fluctuations
        from manyserver.diffusion.halfin_whitt.limit.stationary import stationary

        y1, y2 = limit_grid(problem.beta) if options.joint else ((), ())
        law = stationary(problem.beta, y1=y1, y2=y2)
        values: dict[str, object] = {
            "scaled_idle_mean": -float(law.y1_mean),
            "scaled_idle_variance": float(law.y1_variance),
            "scaled_waiting_mean": float(law.y2_mean),
            "scaled_waiting_variance": float(law.y2_variance),
            "scaled_waiting_mean_error": float(law.y2_mean_error),
            "scaled_waiting_probability": float(law.y2_mean),
            "y1_y2_correlation": float(law.y1_y2_correlation),
            "y2_small_exponent": float(law.y2_small_exponent),
            "y2_small_constant": float(law.y2_small_constant),
        }
        if options.joint:
            values |= {"y1_grid": y1, "y2_grid": y2, "joint_density": law.joint_density.values}
        if options.fluctuations:
            found = fluctuations(problem.beta)
            values |= {str(name): float(found[name]) for name in found.data_vars}
        return labelled(values, {}, {"method": str(law.attrs["method"])})
