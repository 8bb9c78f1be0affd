"""Simulation of join the shortest queue, which shares nothing with the exact law."""

import math
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

TITLE = "Simulation of join the shortest queue, at finite n_servers."
MODEL = "halfin_whitt"
RANDOM = True
COMPILES = True
STARTS_FROM = ()
ANSWER = "scaled_waiting_mean"
BETAS = (0.01, 6.0)
TOO_LARGE = "too large"


class Options(BaseModel):
    """Options of the simulation."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    largest: int = Field(default=6400, ge=1)
    """Most servers; more are left out as too large. Time grows like their number, and for the
    deviation from the limit like its square."""
    horizon: float | None = Field(default=None, gt=0)
    """Measured time of all runs together; by default 64 batches of 20 relaxation times."""
    replications: int = Field(default=4, ge=2)
    """Independent runs behind one point."""


def applies(beta: float, n_servers: int | None) -> bool:
    """Whether the number of servers is finite."""
    return n_servers is not None


def refusal(beta: float, n_servers: int, options: Options) -> str:
    """Say if there are too many servers."""
    return TOO_LARGE if n_servers > options.largest else ""


def check(beta: float, options: Options) -> None:
    """Raise a ValueError if the horizon is too short."""
    if options != Options():
        from manyserver.diffusion.halfin_whitt.simulation import batches_per_run

        batches_per_run(beta, options.horizon, options.replications)


def compute(beta: float, n_servers: int, options: Options, seed: int) -> Any:
    """Simulate for a given time, and scale what converges."""
    from manyserver.diffusion.halfin_whitt.labels import labelled
    from manyserver.diffusion.halfin_whitt.simulation import simulate_chain

    run = simulate_chain(
        beta,
        n_servers,
        horizon=options.horizon,
        seed=seed,
        replications=options.replications,
        threads=1,
    )
    root = math.sqrt(n_servers)
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
