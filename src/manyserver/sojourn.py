r"""The law of the sojourn time, from the numbers of jobs that arrivals find.

For exponential sizes the flow up from level k of a pool equals the flow down, so that an accepted
arrival joins a server of pool j with k jobs with probability proportional to
:math:`\gamma_j C_j (u^{(j)}_{k+1} - u^{(j)}_{k+2})`. Then:

*First come, first served.* The sojourn is the sum of k + 1 exponential times of mean
:math:`1 / C_j`, so that its law is a mixture of Erlang laws. This is exact, also in a finite
system.

*Processor sharing.* In the limit of many servers the number of jobs n at the server of a given job,
this one included, is a Markov chain: others arrive at the rate of eq. (5.1) of arXiv:1502.05786,
:math:`\lambda^{(j)}_n = C_j (u_{n+1} - u_{n+2}) / (u_n - u_{n+1})`, others leave at
:math:`C_j (n - 1) / n`, and the given one at :math:`C_j / n`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
import scipy
from numpy.typing import ArrayLike

from manyserver.checks import checked_array
from manyserver.disciplines import Discipline
from manyserver.disciplines.service import checked_discipline
from manyserver.mean_field import fixed_point
from manyserver.model import NotKnown, System
from manyserver.origin import with_origin
from manyserver.outputs import occupancy
from manyserver.policies import Policy, check_fit
from manyserver.sizes.absorption import Absorption
from manyserver.sizes.base import invert
from manyserver.variables import QUANTILES, labelled

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["sojourn_law"]

SMALLEST_TAIL = 1e-18
"""Servers with so many jobs that this part has as many are left out."""


class _Law(Protocol):
    mean: float
    variance: float

    def cdf(self, x: ArrayLike) -> np.ndarray:
        """Probability of at most `x`."""
        ...


class _Erlang:
    """A mixture of Erlang laws of one rate; shape 0 is the time zero."""

    def __init__(self, weights: np.ndarray, shapes: np.ndarray, rate: float):
        self.weights, self.shapes, self.rate = weights, shapes, rate
        self.mean = float(weights @ shapes) / rate
        self.variance = float(weights @ (shapes * (shapes + 1))) / rate**2 - self.mean**2

    def cdf(self, x: ArrayLike) -> np.ndarray:
        """Probability of at most `x`."""
        scaled = self.rate * np.maximum(np.asarray(x, dtype=float), 0.0)[..., None]
        waits = self.shapes > 0
        at_most = np.where(
            waits, scipy.special.gammainc(np.where(waits, self.shapes, 1), scaled), 1.0
        )
        return np.asarray(at_most @ self.weights)


class _Mixture:
    """A mixture of the laws of the pools."""

    def __init__(self, weights: np.ndarray, laws: Sequence[_Law]):
        used = [(w, law) for w, law in zip(weights, laws, strict=True) if w > 0]
        self.weights = np.array([w for w, _ in used])
        self.laws = [law for _, law in used]
        means = np.array([law.mean for law in self.laws])
        squares = np.array([law.variance for law in self.laws]) + means**2
        self.mean = float(self.weights @ means)
        self.variance = float(self.weights @ squares) - self.mean**2

    def cdf(self, x: ArrayLike) -> np.ndarray:
        """Probability of at most `x`."""
        return np.asarray(
            sum(w * law.cdf(x) for w, law in zip(self.weights, self.laws, strict=True))
        )


def sojourn_law(
    system: System,
    policy: Policy,
    *,
    discipline: str | Discipline = "fcfs",
    state: xr.Dataset | None = None,
    quantiles: Sequence[float] = QUANTILES,
    durations: ArrayLike | None = None,
) -> xr.Dataset:
    """Compute the law of the sojourn time for exponential job sizes.

    Parameters
    ----------
    system : System
    policy : Policy
    discipline : {"fcfs", "ps"} or Discipline
        First come, first served, or processor sharing.
    state : xarray.Dataset, optional
        A result that holds ``queue_tail``, of :func:`simulate` or :func:`exact` for a finite
        system; the mean-field fixed point by default. From a finite system the law is exact
        under "fcfs"; under "ps" it takes arrivals to a server to depend on its own jobs alone.
    quantiles : sequence of float
        In (0, 1).
    durations : array_like, shape (duration,), optional
        Where to give ``sojourn_cdf``.

    Returns
    -------
    xarray.Dataset
        ``sojourn_mean``, ``sojourn_variance``, ``sojourn_quantile`` (quantile), the same by pool
        as ``pool_sojourn_mean`` (pool) and so on, ``pool_share`` (pool) and, if asked for,
        ``sojourn_cdf`` (duration). Under "fcfs" also ``waiting_mean`` and so on. A pool that no
        job joins has NaN. All are of accepted jobs.

    Raises
    ------
    ValueError
        If a parameter is out of its range, or as in :func:`fixed_point`.

    Examples
    --------
    >>> import manyserver as ms
    >>> system = ms.System(0.9, [ms.Pool("1/2", "2/3"), ms.Pool("1/2", "4/3")])
    >>> policy = ms.policy("scheme1", d=[2, 2])
    >>> for discipline in "fcfs", "ps":
    ...     law = ms.sojourn_law(system, policy, discipline=discipline)
    ...     print(law.sojourn_variance.values.round(8), law.sojourn_quantile.values.round(4))
    2.56744963 [ 1.3206  3.7757  7.5641 11.514 ]
    3.82360449 [ 1.118   4.1577  9.2038 14.8353]
    """
    check_fit(system, policy)
    if policy.follows_jobs:
        raise NotKnown(
            f"policy {policy.name}: the law of the sojourn time does not follow from the queues; "
            "see what fixed_point and simulate return"
        )
    order = checked_discipline(discipline)
    law_of = LAWS.get(order.name)
    if law_of is None:
        raise ValueError(f"discipline = {order.name}: the law of the sojourn time is not known")
    wanted = np.atleast_1d(checked_array("quantiles", quantiles, "numbers between 0 and 1"))
    if wanted.ndim != 1 or not ((wanted > 0) & (wanted < 1)).all():
        raise ValueError(f"quantiles = {quantiles!r}: must be numbers between 0 and 1")
    if state is None:
        state = fixed_point(system, policy)
    tails = np.nan_to_num(np.asarray(state["queue_tail"].values))
    if tails.shape[:-1] != (len(system.pools),):
        raise ValueError(
            f"state: queue_tail has shape {tails.shape}; must be (pool, level) for the "
            f"{len(system.pools)} pools of the system"
        )
    share, joins = _joins(system, tails)
    values: dict[str, object] = {"pool_share": share}
    pools = list(zip(joins, tails, system.speeds, strict=True))
    kinds = {"sojourn": law_of, **({"waiting": _waiting} if order.waiting else {})}
    for kind, of_pool in kinds.items():
        laws = [of_pool(*pool) for pool in pools]
        values |= _described(kind, share, laws, wanted)
        if kind == "sojourn" and durations is not None:
            values["sojourn_cdf"] = _Mixture(share, laws).cdf(durations)
    coords = {"quantile": wanted}
    if durations is not None:
        coords["duration"] = np.asarray(durations, dtype=float)
    result = labelled(values, system, coords=coords, attrs={"method": "sojourn law"})
    return with_origin(
        result, system, policy, discipline=order, state=state.attrs.get("method", "given")
    )


def _joins(system: System, tails: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the part of the jobs that join each pool, and the levels that they find there."""
    holds = occupancy(tails)[:, 1:]
    rates = (system.fractions * system.speeds)[:, None] * np.maximum(holds, 0.0)
    by_pool = rates.sum(axis=1)
    with np.errstate(invalid="ignore"):
        return by_pool / by_pool.sum(), np.nan_to_num(rates / by_pool[:, None])


