"""Sizes whose tail is a power."""

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from manyserver.checks import checked_range
from manyserver.sizes.base import SizeLaw

__all__ = ["Pareto"]

SMALLEST_SHAPE, LARGEST_SHAPE = 1.1, 1e6
"""With a smaller one what is left of a job is beyond what floating point can do."""


@dataclass(frozen=True)
class Pareto(SizeLaw):
    """Pareto's law: ``P(X > x) = (smallest / x)**shape`` from the smallest size on.

    Parameters
    ----------
    shape : float
        From 1.1 to 1e6. Moments of smaller orders are finite: up to shape 2 the variance is not.
    mean : float
    """

    name: ClassVar[str] = "pareto"
    title: ClassVar[str] = "Pareto"

    shape: float
    mean: float = 1.0
    scv: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(
            self, "shape", checked_range("shape", self.shape, SMALLEST_SHAPE, LARGEST_SHAPE)
        )
        scv = 1 / (self.shape * (self.shape - 2)) if self.shape > 2 else math.inf
        object.__setattr__(self, "scv", scv)

    @property
    def smallest(self) -> float:
        """Smallest size."""
        return self.mean * (self.shape - 1) / self.shape

    @property
    def tail_index(self) -> float:
        """The shape."""
        return self.shape

    def _cdf(self, x: ArrayLike, shape: float) -> np.ndarray:
        ratio = self.smallest / np.maximum(x, self.smallest)
        return np.asarray(1 - ratio**shape)

    def cdf(self, x: ArrayLike) -> np.ndarray:
        """Probability that a size is at most `x`."""
        return self._cdf(x, self.shape)

    def quantile(self, probability: ArrayLike) -> np.ndarray:
        """Smallest size x with ``cdf(x) >= probability``."""
        left = 1 - np.asarray(probability, dtype=float)
        return np.asarray(self.smallest * left ** (-1 / self.shape))

    def sample(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Draw independent sizes."""
        return self._sample(rng, count, self.shape)

    def _sample(self, rng: np.random.Generator, count: int, shape: float) -> np.ndarray:
        return self.smallest * np.exp(rng.standard_exponential(count) / shape)

    def length_biased_cdf(self, x: ArrayLike) -> np.ndarray:
        """Part of all work that is in jobs of size at most `x`: Pareto, with a shape less one."""
        return self._cdf(x, self.shape - 1)

    def sample_length_biased(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Draw sizes with probability in proportion to the size."""
        return self._sample(rng, count, self.shape - 1)
