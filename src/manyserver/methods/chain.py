"""The stationary law of join the shortest queue with n servers, without simulation."""

import math
from typing import TYPE_CHECKING

from pydantic import Field

from manyserver.methods.base import Draws, Role, Strict
from manyserver.methods.halfin_whitt import HalfinWhittMethod, HalfinWhittProblem

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Chain", "Options"]

TOO_LARGE = "too large"


class Options(Strict):
    """Options of the exact law."""

    third_customers: int = Field(default=100, ge=10)
    """Most servers with which servers can have three customers, not two; time grows like n**3,
    to four seconds for 400."""
    max_states: int = Field(default=30_000_000, ge=1)
    """Most states; a point that needs more is left out as too large. A second computes about
    twenty million."""
    tolerance: float = Field(default=0.01, gt=0)
    """Largest relative error of the mean of Q2, as no server has more than three customers, or two;
    a point of which it is larger gets the status `precision not met`."""
    distances: bool = True
    """Whether to add the distances of the laws from those of the diffusion."""
    joint: bool = False
    """Whether to add the joint law on a grid, for up to 40 000 servers."""


class Chain(HalfinWhittMethod[Options]):
    """Solve the balance equations level by level."""

    name = "chain"
    title = "Exact law of join the shortest queue, at finite n_servers."
    role = Role.EXACT
    options_class = Options
    memory_mb = 1500

    def skip_reason(self, problem: HalfinWhittProblem, options: Options) -> str:
        """Say if there would be too many states."""
        beta, n_servers = problem.beta, problem.finite_servers
        if n_servers <= options.third_customers:
            return ""
        return TOO_LARGE if expected_states(beta, n_servers) > options.max_states else ""

    def compute(self, problem: HalfinWhittProblem, options: Options, draws: Draws) -> "xr.Dataset":
        """Solve the balance equations level by level, and scale what converges."""
        import numpy as np

        from manyserver.diffusion.halfin_whitt.convergence.distances import law_distances
        from manyserver.diffusion.halfin_whitt.finite.joint import joint_law
        from manyserver.diffusion.halfin_whitt.finite.law import marginals
        from manyserver.diffusion.halfin_whitt.labels import labelled
        from manyserver.diffusion.halfin_whitt.limit.stationary import stationary_law

        beta, n_servers = problem.beta, problem.finite_servers
        by_levels = n_servers > options.third_customers
        law = marginals(beta, n_servers, method="levels" if by_levels else None)
        root = math.sqrt(n_servers)
        q1, q2 = law.q1_values, np.arange(len(law.q2))
        busy, waiting = float(q1 @ law.q1), float(q2 @ law.q2)
        values: dict[str, object] = {
            "scaled_idle_mean": (n_servers - busy) / root,
            "scaled_idle_variance": float((q1 - busy) ** 2 @ law.q1) / n_servers,
            "scaled_waiting_mean": waiting / root,
            "scaled_waiting_variance": float((q2 - waiting) ** 2 @ law.q2) / n_servers,
            "scaled_waiting_mean_error": law.error * waiting / root,
            "scaled_waiting_probability": root * float(law.q1[-1]),
            "waiting_probability": float(law.q1[-1]),
            "q3_mean": law.q3_mean,
            "q3_mean_error": law.q3_error,
            "truncation_error": law.error,
            "precision_met": law.error <= options.tolerance,
            "n_states": law.n_states,
        }
        if options.distances:
            values |= law_distances(stationary_law(beta), law)
        if options.joint:
            values |= joint_law(beta, n_servers)
        return labelled(values, {}, {"method": "stationary law of join the shortest queue"})


def expected_states(beta: float, n_servers: int) -> float:
    """Estimate the number of states of the level recursion, to some ten per cent.

    The levels are cut where the law of Q2 has fallen by exp(-44), and each where the Gaussian
    law of Q1 has by exp(-40); the drift of Q1 grows with the level.
    """
    root = math.sqrt(n_servers)
    top = min(root, 44 / beta)
    # The mean over levels k of sqrt(d**2 + 80) - d with d = k / root - beta.
    lengths = (math.sqrt((d := top * (i + 0.5) / 100 - beta) ** 2 + 80) - d for i in range(100))
    return n_servers * top * sum(lengths) / 100
