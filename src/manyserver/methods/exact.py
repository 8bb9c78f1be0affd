"""The stationary law of a small finite system, without approximation."""

import math
from typing import TYPE_CHECKING

from pydantic import Field

from manyserver.methods.base import NOT_KNOWN, Draws, Method, Role, Strict
from manyserver.methods.dispatching import DispatchingProblem
from manyserver.model import NotKnown, System, UnstableSystem

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Exact", "Options", "fewest_states"]

TOO_LARGE = "too large"
UNSTABLE = "unstable"
FIRST_CAP = 4
"""The chain is first tried with at most this many jobs at a server."""


class Options(Strict):
    """Options of the exact chain."""

    max_states: int = Field(default=100_000, ge=1)
    """Most states of the Markov chain; a system that needs more is left out as `too large`."""
    tolerance: float = Field(default=1e-12, ge=1e-13, le=0.01)
    """Largest relative error of the mean number of jobs."""
    moments: bool = False
    """Whether to add variances and covariances of the numbers of servers with k jobs."""


class Exact(Method[DispatchingProblem, Options]):
    """Solve the balance equations."""

    name = "exact"
    title = "Exact Markov chain, at small finite n_servers."
    role = Role.EXACT
    options_class = Options
    seconds = (0.2, 10.0)

    def skip_reason(self, problem: DispatchingProblem, options: Options) -> str:
        """Say if even the fewest states that could do are too many."""
        if problem.policy.follows_jobs:
            return ""  # a formula, or none
        fewest = fewest_states(problem.system, options.tolerance)
        return TOO_LARGE if fewest > options.max_states else ""

    def compute(self, problem: DispatchingProblem, options: Options, draws: Draws) -> "xr.Dataset":
        """Solve them; if that is impossible, the result has a status alone."""
        import xarray as xr

        from manyserver.exact import TooManyStates, exact

        try:
            return exact(problem.system, problem.policy, **dict(options))
        except TooManyStates as error:
            return xr.Dataset(attrs={"status": TOO_LARGE, "reason": str(error)})
        except NotKnown as error:
            return xr.Dataset(attrs={"status": NOT_KNOWN, "reason": str(error)})
        except UnstableSystem as error:
            return xr.Dataset(attrs={"status": UNSTABLE, "reason": str(error)})


def fewest_states(system: System, tolerance: float) -> int:
    """Estimate how many states are needed at least, without looking at the policy.

    All servers together hold as many jobs as one server of their capacity, or more: n or more
    with probability load**n. If all queues grow alike, that takes n / N jobs at each. Where jobs
    can be blocked that does not hold.
    """
    bounded = system.is_bounded
    jobs = 0.0 if bounded else math.log(tolerance) / math.log(system.load)
    cap = max(FIRST_CAP, math.floor(jobs / system.finite_servers))
    buffers = [cap if pool.buffer is None else min(cap, pool.buffer) for pool in system.pools]
    return math.prod(
        math.comb(count + most, count) for count, most in zip(system.counts, buffers, strict=True)
    )
