r"""The stationary density, marched down in Y2 from the exact balance on the boundary.

Notation: q(x, y) = y p(x, y) with p the joint density, nu(y) the density of the boundary measure,
s = -log y. Y2 falls at rate Y2 except when Y1 = 0 pushes it up, so that s is a time in which

    q_s = q_xx + ((beta + x - y) q)_x + gamma q,    q(0, y) = y nu(y),
    nu_s = q_x(0, y) + y (beta - y) nu,

a parabolic equation: the basic adjoint relation of arXiv:1801.05121 (section 5), read as an
evolution. For gamma = 0 the flow up through level y equals the flow down, int q dx = nu, and that
is imposed in place of the last equation. The solution forgets its start at a rate of about y^2/4.
With gamma > 0 the same equations give the measures that decay like exp(-gamma t).

Polynomials in x on [-length(y), 0], where everything but exp(-36) of the law lies, and Radau IIA
steps in s, both of high order. A factor exp(-rate y) is taken out of both unknowns.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from manyserver.diffusion.halfin_whitt.limit.nodes import Chebyshev, Radau, chebyshev, radau

__all__ = ["Profile", "Resolution", "march"]

NEGLIGIBLE = 36.0
"""Minus the logarithm of what is left out at the far end in x."""
HIGHEST = 240.0
"""The march starts at y = HIGHEST / beta."""
STEP = 0.35
"""Longest step of s."""


@dataclass(frozen=True)
class Resolution:
    """Degree of the polynomials in x, and stages of a step."""

    degree: int
    stages: int


@dataclass(frozen=True)
class Profile:
    """Solution at all stages of a march, from large y to small.

    Parameters
    ----------
    beta, rate : float
        Unknowns are those of the module times exp(rate y).
    x_basis : Chebyshev
        Column i of `flow` belongs to x = -length * x_basis.nodes[i].
    step_basis : Radau
    y, weights, length : numpy.ndarray, shape (stage,)
        Level, quadrature weight in s, and length of the interval in x.
    boundary : numpy.ndarray, shape (stage,)
        nu, scaled.
    flow : numpy.ndarray, shape (stage, node)
        q, scaled.
    edges : numpy.ndarray, shape (step + 1,)
        Values of s between the steps.
    """

    beta: float
    rate: float
    x_basis: Chebyshev
    step_basis: Radau
    y: np.ndarray
    weights: np.ndarray
    length: np.ndarray
    boundary: np.ndarray
    flow: np.ndarray
    edges: np.ndarray

    @property
    def scale(self) -> np.ndarray:
        """exp(-rate y) at the stages."""
        scale: np.ndarray = np.exp(-self.rate * self.y)
        return scale


def length(y: np.ndarray, beta: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the length of the interval in x, and d log(length) / ds.

    Given Y2 = y, the density of Y1 falls at least like exp(-z^2 / 2 - z (y - beta)), z = -x.
    """
    drift = y - beta
    root = np.sqrt(drift**2 + 2 * NEGLIGIBLE)
    return np.where(drift > 0, 2 * NEGLIGIBLE / (root + drift), root - drift), y / root


def march(
    beta: float,
    resolution: Resolution,
    lowest: float,
    *,
    decay: float = 0.0,
    rate: float | None = None,
    source: np.ndarray | None = None,
) -> Profile:
    """March from y = 240 / beta down to `lowest`.

    Parameters
    ----------
    beta : float
        Spare capacity, > 0.
    resolution : Resolution
    lowest : float
        Level at which to stop.
    decay : float, optional
        gamma of the module's equations.
    rate : float, optional
        Decay of nu in y, beta by default.
    source : numpy.ndarray, shape (stage, node), optional
        Added to the right-hand side of the first equation, scaled like q. The solution then
        starts from zero, and the balance across levels is not imposed.

    Returns
    -------
    Profile
        Not normalised.
    """
    basis, steps = chebyshev(resolution.degree), radau(resolution.stages)
    rate = beta if rate is None else rate
    start, stop = -np.log(HIGHEST / beta), -np.log(lowest)
    edges = np.linspace(start, stop, int(np.ceil((stop - start) / STEP)) + 1)
    unknown = _guess(beta, HIGHEST / beta, basis)
    if source is not None:
        unknown = np.zeros_like(unknown)
    levels, solutions = [], []
    for number, (low, high) in enumerate(pairwise(edges)):
        y = np.exp(-(low + (high - low) * (steps.points[1:] + 1) / 2))
        operator, mass = _operator(y, beta, decay, rate, basis)
        conserved = mass if decay == 0.0 and source is None else None
        right = np.zeros(operator.shape[:2])
        if source is not None:
            stages = slice(number * len(y), (number + 1) * len(y))
            right[:, 1:] = source[stages, 1:-1]
        solution = _step(unknown, operator, conserved, 2 / (high - low) * steps.derivative, right)
        unknown = solution[-1]
        levels.append(y)
        solutions.append(solution)
    y, values = np.concatenate(levels), np.concatenate(solutions)
    flow = np.pad(values, ((0, 0), (0, 1)))
    weights = (np.diff(edges)[:, None] / 2 * steps.weights).ravel()
    return Profile(
        beta, rate, basis, steps, y, weights, length(y, beta)[0], values[:, 0] / y, flow, edges
    )


