"""Sizes that are all equal."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from manyserver.sizes.base import SizeLaw

__all__ = ["Deterministic"]


@dataclass(frozen=True)
class Deterministic(SizeLaw):
    """All jobs have the same size.

    Parameters
    ----------
    mean : float
        That size.
    """

    name: ClassVar[str] = "deterministic"
    title: ClassVar[str] = "constant"

    mean: float = 1.0
    scv: float = field(default=0.0, init=False, repr=False)

    def cdf(self, x: ArrayLike) -> np.ndarray:
        """Probability that a size is at most `x`."""
        return np.asarray(np.asarray(x, dtype=float) >= self.mean, dtype=float)

    def quantile(self, probability: ArrayLike) -> np.ndarray:
        """Return the size, whatever the probability."""
        return np.full(np.shape(probability), self.mean)

    def sample(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Repeat the size."""
        return np.full(count, self.mean)

    def length_biased_cdf(self, x: ArrayLike) -> np.ndarray:
        """Part of all work that is in jobs of size at most `x`."""
        return self.cdf(x)

    def sample_length_biased(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Repeat the size."""
        return np.full(count, self.mean)
