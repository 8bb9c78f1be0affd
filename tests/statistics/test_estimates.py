"""Batch means and autocorrelation times on series with a known law."""

import os

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.special import stdtrit

from manyserver.statistics.estimates import (
    Controls,
    autocorrelation_time,
    batch_mean,
    batch_ratio,
    merge_batches,
)

SEED = int(os.environ.get("MANYSERVER_TEST_SEED", "1"))


def ar1(coefficient: float, shape: tuple[int, int], seed: int) -> np.ndarray:
    """Stationary series x[t] = coefficient * x[t - 1] + noise, of variance one."""
    noise = np.random.default_rng((SEED, seed)).normal(size=shape)
    noise[:, 1:] *= np.sqrt(1 - coefficient**2)
    return np.asarray(lfilter([1.0], [1.0, -coefficient], noise, axis=1))


@pytest.mark.parametrize("coefficient", [0.0, 0.5, 0.9, 0.98])
def test_autocorrelation_time(coefficient: float) -> None:
    """Within 20 %: more than 5 standard errors by the formula of Madras and Sokal."""
    spacing, shape = 0.5, (8, 100_000)
    expected = spacing * (1 + coefficient) / (1 - coefficient) / 2
    error = expected * np.sqrt(2 * (2 * 5 + 1) * expected / spacing / (shape[0] * shape[1]))
    assert 5 * error < 0.2 * expected
    actual = autocorrelation_time(ar1(coefficient, shape, 1), spacing)
    assert actual == pytest.approx(expected, rel=0.2)


def test_short_series_has_no_autocorrelation_time() -> None:
    assert autocorrelation_time(np.linspace(0.0, 1.0, 20)[None], 1.0) == np.inf


def test_slow_drift_counts() -> None:
    """Replications that stay apart are not uncorrelated."""
    series = ar1(0.0, (8, 1000), 2) + 5 * np.arange(8)[:, None]
    assert autocorrelation_time(series, 1.0) > 100


def test_constant_series() -> None:
    assert autocorrelation_time(np.ones((2, 10)), 3.0) == 1.5


def test_intervals_cover() -> None:
    """Coverage of 2000 intervals is binomial; 4 standard errors about 95 %."""
    series = ar1(0.9, (2000, 32 * 200), 3)
    batches = merge_batches(series.T, 200)
    value, half_width = batch_mean(batches)
    covered = float((np.abs(value) <= half_width).mean())
    # Batches of 20 autocorrelation times lose less than half a per cent.
    assert 0.945 - 4 * np.sqrt(0.05 * 0.95 / 2000) < covered
    assert covered < 0.95 + 4 * np.sqrt(0.05 * 0.95 / 2000)


def test_ratio_covers() -> None:
    rng = np.random.default_rng((SEED, 4))
    denominator = rng.gamma(20.0, size=(40, 2000))
    numerator = 0.3 * denominator + rng.normal(size=denominator.shape)
    value, half_width = batch_ratio(numerator, denominator)
    covered = float((np.abs(value - 0.3) <= half_width).mean())
    assert abs(covered - 0.95) < 4 * np.sqrt(0.05 * 0.95 / 2000) + 0.005


@pytest.mark.parametrize(("shape", "plain", "lowest"), [(1.0, 0.932, 0.936), (0.25, 0.886, 0.907)])
def test_skewed_batches(shape: float, plain: float, lowest: float) -> None:
    """40 gamma batches of skewness 2 and 4: most of what is missing to 95 %, or a half, is given.

    Coverage of 20,000 intervals has a standard error of 0.002; the bounds are 4 of them off.
    """
    rng = np.random.default_rng(SEED)
    batches = rng.gamma(shape, size=(40, 20_000)) / shape
    ones = np.ones_like(batches)
    covered = {}
    for skewed in (False, True):
        value, half_width = batch_ratio(batches, ones, skewed=skewed)
        covered[skewed] = (np.abs(value - 1) <= half_width).mean()
    assert covered[False] == pytest.approx(plain, abs=0.009)
    assert lowest <= covered[True] <= 0.955


def test_ratio_uses_the_correlation() -> None:
    denominator = np.array([1.0, 2.0, 4.0])
    value, half_width = batch_ratio(3 * denominator, denominator)
    assert float(value) == 3.0
    assert float(half_width) == 0.0


