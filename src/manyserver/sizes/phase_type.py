"""Phase-type sizes: the time until a Markov chain is absorbed."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from manyserver.checks import is_real
from manyserver.sizes.absorption import Absorption
from manyserver.sizes.base import FAR, SizeLaw

__all__ = ["PhaseType"]

ROUNDING = 1e-9
SMALLEST_RATE, LARGEST_RATE = 1e-100, 1e100


@dataclass(frozen=True)
class PhaseType(SizeLaw):
    """The time until absorption of a chain that starts in `alpha` and moves at the rates `T`.

    Parameters
    ----------
    alpha : sequence of float, shape (phase,)
        Law of the first phase; sums to one.
    T : sequence of sequence of float, shape (phase, phase)
        Rates between phases, and on the diagonal minus the rate of leaving the phase; rows sum
        to zero or less, the rest being the rate of absorption. All are from 1e-100 to 1e100, and
        the fastest times the longest mean time to absorption is at most 1e5.
    mean : float, optional
        Scales the rates to this mean; they are taken as they are if it is None.
    """

    name: ClassVar[str] = "phase_type"
    title: ClassVar[str] = "phase type"

    alpha: tuple[float, ...]
    T: tuple[tuple[float, ...], ...]
    mean: float = None  # type: ignore[assignment]
    scv: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        alpha, rates = _checked_start(self.alpha), _checked_rates(self.T, len(self.alpha))
        given = Absorption(alpha, rates).mean
        wanted: object = self.mean
        if wanted is None:
            object.__setattr__(self, "mean", given)
        super().__post_init__()
        if abs(self.mean - given) > ROUNDING * given:
            rates = rates * (given / self.mean)
        object.__setattr__(self, "alpha", tuple(map(float, alpha)))
        object.__setattr__(self, "T", tuple(tuple(map(float, row)) for row in rates))
        object.__setattr__(self, "scv", self._chain.variance / self._chain.mean**2)

    @cached_property
    def _chain(self) -> Absorption:
        return Absorption(*self.phases())

    @cached_property
    def _residual(self) -> Absorption:
        """What is left at a random time: the same chain, started in its time averages."""
        alpha, rates = self.phases()
        return Absorption(np.linalg.solve(-rates.T, alpha) / self._chain.mean, rates)

    def cdf(self, x: ArrayLike) -> np.ndarray:
        """Probability that a size is at most `x`."""
        return self._chain.cdf(np.minimum(x, FAR * self.mean))

    def sample(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Draw independent sizes."""
        return self._chain.sample(rng, count)

    def residual_cdf(self, x: ArrayLike) -> np.ndarray:
        """Probability that at most `x` is left of the job in service at a random time."""
        return self._residual.cdf(np.minimum(x, FAR * self.mean))

    def sample_residual(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Draw what is left of jobs in service at a random time."""
        return self._residual.sample(rng, count)

    def length_biased_cdf(self, x: ArrayLike) -> np.ndarray:
        """Part of all work that is in jobs of size at most `x`."""
        x = self._clipped(x)
        part = self.residual_cdf(x) - x / self.mean * (1 - self.cdf(x))
        return np.asarray(np.clip(part, 0.0, 1.0))

    def sample_length_biased(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Draw sizes with probability in proportion to the size."""
        # The attained and the residual service at a random time share the phase; the attained one
        # is that of the chain run backwards.
        alpha, rates = self.phases()
        stay = np.linalg.solve(-rates.T, alpha)
        reached = stay > 0
        alpha, rates, stay = alpha[reached], rates[reached][:, reached], stay[reached]
        backwards = rates.T * stay / stay[:, None]
        phase = rng.choice(len(alpha), count, p=stay / stay.sum())
        before = Absorption(np.eye(len(alpha))[0], backwards).sample_from(rng, phase)
        return np.asarray(before + Absorption(alpha, rates).sample_from(rng, phase))

    def phases(self) -> tuple[np.ndarray, np.ndarray]:
        """Return alpha and T."""
        return np.array(self.alpha), np.array(self.T)


def _checked_start(value: object) -> np.ndarray:
    message = f"alpha = {value!r}: must be numbers in [0, 1] that sum to 1, one for each phase"
    alpha = _numbers(value, message)
    if alpha.ndim != 1 or not len(alpha) or not (alpha >= 0).all():
        raise ValueError(message)
    if abs(alpha.sum() - 1) > ROUNDING:
        raise ValueError(message)
    return np.asarray(alpha / alpha.sum())


def _checked_rates(value: object, phases: int) -> np.ndarray:
    message = (
        f"T = {value!r}: must have shape ({phases}, {phases}), rates >= 0 off its diagonal, and "
        "rows that sum to 0 or less"
    )
    rates = _numbers(value, message)
    if rates.shape != (phases, phases):
        raise ValueError(message)
    off = rates - np.diag(np.diag(rates))
    sizes = np.abs(rates[rates != 0])
    if not ((sizes >= SMALLEST_RATE) & (sizes <= LARGEST_RATE)).all():
        raise ValueError(f"T = {value!r}: rates must be from {SMALLEST_RATE:g} to {LARGEST_RATE:g}")
    if not (off >= 0).all() or (rates.sum(axis=1) > ROUNDING * np.abs(rates).max()).any():
        raise ValueError(message)
    return rates


def _numbers(value: object, message: str) -> np.ndarray:
    if isinstance(value, str) or not isinstance(value, (Sequence, np.ndarray)):
        raise ValueError(message)
    items = np.array(value, dtype=object)
    if not all(map(is_real, items.flat)):
        raise ValueError(message)
    numbers = items.astype(float)
    if not np.isfinite(numbers).all():
        raise ValueError(message)
    return numbers.astype(float)
