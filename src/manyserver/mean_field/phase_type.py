r"""The mean-field fixed point for other than exponential sizes, as far as it is known.

*First come, first served, phase-type sizes.* With rates T between phases and the start
:math:`\alpha`, a server is described by its jobs k and the phase of the one in service. Arrivals
see the numbers of jobs alone, so that in the limit a server of pool j is a chain with the arrival
rates :math:`\lambda_k` of the joining law, eq. (5.1) of arXiv:1502.05786. When a job leaves the
next one starts in :math:`\alpha`, whatever was before; therefore the part :math:`\pi_k` (a row over
phases) of the servers with k jobs follows from the part with fewer,

.. math::

    \pi_k = \lambda_{k-1} \pi_{k-1} \left(\lambda_k (1 - \mathbf 1 \alpha) - C_j T\right)^{-1},

with :math:`\pi_0 \alpha` for :math:`\pi_{k-1}` at k = 1. Queue tails give arrival rates, these give
queue tails: Newton's method finds the tails that give themselves.

*Processor sharing.* A server whose arrivals are Poisson, with a rate that depends on its number of
jobs, has a stationary law that depends on the mean size alone. If the servers are independent in
the limit, as the simulation says and arXiv:1502.05786 conjectures for Schemes 1 and 2, the fixed
point is that of exponential sizes for every law.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from manyserver.disciplines import Discipline
from manyserver.joining import JoiningLaw
from manyserver.mean_field.drift import most_levels
from manyserver.mean_field.regimes import Smooth, regime_of
from manyserver.model import System
from manyserver.outputs import stationary_outputs
from manyserver.policies import Policy
from manyserver.sizes import SizeLaw
from manyserver.variables import labelled

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["with_sizes"]

FEWEST_LEVELS = 16
MOST_LEVELS = 1 << 15
TOP_TAIL = 1e-14
"""Tails below this need no further levels."""
TRUNCATION = 1e-11
ACTIVE = 1e-9
"""Smaller tails follow from the larger ones."""
RESIDUAL = 1e-12
NEWTON_STEPS = 60
SETTLING = 2
"""Iterations before Newton's method; they do if arrivals do not depend on the tails."""
POLISH = 40
"""Iterations at the end, of which one settles each small tail."""
DIFFERENCE = 1e-7
SHORTEST_STEP = 1 / 64


def with_sizes(
    system: System, policy: Policy, exponential: xr.Dataset, sizes: SizeLaw, discipline: Discipline
) -> xr.Dataset:
    """Compute the fixed point for a law of the sizes, given that for exponential ones.

    Raises
    ------
    ValueError
        If nothing is known about this case.
    RuntimeError
        If no solution was found.
    """
    phases = sizes.phases()
    # With no second job at any server there is nothing to share and nothing to wait for.
    alone = not exponential["queue_tail"].values[:, 2:].any()
    if alone or sizes.name == "exponential":
        return exponential
    if not isinstance(regime_of(system, policy), Smooth):
        raise ValueError(
            f"policy = {policy.name}: servers announce themselves and hold more than one job; the "
            "fixed point is then known for exponential sizes only"
        )
    if discipline.insensitive:
        return exponential
    if not discipline.waiting:
        raise ValueError(
            f"discipline = {discipline.name}: the fixed point is known for exponential sizes only"
        )
    if phases is None:
        raise ValueError(
            f"sizes = {sizes.name}: must be of phase type (exponential, erlang, hyperexponential, "
            "phase_type) under 'fcfs'; nothing else is known of the limit, so simulate"
        )
    values = _solve_levels(system, policy, exponential["queue_tail"].values, *phases)
    return labelled(values, system, attrs={"method": "mean-field fixed point"})


