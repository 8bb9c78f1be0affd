"""Laws of the diffusion from the march: moments, distribution functions, densities, identities."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.polynomial import legendre

from manyserver.diffusion.halfin_whitt.limit.exponent import small_exponent
from manyserver.diffusion.halfin_whitt.limit.method_of_lines import (
    Profile,
    Resolution,
    length,
    march,
)
from manyserver.diffusion.halfin_whitt.limit.nodes import barycentric_matrix

__all__ = ["Law", "law"]

LOWEST = 1e-12
"""The march stops at this level times theta; below, the law of Y2 is a pure power."""
POINTS = 24
"""Gauss points of an integral over part of a step."""
LOGS = np.linspace(-42.0, 0.0, 2100)
"""Nodes of the Laplace identity, as log(a / largest)."""


@dataclass(frozen=True, eq=False)
class Law:
    """Stationary law of the diffusion (Y1, Y2).

    Parameters
    ----------
    profile : Profile
        Not normalised.
    theta : float
        Exponent of the law of Y2 at zero.
    """

    profile: Profile
    theta: float

    def integral(self, values: np.ndarray) -> float:
        """Integrate over s a function of the stage that falls like y**theta for small y.

        Parameters
        ----------
        values : numpy.ndarray, shape (stage,)
            Without the factor exp(-rate y).
        """
        values = values * self.profile.scale
        return float(self.profile.weights @ values + values[-1] / self.theta)

    def power_mean(self, first: int, second: int) -> float:
        """Return the mean of Y1**first Y2**second; the joint density is q dx ds."""
        profile = self.profile
        x = -profile.length[:, None] * profile.x_basis.nodes
        inner = self._over_x(x**first * profile.flow)
        if second > 0:
            # The part below the last level is y**(theta + second): nothing.
            return float(profile.weights @ (profile.y**second * inner * profile.scale)) / self.mass
        return self.integral(inner) / self.mass

    @cached_property
    def mass(self) -> float:
        """Total mass of the density before normalisation."""
        return self.integral(self._over_x(self.profile.flow))

    def boundary_mean(self, power: float) -> float:
        """Integrate y**power against the boundary measure nu; power >= -1."""
        profile = self.profile
        if power > -1:
            values = profile.y ** (power + 1) * profile.boundary * profile.scale
            return float(profile.weights @ values) / self.mass
        return self.integral(profile.boundary) / self.mass

    @property
    def small_constant(self) -> float:
        """Factor c in P(Y2 <= y) ~ c y**theta."""
        profile = self.profile
        return float(profile.boundary[-1] / profile.y[-1] ** self.theta / self.theta / self.mass)

    def laplace_identity(self) -> float:
        """Return the residual of the Laplace identity of the boundary measure.

        int exp(-a^2/2 + beta a) psi(B(a)) dB(a) = 1 with B(a) = a (r + log a) and psi the Laplace
        transform of nu, for r > -1 - log(beta): an integral of the basic adjoint relation along
        its characteristics, which shares nothing with the march.
        """
        profile, beta = self.profile, self.profile.beta
        shift = max(0.0, -np.log(beta))
        logs = np.log(beta + 9.0) + LOGS
        a = np.exp(logs)
        argument = a * (shift + logs)
        measure = profile.weights * profile.y * profile.boundary / self.mass
        exponent = -np.outer(argument, profile.y) - profile.rate * profile.y
        transform = (np.exp(np.minimum(exponent, 0.0)) * measure).sum(axis=1)
        integrand = np.exp(-(a**2) / 2 + beta * a) * transform * (shift + 1 + logs) * a
        return float(integrand.sum() * (logs[1] - logs[0]) - 1)

    def y1(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return density and distribution function of Y1 at points x <= 0."""
        profile = self.profile
        basis = profile.x_basis
        density, below = np.zeros(len(x)), np.zeros(len(x))
        measure = profile.weights * profile.scale
        measure[-1] += profile.scale[-1] / self.theta
        cumulative = np.einsum("si,ji->sj", profile.flow, basis.above) * profile.length[:, None]
        for weight, size, flow, far in zip(
            measure, profile.length, profile.flow, cumulative, strict=True
        ):
            inside = -x <= size
            matrix = barycentric_matrix(basis.nodes, basis.barycentric, -x[inside] / size)
            density[inside] += weight * (matrix @ flow)
            below[inside] += weight * (matrix @ far)
        return density / self.mass, below / self.mass

    def y2(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return density, distribution function and its complement of Y2 at points y > 0."""
        boundary = self._boundary(y)
        nodes, weights = legendre.leggauss(POINTS)
        edges = self.profile.edges
        whole = self._between(edges[:-1], edges[1:], nodes, weights)
        # Sums from both ends, so that both tails are relatively accurate.
        above_edges = np.concatenate([[0.0], np.cumsum(whole)])
        last = self._boundary(np.exp(-edges[-1:]))[0] / self.theta
        below_edges = np.concatenate([np.cumsum(whole[::-1])[::-1], [0.0]]) + last
        s = np.clip(-np.log(y), edges[0], edges[-1])
        step = np.clip(np.searchsorted(edges, s, side="right") - 1, 0, len(edges) - 2)
        above = above_edges[step] + self._between(edges[step], s, nodes, weights)
        below = below_edges[step + 1] + self._between(s, edges[step + 1], nodes, weights)
        tiny = -np.log(y) > edges[-1]
        below = np.where(tiny, self._boundary(y) / self.theta, below)
        return boundary / y / self.mass, below / self.mass, above / self.mass

    def boundary_density(self, y: np.ndarray) -> np.ndarray:
        """Return the density of the boundary measure at points y > 0."""
        return self._boundary(y) / self.mass

    def scaled_boundary(self, y: np.ndarray) -> np.ndarray:
        """Return the density of the boundary measure times exp(rate y), safe for large y."""
        return self._interpolate(self.profile.boundary[:, None], y)[:, 0] / self.mass

    def joint_density(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the density of (Y1, Y2) at the grid, shape (x, y); y > 0."""
        profile = self.profile
        basis = profile.x_basis
        density = np.zeros((len(x), len(y)))
        flows = self._interpolate(profile.flow, y)
        sizes = length(y, profile.beta)[0]
        for column, (level, size, flow) in enumerate(zip(y, sizes, flows, strict=True)):
            inside = -x <= size
            matrix = barycentric_matrix(basis.nodes, basis.barycentric, -x[inside] / size)
            density[inside, column] = matrix @ flow * np.exp(-profile.rate * level) / level
        return density / self.mass

    def _over_x(self, values: np.ndarray) -> np.ndarray:
        """Integrate over x at every stage."""
        # Not a product of matrices, which would wake up the threads of BLAS.
        sums = np.einsum("si,i->s", values, self.profile.x_basis.weights)
        return np.asarray(sums * self.profile.length)

    def _between(
        self, low: np.ndarray, high: np.ndarray, nodes: np.ndarray, weights: np.ndarray
    ) -> np.ndarray:
        """Integrate nu over intervals of s, each inside one step."""
        half = (high - low) / 2
        s = (low + high)[:, None] / 2 + half[:, None] * nodes
        values = self._boundary(np.exp(-s).ravel()).reshape(s.shape)
        return np.asarray(values @ weights * half)

    def _boundary(self, y: np.ndarray) -> np.ndarray:
        values = self._interpolate(self.profile.boundary[:, None], y)[:, 0]
        return np.asarray(values * np.exp(-self.profile.rate * y))

    def _interpolate(self, values: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Interpolate scaled values over s within steps; a power below the last level."""
        profile = self.profile
        basis, edges = profile.step_basis, profile.edges
        stages = len(basis.weights)
        s = np.clip(-np.log(y), edges[0], edges[-1])
        step = np.clip(np.searchsorted(edges, s, side="right") - 1, 0, len(edges) - 2)
        local = 2 * (s - edges[step]) / (edges[step + 1] - edges[step]) - 1
        # The first step has no value at its start; its end is far above all levels of interest.
        step = np.maximum(step, 1)
        rows = step[:, None] * stages + np.arange(-1, stages)
        matrix = barycentric_matrix(basis.points, basis.barycentric, local)
        power = (y / np.exp(-s)) ** self.theta
        power[y > np.exp(-edges[0])] = 0.0
        return np.asarray(np.einsum("pi,pi...->p...", matrix, values[rows]) * power[:, None])


@lru_cache(maxsize=8)
def law(beta: float, resolution: Resolution) -> Law:
    """Compute the stationary law."""
    theta = small_exponent(beta)
    return Law(march(beta, resolution, LOWEST * theta), theta)