def _in_order(joins: np.ndarray, tail: np.ndarray, speed: float) -> _Law:
    """Return the time of all jobs up to a given one, which are served one after another."""
    return _Erlang(joins, np.arange(len(joins)) + 1, speed)


def _waiting(joins: np.ndarray, tail: np.ndarray, speed: float) -> _Law:
    """Return the time of all jobs before a given one."""
    return _Erlang(joins, np.arange(len(joins)), speed)


def _shared(joins: np.ndarray, tail: np.ndarray, speed: float) -> _Law:
    """Return the time until a given job leaves a server that is shared."""
    levels = max(1, int((tail > SMALLEST_TAIL).sum()) - 1)
    holds = np.maximum(occupancy(tail), 0.0)[: levels + 1]
    jobs = np.arange(1, levels + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        arrivals = np.nan_to_num(speed * holds[1:] / holds[:-1], posinf=np.inf)
    # A level that no server stays at is left upwards at once.
    passed = np.isinf(arrivals)
    up = np.where(passed, 0.0, arrivals)
    up = np.append(up[1:], 0.0)
    down = speed * (jobs - 1) / jobs
    down[1:][passed[1:]] = 0.0
    rates = np.diag(up[:-1], 1) + np.diag(down[1:], -1)
    rates -= np.diag(rates.sum(axis=1) + speed / jobs)
    start = joins[:levels]
    return Absorption(start / start.sum() if start.any() else start, rates)


LAWS: dict[str, Callable[[np.ndarray, np.ndarray, float], _Law]] = {
    "fcfs": _in_order,
    "ps": _shared,
}
"""Law of the sojourn time in a pool, from the levels that jobs find, the queue tail and the speed,
by discipline."""


def _described(
    name: str, share: np.ndarray, laws: Sequence[_Law], quantiles: np.ndarray
) -> dict[str, object]:
    everyone = _Mixture(share, laws)
    joined = share > 0
    return {
        f"{name}_mean": everyone.mean,
        f"{name}_variance": everyone.variance,
        f"{name}_quantile": _quantiles(everyone, quantiles),
        f"pool_{name}_mean": np.where(joined, [law.mean for law in laws], np.nan),
        f"pool_{name}_variance": np.where(joined, [law.variance for law in laws], np.nan),
        f"pool_{name}_quantile": np.stack(
            [
                _quantiles(law, quantiles) if used else np.full(len(quantiles), np.nan)
                for law, used in zip(laws, joined, strict=True)
            ]
        ),
    }


def _quantiles(law: _Law, quantiles: np.ndarray) -> np.ndarray:
    return invert(law.cdf, quantiles, max(law.mean, 1e-300))