def test_what_cannot_be_known_is_missing() -> None:
    numerator = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 2.0]])
    denominator = np.array([[0.0, 1.0, 1.0], [0.0, 2.0, 2.0]])
    value, half_width = batch_ratio(numerator, denominator)
    assert np.isnan(value).tolist() == [True, False, False]
    assert np.isnan(half_width).tolist() == [True, True, False]
    assert np.isnan(batch_mean(np.array([1.0])).half_width)


def test_merging_keeps_the_mean() -> None:
    batches = np.arange(24.0).reshape(8, 3)
    merged = merge_batches(batches, 4)
    assert merged.shape == (2, 3)
    assert merged.mean(axis=0).tolist() == batches.mean(axis=0).tolist()


def regression_data(replications: int, batches: int) -> tuple[np.ndarray, np.ndarray]:
    """Skewed controls of mean zero, and a response of mean one that bends with the first."""
    rng = np.random.default_rng((SEED, 5))
    controls = rng.gamma(4.0, size=(replications, batches, 3)) - 4.0
    noise = rng.normal(size=(replications, batches))
    first = controls[:, :, 0]
    return controls, 1.0 + 3 * controls.sum(axis=2) + 0.01 * (first**2 - 4.0) + 0.1 * noise


def test_control_variates_cover() -> None:
    """Coverage of 1000 intervals is binomial; 4 standard errors about 95 %."""
    controls, response = regression_data(1000, 48)
    inside, values, widths = 0, [], []
    for z, y in zip(controls, response, strict=True):
        fitted = Controls(z)
        value, half_width = batch_mean(fitted.adjusted(y), fitted)
        inside += bool(abs(value - 1.0) <= half_width)
        values.append(float(value))
        widths.append(float(half_width / batch_mean(y).half_width))
    assert abs(inside / 1000 - 0.95) < 4 * np.sqrt(0.05 * 0.95 / 1000)
    # The coefficients do not bias the mean, though the response bends.
    assert abs(np.mean(values) - 1.0) < 4 * np.std(values) / np.sqrt(1000)
    assert np.median(widths) < 0.05


def test_useless_columns_are_dropped() -> None:
    controls, response = regression_data(1, 48)
    z, y = controls[0], response[0]
    more = np.column_stack([z, np.zeros(48), 1e-15 * z[:, 0], z[:, 0] - z[:, 1]])
    fitted = Controls(more)
    assert fitted.rank == 3
    assert fitted.adjusted(y) == pytest.approx(Controls(z).adjusted(y), abs=1e-9)


def test_adjusted_by_the_other_batches() -> None:
    controls, response = regression_data(1, 12)
    z, y = controls[0], response[0]
    expected = []
    for left_out in range(12):
        others = np.arange(12) != left_out
        design = np.column_stack([np.ones(11), z[others]])
        slopes = np.linalg.lstsq(design, y[others], rcond=None)[0][1:]
        expected.append(y[left_out] - z[left_out] @ slopes)
    assert Controls(z).adjusted(y) == pytest.approx(np.array(expected), abs=1e-9)


def test_exact_responses_are_left_alone() -> None:
    controls, _ = regression_data(1, 48)
    fitted = Controls(controls[0])
    assert fitted.adjusted(np.full((48, 2), 7.0)) == pytest.approx(np.full((48, 2), 7.0))
    combined = 2.0 + controls[0] @ [1.0, 2.0, 3.0]
    value, half_width = batch_mean(fitted.adjusted(combined), fitted)
    assert float(value) == pytest.approx(2.0, abs=1e-12)
    assert float(half_width) < 1e-12


def test_half_width_with_controls_is_that_of_the_regression() -> None:
    """The textbook standard error of the intercept, and at most 1 / (1 - leverage) of it."""
    rng = np.random.default_rng(3)
    columns = rng.normal(size=(40, 6)) + 0.3
    batches = columns @ rng.normal(size=6) + rng.normal(size=40)
    controls = Controls(columns)
    half_width = batch_mean(controls.adjusted(batches), controls).half_width
    design = np.column_stack([np.ones(40), columns])
    _coefficients, squares, _, _ = np.linalg.lstsq(design, batches, rcond=None)
    variance = squares[0] / 33 * np.linalg.inv(design.T @ design)[0, 0]
    projection = design @ np.linalg.inv(design.T @ design) @ design.T
    textbook = stdtrit(33, 0.975) * np.sqrt(variance)
    assert textbook < half_width < textbook / (1 - np.diag(projection).max())
