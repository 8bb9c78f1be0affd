"""The fixed point of the mean field: the limit of infinitely many servers."""

from typing import Any

from pydantic import BaseModel, ConfigDict

from manyserver.model import System
from manyserver.policies import Policy
from manyserver.sizes import SizeLaw

TITLE = "Fixed point of the mean field, at n_servers = limit."
RANDOM = False
STARTS_FROM = ()
FOLLOWS_JOBS = True
NOT_KNOWN = "not known"


class Options(BaseModel):
    """The mean field has no options."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def applies(system: System) -> bool:
    """Whether the system is the limit."""
    return system.n_servers is None


def refusal(system: System, policy: Policy, options: Options) -> str:
    """Every stable system has a fixed point."""
    return ""


def compute(
    system: System,
    policy: Policy,
    options: Options,
    seed: int,
    sizes: SizeLaw | None = None,
    discipline: str | None = None,
) -> Any:
    """Solve for the fixed point.

    With sizes and a discipline, the law of the sojourn time is added where it is known, for
    exponential sizes. Where not even the fixed point is known, the result is a status alone.
    """
    from manyserver.mean_field import fixed_point

    state = fixed_point(system, policy)
    if sizes is None or discipline is None:
        return state
    return _with_jobs(system, policy, state, sizes, discipline)


def _with_jobs(system: System, policy: Policy, state: Any, sizes: SizeLaw, discipline: str) -> Any:
    import xarray as xr
    from numpy.linalg import LinAlgError

    from manyserver.mean_field.phase_type import with_sizes
    from manyserver.sojourn import sojourn_law

    try:
        result = with_sizes(system, policy, state, sizes, discipline)
    except LinAlgError:  # also a ValueError
        raise
    except ValueError as error:
        return xr.Dataset(attrs={"status": NOT_KNOWN, "reason": str(error)})
    if sizes.name != "exponential":
        return result
    law = sojourn_law(system, policy, discipline=discipline, state=state)
    return result.merge(
        law.drop_vars(["sojourn_mean", "pool_share"]), combine_attrs="drop_conflicts"
    )
