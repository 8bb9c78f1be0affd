"""The exponential rates at which the diffusion and the queues forget their start."""

import math
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

TITLE = "Spectral gap, of the queues at finite n_servers and of the diffusion in the limit."
MODEL = "halfin_whitt"
RANDOM = False
STARTS_FROM = ()
ANSWER = "spectral_gap"
BETAS = (0.1, 5.0)
TOO_LARGE, TOO_SMALL = "too large", "too small"
SHORTEST_QUEUES = 15.0
"""Least spare capacity in standard deviations, beta sqrt(n). Queues of three are left out of the
chain; below this the slowest mode is that of the longest queues it has, not that of the system."""


class Options(BaseModel):
    """Options of the spectral gap."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    largest: int = Field(default=1600, ge=1)
    """Most servers; more are left out as too large. Time grows like their number."""


def applies(beta: float, n_servers: int | None) -> bool:
    """Whether it can, which is always."""
    return True


def refusal(beta: float, n_servers: int | None, options: Options) -> str:
    """Say if there are too many servers, or too few for a chain without queues of three."""
    if n_servers is None:
        return ""
    if n_servers > options.largest:
        return TOO_LARGE
    return TOO_SMALL if beta * math.sqrt(n_servers) < SHORTEST_QUEUES else ""


def compute(beta: float, n_servers: int | None, options: Options, seed: int) -> Any:
    """Find the smallest root of the secular function, and the edge of the continuous spectrum."""
    from manyserver.diffusion.halfin_whitt.convergence.gap import gap
    from manyserver.diffusion.halfin_whitt.convergence.rates import chain_edge, chain_rate
    from manyserver.diffusion.halfin_whitt.labels import labelled

    if n_servers is None:
        return gap(beta)
    values = {
        "spectral_gap": chain_rate(beta, n_servers),
        "essential_edge": chain_edge(beta, n_servers),
    }
    return labelled(values, {}, {"method": "relaxation of join the shortest queue"})
