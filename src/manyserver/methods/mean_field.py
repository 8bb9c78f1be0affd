"""The fixed point of the mean field: the limit of infinitely many servers."""

from typing import TYPE_CHECKING

from manyserver.disciplines import Discipline
from manyserver.disciplines.service import checked_service
from manyserver.methods.base import NOT_KNOWN, Draws, Method, Role, Strict
from manyserver.methods.dispatching import DispatchingProblem
from manyserver.model import NotKnown, System, UnstableSystem
from manyserver.policies import Policy
from manyserver.sizes import SizeLaw

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["MeanField", "Options"]

UNSTABLE = "unstable"


class Options(Strict):
    """The mean field has no options."""


class MeanField(Method[DispatchingProblem, Options]):
    """Solve for the fixed point."""

    name = "mean_field"
    title = "Fixed point of the mean field, at n_servers = limit."
    role = Role.LIMIT
    options_class = Options
    seconds = (0.01, 2.0)
    takes_sizes = True

    def check(self, problem: DispatchingProblem, options: Options) -> None:
        """Refuse a discipline that the policy rules out."""
        checked_service(problem.sizes, problem.discipline, problem.policy)

    def compute(self, problem: DispatchingProblem, options: Options, draws: Draws) -> "xr.Dataset":
        """Solve for the fixed point.

        With sizes and a discipline, the law of the sojourn time is added where it is known, for
        exponential sizes. Where not even the fixed point is known, or the system turns out to be
        unstable, the result is a status alone.
        """
        import xarray as xr

        from manyserver.mean_field import fixed_point

        system, policy = problem.system, problem.policy
        if policy.follows_jobs:
            service = {"sizes": problem.sizes, "discipline": problem.discipline}
            try:
                return fixed_point(system, policy, **service)  # type: ignore[arg-type]
            except NotKnown as error:
                return xr.Dataset(attrs={"status": NOT_KNOWN, "reason": str(error)})
        try:
            state = fixed_point(system, policy)
        except UnstableSystem as error:
            return xr.Dataset(attrs={"status": UNSTABLE, "reason": str(error)})
        if problem.sizes is None or problem.discipline is None:
            return state
        return _with_jobs(system, policy, state, problem.sizes, problem.discipline)


def _with_jobs(
    system: System, policy: Policy, state: "xr.Dataset", sizes: SizeLaw, discipline: Discipline
) -> "xr.Dataset":
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
