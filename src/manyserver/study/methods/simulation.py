"""Simulation of a finite system, with half-widths."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

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

    precision: float = Field(default=0.01, gt=0, lt=1)
    """Half-width of the 95 % interval of the mean sojourn time, relative to it."""
    replications: int = Field(default=8, ge=2)
    """Independent runs behind one point."""


def applies(system: System) -> bool:
    """Whether the system has a finite number of servers."""
    return system.n_servers is not None


def compute(system: System, policy: Policy, options: Options, seed: int) -> Any:
    """Simulate until the precision is met."""
    from manyserver.simulate import simulate

    return simulate(
        system,
        policy,
        seed=seed,
        precision=options.precision,
        replications=options.replications,
        threads=1,
    )
