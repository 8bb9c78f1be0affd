"""Quantiles from histograms, with half-widths from batches.

Histograms of batches are added up. A quantile is interpolated within its bin, so that it is wrong
by less than the width of the bin.
"""

import numpy as np

from manyserver.statistics.estimates import Controls, Estimate, batch_ratio

__all__ = ["quantile", "quantile_estimate"]


def quantile(counts: np.ndarray, edges: np.ndarray, probability: float) -> float:
    """Return where a part of what was counted is below.

    Parameters
    ----------
    counts : numpy.ndarray, shape (bin,)
    edges : numpy.ndarray, shape (bin + 1,)
        The first bin holds what is as good as zero; a quantile there is zero, and one in the last
        bin, which has no upper bound, is infinite.
    probability : float
        In (0, 1).

    Returns
    -------
    float
        NaN if nothing was counted.

    Examples
    --------
    >>> quantile(np.array([0, 5, 5, 0]), np.array([0.0, 1.0, 2.0, 3.0, np.inf]), 0.75)
    2.5
    """
    sums = np.cumsum(counts)
    if not sums[-1] > 0:
        return float("nan")
    wanted = probability * float(sums[-1])
    place = int(np.searchsorted(sums, wanted))
    if place == 0:
        return 0.0
    if place >= len(counts) - 1:
        return float("inf")
    part = (wanted - float(sums[place - 1])) / float(counts[place])
    return float(edges[place] + part * (edges[place + 1] - edges[place]))


def quantile_estimate(
    batches: np.ndarray, edges: np.ndarray, probability: float, controls: Controls | None = None
) -> Estimate:
    """Estimate a quantile from independent batches.

    Parameters
    ----------
    batches : numpy.ndarray, shape (batch, bin)
        Histograms.
    edges : numpy.ndarray, shape (bin + 1,)
    probability : float
        In (0, 1).
    controls : Controls, optional
        Control variates of the batches.

    Returns
    -------
    Estimate
        The half-width of the part below the quantile, by :func:`batch_ratio`, is turned into one
        of the quantile by the quantiles that differ from it by so much, the further one of both.
        It is NaN where these do not exist.
    """
    total = batches.sum(axis=0)
    value = quantile(total, edges, probability)
    place = int(np.searchsorted(edges, value, side="right")) - 1
    if not np.isfinite(value) or len(batches) < 2:
        return Estimate(np.array(value), np.array(np.nan))
    inside = (value - edges[place]) / (edges[place + 1] - edges[place]) if place else 1.0
    below = batches[:, :place].sum(axis=1) + inside * batches[:, place]
    count = batches.sum(axis=1).astype(float)
    if controls:
        below, count = controls.adjusted(below), controls.adjusted(count)
    part, half_width = (float(x) for x in batch_ratio(below, count, controls, skewed=True))
    # What control variates say about the part below corrects the quantile.
    corrected = probability + (probability - part) if controls and place else probability
    bounds = [corrected - half_width, corrected, corrected + half_width]
    if not 0 < bounds[0] <= bounds[-1] < 1:
        return Estimate(np.array(value), np.array(np.nan))
    low, middle, high = (quantile(total, edges, bound) for bound in bounds)
    longer = max(high - middle, middle - low)
    return Estimate(np.array(middle), np.array(longer if np.isfinite(high) else np.nan))
