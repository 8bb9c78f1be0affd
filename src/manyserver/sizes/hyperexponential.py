"""Hyperexponential sizes: short ones and long ones."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from manyserver.checks import checked_range
from manyserver.sizes.base import SizeLaw

__all__ = ["Hyperexponential"]

LARGEST_SCV = 1e6


@dataclass(frozen=True)
class Hyperexponential(SizeLaw):
    """One of two exponential laws, by chance; both bring half of the work (balanced means).

    Parameters
    ----------
    scv : float
        Squared coefficient of variation, from one to 1e6.
    mean : float
    """

    name: ClassVar[str] = "hyperexponential"
    title: ClassVar[str] = "hyperexponential"

    scv: float
    mean: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "scv", checked_range("scv", self.scv, 1.0, LARGEST_SCV))

    @property
    def weights(self) -> np.ndarray:
        """Probabilities of the two laws, the more frequent one first."""
        more = (1 + math.sqrt((self.scv - 1) / (self.scv + 1))) / 2
        return np.array([more, 1 - more])

    @property
    def means(self) -> np.ndarray:
        """Means of the two laws."""
        return self.mean / (2 * self.weights)

    def cdf(self, x: ArrayLike) -> np.ndarray:
        """Probability that a size is at most `x`."""
        scaled = self._clipped(x)[..., None] / self.means
        return np.asarray(-np.expm1(-scaled) @ self.weights)

    def sample(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Draw independent sizes."""
        return self._scale(rng, count, float(self.weights[0])) * rng.standard_exponential(count)

    def _scale(self, rng: np.random.Generator, count: int, first: float) -> np.ndarray:
        often, rare = self.means
        return np.asarray(np.where(rng.random(count) < first, often, rare))

    def length_biased_cdf(self, x: ArrayLike) -> np.ndarray:
        """Part of all work that is in jobs of size at most `x`."""
        scaled = self._clipped(x)[..., None] / self.means
        return np.asarray(1 - (np.exp(-scaled) * (1 + scaled)).mean(axis=-1))

    def sample_length_biased(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Draw sizes with probability in proportion to the size."""
        return self._scale(rng, count, 0.5) * rng.standard_gamma(2.0, count)

    def phases(self) -> tuple[np.ndarray, np.ndarray]:
        """Return a phase for each of the two laws."""
        return self.weights, -np.diag(1 / self.means)
