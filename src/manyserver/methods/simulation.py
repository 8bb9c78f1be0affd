"""Simulation of a finite system, with half-widths."""

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from manyserver.model import System, UnstableSystem
from manyserver.policies import Policy
from manyserver.sizes import SizeLaw

if TYPE_CHECKING:
    from manyserver.simulation.replications import Cache

TITLE = "Simulation, at finite n_servers."
RANDOM = True
COMPILES = True
# A run starts at the mean-field fixed point and warms up for several relaxation times, until the
# start is forgotten up to an error far below the half-width. So other code for the mean field
# gives another draw from the same law: the stored points stay as good as new ones.
STARTS_FROM = ("manyserver.mean_field",)
FOLLOWS_JOBS = True
UNSTABLE = "unstable"
SERVER_BYTES, SERVER_BYTES_WITH_JOBS = 40, 700
"""Memory for a server, and where its jobs are followed; measured."""


class Options(BaseModel):
    """Options of the simulation."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    precision: float | None = Field(default=None, gt=0, lt=1)
    """Half-width of the 95 % interval of the mean sojourn time, relative to it; by default 0.0005,
    and 0.005 where jobs are followed."""
    horizon: float | None = Field(default=None, gt=0)
    """Measured time of each run, instead of a precision."""
    replications: int = Field(default=8, ge=2)
    """Independent runs behind one point; for a precision, as many more as it takes."""
    control_variates: bool = True
    """Whether to use what is known to be zero on average to shorten the intervals."""
    moments: bool = False
    """Whether to add covariances of the numbers of servers with k jobs."""
    max_events: float = Field(default=1e10, gt=0)
    """Most arrivals and tries to depart; a point that would need more ends with what it has."""

    @model_validator(mode="after")
    def _one_length(self) -> "Options":
        if self.horizon is not None and self.precision is not None:
            raise ValueError("horizon: cannot be given together with precision")
        return self


def applies(system: System) -> bool:
    """Whether the system has a finite number of servers."""
    return system.n_servers is not None


def refusal(system: System, policy: Policy, options: Options) -> str:
    """Every stable system can be simulated."""
    return ""


def memory(
    system: System, policy: Policy, sizes: SizeLaw | None = None, discipline: str | None = None
) -> float:
    """Return the bytes that a point takes."""
    return sum(system.counts) * (SERVER_BYTES if sizes is None else SERVER_BYTES_WITH_JOBS)


def kept_options(options: Options) -> dict[str, Any]:
    """Options on which the length of a replication and what it measures depend."""
    return options.model_dump(include={"horizon", "moments", "max_events"})


def compute(
    system: System,
    policy: Policy,
    options: Options,
    seed: int,
    sizes: SizeLaw | None = None,
    discipline: str | None = None,
    cache: "Cache | None" = None,
) -> Any:
    """Simulate until the precision is met, or the time is over.

    A system that turns out to be unstable gives a result with this status alone.
    """
    import xarray as xr

    from manyserver.simulate import simulate

    try:
        return simulate(
            system,
            policy,
            sizes=sizes,
            discipline=discipline,
            seed=seed,
            precision=options.precision,
            horizon=options.horizon,
            replications=options.replications,
            control_variates=options.control_variates,
            moments=options.moments,
            max_events=options.max_events,
            threads=1,
            cache=cache,
        )
    except UnstableSystem as error:
        return xr.Dataset(attrs={"status": UNSTABLE, "reason": str(error)})
