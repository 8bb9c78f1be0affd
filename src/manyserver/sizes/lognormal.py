"""Lognormal sizes."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy
from numpy.typing import ArrayLike

from manyserver.checks import checked_range
from manyserver.sizes.base import SizeLaw

__all__ = ["Lognormal"]

SMALLEST_SCV, LARGEST_SCV = 1e-12, 1e12


@dataclass(frozen=True)
class Lognormal(SizeLaw):
    """Sizes whose logarithm is normal.

    Parameters
    ----------
    scv : float
        Squared coefficient of variation, from 1e-12 to 1e12.
    mean : float
    """

    name: ClassVar[str] = "lognormal"
    title: ClassVar[str] = "lognormal"

    scv: float
    mean: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "scv", checked_range("scv", self.scv, SMALLEST_SCV, LARGEST_SCV))

    @property
    def sigma(self) -> float:
        """Standard deviation of the logarithm."""
        return math.sqrt(math.log1p(self.scv))

    @property
    def mu(self) -> float:
        """Mean of the logarithm."""
        return math.log(self.mean) - self.sigma**2 / 2

    def _cdf(self, x: ArrayLike, mu: float) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.asarray(scipy.special.ndtr((np.log(self._clipped(x)) - mu) / self.sigma))

    def cdf(self, x: ArrayLike) -> np.ndarray:
        """Probability that a size is at most `x`."""
        return self._cdf(x, self.mu)

    def quantile(self, probability: ArrayLike) -> np.ndarray:
        """Smallest size x with ``cdf(x) >= probability``."""
        part = np.asarray(probability, dtype=float)
        return np.asarray(np.exp(self.mu + self.sigma * scipy.special.ndtri(part)))

    def sample(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Draw independent sizes."""
        return rng.lognormal(self.mu, self.sigma, count)

    def length_biased_cdf(self, x: ArrayLike) -> np.ndarray:
        """Part of all work that is in jobs of size at most `x`: again a lognormal law."""
        return self._cdf(x, self.mu + self.sigma**2)

    def sample_length_biased(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Draw sizes with probability in proportion to the size."""
        return rng.lognormal(self.mu + self.sigma**2, self.sigma, count)
