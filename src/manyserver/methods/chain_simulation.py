"""Simulation of join the shortest queue, which shares nothing with the exact law."""

import math
from typing import TYPE_CHECKING

from pydantic import Field

from manyserver.methods.base import Draws, Role, Strict
from manyserver.methods.halfin_whitt import HalfinWhittMethod, HalfinWhittProblem

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["ChainSimulation", "Options"]

TOO_LARGE = "too large"


class Options(Strict):
    """Options of the simulation."""

    largest: int = Field(default=6400, ge=1)
    """Most servers; more are left out as too large. Time grows like their number, and for the
    deviation from the limit like its square."""
    horizon: float | None = Field(default=None, gt=0)
    """Measured time of all runs together; by default 64 batches of 20 relaxation times."""
    replications: int = Field(default=4, ge=2)
    """Independent runs behind one point."""


class ChainSimulation(HalfinWhittMethod[Options]):
    """Simulate for a given time."""

    name = "chain_simulation"
    title = "Simulation of join the shortest queue, at finite n_servers."
    role = Role.SIMULATION
    options_class = Options
    random = True
    compiles = True
    threads = 4
    memory_mb = 1500
    minutes = 3

    def skip_reason(self, problem: HalfinWhittProblem, options: Options) -> str:
        """Say if there are too many servers."""
        return TOO_LARGE if problem.finite_servers > options.largest else ""

    def check(self, problem: HalfinWhittProblem, options: Options) -> None:
        """Raise a ValueError if the horizon is too short."""
        super().check(problem, options)
        if options != Options():
            from manyserver.diffusion.halfin_whitt.simulation import batches_per_run

            batches_per_run(problem.beta, options.horizon, options.replications)

    def compute(self, problem: HalfinWhittProblem, options: Options, draws: Draws) -> "xr.Dataset":
        """Simulate for a given time, and scale what converges."""
        from manyserver.diffusion.halfin_whitt.labels import labelled
        from manyserver.diffusion.halfin_whitt.simulation import simulate_chain

        run = simulate_chain(
            problem.beta,
            problem.finite_servers,
            horizon=options.horizon,
            seed=draws.seed,
            replications=options.replications,
            threads=1,
        )
        root = math.sqrt(problem.finite_servers)
        kept = ("waiting_probability", "q3_mean", "simulated_time", "n_events", "n_batches")
        values: dict[str, object] = {name: run[name].values for name in kept}
        for suffix in ("", "_half_width"):
            values[f"scaled_waiting_mean{suffix}"] = float(run[f"q2_mean{suffix}"]) / root
            probability = float(run[f"waiting_probability{suffix}"])
            values[f"waiting_probability{suffix}"] = probability
            values[f"scaled_waiting_probability{suffix}"] = probability * root
        values["q3_mean_half_width"] = run.q3_mean_half_width.values
        values["interval_reliable"] = math.isfinite(run.q2_mean_half_width)
        return labelled(values, {}, {"method": "simulation"})
