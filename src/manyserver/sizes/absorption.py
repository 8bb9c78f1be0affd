r"""The time until a Markov chain is absorbed: phase-type laws as numbers.

With the start :math:`\alpha` and the rates T between the phases, the time S until absorption has
the moments :math:`E S = \alpha (-T)^{-1} 1` and :math:`E S^2 = 2 \alpha T^{-2} 1`. Its tail
:math:`\alpha e^{T x} 1` is a sum of positive terms after uniformisation: with q at least the rates
of leaving and P = 1 + T / q, it is the mean of :math:`\alpha P^n 1` over n with the Poisson law of
mean q x.
"""

import math

import numpy as np
import scipy
from numpy.typing import ArrayLike

__all__ = ["Absorption"]

MOST_STEPS = 1e5
"""Mean number of steps to absorption; the tail takes some forty times as many."""
LEFT_OUT = 1e-16
"""Steps after which no more than this part is left are left out."""
MOST_ENTRIES = 4_000_000
"""Of a table of Poisson probabilities."""
DEVIATIONS = 9.0
"""Standard deviations of the number of steps that are summed over, to each side."""


class Absorption:
    """The time until a chain is absorbed.

    Parameters
    ----------
    alpha : numpy.ndarray, shape (phase,)
        Law of the first phase; what is missing to one is absorbed at once.
    rates : numpy.ndarray, shape (phase, phase)
        Rates between phases; on the diagonal minus the rate of leaving.

    Attributes
    ----------
    mean, variance : float

    Raises
    ------
    ValueError
        If the chain can stay away from absorption for ever, or for too many steps.
    """

    def __init__(self, alpha: np.ndarray, rates: np.ndarray):
        self.alpha, self.rates = alpha, rates
        try:
            first = np.linalg.solve(-rates, np.ones(len(alpha)))
        except np.linalg.LinAlgError:
            first = np.full(len(alpha), -1.0)
        if not (first > 0).all():
            raise ValueError(f"T = {rates.tolist()}: must lead to absorption from every phase")
        steps = float(-np.diag(rates).min() * first.max())
        if steps > MOST_STEPS:
            raise ValueError(
                f"T = {rates.tolist()}: fastest rate times longest mean time to absorption is "
                f"{steps:.3g}; must be at most {MOST_STEPS:g}"
            )
        second = np.linalg.solve(-rates, first)
        self.mean = float(alpha @ first)
        self.variance = float(2 * (alpha @ second) - self.mean**2)
        self._rate = float(-np.diag(rates).min())
        self._left: list[float] = []
        self._now = alpha

    def _left_after(self, steps: int) -> np.ndarray:
        """Probability that the chain is not absorbed after 0, 1, ... steps, until it nearly is."""
        move = np.eye(len(self.alpha)) + self.rates / self._rate
        while len(self._left) < steps and not (self._left and self._left[-1] < LEFT_OUT):
            self._left.append(float(self._now.sum()))
            self._now = self._now @ move
        return np.array(self._left[:steps])

    def tail(self, x: ArrayLike) -> np.ndarray:
        """Probability that the time is longer than `x`, of the same shape."""
        means = self._rate * np.maximum(np.asarray(x, dtype=float), 0.0).ravel()
        order = np.argsort(means)
        tails = np.empty_like(means)
        start = 0
        while start < len(order):
            # Neighbours need the same terms of the sum.
            first = _first_step(means[order[start]])
            stop = start + 1
            while stop < len(order) and (
                (_last_step(means[order[stop]]) - first) * (stop + 1 - start) <= MOST_ENTRIES
            ):
                stop += 1
            chosen = order[start:stop]
            left = self._left_after(_last_step(means[chosen[-1]]))[first:]
            tails[chosen] = _poisson(means[chosen], first, len(left)) @ left
            start = stop
        return np.asarray(tails.reshape(np.shape(x)))

    def cdf(self, x: ArrayLike) -> np.ndarray:
        """Probability that the time is at most `x`, of the same shape."""
        at_most = np.clip(1 - self.tail(x), 0.0, 1.0)
        return np.where(np.asarray(x) < 0, 0.0, at_most)

    def sample(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Draw independent times, shape (count,)."""
        return self.sample_from(rng, rng.choice(len(self.alpha), count, p=self.alpha))

    def sample_from(self, rng: np.random.Generator, phase: np.ndarray) -> np.ndarray:
        """Draw independent times from given first phases, of the same shape."""
        leave = -np.diag(self.rates)
        jumps = np.maximum(self.rates - np.diag(np.diag(self.rates)), 0.0) / leave[:, None]
        bounds = np.cumsum(jumps, axis=1)
        times = np.zeros(len(phase))
        inside = np.arange(len(phase))
        phase = phase.copy()
        while len(inside):
            times[inside] += rng.standard_exponential(len(inside)) / leave[phase]
            phase = (rng.random(len(inside))[:, None] >= bounds[phase]).sum(axis=1)
            stays = phase < len(leave)
            inside, phase = inside[stays], phase[stays]
        return times


def _first_step(mean: float) -> int:
    return max(0, math.floor(mean - DEVIATIONS * math.sqrt(mean) - 10))


def _last_step(mean: float) -> int:
    return math.ceil(mean + DEVIATIONS * math.sqrt(mean) + 30)


def _poisson(means: np.ndarray, first: int, count: int) -> np.ndarray:
    """Poisson probabilities of `first` and the next counts, shape (mean, count)."""
    steps = np.arange(first, first + count, dtype=float)
    column = means[:, None]
    return np.asarray(
        np.exp(scipy.special.xlogy(steps, column) - column - scipy.special.gammaln(steps + 1))
    )
