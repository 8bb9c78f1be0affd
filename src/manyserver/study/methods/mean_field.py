"""The fixed point of the mean field: the limit of infinitely many servers."""

from typing import Any

from pydantic import BaseModel, ConfigDict

from manyserver.model import System
from manyserver.policies import Policy

TITLE = "Fixed point of the mean field, at n_servers = limit."
RANDOM = False
STARTS_FROM = ()


class Options(BaseModel):
    """The mean field has no options."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def applies(system: System) -> bool:
    """Whether the system is the limit."""
    return system.n_servers is None


def refusal(system: System, policy: Policy, options: Options) -> str:
    """Every stable system has a fixed point."""
    return ""


def compute(system: System, policy: Policy, options: Options, seed: int) -> Any:
    """Solve for the fixed point."""
    from manyserver.mean_field import fixed_point

    return fixed_point(system, policy)
