"""Simulation of a finite system, with half-widths."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from manyserver.model import System
from manyserver.policies import Policy

TITLE = "Simulation, at finite n_servers."
RANDOM = True
# A run starts at the mean-field fixed point and warms up for several relaxation times, until the
# start is forgotten up to an error far below the half-width. So other code for the mean field
# gives another draw from the same law: the stored points stay as good as new ones.
STARTS_FROM = ("manyserver.mean_field",)


class Options(BaseModel):
    """Options of the simulation."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    precision: float = Field(default=0.0005, gt=0, lt=1)
    """Half-width of the 95 % interval of the mean sojourn time, relative to it."""
    horizon: float | None = Field(default=None, gt=0)
    """Measured time of each run, instead of a precision."""
    replications: int = Field(default=8, ge=2)
    """Independent runs behind one point."""
    control_variates: bool = True
    """Whether to use what is known to be zero on average to shorten the intervals."""
    moments: bool = False
    """Whether to add covariances of the numbers of servers with k jobs."""

    @model_validator(mode="after")
    def _one_length(self) -> "Options":
        if self.horizon is not None and "precision" in self.model_fields_set:
            raise ValueError("horizon: cannot be given together with precision")
        return self


def applies(system: System) -> bool:
    """Whether the system has a finite number of servers."""
    return system.n_servers is not None


def refusal(system: System, policy: Policy, options: Options) -> str:
    """Every stable system can be simulated."""
    return ""


def compute(system: System, policy: Policy, options: Options, seed: int) -> Any:
    """Simulate until the precision is met, or the time is over."""
    from manyserver.simulate import simulate

    return simulate(
        system,
        policy,
        seed=seed,
        precision=options.precision if options.horizon is None else None,
        horizon=options.horizon,
        replications=options.replications,
        control_variates=options.control_variates,
        moments=options.moments,
        threads=1,
    )
