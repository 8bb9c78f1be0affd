"""Erlang sizes: sums of exponential ones."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import scipy
from numpy.typing import ArrayLike

from manyserver.checks import checked_count
from manyserver.sizes.base import SizeLaw

__all__ = ["Erlang"]

LARGEST_SHAPE = 1000


@dataclass(frozen=True)
class Erlang(SizeLaw):
    """The sum of `shape` independent exponential times.

    Parameters
    ----------
    shape : int
        From one to 1000; the squared coefficient of variation is ``1 / shape``.
    mean : float
    """

    name: ClassVar[str] = "erlang"
    title: ClassVar[str] = "Erlang"

    shape: int
    mean: float = 1.0
    scv: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "shape", checked_count("shape", self.shape, most=LARGEST_SHAPE))
        object.__setattr__(self, "scv", 1 / self.shape)

    def cdf(self, x: ArrayLike) -> np.ndarray:
        """Probability that a size is at most `x`."""
        return self._gamma_cdf(self.shape, x)

    def _gamma_cdf(self, shape: int, x: ArrayLike) -> np.ndarray:
        return np.asarray(scipy.special.gammainc(shape, self.shape / self.mean * self._clipped(x)))

    def quantile(self, probability: ArrayLike) -> np.ndarray:
        """Smallest size x with ``cdf(x) >= probability``."""
        part = np.asarray(probability, dtype=float)
        return np.asarray(self.mean / self.shape * scipy.special.gammaincinv(self.shape, part))

    def sample(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Draw independent sizes."""
        return self.mean / self.shape * rng.standard_gamma(self.shape, count)

    def length_biased_cdf(self, x: ArrayLike) -> np.ndarray:
        """Part of all work that is in jobs of size at most `x`."""
        return self._gamma_cdf(self.shape + 1, x)

    def sample_length_biased(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Draw sizes with probability in proportion to the size."""
        return self.mean / self.shape * rng.standard_gamma(self.shape + 1, count)

    def phases(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the phases, one after another."""
        rate = self.shape / self.mean
        start = np.zeros(self.shape)
        start[0] = 1.0
        return start, rate * (np.eye(self.shape, k=1) - np.eye(self.shape))
