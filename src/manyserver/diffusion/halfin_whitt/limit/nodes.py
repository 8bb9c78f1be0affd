"""Nodes, differentiation and quadrature of the polynomial methods: Chebyshev and Radau."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.polynomial import legendre

__all__ = ["Chebyshev", "Radau", "barycentric_matrix", "chebyshev", "radau"]


@dataclass(frozen=True)
class Chebyshev:
    """Polynomials on [0, 1] by their values at the Chebyshev points of the second kind.

    Parameters
    ----------
    nodes : numpy.ndarray, shape (degree + 1,)
        From 0 to 1.
    derivative : numpy.ndarray, shape (degree + 1, degree + 1)
        Values to values of the derivative.
    above : numpy.ndarray, shape (degree + 1, degree + 1)
        Values to values of the integral from the node to 1.
    barycentric : numpy.ndarray, shape (degree + 1,)
        Weights of the barycentric formula.
    """

    nodes: np.ndarray
    derivative: np.ndarray
    above: np.ndarray
    barycentric: np.ndarray

    @property
    def weights(self) -> np.ndarray:
        """Quadrature weights on [0, 1]."""
        weights: np.ndarray = self.above[0]
        return weights


@lru_cache(maxsize=8)
def chebyshev(degree: int) -> Chebyshev:
    """Return the Chebyshev points and matrices of a degree."""
    order = np.arange(degree + 1)
    angle = np.pi * order / degree
    nodes = np.sin(angle / 2) ** 2
    barycentric = (-1.0) ** order
    barycentric[[0, -1]] /= 2
    # Differences by the product formula and diagonals by the row sums, against cancellation.
    gaps = np.sin((angle[:, None] + angle) / 2) * np.sin((angle[:, None] - angle) / 2)
    np.fill_diagonal(gaps, 1.0)
    derivative = barycentric / barycentric[:, None] / gaps
    np.fill_diagonal(derivative, 0.0)
    np.fill_diagonal(derivative, -derivative.sum(axis=1))
    # cos(k angle) integrates to combinations of cos((k +- 1) angle); variable z = cos(angle).
    cosines = np.cos(np.outer(angle, np.arange(degree + 2)))
    antiderivative = np.empty((degree + 1, degree + 1))
    antiderivative[:, 0] = cosines[:, 1]
    antiderivative[:, 1] = cosines[:, 2] / 4
    high = np.arange(2, degree + 1)
    antiderivative[:, 2:] = cosines[:, 3:] / (2 * (high + 1)) - cosines[:, 1:degree] / (
        2 * (high - 1)
    )
    # z falls from 1 to -1 as the node rises from 0 to 1.
    above = (antiderivative - antiderivative[-1]) / 2 @ np.linalg.inv(cosines[:, :-1])
    return Chebyshev(nodes, derivative, above, barycentric)


@dataclass(frozen=True)
class Radau:
    """The Radau IIA method on [-1, 1]: polynomials by their values at -1 and at the stages.

    Parameters
    ----------
    points : numpy.ndarray, shape (stages + 1,)
        -1, then the stages; the last one is 1.
    weights : numpy.ndarray, shape (stages,)
        Quadrature by the stages, exact to degree 2 stages - 2.
    derivative : numpy.ndarray, shape (stages, stages + 1)
        Values at the points to values of the derivative at the stages.
    barycentric : numpy.ndarray, shape (stages + 1,)
    """

    points: np.ndarray
    weights: np.ndarray
    derivative: np.ndarray
    barycentric: np.ndarray


@lru_cache(maxsize=8)
def radau(stages: int) -> Radau:
    """Return the Radau IIA method with a number of stages; its order is 2 stages - 1."""
    series = np.zeros(stages + 1)
    series[stages - 1 :] = -1.0, 1.0
    nodes = np.sort(legendre.legroots(series).real)
    nodes[-1] = 1.0
    moments = np.zeros(stages)
    moments[0] = 2.0
    weights = np.linalg.solve(legendre.legvander(nodes, stages - 1).T, moments)
    points = np.concatenate([[-1.0], nodes])
    gaps = points[:, None] - points
    np.fill_diagonal(gaps, 1.0)
    barycentric = 1.0 / gaps.prod(axis=1)
    derivative = barycentric / barycentric[:, None] / gaps
    np.fill_diagonal(derivative, 0.0)
    np.fill_diagonal(derivative, -derivative.sum(axis=1))
    return Radau(points, weights, derivative[1:], barycentric)


def barycentric_matrix(
    nodes: np.ndarray, barycentric: np.ndarray, points: np.ndarray
) -> np.ndarray:
    """Return the matrix from the values at the nodes to those at the points.

    Parameters
    ----------
    nodes, barycentric : numpy.ndarray, shape (node,)
    points : numpy.ndarray, any shape

    Returns
    -------
    numpy.ndarray, shape (..., node)
    """
    gaps = points[..., None] - nodes
    exact = gaps == 0.0
    gaps[exact] = 1.0
    matrix = barycentric / gaps
    matrix /= matrix.sum(axis=-1, keepdims=True)
    hit = exact.any(axis=-1)
    matrix[hit] = exact[hit]
    return np.asarray(matrix)
