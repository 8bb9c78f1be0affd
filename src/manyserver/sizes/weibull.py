"""Weibull sizes."""

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import scipy
from numpy.typing import ArrayLike

from manyserver.checks import checked_range
from manyserver.sizes.base import SizeLaw

__all__ = ["Weibull"]

SMALLEST_SHAPE, LARGEST_SHAPE = 0.05, 1e4
"""Beyond, the variance is more than floating point can do."""


@dataclass(frozen=True)
class Weibull(SizeLaw):
    """Weibull's law: ``P(X > x) = exp(-(x / scale)**shape)``.

    Parameters
    ----------
    shape : float
        From 0.05 to 1e4; the tail is heavier than an exponential one below one.
    mean : float
    """

    name: ClassVar[str] = "weibull"
    title: ClassVar[str] = "Weibull"

    shape: float
    mean: float = 1.0
    scv: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(
            self, "shape", checked_range("shape", self.shape, SMALLEST_SHAPE, LARGEST_SHAPE)
        )
        moments = [math.gamma(1 + order / self.shape) for order in (1, 2)]
        object.__setattr__(self, "scv", moments[1] / moments[0] ** 2 - 1)

    @property
    def scale(self) -> float:
        """Scale of the sizes."""
        return self.mean / math.gamma(1 + 1 / self.shape)

    def _power(self, x: ArrayLike) -> np.ndarray:
        with np.errstate(over="ignore"):
            return np.asarray((self._clipped(x) / self.scale) ** self.shape)

    def cdf(self, x: ArrayLike) -> np.ndarray:
        """Probability that a size is at most `x`."""
        return np.asarray(-np.expm1(-self._power(x)))

    def quantile(self, probability: ArrayLike) -> np.ndarray:
        """Smallest size x with ``cdf(x) >= probability``."""
        left = -np.log1p(-np.asarray(probability, dtype=float))
        return np.asarray(self.scale * left ** (1 / self.shape))

    def sample(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Draw independent sizes."""
        return self.scale * rng.standard_exponential(count) ** (1 / self.shape)

    def length_biased_cdf(self, x: ArrayLike) -> np.ndarray:
        """Part of all work that is in jobs of size at most `x`."""
        return np.asarray(scipy.special.gammainc(1 + 1 / self.shape, self._power(x)))

    def sample_length_biased(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Draw sizes with probability in proportion to the size."""
        power = rng.standard_gamma(1 + 1 / self.shape, count)
        return np.asarray(self.scale * power ** (1 / self.shape))
