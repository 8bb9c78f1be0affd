"""Means of correlated series, with honest half-widths: batch means and ratios.

A stationary series is cut into batches much longer than its autocorrelation time. The means of
the batches are then nearly independent and normal, and Student's t gives the interval.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

__all__ = ["Estimate", "autocorrelation_time", "batch_mean", "batch_ratio", "merge_batches"]

CONFIDENCE = 0.95
WINDOW = 5.0
"""Autocorrelations are summed up to this many autocorrelation times (Sokal's window)."""
SHORTEST_SERIES = 100.0
"""Fewer autocorrelation times than this, all replications together, are too few to tell."""


class Estimate(NamedTuple):
    """A mean with the half-width of its 95 % interval; NaN where the data cannot tell."""

    value: np.ndarray
    half_width: np.ndarray


def batch_mean(batches: np.ndarray) -> Estimate:
    """Average independent batches.

    Parameters
    ----------
    batches : numpy.ndarray, shape (batch, ...)
        Means over batches of equal length.

    Returns
    -------
    Estimate
        With arrays of the remaining shape; the half-width is NaN for a single batch.

    Examples
    --------
    >>> value, half_width = batch_mean(np.array([1.0, 2.0, 3.0]))
    >>> round(float(value), 3), round(float(half_width), 3)
    (2.0, 2.484)
    """
    return batch_ratio(batches, np.ones_like(batches))


def batch_ratio(numerator: np.ndarray, denominator: np.ndarray) -> Estimate:
    """Estimate a ratio of two means from independent batches.

    Parameters
    ----------
    numerator, denominator : numpy.ndarray, shape (batch, ...)
        Of the same batches.

    Returns
    -------
    Estimate
        The ratio of the sums, and the half-width from the deviations ``numerator - ratio *
        denominator`` of the batches (delta method). The value is NaN where the denominator
        vanishes. The half-width is NaN there, for a single batch, and where the numerator
        vanishes in every batch: what never happened says nothing about its own error.
    """
    n = len(numerator)
    total = denominator.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.where(total != 0, numerator.sum(axis=0) / total, np.nan)
        if n < 2:
            return Estimate(value, np.full_like(value, np.nan))
        squares = ((numerator - value * denominator) ** 2).sum(axis=0)
        error = np.sqrt(squares * n / (n - 1)) / np.abs(total)
    half_width = stdtrit(n - 1, (1 + CONFIDENCE) / 2) * error
    return Estimate(value, np.where((numerator != 0).any(axis=0), half_width, np.nan))


def merge_batches(batches: np.ndarray, size: int) -> np.ndarray:
    """Average every `size` consecutive batches.

    Parameters
    ----------
    batches : numpy.ndarray, shape (batch, ...)
        Their number is a multiple of `size`.
    size : int

    Returns
    -------
    numpy.ndarray, shape (batch / size, ...)

    Examples
    --------
    >>> merge_batches(np.array([1.0, 3.0, 5.0, 5.0]), 2).tolist()
    [2.0, 5.0]
    """
    merged: np.ndarray = batches.reshape(-1, size, *batches.shape[1:]).mean(axis=1)
    return merged


def autocorrelation_time(series: np.ndarray, spacing: float) -> float:
    r"""Estimate the integrated autocorrelation time of a stationary series.

    Parameters
    ----------
    series : numpy.ndarray, shape (replication, time)
        Independent replications of a series of averages over consecutive intervals.
    spacing : float
        Length of an interval, in units of time.

    Returns
    -------
    float
        :math:`\tau = \int_0^\infty \rho(t)\,dt`, estimated as ``spacing * (1/2 + sum of the
        autocorrelations up to lag W)``, W the smallest lag that is at least `WINDOW` times the
        result in intervals, plus one (Sokal, Monte Carlo methods in statistical mechanics,
        1997). The variance of a mean over a time T is ``2 * tau / T`` times that of the series.
        It is at least half the spacing, and infinite if the series is too short to tell.

    Notes
    -----
    Deviations are from the mean over all replications, so that a drift that is slower than one
    replication still counts.

    Examples
    --------
    >>> noise = np.random.default_rng(1).normal(size=(4, 10_000))
    >>> round(autocorrelation_time(noise, spacing=2.0), 1)
    1.0
    """
    length = series.shape[1]
    deviations = series - series.mean()
    spectrum = np.abs(np.fft.rfft(deviations, 2 * length, axis=1)) ** 2
    covariances = np.fft.irfft(spectrum.mean(axis=0))[:length] / np.arange(length, 0, -1)
    if covariances[0] <= 0:
        return spacing / 2
    times = 0.5 + np.cumsum(covariances[1:] / covariances[0])
    times = np.maximum(np.concatenate([[0.5], times]), 0.5)
    fits = np.flatnonzero(np.arange(length) >= WINDOW * times + 1)
    if not fits.size or series.size < SHORTEST_SERIES * times[fits[0]]:
        return float("inf")
    return float(spacing * times[fits[0]])
