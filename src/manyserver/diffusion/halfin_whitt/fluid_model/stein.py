r"""The Stein equation for waiting customers, its solution, and the bounds that follow from it.

The function :math:`F(X) = \int_0^\infty (v_2^X(t) - \kappa)^+ dt` of the fluid path solves
:math:`LF = -(X_2-\kappa)^+` with :math:`\partial_1F = \partial_2F` on the axis, and in the
notation of arXiv:1801.05121 :math:`f^*(x) = F(\sqrt n\,x)/\sqrt n`. The generator of the queue
applied to it has mean zero in the stationary state, and its Taylor remainder is bounded by the
second derivatives of F. This bounds the mean number of waiting customers for every n.

Everything is in :math:`X = \sqrt n\,x`: F(X), with second derivatives that are those of
:math:`f^*` over :math:`\sqrt n`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from manyserver.diffusion.halfin_whitt.checks import (
    check_beta,
    check_level,
    check_n,
    check_points,
)
from manyserver.diffusion.halfin_whitt.fluid_model.cost import Derivatives, fluid_cost

__all__ = [
    "Excess",
    "SteinSolution",
    "scaled_states",
]


@dataclass(frozen=True)
class SteinSolution:
    r"""Solution of the Stein equation for :math:`(X_2-\kappa)^+`.

    Parameters
    ----------
    beta : float
        Spare capacity, > 0: the arrival rate per server is :math:`1-\beta/\sqrt n`.
    kappa : float
        Level, greater than `beta`.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Notes
    -----
    Eq. (3.7)-(3.11) and (4.14) of arXiv:1801.05121.

    Examples
    --------
    >>> solution = SteinSolution(beta=1.0, kappa=2.0)
    >>> at = solution.evaluate([[-1.0, 5.0], [0.0, 4.0]])
    >>> at.value.round(6)
    array([2.35013, 2.     ])
    >>> at.d1[1] == at.d2[1]
    np.True_
    """

    beta: float
    kappa: float

    def __post_init__(self) -> None:
        beta = check_beta(self.beta)
        object.__setattr__(self, "beta", beta)
        object.__setattr__(self, "kappa", check_level(self.kappa, beta))

    def evaluate(self, x: ArrayLike) -> Derivatives:
        r"""Evaluate F and its derivatives.

        Parameters
        ----------
        x : array_like, shape (..., 2)
            Points, scaled by :math:`\sqrt n`.

        Returns
        -------
        Derivatives
            ``value, d1, d2, d11, d12, d22``, each of shape (...). The second derivatives jump
            across :math:`X_2 = \kappa` and across :func:`gamma_curve`.

        Raises
        ------
        ValueError
            If ``x[..., 0] > 0`` or ``x[..., 1] < 0``.
        """
        return fluid_cost(_Excess(self.kappa), *check_points(x), self.beta)

    @property
    def bounds(self) -> dict[str, float]:
        r"""Upper bounds of ``d11`` and ``d22``; all second derivatives are at least 0.

        Eq. (3.9)-(3.11) of arXiv:1801.05121 are these times :math:`\sqrt n`.
        """
        ratio = self.kappa / (self.kappa - self.beta)
        return {"d11": (ratio + 1) / self.beta, "d22": (5 + 2 * ratio) / self.beta}

    def violations(self, x: ArrayLike) -> dict[str, float]:
        """Return how far the equation and the bounds are off at the worst of some points.

        Parameters
        ----------
        x : array_like, shape (..., 2)
            Points; those with ``x[..., 0] == 0`` test the reflection.

        Returns
        -------
        dict of str to float
            ``equation``: largest residual of (3.7), relative to ``1 + X_2 F_2``; ``reflection``:
            that of (3.8), relative to ``1 + F_1``; ``sign``, ``d11``, ``d22``, ``flat``: largest
            amount by which (3.9), (3.10), (3.11), and the equality to 0 for ``X_2 < kappa``, are
            violated; not positive if they hold.
        """
        x1, x2 = check_points(x)
        f = self.evaluate(x)
        residual = f.fluid_generator(x1, x2, self.beta) + np.maximum(x2 - self.kappa, 0)
        axis = np.where(x1 == 0, np.abs(f.d1 - f.d2) / (1 + np.abs(f.d1)), 0.0)
        flat = np.where(x2 < self.kappa, np.abs(f.d11) + np.abs(f.d22), 0.0)
        return {
            "equation": float(np.max(np.abs(residual) / (1 + x2 * f.d2))),
            "reflection": float(np.max(axis)),
            "sign": float(-min(f.d11.min(), f.d12.min(), f.d22.min())),
            "d11": float(np.max(f.d11) - self.bounds["d11"]),
            "d22": float(np.max(f.d22) - self.bounds["d22"]),
            "flat": float(np.max(flat)),
        }

    def generator(self, n: int, q1: ArrayLike, q2: ArrayLike, q3: ArrayLike = 0) -> np.ndarray:
        r"""Apply the generator of the queueing system to F.

        Parameters
        ----------
        n : int
            Servers; the arrival rate :math:`1-\beta/\sqrt n` must be positive.
        q1, q2, q3 : array_like of int
            Numbers of servers with at least 1, 2 and 3 customers, ``n >= q1 >= q2 >= q3 >= 0``.

        Returns
        -------
        numpy.ndarray
            :math:`G F(X)` with :math:`X = ((q_1-n)/\sqrt n, q_2/\sqrt n)`. Its mean in the
            stationary state is zero.

        Notes
        -----
        Eq. (3.1) of arXiv:1801.05121. Arrivals that find ``q2 == n`` do not change F. This holds
        for the system whose queues are cut at two customers, too.
        """
        n = check_n(n, self.beta)
        arrivals = n - self.beta * math.sqrt(n)
        here1, here2, third = np.broadcast_arrays(q1, q2, q3)

        def value(first: np.ndarray, second: np.ndarray) -> np.ndarray:
            return self.evaluate(scaled_states(n, first, second)).value

        now = value(here1, here2)
        idle = here1 < n
        up = value(np.minimum(here1 + 1, n), np.where(idle, here2, np.minimum(here2 + 1, n)))
        down1 = value(np.maximum(here1 - 1, 0), here2)
        down2 = value(here1, np.maximum(here2 - 1, 0))
        return np.asarray(
            arrivals * (up - now)
            + (here1 - here2) * (down1 - now)
            + (here2 - third) * (down2 - now)
        )

    def excess(self, n: int, q2_law: ArrayLike) -> Excess:
        r"""Evaluate both sides of the inequality for the excess of waiting customers.

        Parameters
        ----------
        n : int
            Servers.
        q2_law : array_like, shape (q2,)
            Probabilities of 0, 1, ... servers with a waiting customer.

        Returns
        -------
        Excess
            ``mean`` :math:`E(\sqrt n X_2 - \kappa)^+` and its upper bounds: ``bound``
            :math:`\frac1\beta(12+\frac{6\kappa}{\kappa-\beta})P(\sqrt nX_2\ge\kappa-1/\sqrt n)`,
            and ``sharper`` with :math:`4+\frac{3\kappa}{\kappa-\beta}`.

        Notes
        -----
        Eq. (3.18) of arXiv:1801.05121 times :math:`\sqrt n`. The sharper bound takes the factor
        1/2 of Taylor's remainder into account.
        """
        n = check_n(n, self.beta)
        law = _check_law(q2_law, "q2_law")
        height = np.arange(law.size) / math.sqrt(n)
        mean = float(law @ np.maximum(height - self.kappa, 0))
        tail = float(law[np.arange(law.size) >= self.kappa * math.sqrt(n) - 1].sum())
        ratio = self.kappa / (self.kappa - self.beta)
        factor = tail / self.beta
        return Excess(mean, (12 + 6 * ratio) * factor, (4 + 3 * ratio) * factor)

    def violations_under_law(
        self, n: int, law: ArrayLike, q1: ArrayLike, q2: ArrayLike, q3: ArrayLike = 0
    ) -> dict[str, float]:
        """Return how far off identity and inequality are under a stationary law.

        Parameters
        ----------
        n : int
            Servers.
        law : array_like, shape (state,)
            Stationary probabilities.
        q1, q2, q3 : array_like of int, shape (state,)
            Numbers of servers with at least 1, 2 and 3 customers in each state.

        Returns
        -------
        dict of str to float
            ``generator``: absolute mean of :meth:`generator`, over the mean of its absolute value
            if that is more than 1; zero for an exact law. ``excess`` and ``sharper``: amount by
            which the inequalities of :meth:`excess` are violated, not positive if they hold.
        """
        probabilities = _check_law(law, "law")
        drift = probabilities * self.generator(n, q1, q2, q3)
        bound = self.excess(n, np.bincount(np.asarray(q2), probabilities))
        return {
            "generator": float(abs(drift.sum()) / max(1.0, np.abs(drift).sum())),
            "excess": bound.mean - bound.bound,
            "sharper": bound.mean - bound.sharper,
        }


class Excess(NamedTuple):
    """A mean excess and its upper bounds."""

    mean: float
    bound: float
    sharper: float


def scaled_states(n: int, q1: ArrayLike, q2: ArrayLike) -> np.ndarray:
    r"""Scale states of the queueing system to :math:`((q_1-n)/\sqrt n, q_2/\sqrt n)`.

    Returns
    -------
    numpy.ndarray, shape (..., 2)

    Examples
    --------
    >>> scaled_states(100, [90, 100], [0, 5])
    array([[-1. ,  0. ],
           [ 0. ,  0.5]])
    """
    busy, waiting = np.broadcast_arrays(np.asarray(q1, float), np.asarray(q2, float))
    return np.stack([busy - n, waiting], axis=-1) / math.sqrt(n)


def _check_law(law: ArrayLike, name: str) -> np.ndarray:
    probabilities = np.asarray(law, float)
    if probabilities.ndim != 1 or not (probabilities >= 0).all():
        raise ValueError(f"{name} has shape {probabilities.shape}; must be probabilities, 1-d")
    if not math.isclose(total := float(probabilities.sum()), 1.0, rel_tol=1e-6):
        raise ValueError(f"{name} sums to {total:g}: must sum to 1")
    return probabilities


@dataclass(frozen=True)
class _Excess:
    r"""The cost rate :math:`h(s) = (s-\kappa)^+`."""

    kappa: float

    def value(self, s: np.ndarray) -> np.ndarray:
        return np.maximum(s - self.kappa, 0.0)

    def slope(self, s: np.ndarray) -> np.ndarray:
        return np.where(s >= self.kappa, 1.0, 0.0)

    def integral(self, s: np.ndarray) -> np.ndarray:
        return self.value(s) ** 2 / 2

    def weighted_integral(self, s: np.ndarray) -> np.ndarray:
        excess = self.value(s)
        return excess - self.kappa * np.log1p(excess / self.kappa)
