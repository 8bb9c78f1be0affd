"""Means of correlated series, with honest half-widths: batch means, ratios, control variates.

A stationary series is cut into batches much longer than its autocorrelation time. The means of
the batches are then nearly independent and normal, and Student's t gives the interval.

Quantities that are known to have mean zero (*control variates*) explain much of what the batches
deviate by. The least-squares regression on them removes it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri, stdtrit

__all__ = [
    "Controls",
    "Estimate",
    "autocorrelation_time",
    "batch_mean",
    "batch_ratio",
    "merge_batches",
    "standard_error",
    "stretch",
]

CONFIDENCE = 0.95
WINDOW = 5.0
"""Autocorrelations are summed up to this many autocorrelation times (Sokal's window)."""
SHORTEST_SERIES = 100.0
"""Fewer autocorrelation times than this, all replications together, are too few to tell."""

NOISE = 1e-12
"""A control variate of a smaller standard deviation is rounding."""
SMALLEST_REST = 1e-3
"""A batch is not left out further than this, where it alone decides on a coefficient."""
ROUNDING = 2e-13
"""Smallest half-width of an adjusted mean, relative to it; less is the rounding of sums."""
COLLINEAR = 1e-7
"""Directions in which standardised control variates vary less than this are left out."""


class Estimate(NamedTuple):
    """A mean with the half-width of its 95 % interval; NaN where the data cannot tell."""

    value: np.ndarray
    half_width: np.ndarray


class Controls:
    r"""Control variates: batch means of quantities whose expectation is zero.

    With y the mean of a response in a batch, z those of the control variates and :math:`\beta`
    the coefficients of the regression of y on z over *all other* batches, the mean of
    :math:`y - \beta z` is that of y, since independent batches leave nothing for the coefficients
    to be correlated with. (With coefficients from all batches it is biased, by as much as the
    half-width where the variance is reduced a thousand times.) One regression gives the
    coefficients without each of the batches, as for the residuals of cross-validation.
    See Lavenberg and Welch, Management Science 27, 1981.

    Parameters
    ----------
    columns : numpy.ndarray, shape (batch, column)
        Columns that hardly vary, or depend on others, are left out.

    Attributes
    ----------
    rank : int
        Independent control variates.
    """

    def __init__(self, columns: np.ndarray):
        n = len(columns)
        centred = columns - columns.mean(axis=0)
        deviation = centred.std(axis=0)
        kept = deviation > NOISE
        left, size, right = np.linalg.svd(centred[:, kept] / deviation[kept], full_matrices=False)
        independent = size > COLLINEAR * np.sqrt(n)
        self._basis = left[:, independent]
        # Control variates in the directions of the basis, but not centred.
        self._scores = (columns[:, kept] / deviation[kept]) @ (
            right[independent].T / size[independent]
        )
        self.rank = int(independent.sum())
        self._rest = np.maximum(1 - 1 / n - (self._basis**2).sum(axis=1), SMALLEST_REST)
        self._left_out = (self._scores * self._basis).sum(axis=1) / self._rest
        # The mean of the adjusted batches is a weighted mean of the response.
        centred = self._left_out - self._left_out.mean()
        unexplained = centred - self._basis @ (self._basis.T @ centred)
        self._weights = (1 + unexplained) / n - self._basis @ self._scores.mean(axis=0)

    def adjusted(self, batches: np.ndarray) -> np.ndarray:
        """Take from each batch what the control variates explain, by the other batches.

        Parameters
        ----------
        batches : numpy.ndarray, shape (batch, ...)

        Returns
        -------
        numpy.ndarray, shape (batch, ...)
            Their mean is an unbiased estimate of that of the response.
        """
        flat = batches.reshape(len(batches), -1)
        slopes = self._basis.T @ flat
        residuals = flat - flat.mean(axis=0) - self._basis @ slopes
        adjusted = flat - self._scores @ slopes + self._left_out[:, None] * residuals
        return np.asarray(adjusted.reshape(batches.shape))

    def error(self, deviations: np.ndarray) -> np.ndarray:
        r"""Return the standard error of the mean of adjusted batches.

        This mean is :math:`\sum_i w_i y_i` with weights that follow from the control variates
        alone, and its variance :math:`\sum_i w_i^2 r_i^2 / (1 - h_i)^{3/2}` with residuals r of
        the regression and leverages h. Batches may differ in variance, as they do where the
        response bends with the control variates. With the power 1 (HC2 of MacKinnon and White,
        J. Econometrics 29, 1985) the variance is unbiased and intervals cover less than they say,
        with 2 (HC3, the jackknife) they cover more; this is the geometric mean of both.

        Parameters
        ----------
        deviations : numpy.ndarray, shape (batch, ...)
            Of adjusted batches from their mean.

        Returns
        -------
        numpy.ndarray, shape (...)
        """
        # An adjusted batch deviates by its residual times this, up to a constant.
        factor = 1 + self._left_out
        centre = np.tensordot(1 / factor, deviations, 1) / (1 / factor).sum()
        weights = self._weights**2 / factor**2 / self._rest**1.5
        return np.asarray(np.sqrt(np.tensordot(weights, (deviations - centre) ** 2, 1)))


def batch_mean(batches: np.ndarray, controls: Controls | None = None) -> Estimate:
    """Average independent batches.

    Parameters
    ----------
    batches : numpy.ndarray, shape (batch, ...)
        Means over batches of equal length.
    controls : Controls, optional
        Those by which the batches were adjusted.

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
    return batch_ratio(batches, np.ones_like(batches), controls)


def batch_ratio(
    numerator: np.ndarray,
    denominator: np.ndarray,
    controls: Controls | None = None,
    *,
    skewed: bool = False,
) -> Estimate:
    """Estimate a ratio of two means from independent batches.

    Parameters
    ----------
    numerator, denominator : numpy.ndarray, shape (batch, ...)
        Of the same batches.
    controls : Controls, optional
        Those by which the batches were adjusted.
    skewed : bool
        Whether the interval gets wider as the batches are skewed (see :func:`stretch`), which
        matters where rare batches decide.

    Returns
    -------
    Estimate
        The ratio of the sums, and the half-width from the deviations ``numerator - ratio *
        denominator`` of the batches (delta method). The value is NaN where the denominator
        vanishes. The half-width is NaN there, for a single batch, and where the numerator
        vanishes in every batch: what never happened says nothing about its own error.
    """
    n = len(numerator)
    freedom = n - 1 - (controls.rank if controls else 0)
    total = denominator.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.where(total != 0, numerator.sum(axis=0) / total, np.nan)
        if freedom < 1:
            return Estimate(value, np.full_like(value, np.nan))
        deviations = numerator - value * denominator
        if controls:
            error = controls.error(deviations)
        else:
            error = np.sqrt((deviations**2).sum(axis=0) / (n * (n - 1)))
        half_width = stdtrit(freedom, (1 + CONFIDENCE) / 2) * error * n / np.abs(total)
        if controls:
            half_width = np.maximum(half_width, ROUNDING * np.abs(value))
        if skewed:
            half_width *= stretch(deviations)
    return Estimate(value, np.where((numerator != 0).any(axis=0), half_width, np.nan))


def standard_error(half_width: ArrayLike, freedom: ArrayLike) -> np.ndarray:
    """Return the standard error behind a half-width, by Student's t with degrees of freedom.

    Examples
    --------
    >>> standard_error([1.96, 2.0], [np.inf, 60]).round(3)
    array([1., 1.])
    """
    return np.asarray(half_width / stdtrit(np.maximum(freedom, 1), (1 + CONFIDENCE) / 2))


def stretch(deviations: np.ndarray) -> np.ndarray:
    r"""Return by what factor an interval of Student's t must be longer, as batches are not normal.

    With the skewness :math:`\gamma` and the excess kurtosis :math:`\kappa` of n batches it covers
    less than it says by :math:`2 x \phi(x) (\gamma^2 (x^4 + 2 x^2 - 3) / 18 - \kappa (x^2 - 3) /
    12) / n` to the first order, with the normal quantile x (Hall, The bootstrap and Edgeworth
    expansion, 1992, section 2.6). Those of few batches are too small on average if there are rare
    ones that are far out, so this takes away a part of it.

    Parameters
    ----------
    deviations : numpy.ndarray, shape (batch, ...)
        Of the batches from their mean.

    Returns
    -------
    numpy.ndarray, shape (...)
        At least one.

    Examples
    --------
    >>> [round(float(stretch(np.array(few))), 1) for few in ([-1, 0, 0, 1], [-1] * 9 + [9])]
    [1.0, 1.7]
    """
    second, third, fourth = ((deviations**power).mean(axis=0) for power in (2, 3, 4))
    x2 = ndtri((1 + CONFIDENCE) / 2) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        squared_skewness = third**2 / second**3
        kurtosis = fourth / second**2 - 3
    more = squared_skewness * (x2**2 + 2 * x2 - 3) / 18 - kurtosis * (x2 - 3) / 12
    return np.asarray(1 + np.fmax(more, 0.0) / len(deviations))


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
    merged: np.ndarray = batches.reshape(len(batches) // size, size, *batches.shape[1:]).mean(
        axis=1
    )
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
