r"""Costs of a fluid path: of waiting customers, and of idle servers.

For a cost rate h(s) that vanishes up to some level above beta, the cost

.. math:: f(X) = \int_0^\infty h(v_2^X(t))\,dt

of the fluid path from X has a closed form. With tau the time to reach the axis and
:math:`z = X_2 e^{-\tau}` the height there,

.. math:: f = \int_z^{X_2} \frac{h(s)}{s}\,ds + \frac1\beta\int_0^z h(s)\,ds,

and z = 0 if the axis is not reached. It solves :math:`Lf = -h(X_2)`, with
:math:`\partial_1 f = \partial_2 f` on the axis. The Stein equation of arXiv:1801.05121 has
:math:`h(s) = (s-\kappa)^+`, and its Lyapunov function :math:`f^{(2)}` a smooth step.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple, Protocol

import numpy as np

from manyserver.diffusion.halfin_whitt.fluid_model.cutoff import NODES, WEIGHTS, Step
from manyserver.diffusion.halfin_whitt.fluid_model.flow import first_hit, time_below

__all__ = ["CostRate", "Derivatives", "fluid_cost", "idle_cost"]


class CostRate(Protocol):
    """A cost rate h, with what is derived from it; all take arrays of heights."""

    def value(self, s: np.ndarray) -> np.ndarray:
        """Return h(s)."""

    def slope(self, s: np.ndarray) -> np.ndarray:
        """Return the derivative of h, from the right where it jumps."""

    def integral(self, s: np.ndarray) -> np.ndarray:
        """Integrate h from 0 to s."""

    def weighted_integral(self, s: np.ndarray) -> np.ndarray:
        """Integrate h(r) / r from 0 to s."""


class Derivatives(NamedTuple):
    """A function of X = (X1, X2) with its first and second derivatives.

    Second derivatives are one-sided where they jump.
    """

    value: np.ndarray
    d1: np.ndarray
    d2: np.ndarray
    d11: np.ndarray
    d12: np.ndarray
    d22: np.ndarray

    def fluid_generator(self, x1: np.ndarray, x2: np.ndarray, beta: float) -> np.ndarray:
        """Differentiate along the fluid path, ``L f = (-x1 + x2 - beta) f_1 - x2 f_2``."""
        return np.asarray((-x1 + x2 - beta) * self.d1 - x2 * self.d2)


def fluid_cost(rate: CostRate, x1: np.ndarray, x2: np.ndarray, beta: float) -> Derivatives:
    """Evaluate the cost of fluid paths, without checking the arguments.

    Parameters
    ----------
    rate : CostRate
        Zero up to some level above `beta`.
    x1, x2 : numpy.ndarray
        Starts, of the same shape.
    beta : float
        Spare capacity.
    """
    hit = first_hit(x1, x2, beta)
    there = np.isfinite(hit.time)
    tau = np.where(there, hit.time, 0.0)
    decay = np.exp(-tau)
    # Where the cost of the axis is zero, any height will do that divides by nothing.
    paid = there & (rate.value(beta + hit.excess) > 0)
    excess = np.where(paid, hit.excess, beta)
    z = np.where(paid, beta + hit.excess, 0.0)
    # Below beta everything is zero.
    safe = np.maximum(x2, beta)
    cost, slope = rate.value(z) / beta, rate.slope(z) / beta
    tau_1 = -decay / excess
    tau_2 = tau * tau_1
    z_1, z_2 = -z * tau_1, decay - z * tau_2
    shape = excess / safe + tau * decay
    here = rate.value(x2) / safe
    return Derivatives(
        value=rate.weighted_integral(x2) - rate.weighted_integral(z) + rate.integral(z) / beta,
        d1=cost * decay,
        d2=here + cost * shape,
        d11=slope * z_1 * decay - cost * decay * tau_1,
        d12=slope * z_2 * decay - cost * decay * tau_2,
        d22=(rate.slope(x2) - here) / safe
        + slope * z_2 * shape
        + cost * (beta / safe**2 - tau_2 * tau * decay),
    )


def idle_cost(step: Step, x1: np.ndarray, x2: np.ndarray, beta: float) -> Derivatives:
    """Evaluate the cost ``step(-v1)`` of fluid paths, without checking the arguments.

    Parameters
    ----------
    step : Step
        Zero up to some level above `beta`.
    x1, x2 : numpy.ndarray
        Starts, of the same shape.
    beta : float
        Spare capacity.

    Notes
    -----
    The path goes up through the two halves of the step at times that Lambert's W gives. Between
    them the integrand is analytic, and a Gauss rule integrates it to rounding.
    """
    middle = (step.lower + step.upper) / 2
    times = [time_below(x1, x2, level, beta) for level in (step.upper, middle, step.lower)]
    zero = np.zeros(np.broadcast_shapes(x1.shape, x2.shape))
    value, d1, d2, d11, d12, d22 = times[0] + zero, zero, zero, zero, zero, zero
    for start, end in itertools.pairwise(times):
        length = end - start
        t = start[..., np.newaxis] + length[..., np.newaxis] * NODES
        weight = length[..., np.newaxis] * WEIGHTS
        decay = np.exp(-t)
        depth = beta - (x1[..., np.newaxis] + beta + t * x2[..., np.newaxis]) * decay
        first = -step.slope(depth) * decay * weight
        # Nodes stay in their half of the step, so the curvature has no jump between them.
        second = step.curvature(depth) * decay**2 * weight
        value = value + (step.value(depth) * weight).sum(-1)
        d1, d2 = d1 + first.sum(-1), d2 + (first * t).sum(-1)
        d11 = d11 + second.sum(-1)
        d12 = d12 + (second * t).sum(-1)
        d22 = d22 + (second * t**2).sum(-1)
    return Derivatives(value, d1, d2, d11, d12, d22)
