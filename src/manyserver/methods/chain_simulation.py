"""Simulation of join the shortest queue, which shares nothing with the exact law."""

import math
from typing import TYPE_CHECKING

from pydantic import Field

from manyserver.methods.base import Draws, Role, Strict
from manyserver.methods.halfin_whitt import HalfinWhittMethod, HalfinWhittProblem

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["ChainSimulation", "Options"]

MOST_EVENTS = 1e15
"""The horizon alone says how long a simulation is."""
TOO_LARGE = "too large"
SHORTEST, USUAL = 320, 5120
"""Shortest horizon, and that by default, in relaxation times, all runs together."""


class Options(Strict):
    """Options of the simulation."""

    largest: int = Field(default=6400, ge=1)
    """Most servers; more are left out as too large. Time grows like their number, and for the
    deviation from the limit like its square."""
    horizon: float | None = Field(default=None, gt=0)
    """Measured time of all runs together; by default 5120 relaxation times."""
    replications: int = Field(default=4, ge=2)
    """Independent runs behind one point."""


class ChainSimulation(HalfinWhittMethod[Options]):
    """Simulate for a given time: the precision of the sojourn time says little of the queues."""

    name = "chain_simulation"
    title = "Simulation of join the shortest queue, at finite n_servers."
    role = Role.SIMULATION
    options_class = Options
    random = True
    compiles = True
    threads = 4
    memory_mb = 1500
    minutes = 3
    starts_from = ("manyserver.mean_field",)

    def skip_reason(self, problem: HalfinWhittProblem, options: Options) -> str:
        """Say if there are too many servers."""
        return TOO_LARGE if problem.finite_servers > options.largest else ""

    def check(self, problem: HalfinWhittProblem, options: Options) -> None:
        """Raise a ValueError if the horizon is too short."""
        super().check(problem, options)
        shortest = SHORTEST * relaxation_time(problem.beta)
        if options.horizon is not None and options.horizon < shortest:
            raise ValueError(
                f"horizon = {options.horizon!r}: must be at least {shortest:g}, which is "
                f"{SHORTEST} relaxation times"
            )

    def compute(self, problem: HalfinWhittProblem, options: Options, draws: Draws) -> "xr.Dataset":
        """Simulate for a given time, and scale what converges."""
        from manyserver.diffusion.halfin_whitt.labels import labelled
        from manyserver.model import Pool, System
        from manyserver.policies.jsq import JSQ
        from manyserver.simulate import simulate

        n, root = problem.finite_servers, math.sqrt(problem.finite_servers)
        horizon = options.horizon or USUAL * relaxation_time(problem.beta)
        run = simulate(
            System(1 - problem.beta / root, [Pool(1, 1)], n_servers=n),
            JSQ(),
            horizon=horizon / options.replications,
            replications=options.replications,
            max_events=MOST_EVENTS,
            seed=draws.seed,
            threads=1,
        )
        kept = (
            "waiting_probability",
            "simulated_time",
            "n_events",
            "n_batches",
            "n_controls",
            "interval_reliable",
        )
        values: dict[str, object] = {name: run[name].values for name in kept}
        for suffix in ("", "_half_width"):
            queues = n * run[f"queue_tail{suffix}"].values[0]
            values[f"scaled_waiting_mean{suffix}"] = queues[2] / root
            values[f"q3_mean{suffix}"] = queues[3] if len(queues) > 3 else 0.0
            probability = run[f"waiting_probability{suffix}"].values
            values[f"waiting_probability{suffix}"] = probability
            values[f"scaled_waiting_probability{suffix}"] = probability * root
        if run.sizes["level"] <= 3:
            values["q3_mean_half_width"] = math.nan
        return labelled(values, {}, {"method": "simulation"})


def relaxation_time(beta: float) -> float:
    """Return about one over the spectral gap of the diffusion, for any beta.

    The gap tends to ``2 beta**2 / 9`` for small beta; it is 0.054 at 0.5, 0.20 at 1 and 0.61 at 2.
    That of the queues is larger.
    """
    return 4.5 / beta**2 + 0.6
