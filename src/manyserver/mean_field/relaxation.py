"""How fast the mean field forgets where it started."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyserver.checks import refusal
from manyserver.mean_field.fixed_point import fixed_point
from manyserver.mean_field.regimes import regime_of
from manyserver.model import System
from manyserver.policies import Policy, check_fit

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["relaxation_time"]


def relaxation_time(system: System, policy: Policy, solution: xr.Dataset | None = None) -> float:
    r"""Compute the time constant of the slowest mode at the mean-field fixed point.

    Parameters
    ----------
    system : System
    policy : Policy
    solution : xarray.Dataset, optional
        What :func:`fixed_point` returned for them, if it is known already.

    Returns
    -------
    float
        ``-1 / max Re(eigenvalues)`` of the Jacobian of the drift, in units of time. Pools in
        which an arrival looks at one server only relax like M/M/1/B queues, with
        :math:`(C + a - 2 \sqrt{C a} \cos(\pi / (B + 1)))^{-1}`. Where servers announce
        themselves and the system has a number of servers, it is at least the time in which the
        system as one queue relaxes, see :func:`manyserver.mean_field.announced.slowest`. For PULL
        with several routers it is that of the split of the idle servers over them, in proportion
        to the number of servers and infinite in the limit, if that is longer, see
        :func:`manyserver.mean_field.pull.slowest_split`.

    Raises
    ------
    ValueError, UnstableSystem
        As in :func:`fixed_point`.

    Examples
    --------
    >>> import manyserver as ms
    >>> system = ms.System(0.9, [ms.Pool("1/2", "1/5"), ms.Pool("1/2", "9/5")])
    >>> round(1 / relaxation_time(system, ms.policy("scheme1", d=[2, 2])), 3)
    0.074
    """
    check_fit(system, policy)
    if solution is None:
        solution = fixed_point(system, policy)
    elif not hasattr(solution, "queue_tail"):
        raise refusal("solution", solution, "what fixed_point returned")
    return regime_of(system, policy).relaxation_time(solution.queue_tail.values)