class _Balance:
    """Arrival rates from queue tails, and queue tails from arrival rates."""

    def __init__(
        self, system: System, policy: Policy, levels: int, alpha: np.ndarray, rates: np.ndarray
    ):
        self.law = JoiningLaw(system, policy, levels)
        self.system, self.levels, self.alpha, self.rates = system, levels, alpha, rates

    def arrivals(self, tails: np.ndarray) -> np.ndarray:
        """Arrivals per unit of time to a server with k jobs, shape (pool, level)."""
        rates = self.system.arrival_rate * self.law.densities(tails)
        rates[:, -1] = 0.0
        return rates

    def __call__(self, tails: np.ndarray) -> np.ndarray:
        """Return the tails that come from the arrival rates at some tails."""
        pairs = zip(self.arrivals(tails), self.system.speeds, strict=True)
        return np.stack([self._pool(arrivals, speed) for arrivals, speed in pairs])

    def _pool(self, arrivals: np.ndarray, speed: float) -> np.ndarray:
        phases = len(self.alpha)
        restart = np.eye(phases) - self.alpha[None, :]
        matrices = arrivals[1:, None, None] * restart - speed * self.rates
        times = np.linalg.inv(matrices)
        part = np.empty(self.levels)
        part[0] = 1.0
        here = self.alpha
        for level in range(1, self.levels):
            here = arrivals[level - 1] * (here @ times[level - 1])
            part[level] = here.sum()
        tails = part[::-1].cumsum()[::-1]
        return np.asarray(tails / tails[0])


def _solve_levels(
    system: System, policy: Policy, guess: np.ndarray, alpha: np.ndarray, rates: np.ndarray
) -> dict[str, object]:
    most = most_levels(system)
    levels, jobs, tails = FEWEST_LEVELS if most is None else most, np.nan, guess
    while True:
        balance = _Balance(system, policy, levels, alpha, rates)
        more = max(0, levels - tails.shape[1])
        tails = _solve(balance, np.pad(tails, ((0, 0), (0, more)))[:, :levels])
        before, jobs = jobs, float(system.fractions @ tails[:, 1:].sum(axis=1))
        truncation = 0.0 if most is not None else abs(jobs - before) / jobs
        if most is not None or (tails[:, -1].max() < TOP_TAIL and truncation < TRUNCATION):
            break
        levels *= 2
        if levels > MOST_LEVELS:
            raise RuntimeError(
                f"the tails of policy {policy.name} with these sizes do not fall below {TOP_TAIL} "
                f"within {MOST_LEVELS} levels"
            )
    accepted = balance.law.probabilities(tails)
    blocked = max(0.0, 1.0 - float(accepted.sum())) if most is not None else 0.0
    outputs = stationary_outputs(
        system,
        tails,
        system.arrival_rate * balance.law.densities(tails),
        waiting=float(accepted[:, 1:].sum()),
        blocking=blocked,
    )
    residual = float(np.abs(balance(tails) - tails).max())
    return outputs | {"residual": residual, "truncation_error": truncation}


def _solve(balance: _Balance, tails: np.ndarray) -> np.ndarray:
    """Find tails that give themselves, by Newton's method on those that are not small."""
    for _ in range(SETTLING):
        tails = balance(tails)
    step = balance(tails) - tails
    for _ in range(NEWTON_STEPS):
        if np.abs(step).max() < RESIDUAL:
            break
        active = tails > ACTIVE
        active[:, 0] = False
        direction = step.copy()
        slopes = _slopes(balance, tails, active) - np.eye(int(active.sum()))
        direction[active] = np.linalg.solve(slopes, -step[active])
        length = 1.0
        while True:
            new = np.clip(tails + length * direction, 0.0, 1.0)
            new = np.minimum.accumulate(new, axis=1)
            new_step = balance(new) - new
            if np.abs(new_step).max() < np.abs(step).max() or length <= SHORTEST_STEP:
                break
            length /= 2
        tails, step = new, new_step
    else:
        raise RuntimeError("the mean-field equations for these sizes were not solved")
    for _ in range(POLISH):
        tails = balance(tails)
    return tails


def _slopes(balance: _Balance, tails: np.ndarray, active: np.ndarray) -> np.ndarray:
    """Differentiate the active tails by each other, by differences."""
    at = balance(tails)[active]
    columns = []
    for pool, level in zip(*np.nonzero(active), strict=True):
        other = tails.copy()
        # Downwards, so that the tails stay a law.
        change = DIFFERENCE * (tails[pool, level] - np.append(tails[pool], 0.0)[level + 1])
        if change == 0.0:
            change = DIFFERENCE * tails[pool, level]
        other[pool, level] -= change
        columns.append((at - balance(other)[active]) / change)
    return np.stack(columns, axis=1)
