"""The stationary law of join the shortest queue with n servers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from manyserver.diffusion.halfin_whitt.checks import check_beta, check_n
from manyserver.diffusion.halfin_whitt.finite.enumeration import CountLaw, count_law, highest_level
from manyserver.diffusion.halfin_whitt.finite.three_levels import plane_law
from manyserver.diffusion.halfin_whitt.finite.two_levels import Levels, level_law
from manyserver.diffusion.halfin_whitt.labels import labelled

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["METHODS", "Marginals", "chain", "marginals"]

LEAST_LOG = -600.0
"""Least logarithm of the probability that all servers are busy."""
ROUNDING = 1e-12
"""Relative error of all methods when nothing is cut."""


@dataclass(frozen=True)
class Marginals:
    """Laws of Q1, Q2 and Q3, and what the cut left out.

    Parameters
    ----------
    n, arrivals
        Servers, and arrivals per unit of time.
    q1, q2, q3 : numpy.ndarray
        Probabilities; those of Q1 are for the values up to n, of Q2 and Q3 from 0.
    error : float
        Relative error of the mean of Q2 and of the probability of waiting.
    q3_mean, q3_error : float
        Mean of Q3, and its absolute error.
    residuals : dict
        Violations of exact identities by their names.
    n_states : int
    """

    n: int
    arrivals: float
    q1: np.ndarray
    q2: np.ndarray
    q3: np.ndarray
    error: float
    q3_mean: float
    q3_error: float
    residuals: dict[str, float]
    n_states: int

    @property
    def q1_values(self) -> np.ndarray:
        """Values of Q1 that `q1` is for."""
        return np.arange(self.n - len(self.q1) + 1, self.n + 1)


def chain(beta: float, n: int, *, method: str | None = None) -> xr.Dataset:
    r"""Compute the stationary law of join the shortest queue.

    Parameters
    ----------
    beta : float
        Spare capacity: n servers get arrivals at rate n - beta sqrt(n). More than 0.
    n : int
        Number of servers, more than beta**2; up to a million or so.
    method : {"counts", "planes", "levels"}, optional
        How to compute: ``"counts"``, a sparse system of balance equations, for up to 10 servers;
        ``"planes"``, at most three customers per server, for up to 400 (time grows like n**3);
        ``"levels"``, at most two, beyond. By default as just said.

    Returns
    -------
    xarray.Dataset
        ``q1_mean``, ``q2_mean``, ``q3_mean``, ``waiting_probability``; the laws
        ``q1_probability`` (q1), ``q2_probability`` (q2), ``q3_probability`` (q3), of which values
        with a probability below 1e-16 are left out; ``n_states``. Errors: ``q2_mean_error``,
        ``q3_mean_error``, ``truncation_error`` (relative, of ``q2_mean`` and
        ``waiting_probability``), and ``identity_residual`` (identity).

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Notes
    -----
    Q_i is the number of servers with at least i customers. The cut of the number of customers
    per server matters when beta sqrt(n) is small: its relative effect on the mean of Q2 is
    estimated from the violation of the exact identity, for test function Q1 Q2,

        2 E (n - Q1) Q2 = (beta sqrt(n) - 1) E Q2 + E (n + 1 - Q2 + n - Q1) Q3,

    divided by beta sqrt(n) E Q2; with ``"counts"``, from a lower cut. With ``"levels"``,
    ``q3_mean`` is the flow of arrivals lost times 1 + 1 / beta**2, a rule found by comparison
    with ``"planes"``, with a wide error.

    Examples
    --------
    >>> import manyserver as ms
    >>> result = ms.halfin_whitt.chain(1.0, 100)
    >>> round(float(result.q2_mean / 10), 8)
    0.59996111
    >>> f"{float(result.q3_mean):.6g}"
    '0.00036546'
    """
    law = marginals(beta, n, method=method)
    q2_mean = float(np.arange(len(law.q2)) @ law.q2)
    values = {
        "q1_mean": float(law.q1_values @ law.q1),
        "q2_mean": q2_mean,
        "q3_mean": law.q3_mean,
        "waiting_probability": law.q1[-1],
        "q1_probability": law.q1,
        "q2_probability": law.q2,
        "q3_probability": law.q3,
        "q2_mean_error": law.error * q2_mean,
        "q3_mean_error": law.q3_error,
        "truncation_error": law.error,
        "identity_residual": np.array(list(law.residuals.values())),
        "n_states": law.n_states,
    }
    coords = {
        "q1": law.q1_values,
        "q2": np.arange(len(law.q2)),
        "q3": np.arange(len(law.q3)),
        "identity": np.array(list(law.residuals)),
    }
    title = "stationary law of join the shortest queue"
    return labelled(values, coords, {"method": title, "beta": float(beta), "n_servers": law.n})


def marginals(beta: float, n: int, *, method: str | None = None) -> Marginals:
    """Return bare arrays; parameters as for :func:`chain`."""
    beta = check_beta(beta)
    n = check_n(n, beta)
    arrivals = n - beta * math.sqrt(n)
    if n * math.log(arrivals) - arrivals - math.lgamma(n + 1) < LEAST_LOG:
        raise ValueError(
            f"beta = {beta:g}: must be smaller for n = {n}, as waiting is rarer than "
            f"exp({LEAST_LOG:g})"
        )
    if method is None:
        method = next(name for name, (most, _) in METHODS.items() if n <= most)
    elif not isinstance(method, str) or method not in METHODS:
        raise ValueError(f"method = {method!r}: must be one of {', '.join(METHODS)}, or None")
    return METHODS[method][1](beta, n)


def _counts(beta: float, n: int) -> Marginals:
    level = highest_level(n, beta)
    law, lower = count_law(n, beta, level), count_law(n, beta, level - 1)
    means, before = _means(law), _means(lower)
    # Each further level gains about lambda**n of the change that the last one made.
    ratio = (1 - beta / math.sqrt(n)) ** n
    q2_change, q3_change = np.abs(means[1:3] - before[1:3]) * ratio / (1 - ratio)
    q1, q2, q3 = (np.bincount(law.counts[:, i], law.probability, n + 1) for i in range(3))
    total = law.counts.sum(axis=1)
    variance = law.probability @ (law.counts[:, 0] * (total - means.sum()))
    arrivals = n - beta * math.sqrt(n)
    residuals = _identities(n, arrivals, means[0], means[1], float(q1[-1]))
    residuals["Cov(Q1, Q1 + Q2 + ...) = n lambda"] = float(variance / arrivals - 1)
    return Marginals(
        n=n,
        arrivals=arrivals,
        q1=q1,
        q2=q2,
        q3=q3,
        error=float(q2_change / means[1]) + ROUNDING,
        q3_mean=float(means[2]),
        q3_error=float(q3_change + ROUNDING * means[2]),
        residuals=residuals,
        n_states=len(law.probability),
    )


def _means(law: CountLaw) -> np.ndarray:
    means: np.ndarray = law.probability @ law.counts
    return means


def _planes(beta: float, n: int) -> Marginals:
    law = plane_law(n, beta)
    arrivals = n - beta * math.sqrt(n)
    spare = beta * math.sqrt(n)
    busy = float(np.arange(n + 1) @ law.q1)
    q2_mean = float(np.arange(n + 1) @ law.q2)
    q3_mean = float(np.arange(len(law.q3)) @ law.q3)
    balance = law.balance / q2_mean - (spare - 1)
    # Conservative by comparison with complete solutions for up to 15 servers, and with simulation
    # where beta is small, when what is lost is missed for a relaxation time.
    lasting = max(math.sqrt(n) * (1 + 1 / spare), 4.5 / beta**2)
    q3_error = arrivals * law.overflow * lasting
    residuals = _identities(n, arrivals, busy, q2_mean, law.full)
    residuals["E G(Q1 Q2) = 0"] = balance / spare
    return Marginals(
        n=n,
        arrivals=arrivals,
        q1=law.q1,
        q2=law.q2,
        q3=law.q3,
        error=abs(balance) / spare + ROUNDING,
        q3_mean=q3_mean,
        q3_error=min(q3_error, float(n)) + ROUNDING * q3_mean,
        residuals=residuals,
        n_states=law.n_states,
    )


def _levels(beta: float, n: int) -> Marginals:
    states = Levels.choose(n, beta)
    law = level_law(states)
    spare = beta * math.sqrt(n)
    idle = float(np.arange(len(law.q1) - 1, -1, -1) @ law.q1)
    q2_mean = float(np.arange(len(law.q2)) @ law.q2)
    full = float(law.full.sum())
    balance = 2 * law.idle_q2_mean / q2_mean - (spare - 1)
    lost = states.arrivals * float(law.full[-1]) if states.top == n else 0.0
    residuals = _identities(n, states.arrivals, n - idle, q2_mean, full)
    residuals["E G(Q1 Q2) = 0"] = balance / spare
    return Marginals(
        n=n,
        arrivals=states.arrivals,
        q1=law.q1,
        q2=law.q2,
        q3=np.ones(1),
        error=abs(balance) / spare + ROUNDING,
        q3_mean=min(lost * (1 + beta**-2), q2_mean),
        q3_error=min(lost * beta**-2, float(n)) + np.finfo(float).eps,
        residuals=residuals,
        n_states=law.n_states,
    )


def _identities(
    n: int, arrivals: float, busy: float, q2_mean: float, full: float
) -> dict[str, float]:
    return {
        "E Q1 = n lambda": (busy - arrivals) / (n - arrivals),
        "E Q2 = n lambda P(Q1 = n)": q2_mean / (arrivals * full) - 1,
    }


METHODS = {"counts": (10, _counts), "planes": (400, _planes), "levels": (math.inf, _levels)}
"""Method by name, with the most servers for which it is the default."""
