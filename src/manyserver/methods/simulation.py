"""Simulation of a finite system, with half-widths."""

from typing import TYPE_CHECKING, Any

from pydantic import Field, model_validator

from manyserver import defaults
from manyserver.disciplines.service import checked_service
from manyserver.methods.base import Draws, Method, Role, Strict
from manyserver.methods.dispatching import DispatchingProblem
from manyserver.model import UnstableSystem

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Options", "Simulation"]

UNSTABLE = "unstable"
SERVER_BYTES, SERVER_BYTES_WITH_JOBS = 40, 700
"""Memory for a server, and where its jobs are followed; measured."""


class Options(Strict):
    """Options of the simulation."""

    precision: float | None = Field(default=None, gt=0, lt=1)
    """Half-width of the 95 % interval of the mean sojourn time, relative to it; by default 0.0005,
    and 0.005 where jobs are followed."""
    horizon: float | None = Field(default=None, gt=0)
    """Measured time of each run, instead of a precision."""
    replications: int = Field(default=defaults.REPLICATIONS, ge=2)
    """Independent runs behind one point; for a precision, as many more as it takes."""
    control_variates: bool = defaults.CONTROL_VARIATES
    """Whether to use what is known to be zero on average to shorten the intervals."""
    moments: bool = defaults.MOMENTS
    """Whether to add covariances of the numbers of servers with k jobs."""
    max_events: float = Field(default=defaults.MAX_EVENTS, gt=0)
    """Most arrivals and potential departures; a point that would need more ends with what it has,
    and the status `precision not met`."""

    @model_validator(mode="after")
    def _one_length(self) -> "Options":
        if self.horizon is not None and self.precision is not None:
            raise ValueError("horizon: cannot be given together with precision")
        return self


class Simulation(Method[DispatchingProblem, Options]):
    """Simulate until the precision is met, or the time is over."""

    name = "simulation"
    title = "Simulation, at finite n_servers."
    role = Role.SIMULATION
    options_class = Options
    seconds = (0.15, 10.0)
    random = True
    compiles = True
    threads = 4
    memory_mb = 1500
    minutes = 3
    # A run starts at the mean-field fixed point and warms up for several relaxation times, until
    # the start is forgotten up to an error far below the half-width. So other code for the mean
    # field gives another draw from the same law: the stored points stay as good as new ones.
    starts_from = ("manyserver.mean_field",)
    takes_sizes = True

    def check(self, problem: DispatchingProblem, options: Options) -> None:
        """Refuse a discipline that the policy rules out."""
        checked_service(problem.sizes, problem.discipline, problem.policy)

    def memory(self, problem: DispatchingProblem) -> float:
        """Return the bytes that a point takes."""
        followed = problem.sizes is not None or problem.policy.follows_jobs
        each = SERVER_BYTES_WITH_JOBS if followed else SERVER_BYTES
        return problem.system.finite_servers * each

    def cache_key(self, options: Options) -> dict[str, Any]:
        """Options on which the length of a replication and what it measures depend."""
        return options.model_dump(include={"horizon", "moments", "max_events"})

    def compute(self, problem: DispatchingProblem, options: Options, draws: Draws) -> "xr.Dataset":
        """Simulate; a system that turns out to be unstable gives a result with this status."""
        import xarray as xr

        from manyserver.simulate import simulate

        try:
            return simulate(
                problem.system,
                problem.policy,
                sizes=problem.sizes,
                discipline=problem.discipline,
                seed=draws.seed,
                threads=1,
                cache=draws.cache,
                **dict(options),
            )
        except UnstableSystem as error:
            return xr.Dataset(attrs={"status": UNSTABLE, "reason": str(error)})
