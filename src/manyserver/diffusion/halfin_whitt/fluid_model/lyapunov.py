r"""A Lyapunov function of the diffusion, and the drift inequality that makes it ergodic.

With :math:`\kappa_1 = \beta+\epsilon`, :math:`\kappa_2 = \beta+2\epsilon`, the step
:math:`\phi` from 0 at the one to 1 at the other, and the fluid path v from X,

.. math:: f^{(1)} = \int_0^\infty \phi(-v_1)\,dt,\qquad f^{(2)} = \int_0^\infty \phi(v_2)\,dt,
          \qquad V = e^{\alpha(f^{(1)}+f^{(2)})} .

The generator of the diffusion, :math:`G = L + \partial_1^2`, satisfies
:math:`GV \le -cV + d\,1_K` with :math:`K = [-\kappa_2,0]\times[0,\kappa_2]`
(arXiv:1801.05121, Section 5). All points are scaled by :math:`\sqrt n`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from manyserver.checks import checked_array, checked_number, refusal
from manyserver.diffusion.halfin_whitt.checks import check_beta, check_points
from manyserver.diffusion.halfin_whitt.fluid_model.cost import Derivatives, fluid_cost, idle_cost
from manyserver.diffusion.halfin_whitt.fluid_model.cutoff import Step
from manyserver.diffusion.halfin_whitt.labels import labelled

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Lyapunov", "lyapunov"]

DEFAULT_EPSILON = 12.0


@dataclass(frozen=True)
class Lyapunov:
    r"""The Lyapunov function and its drift condition.

    Parameters
    ----------
    beta : float
        Spare capacity, > 0.
    epsilon : float, optional
        Width of the step, > 0; by default ``12 * max(1, 1 / beta)``. It must be so large that
        some alpha gives a positive rate c.
    alpha : float, optional
        Exponent, > 0; by default that with the largest c. The paper takes alpha < 1, which
        nothing needs.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Examples
    --------
    >>> function = Lyapunov(beta=1.0, epsilon=12.0)
    >>> round(function.alpha, 3), round(function.rate, 4)
    (0.164, 0.0409)
    """

    beta: float
    epsilon: float | None = None
    alpha: float | None = None

    def __post_init__(self) -> None:
        beta = check_beta(self.beta)
        epsilon = DEFAULT_EPSILON * max(1.0, 1 / beta) if self.epsilon is None else self.epsilon
        object.__setattr__(self, "beta", beta)
        object.__setattr__(self, "epsilon", checked_number("epsilon", epsilon))
        if self._slack <= 0:
            raise ValueError(
                f"epsilon = {epsilon!r}: too small for a drift condition at beta = {beta:g}; "
                f"{DEFAULT_EPSILON * max(1.0, 1 / beta):g} is enough"
            )
        largest = self._slack / self._slope_bound**2
        alpha = largest / 2 if self.alpha is None else self.alpha
        checked_number("alpha", alpha, below=largest)
        object.__setattr__(self, "alpha", float(alpha))

    @property
    def levels(self) -> tuple[float, float]:
        r"""The levels :math:`\kappa_1` and :math:`\kappa_2`."""
        return self.beta + self._width, self.beta + 2 * self._width

    @property
    def rate(self) -> float:
        r"""The explicit rate c.

        It is :math:`\alpha(1-\frac{12\log2}{\epsilon^2}-\frac1{\beta\epsilon}
        (1+\frac{4(\beta+\epsilon)}\epsilon)-\alpha(\frac{4\log2}\epsilon+\frac1\beta)^2)`, at most
        the limit :math:`\beta^2/4`. It is not the rate of convergence, which :func:`gap` gives.
        """
        return self._exponent * (self._slack - self._exponent * self._slope_bound**2)

    @property
    def constant(self) -> float:
        r"""The explicit constant d: alpha times the largest V on K.

        On K the derivatives add at most :math:`\alpha(f_{11}+\alpha f_1^2) \le \alpha-c`. There
        f1 is largest at :math:`(-\kappa_2,0)`, and f2 at :math:`(0,\kappa_2)`.
        """
        upper = self.levels[1]
        corners = np.array([[-upper, 0.0], [0.0, upper]])
        first, second = self.first(corners).value[0], self.second(corners).value[1]
        return self._exponent * math.exp(self._exponent * float(first + second))

    @property
    def bounds(self) -> dict[str, float]:
        """Upper bounds of the absolute derivatives, by name (Lemmas 11 and 12)."""
        epsilon, beta = self._width, self.beta
        return {
            "f1_d1": 4 * math.log(2) / epsilon,
            "f1_d11": 12 * math.log(2) / epsilon**2,
            "f2_d1": 1 / beta,
            "f2_d11": (1 + 4 * (beta + epsilon) / epsilon) / (beta * epsilon),
        }

    @property
    def _width(self) -> float:
        assert self.epsilon is not None
        return self.epsilon

    @property
    def _exponent(self) -> float:
        assert self.alpha is not None
        return self.alpha

    @property
    def _slack(self) -> float:
        return 1 - self.bounds["f1_d11"] - self.bounds["f2_d11"]

    @property
    def _slope_bound(self) -> float:
        return self.bounds["f1_d1"] + self.bounds["f2_d1"]

    @property
    def _step(self) -> Step:
        return Step(*self.levels)

    def first(self, x: ArrayLike) -> Derivatives:
        r"""Evaluate :math:`f^{(1)}`, the time that the fluid path has many idle servers.

        Parameters
        ----------
        x : array_like, shape (..., 2)
            Points, scaled by :math:`\sqrt n`.

        Notes
        -----
        Lemma 11. The path goes through the upper and the lower half of the step at times that
        Lambert's W gives; between them the integrand is analytic, and a Gauss rule is exact to
        rounding.
        """
        return idle_cost(self._step, *check_points(x), self.beta)

    def second(self, x: ArrayLike) -> Derivatives:
        r"""Evaluate :math:`f^{(2)}`, the time that the fluid path has many waiting customers.

        Parameters
        ----------
        x : array_like, shape (..., 2)
            Points, scaled by :math:`\sqrt n`.

        Notes
        -----
        Lemma 12, in the one formula of :func:`fluid_cost`.
        """
        return fluid_cost(self._step, *check_points(x), self.beta)

    def log_value(self, x: ArrayLike) -> np.ndarray:
        """Evaluate log V, which does not overflow far out; shape (...) for x of (..., 2)."""
        return np.asarray(self._exponent * (self.first(x).value + self.second(x).value))

    def relative_drift(self, x: ArrayLike) -> np.ndarray:
        r"""Evaluate :math:`GV/V`.

        Parameters
        ----------
        x : array_like, shape (..., 2)
            Points, scaled by :math:`\sqrt n`.

        Returns
        -------
        numpy.ndarray, shape (...)
            :math:`\alpha(Lf+f_{11})+\alpha^2f_1^2` for :math:`f=f^{(1)}+f^{(2)}`; eq. (5.2)
            bounds it by -c outside of K.
        """
        x1, x2 = check_points(x)
        first, second = self.first(x), self.second(x)
        fluid = first.fluid_generator(x1, x2, self.beta) + second.fluid_generator(x1, x2, self.beta)
        alpha, slope = self._exponent, first.d1 + second.d1
        return np.asarray(alpha * (fluid + first.d11 + second.d11) + alpha**2 * slope**2)

    def grid(self, side: int = 201, reach: float = 4.0) -> np.ndarray:
        r"""Points to check on, up to `reach` times :math:`\kappa_2` away from the corner.

        Returns
        -------
        numpy.ndarray, shape (side, side, 2)
            The axes are part of it.
        """
        distance = reach * self.levels[1] * np.linspace(0, 1, side) ** 2
        return np.stack(np.meshgrid(-distance, distance, indexing="ij"), axis=-1)

    def violations(self, x: ArrayLike | None = None) -> dict[str, float]:
        """Return how far equations, bounds and drift condition are off at the worst point.

        Parameters
        ----------
        x : array_like, shape (..., 2), optional
            Points, by default :meth:`grid`; those with ``x[..., 0] == 0`` test the reflection.

        Returns
        -------
        dict of str to float
            Of f1 and f2, ``_equation``: residual of ``Lf = -phi`` over ``1 + X_2 |f_2|``, and
            ``_reflection``: difference of the first derivatives on the axis. The bounds by name,
            and ``drift``, (5.2) over V: amount of the violation, not positive if they hold.
        """
        points = self.grid() if x is None else checked_array("x", x, "pairs of finite numbers")
        x1, x2 = check_points(points)
        first, second = self.first(points), self.second(points)
        worst = {}
        for name, f, cost in (("f1", first, -x1), ("f2", second, x2)):
            residual = f.fluid_generator(x1, x2, self.beta) + self._step.value(cost)
            worst[f"{name}_equation"] = float((np.abs(residual) / (1 + x2 * np.abs(f.d2))).max())
            axis = np.where(x1 == 0, np.abs(f.d1 - f.d2), 0.0)
            worst[f"{name}_reflection"] = float(axis.max())
            worst[f"{name}_d1"] = float(np.abs(f.d1).max() - self.bounds[f"{name}_d1"])
            worst[f"{name}_d11"] = float(np.abs(f.d11).max() - self.bounds[f"{name}_d11"])
        upper = self.levels[1]
        inside = (x1 >= -upper) & (x2 <= upper)
        extra = np.where(inside, self.constant * np.exp(-self.log_value(points)), 0.0)
        worst["drift"] = float((self.relative_drift(points) + self.rate - extra).max())
        return worst


def lyapunov(
    beta: float,
    epsilon: float | None = None,
    alpha: float | None = None,
    *,
    x1: ArrayLike | None = None,
    x2: ArrayLike | None = None,
) -> xr.Dataset:
    r"""Evaluate the Lyapunov function of the diffusion on a grid, and check its drift condition.

    Parameters
    ----------
    beta : float
        Spare capacity, > 0.
    epsilon, alpha : float, optional
        As :class:`Lyapunov` takes them.
    x1, x2 : array_like, optional
        Coordinates of the grid, scaled by :math:`\sqrt n`; ``x1 <= 0 <= x2``. By default up to
        four times the compact set.

    Returns
    -------
    xarray.Dataset
        On (x1, x2): ``idle_cost`` f1, ``waiting_cost`` f2, ``log_lyapunov`` log V and
        ``relative_drift`` GV/V. Scalars: ``epsilon``, ``alpha``, ``drift_rate`` c,
        ``drift_constant`` d, ``compact_set`` (the side of the square K), and ``violation``
        (check), see :meth:`Lyapunov.violations`.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Examples
    --------
    >>> result = lyapunov(1.0, 12.0, x1=[-60.0, 0.0], x2=[0.0, 60.0])
    >>> bool((result.relative_drift[0] < -result.drift_rate).all())
    True
    >>> bool(result.violation.max() < 1e-10)
    True
    """
    function = Lyapunov(beta, epsilon, alpha)
    side = function.grid()[0, :, 1]
    first = -side[::-1] if x1 is None else np.atleast_1d(checked_array("x1", x1, "numbers <= 0"))
    second = side if x2 is None else np.atleast_1d(checked_array("x2", x2, "numbers >= 0"))
    for name, axis in (("x1", first), ("x2", second)):
        if not axis.size:
            raise refusal(name, [], "at least one number")
    points = np.stack(np.meshgrid(first, second, indexing="ij"), axis=-1)
    worst = function.violations(points)
    values = {
        "idle_cost": function.first(points).value,
        "waiting_cost": function.second(points).value,
        "log_lyapunov": function.log_value(points),
        "relative_drift": function.relative_drift(points),
        "epsilon": function.epsilon,
        "alpha": function.alpha,
        "drift_rate": function.rate,
        "drift_constant": function.constant,
        "compact_set": function.levels[1],
        "violation": list(worst.values()),
    }
    coords = {"x1": first, "x2": second, "check": list(worst)}
    return labelled(values, coords, {"method": "Lyapunov function", "beta": function.beta})
