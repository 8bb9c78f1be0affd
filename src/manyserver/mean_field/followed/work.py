r"""The least work left of d servers, drawn from many equal ones.

Let :math:`\bar F(w)` be the fraction of the servers with more work left than w, and
:math:`M = \bar F^d` the tail of the waiting time, the least work of d servers. In the stationary
state as many servers come to work above w by an arrival as leave it by working,

.. math:: -\bar F'(w) = \lambda P(W \le w < W + X),

with the waiting time W and the size X of an arrival (Hellemans and Van Houdt 2018,
https://doi.org/10.1145/3224427, section 4). For sizes of phase type with start :math:`\alpha` and
rates T between phases, let :math:`v_i(w)` be the probability that :math:`W \le w < W + X` and
X is in phase i after :math:`w - W`. Then

.. math:: \bar F' = -\lambda v \mathbf 1, \qquad
          v' = v T - \alpha M', \qquad \bar F(0) = \lambda, \quad v(0) = \alpha (1 - \lambda^d).

With the mean m of what is left of a size in each phase,
:math:`\bar F = \lambda (\bar F^d + v m)`, as both sides have the same derivative.
For exponential sizes :math:`\bar F(w)^{1-d} = \lambda + (\lambda^{1-d} - \lambda) e^{(d-1) w}`, and
the mean sojourn time is :math:`\sum_{n \ge 0} \lambda^{dn} / (1 + n (d - 1))`.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from manyserver.disciplines import Discipline
from manyserver.model import NotKnown, System
from manyserver.policies import Policy
from manyserver.sizes import SizeLaw
from manyserver.variables import QUANTILES

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["work_fixed_point"]

TOLERANCE = 1e-12
SMALLEST_TAIL = 1e-14
"""Tails of the work below this need not be followed."""
LONGEST = 1e9


def work_fixed_point(
    system: System, policy: Policy, sizes: SizeLaw, discipline: Discipline
) -> dict[str, Any]:
    """Compute the stationary state, by variable name.

    Raises
    ------
    NotKnown
        If speeds differ, a buffer is finite, sizes are not of phase type, or the discipline is
        another than first come, first served.
    RuntimeError
        If the equations were not solved; never seen.
    """
    alpha, rates = _known_phases(system, policy, sizes, discipline)
    ((draw,),) = (branch.draws for branch in policy.memoryless.sampling(system).branches)
    d, speed = draw.count, float(system.speeds[0])
    load = system.arrival_rate / speed
    n = len(alpha)
    left = -np.linalg.solve(rates, np.ones(n))

    # Of the state, v comes first, then the tail of the work and three integrals.
    def change(w: float, state: np.ndarray) -> np.ndarray:
        v, tail = state[:n], max(state[n], 0.0)
        crossing = load * v.sum()
        more = v @ rates + alpha * (d * tail ** (d - 1) * crossing)
        waits = tail**d
        # Rounding must not add up: where the identity attracts, it holds.
        attracts = load * d * tail ** (d - 1) < 1
        excess = state[n] - load * (waits + v @ left) if attracts else 0.0
        return np.array([*more, -crossing - excess, waits, 2 * w * waits, tail])

    solution = _solve(change, np.array([*(alpha * (1 - load**d)), load, 0.0, 0.0, 0.0]), n)
    end = solution.t[-1]
    waiting, square, work = solution.y[n + 1 :, -1]
    second = -2 * float(alpha @ np.linalg.solve(rates, left))
    # Work at a server by Little's law: what waits, and what is left of those in service.
    expected = load * (waiting + second / 2)

    def waits(w: float) -> float:
        return float(max(solution.sol(w)[n], 0.0) ** d)

    def stays(w: float) -> float:
        return waits(w) + float(solution.sol(w)[:n].sum())

    def tail(w: float) -> float:
        return float(solution.sol(w)[n])

    pools = len(system.pools)
    return {
        "jobs_per_server": load * (waiting + 1),
        "sojourn_mean": (waiting + 1) / speed,
        "sojourn_variance": (square - waiting**2 + second - 1) / speed**2,
        "sojourn_quantile": _quantiles(stays, end) / speed,
        "waiting_mean": waiting / speed,
        "waiting_variance": (square - waiting**2) / speed**2,
        "waiting_quantile": _quantiles(waits, end) / speed,
        "waiting_probability": load**d,
        "blocking_probability": 0.0,
        "work_mean": work / speed,
        "work_quantile": _quantiles(tail, end) / speed,
        "pool_share": system.fractions,
        "pool_utilization": np.full(pools, load),
        "residual": abs(work / expected - 1),
        "truncation_error": SMALLEST_TAIL / load,
    }


def _known_phases(
    system: System, policy: Policy, sizes: SizeLaw, discipline: Discipline
) -> tuple[np.ndarray, np.ndarray]:
    """Return the phases of the sizes, or tell why the limit is not known."""
    if system.is_bounded or np.ptp(system.speeds) > 0:
        raise NotKnown(
            f"policy {policy.name}: the limit is known for equal speeds and buffer None only"
        )
    if not discipline.waiting:
        raise NotKnown(
            f"discipline = {discipline.name}: the limit of policy {policy.name} is known under "
            "'fcfs' only"
        )
    phases = sizes.phases()
    if phases is None:
        raise NotKnown(
            f"sizes = {sizes.name}: must be of phase type (exponential, erlang, hyperexponential, "
            f"phase_type) for the limit of policy {policy.name}; nothing else is known, so simulate"
        )
    return phases


def _solve(
    change: "Callable[[float, np.ndarray], np.ndarray]", start: np.ndarray, place: int
) -> Any:
    """Integrate until the tail of the work, at a place of the state, is negligible."""
    from scipy.integrate import solve_ivp

    def negligible(w: float, state: np.ndarray) -> float:
        return float(state[place] - SMALLEST_TAIL)

    negligible.terminal = True  # type: ignore[attr-defined]
    solution = solve_ivp(
        change,
        (0.0, LONGEST),
        start,
        "DOP853",
        dense_output=True,
        events=negligible,
        rtol=TOLERANCE,
        atol=1e-3 * SMALLEST_TAIL,
    )
    if solution.status != 1:
        raise RuntimeError(f"the work left was not found: {solution.message}")
    return solution


def _quantiles(tail: "Callable[[float], float]", end: float) -> np.ndarray:
    """Return where a tail falls to what is above each quantile."""
    from scipy.optimize import brentq

    return np.array(
        [
            0.0 if tail(0.0) <= 1 - part else brentq(lambda w: tail(w) - (1 - part), 0.0, end)  # noqa: B023
            for part in QUANTILES
        ]
    )
