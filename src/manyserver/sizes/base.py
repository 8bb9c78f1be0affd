"""What the law of the job size is: moments, distribution, samples, and what is left of a job.

Beside the law itself, a simulation needs what a server works on at a random time. That job was
drawn with probability in proportion to its size, the *length-biased* law
``P(X* <= x) = E[X; X <= x] / E[X]``, and a uniform part of it is left, the *residual* law
``P(R > x) = E[(X - x)+] / E[X]``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import fields
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from manyserver.checks import checked_range

__all__ = ["SizeLaw", "invert"]

BISECTIONS = 200
SMALLEST_MEAN, LARGEST_MEAN = 1e-100, 1e100
"""So that no moment that is needed is too large for floating point, nor a size zero."""
LARGEST = 1e300
"""No quantile is sought beyond."""
FAR = 1e100
"""In mean sizes: hardly any job is larger."""


class SizeLaw(ABC):
    """A law of the job size.

    A subclass is a frozen dataclass whose fields are the law's parameters, `mean` among them, and
    `scv`, which is no parameter if it follows from them; it has a `name` and a `title`. Every
    function takes an object of it; by its name it is found if a module in this package, or an entry
    point, defines it (:mod:`manyserver.registry`).

    Attributes
    ----------
    mean : float
        Mean size, from 1e-100 to 1e100.
    scv : float
        Squared coefficient of variation, the variance over the squared mean; may be infinite.
    variance : float
        May be infinite.
    tail_index : float
        Moments of every smaller order are finite, and no others; infinite if all are.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    mean: float
    scv: float

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "mean", checked_range("mean", self.mean, SMALLEST_MEAN, LARGEST_MEAN)
        )

    @property
    def variance(self) -> float:
        """Variance."""
        return self.scv * self.mean**2

    @property
    def tail_index(self) -> float:
        """Moments of every smaller order are finite."""
        return math.inf

    def has_moment(self, order: float) -> bool:
        """Whether the moment of an order is finite.

        Examples
        --------
        >>> import manyserver as ms
        >>> ms.size_law("pareto", shape=2).has_moment(2)
        False
        """
        return order < self.tail_index

    @abstractmethod
    def cdf(self, x: ArrayLike) -> np.ndarray:
        """Probability that a size is at most `x`, of the same shape."""

    @abstractmethod
    def length_biased_cdf(self, x: ArrayLike) -> np.ndarray:
        """Part of all work that is in jobs of size at most `x`, of the same shape."""

    def _clipped(self, x: ArrayLike) -> np.ndarray:
        """Return `x`, at least zero, and not so large that computing with it overflows."""
        return np.asarray(np.clip(np.asarray(x, dtype=float), 0.0, FAR * self.mean))

    def quantile(self, probability: ArrayLike) -> np.ndarray:
        """Smallest size x with ``cdf(x) >= probability``, which lies in [0, 1)."""
        return invert(self.cdf, probability, self.mean)

    def sample(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Draw independent sizes, shape (count,)."""
        return self.quantile(rng.random(count))

    @abstractmethod
    def sample_length_biased(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Draw sizes with probability in proportion to the size, shape (count,)."""

    def residual_cdf(self, x: ArrayLike) -> np.ndarray:
        """Probability that at most `x` is left of the job in service at a random time."""
        x = self._clipped(x)
        left = (1 - self.length_biased_cdf(x)) - x / self.mean * (1 - self.cdf(x))
        return np.asarray(np.clip(1 - left, 0.0, 1.0))

    def residual_quantile(self, probability: ArrayLike) -> np.ndarray:
        """Invert :meth:`residual_cdf` at probabilities in [0, 1)."""
        return invert(self.residual_cdf, probability, self.mean)

    def sample_residual(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Draw what is left of jobs in service at a random time, shape (count,)."""
        return self.sample_length_biased(rng, count) * rng.random(count)

    def phases(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return (alpha, T) if the law is of phase type, shapes (phase,), (phase, phase).

        A job starts in a phase drawn from alpha; T holds the rates between phases, and minus the
        rate of leaving each on its diagonal.
        """
        return None

    @classmethod
    def parameter_names(cls) -> tuple[str, ...]:
        """Return the names of the parameters."""
        return tuple(field.name for field in fields(cls) if field.init)  # type: ignore[arg-type]

    @property
    def parameters(self) -> dict[str, object]:
        """The parameters by name, as plain JSON values, in alphabetical order."""
        return {name: _plain(getattr(self, name)) for name in sorted(self.parameter_names())}


def _plain(value: object) -> object:
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def invert(cdf: object, probability: ArrayLike, scale: float) -> np.ndarray:
    """Find the smallest x >= 0 with ``cdf(x) >= probability`` by bisection, to rounding.

    Parameters
    ----------
    cdf : callable
        Non-decreasing, of an array.
    probability : array_like
        In [0, 1).
    scale : float
        About the size of a result.
    """
    wanted = np.asarray(probability, dtype=float)
    if not ((wanted >= 0) & (wanted < 1)).all():
        raise ValueError(f"probability = {probability!r}: must lie in [0, 1)")
    flat = wanted.ravel()
    low, high = np.zeros_like(flat), np.full_like(flat, scale)
    short = cdf(high) < flat  # type: ignore[operator]
    while short.any():
        low[short] = high[short]
        high[short] *= 2
        short[short] = cdf(high[short]) < flat[short]  # type: ignore[operator]
        short &= high < LARGEST
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if ((middle <= low) | (middle >= high)).all():
            break
        below = cdf(middle) < flat  # type: ignore[operator]
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return high.reshape(wanted.shape)
