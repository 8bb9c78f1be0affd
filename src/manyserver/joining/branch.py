"""One branch of a sampling: what its draws together make of the joining law.

The law and its symbols are those of :mod:`manyserver.joining.law`.
"""

import math
from collections.abc import Sequence
from functools import cache, cached_property

import numpy as np

from manyserver.joining.draw import DrawLaw, by_inverse_size, power
from manyserver.model import System
from manyserver.policies import Branch, Draw

__all__ = ["BranchLaw", "occupancy"]

MOST_POLLS = 4000
"""Gauss' quadrature takes seconds for more."""


def occupancy(tails: np.ndarray) -> np.ndarray:
    """Fraction of a pool's servers with exactly k jobs, faster than by numpy.diff."""
    result = tails.copy()
    result[:, :-1] -= tails[:, 1:]
    return result


class BranchLaw:
    """The joining law of one branch, called as :class:`~manyserver.joining.law.JoiningLaw` is.

    Classes are numbered ``pool * levels + level``.

    Parameters
    ----------
    branch : Branch
        The draws, and the probability of this branch.
    system : System
        Gives the fractions of the pools.
    ranks : numpy.ndarray of int, shape (pool, level)
        The rank table of the policy.
    sizes : tuple of int, shape (pool,), or None
        Servers in each pool, to draw distinct ones from; None for the limit or replacement.
    """

    def __init__(
        self, branch: Branch, system: System, ranks: np.ndarray, sizes: tuple[int, ...] | None
    ):
        self.draws = branch.draws
        self.ranks = ranks
        fractions = system.fractions
        n_pools, self.levels = ranks.shape
        self.draw_of = np.full(n_pools, -1)
        for number, draw in enumerate(self.draws):
            self.draw_of[list(draw.pools)] = number
        shares = [fractions[list(draw.pools)].sum() for draw in self.draws]
        self.weights = np.array(
            [branch.probability / shares[number] if number >= 0 else 0.0 for number in self.draw_of]
        )
        self.fractions = fractions
        self.shares = shares
        # How many levels of each pool come before rank r, for every r and one more.
        every = np.arange(int(ranks.max()) + 2)
        self.before = np.stack([np.searchsorted(row, every, side="left") for row in ranks])
        self.sizes = (
            None if sizes is None else [sum(sizes[i] for i in draw.pools) for draw in self.draws]
        )
        self.nodes, self.node_weights = _quadrature(self.draws, self.ranks)
        self._entries = self._linear_maps()

    def _linear_maps(self) -> tuple[np.ndarray, ...]:
        """Where the tails enter each class: (class, tail, coefficient, variable).

        Variable 0 is the occupancy of the class, 1 + 2 h and 2 + 2 h are hi and lo of draw h at
        the rank of the class.
        """
        classes, tails, coefficients, variables = [], [], [], []

        def add(class_: np.ndarray, tail: np.ndarray, coefficient: float, variable: int) -> None:
            classes.append(class_)
            tails.append(tail)
            coefficients.append(np.full(len(class_), coefficient))
            variables.append(np.full(len(class_), variable))

        everything = np.arange(self.ranks.size)
        add(everything, everything, 1.0, 0)
        inner = everything[everything % self.levels < self.levels - 1]
        add(inner, inner + 1, -1.0, 0)
        for number, draw in enumerate(self.draws):
            for side in (0, 1):
                for pool in draw.pools:
                    level = self.before[pool][self.ranks.ravel() + side]
                    inside = level < self.levels
                    add(
                        everything[inside],
                        pool * self.levels + level[inside],
                        float(self.fractions[pool] / self.shares[number]),
                        1 + 2 * number + side,
                    )
        return tuple(np.concatenate(part) for part in (classes, tails, coefficients, variables))

    def _after(self, tails: np.ndarray) -> list[np.ndarray]:
        """Return the fraction of the servers of every draw that is of rank r or after, (rank,)."""
        padded = np.concatenate([tails, np.zeros((len(tails), 1))], axis=1)
        return [
            np.sum(
                [
                    self.fractions[pool] / share * padded[pool][self.before[pool]]
                    for pool in draw.pools
                ],
                axis=0,
            )
            for draw, share in zip(self.draws, self.shares, strict=True)
        ]

    def _draw_laws(self, tails: np.ndarray, order: int) -> list[list[DrawLaw]]:
        """Return the factor of every draw, for each draw that may hold the chosen server."""
        after = self._after(tails)
        sizes: Sequence[int | None] = self.sizes or [None] * len(self.draws)
        return [
            [
                power(x[:-1, None], x[1:, None], self.nodes, draw.count, number == chosen, n, order)
                for number, (draw, x, n) in enumerate(zip(self.draws, after, sizes, strict=True))
            ]
            for chosen in range(len(self.draws))
        ]

    def _density(self, laws: list[list[DrawLaw]], by: tuple[tuple[int, int], ...]) -> np.ndarray:
        """Differentiate the densities by the (draw, side)s in `by`, at most two of them."""
        per_draw = []
        for own in laws:
            parts = [law.value for law in own]
            for number, side in by:
                parts[number] = own[number].first[side]
            if len(by) == 2 and by[0][0] == by[1][0]:
                parts[by[0][0]] = own[by[0][0]].second[by[0][1]][by[1][1]]
            per_draw.append(math.prod(parts[1:], start=parts[0]) @ self.node_weights)
        rows = [
            self.weights[pool] * per_draw[number][self.ranks[pool]]
            if number >= 0
            else np.zeros(self.levels)
            for pool, number in enumerate(self.draw_of)
        ]
        return np.stack(rows)

    def densities(self, tails: np.ndarray) -> np.ndarray:
        """Return the densities, as far as they come from this branch."""
        return self._density(self._draw_laws(tails, order=0), by=())

    def log_densities(self, log_tails: np.ndarray) -> np.ndarray:
        """Return the logarithm of the densities."""
        if self.sizes is not None:
            raise ValueError("finite = True: must be False for logarithms of the joining law")
        padded = np.concatenate([log_tails, np.full((len(log_tails), 1), -np.inf)], axis=1)
        parts, above, below, weights = self._logs
        bases = []
        for draw, part in zip(self.draws, parts, strict=True):
            after = np.logaddexp.reduce(
                [
                    log + padded[pool][self.before[pool]]
                    for pool, log in zip(draw.pools, part, strict=True)
                ]
            )[:, None]
            bases.append(np.logaddexp(above + after[:-1], below + after[1:]))
        rows = np.full(self.ranks.shape, -np.inf)
        for pool, number in enumerate(self.draw_of):
            if number < 0:
                continue
            log_terms = weights[number]
            for other, (draw, base) in enumerate(zip(self.draws, bases, strict=True)):
                exponent = draw.count - (other == number)
                log_terms = log_terms + (exponent * base if exponent else 0.0)
            log_terms = np.broadcast_to(log_terms, bases[number].shape)
            density = np.logaddexp.reduce(log_terms, axis=1)
            rows[pool] = np.log(self.weights[pool]) + density[self.ranks[pool]]
        return rows

    @cached_property
    def _logs(self) -> tuple[list[np.ndarray], np.ndarray, np.ndarray, list[np.ndarray]]:
        """Logarithms of each pool's part of a draw, of nodes and their complements, of weights."""
        return (
            [
                np.log(self.fractions[list(draw.pools)] / share)
                for draw, share in zip(self.draws, self.shares, strict=True)
            ],
            np.log(self.nodes),
            np.log1p(-self.nodes),
            [np.log(self.node_weights * draw.count) for draw in self.draws],
        )

    def size_correction(self, tails: np.ndarray) -> np.ndarray:
        """Differentiate the densities by 1/N; draw h is from ``shares[h] * N`` servers."""
        after = self._after(tails)
        laws = [
            [
                by_inverse_size(x[:-1, None], x[1:, None], self.nodes, draw.count, number == chosen)
                for number, (draw, x) in enumerate(zip(self.draws, after, strict=True))
            ]
            for chosen in range(len(self.draws))
        ]
        slopes = [
            self._density(laws, by=((number, 0),)) / share
            for number, share in enumerate(self.shares)
        ]
        return np.asarray(sum(slopes))

    def _sides(self) -> list[tuple[int, int]]:
        return [(number, side) for number in range(len(self.draws)) for side in (0, 1)]

    def jacobian(self, tails: np.ndarray) -> np.ndarray:
        """Differentiate the probabilities by the tails, shape (class, class)."""
        laws = self._draw_laws(tails, order=1)
        mass = self.fractions[:, None] * occupancy(tails)
        slopes = [self.fractions[:, None] * self._density(laws, by=())]
        slopes += [mass * self._density(laws, by=(side,)) for side in self._sides()]
        n = self.ranks.size
        classes, columns, coefficients, variables = self._entries
        values = coefficients * np.stack(slopes).reshape(-1, n)[variables, classes]
        flat = np.bincount(classes * n + columns, weights=values, minlength=n * n)
        return flat.reshape(n, n)

    def hessian(self, tails: np.ndarray) -> np.ndarray:
        """Differentiate the probabilities twice, shape (class, class, class)."""
        maps = self._maps()
        bends = self._bends(tails)
        return np.asarray(np.einsum("vwc,vca,wcb->cab", bends, maps, maps, optimize=True))

    def curvature(self, tails: np.ndarray, covariance: np.ndarray) -> np.ndarray:
        """Sum the second derivatives times a covariance, shape (class,)."""
        maps = self._maps()
        spread = np.einsum("vca,wca->vwc", maps @ covariance, maps, optimize=True)
        return np.asarray((self._bends(tails) * spread).sum(axis=(0, 1)))

    def _maps(self) -> np.ndarray:
        """Return the linear maps from the tails to the variables, (variable, class, tail)."""
        n = self.ranks.size
        classes, columns, coefficients, variables = self._entries
        maps = np.zeros((1 + 2 * len(self.draws), n, n))
        np.add.at(maps, (variables, classes, columns), coefficients)
        return maps

    def _bends(self, tails: np.ndarray) -> np.ndarray:
        """Second derivatives by the variables of each class, (variable, variable, class)."""
        laws = self._draw_laws(tails, order=2)
        mass = self.fractions[:, None] * occupancy(tails)
        sides = self._sides()
        bends = np.zeros((1 + len(sides), 1 + len(sides), self.ranks.size))
        for a, first in enumerate(sides, start=1):
            slope = self.fractions[:, None] * self._density(laws, by=(first,))
            bends[0, a] = bends[a, 0] = slope.ravel()
            for b, second in enumerate(sides[:a], start=1):
                bend = mass * self._density(laws, by=(first, second))
                bends[a, b] = bends[b, a] = bend.ravel()
        return bends


def _quadrature(draws: tuple[Draw, ...], ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on [0, 1] that integrate every polynomial of the law exactly."""
    own = [set(ranks[list(draw.pools)].ravel()) for draw in draws]
    apart = all(
        own[i].isdisjoint(own[j]) for i in range(len(draws)) for j in range(i + 1, len(draws))
    )
    counts = [draw.count for draw in draws]
    degree = (max(counts) if apart else sum(counts)) - 1
    if degree >= MOST_POLLS:
        raise ValueError(
            f"d = {counts}: an arrival looks at {degree + 1} servers; must be at most {MOST_POLLS} "
            "for the joining law. JSQ and SED without d look at all"
        )
    return _gauss(degree // 2 + 1)


@cache
def _gauss(points: int) -> tuple[np.ndarray, np.ndarray]:
    nodes, weights = np.polynomial.legendre.leggauss(points)
    return (1 + nodes) / 2, weights / 2
