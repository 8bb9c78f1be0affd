"""Quantiles from histograms."""

import os

import numpy as np
import pytest
from scipy.stats import binomtest

from manyserver.simulation.jobs.records import BINS, bin_of, edges
from manyserver.statistics.estimates import Controls
from manyserver.statistics.histogram import quantile, quantile_estimate

SEED = int(os.environ.get("MANYSERVER_TEST_SEED", "1"))


def counted(times: np.ndarray) -> np.ndarray:
    return np.histogram(times, edges())[0]


def test_bins_are_narrow_and_the_kernel_finds_them() -> None:
    bounds = edges()
    assert len(bounds) == BINS + 1
    assert (bounds[0], bounds[-1]) == (0.0, np.inf)
    assert (np.diff(bounds[1:-1]) / bounds[1:-2] <= 1 / 128).all()
    times = np.array([0.0, 1e-300, 2.0**-20, 0.1, 0.5, 1.0, 1.0078125, 3.7, 1e6, 2.0**30, 1e300])
    found = [bin_of(float(time)) for time in times]
    assert found == (np.searchsorted(bounds, times, side="right") - 1).tolist()


def test_quantiles_are_right_to_the_width_of_a_bin() -> None:
    times = np.sort(np.random.default_rng(SEED).exponential(size=100_001))
    for part in (0.1, 0.5, 0.9, 0.99, 0.999):
        exact = np.quantile(times, part)
        assert quantile(counted(times), edges(), part) == pytest.approx(exact, rel=1 / 128)


def test_ends() -> None:
    bounds = edges()
    assert np.isnan(quantile(np.zeros(BINS), bounds, 0.5))
    assert quantile(counted(np.array([0.0, 0.0, 1.0])), bounds, 0.5) == 0
    assert quantile(counted(np.array([1.0, 1e300, 1e300])), bounds, 0.5) == np.inf


@pytest.mark.parametrize("controlled", [False, True])
def test_intervals_cover(controlled: bool) -> None:
    """95 % intervals of correlated batches; a right one fails with probability 1e-6.

    Every batch has a mean of its own, which the control variate tells.
    """
    rng = np.random.default_rng(SEED)
    hits, widths = 0, []
    bounds = np.concatenate([[0.0], np.geomspace(0.01, 100, 400), [np.inf]])
    for _ in range(100):
        means = rng.normal(0, 0.1, size=32)
        times = np.exp(means[:, None] + rng.normal(size=(32, 400)))
        batches = np.stack([np.histogram(row, bounds)[0] for row in times])
        controls = Controls(means[:, None]) if controlled else None
        estimate = quantile_estimate(batches, bounds, 0.9, controls)
        exact = np.exp(1.2815515655 * np.sqrt(1.01))
        hits += abs(float(estimate.value) - exact) <= float(estimate.half_width)
        widths.append(float(estimate.half_width))
    assert binomtest(hits, 100, 0.95).pvalue > 1e-6
    # Without the spread of the means, one sample of 12800 lognormal times.
    alone = 1.96 * np.sqrt(0.09 / 12_800) / 0.1755 * np.exp(1.2815)
    assert np.mean(widths) < 1.3 * alone if controlled else np.mean(widths) > 1.5 * alone


def test_what_batches_cannot_tell() -> None:
    one = counted(np.ones(10))[None]
    assert np.isnan(quantile_estimate(one, edges(), 0.5).half_width)
    few = np.stack([counted(np.array([1.0, 2.0])), counted(np.array([3.0, 50.0]))])
    assert np.isnan(quantile_estimate(few, edges(), 0.999).half_width)
