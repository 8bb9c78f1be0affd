"""How fast the mean field forgets where it started."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from manyserver.checks import refusal
from manyserver.mean_field.announced import slowest
from manyserver.mean_field.drift import Drift
from manyserver.mean_field.fixed_point import fixed_point
from manyserver.mean_field.pull import slowest_split
from manyserver.mean_field.separable import separable_pools
from manyserver.model import System
from manyserver.policies import Policy, check_fit
from manyserver.policies.pull import Pull

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["relaxation_time"]

DENSE = 400
"""Matrices of up to this order are diagonalised in full."""
SMALLEST_TAIL = 1e-14


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
    tails = solution.queue_tail.values
    if isinstance(policy, Pull):
        time = slowest(system, policy.memoryless, tails)
        return max(time, slowest_split(system, policy, tails))
    if policy.sampling(system).depends_on_all:
        return slowest(system, policy, tails)
    pools = separable_pools(system, policy)
    if pools is not None and all(pool.d == 1 for pool in pools):
        return float(1 / min(pool.gap for pool in pools))
    levels = int(np.flatnonzero((tails > SMALLEST_TAIL).any(axis=0))[-1]) + 2
    drift = Drift(system, policy, max(levels, 3))
    matrix = drift.jacobian(drift.state(tails))
    rooms = np.array([np.inf if pool.buffer is None else pool.buffer for pool in system.pools])
    there = (np.arange(1, drift.shape[1]) <= rooms[:, None]).ravel()
    matrix = matrix[np.ix_(there, there)]
    if len(matrix) <= DENSE:
        eigenvalues = np.linalg.eigvals(matrix)
    else:
        from scipy.sparse.linalg import eigs

        start = np.ones(len(matrix))
        eigenvalues = eigs(matrix, k=4, sigma=0.0, v0=start, return_eigenvectors=False)
    return float(-1 / eigenvalues.real.max())
