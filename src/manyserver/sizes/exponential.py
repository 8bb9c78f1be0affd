"""Exponential sizes."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from manyserver.sizes.base import SizeLaw

__all__ = ["Exponential"]


@dataclass(frozen=True)
class Exponential(SizeLaw):
    """Exponential sizes: what is left of a job does not depend on what was done.

    Parameters
    ----------
    mean : float
    """

    name: ClassVar[str] = "exponential"
    title: ClassVar[str] = "exponential"

    mean: float = 1.0
    scv: float = field(default=1.0, init=False, repr=False)

    def cdf(self, x: ArrayLike) -> np.ndarray:
        """Probability that a size is at most `x`."""
        return np.asarray(-np.expm1(-self._clipped(x) / self.mean))

    def quantile(self, probability: ArrayLike) -> np.ndarray:
        """Smallest size x with ``cdf(x) >= probability``."""
        return np.asarray(-self.mean * np.log1p(-np.asarray(probability, dtype=float)))

    def sample(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Draw independent sizes."""
        return self.mean * rng.standard_exponential(count)

    def length_biased_cdf(self, x: ArrayLike) -> np.ndarray:
        """Part of all work that is in jobs of size at most `x`."""
        scaled = self._clipped(x) / self.mean
        return np.asarray(1 - np.exp(-scaled) * (1 + scaled))

    def sample_length_biased(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Draw sizes with probability in proportion to the size."""
        return self.mean * rng.standard_gamma(2.0, count)

    def phases(self) -> tuple[np.ndarray, np.ndarray]:
        """Return one phase."""
        return np.ones(1), np.full((1, 1), -1 / self.mean)