def _guess(beta: float, y: float, basis: Chebyshev) -> np.ndarray:
    """Start from the quasi-stationary law for large y; the unknown at x = 0 is q(0, y)."""
    size = length(np.array(y), beta)[0]
    guess: np.ndarray = y * np.exp(-y * size * basis.nodes[:-1])
    return guess


def _operator(
    y: np.ndarray, beta: float, decay: float, rate: float, basis: Chebyshev
) -> tuple[np.ndarray, np.ndarray]:
    """Right-hand sides at the stages, and the coefficients of int q dx - nu = 0.

    The unknown at node 0 is q(0, y) = y nu, so that its equation is that of nu, times y, less q.
    """
    inner = slice(1, -1)
    size, growth = (a[:, None] for a in length(y, beta))
    x = -size * basis.nodes
    level = y[:, None]
    first = basis.derivative
    advection = (beta + x * (1 + growth) - level) / size
    matrix = np.empty((len(y), len(first) - 1, len(first) - 1))
    matrix[:, 1:] = (first @ first)[inner, :-1] / size[:, :, None] ** 2
    matrix[:, 1:] -= advection[:, inner, None] * first[inner, :-1]
    matrix[:, 0] = -level / size * first[0, :-1]
    node = np.arange(len(first) - 1)
    shift = np.broadcast_to(1 + decay - rate * level, (len(y), len(node))).copy()
    shift[:, 0] = y * (beta - y) - rate * y - 1
    matrix[:, node, node] += shift
    mass = size * basis.weights[:-1]
    mass[:, 0] -= 1 / y
    return matrix, mass


def _step(
    start: np.ndarray,
    operator: np.ndarray,
    mass: np.ndarray | None,
    derivative: np.ndarray,
    source: np.ndarray,
) -> np.ndarray:
    """Solve one step for all its stages; with `mass`, that equation replaces the first."""
    stages, nodes = operator.shape[:2]
    node = np.arange(nodes)
    blocks = np.zeros((stages, stages, nodes, nodes))
    blocks[:, :, node, node] = derivative[:, 1:, None]
    stage = np.arange(stages)
    blocks[stage, stage] -= operator
    right = source - derivative[:, :1] * start
    if mass is not None:
        blocks[:, :, 0] = 0.0
        blocks[stage, stage, 0] = mass
        right[:, 0] = 0.0
    # Rows differ in size by 1e8.
    scale = 1.0 / np.abs(blocks).max(axis=(1, 3))
    return _solve(blocks * scale[:, None, :, None], right * scale)


def _solve(blocks: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve by elimination of blocks, with one refinement; (stage, stage, node, node).

    Blocks are small enough for BLAS to stay in one thread, where several only wait for each
    other. Those beside the diagonal are diagonal themselves, so that the first column needs no
    products of matrices.
    """
    stages = len(blocks)
    beside = np.einsum("jkaa->jka", blocks)
    upper = blocks.copy()
    inverses = [np.linalg.inv(upper[0, 0])]
    upper[1:, 0] = beside[1:, 0, :, None] * inverses[0]
    upper[1:, 1:] -= upper[1:, None, 0] * beside[None, 0, 1:, None, :]
    for k in range(1, stages):
        inverses.append(np.linalg.inv(upper[k, k]))
        upper[k + 1 :, k] = upper[k + 1 :, k] @ inverses[k]
        upper[k + 1 :, k + 1 :] -= upper[k + 1 :, None, k] @ upper[None, k, k + 1 :]
    solution, rest = np.zeros_like(right), right.copy()
    for again in (True, False):
        for k in range(stages):
            rest[k + 1 :] -= upper[k + 1 :, k] @ rest[k]
        for k in range(stages - 1, -1, -1):
            rest[k] = inverses[k] @ rest[k]
            rest[:k] -= upper[:k, k] @ rest[k]
        solution += rest
        if again:
            rest = right - np.einsum("jkab,kb->ja", blocks, solution)
    return solution
