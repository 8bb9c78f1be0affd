"""Randomized dispatching in large parallel-server systems."""

from typing import TYPE_CHECKING, Any

from manyserver import disciplines, policies, sizes
from manyserver.compare import compare
from manyserver.disciplines import Discipline
from manyserver.exact import TooManyStates, exact
from manyserver.mean_field import (
    CriticalLoad,
    NotSmooth,
    fixed_point,
    mean_field,
    pull_asymptotics,
    pull_fixed_point,
    refine,
    relaxation_time,
)
from manyserver.model import NotKnown, Pool, System, UnstableSystem
from manyserver.policies import Policy, policy
from manyserver.policies.stability_limit import stability_limit
from manyserver.schedule import Linear, Schedule, Sine, Steps, read_schedule
from manyserver.simulate import simulate
from manyserver.sizes import SizeLaw, size_law
from manyserver.sizing import Target, cheapest_mix, fewest_servers, highest_load
from manyserver.sojourn import sojourn_law
from manyserver.statistics.erlang import erlang_b, erlang_c, staffing
from manyserver.transient import transient
from manyserver.version import __version__

if TYPE_CHECKING:
    from manyserver.diffusion import halfin_whitt

__all__ = [
    "CriticalLoad",
    "Discipline",
    "Linear",
    "NotKnown",
    "NotSmooth",
    "Policy",
    "Pool",
    "Schedule",
    "Sine",
    "SizeLaw",
    "Steps",
    "System",
    "Target",
    "TooManyStates",
    "UnstableSystem",
    "__version__",
    "cheapest_mix",
    "compare",
    "disciplines",
    "erlang_b",
    "erlang_c",
    "exact",
    "fewest_servers",
    "fixed_point",
    "halfin_whitt",
    "highest_load",
    "mean_field",
    "policies",
    "policy",
    "pull_asymptotics",
    "pull_fixed_point",
    "read_schedule",
    "refine",
    "relaxation_time",
    "simulate",
    "size_law",
    "sizes",
    "sojourn_law",
    "stability_limit",
    "staffing",
    "transient",
]


def __getattr__(name: str) -> Any:
    # It imports most of scipy, which takes longer than all else a job of the workflow starts with.
    if name == "halfin_whitt":
        from manyserver.diffusion import halfin_whitt

        return halfin_whitt
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
