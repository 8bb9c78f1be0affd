import numpy as np
import pytest
from scipy import stats

from manyserver.statistics.comparisons import holm, p_value, simultaneous_quantile


def test_p_values_are_those_of_a_t_test() -> None:
    rng = np.random.default_rng(1)
    sample = rng.normal(0.3, 1.0, 20)
    ratio = sample.mean() / (sample.std(ddof=1) / np.sqrt(20))
    expected = stats.ttest_1samp(sample, 0.0).pvalue
    np.testing.assert_allclose(p_value([ratio, -ratio], [19, 19]), expected, rtol=1e-12)


def test_holm_orders_and_keeps_what_is_missing() -> None:
    given = np.array([0.04, np.nan, 0.001, 0.03])
    np.testing.assert_allclose(holm(given), [0.06, np.nan, 0.003, 0.06])
    assert holm([0.9, 0.8]).max() <= 1.0
    assert holm([]).shape == (0,)


def test_a_family_of_true_hypotheses_is_rarely_rejected() -> None:
    """Of 2000 families of ten, 98 on average; the test fails with a probability below 1e-4."""
    ratios = np.random.default_rng(2).standard_t(12, (2000, 10))
    smallest = [holm(p_value(row, np.full(10, 12.0))).min() for row in ratios]
    assert 60 < np.sum(np.array(smallest) < 0.05) < 141


def test_intervals_of_a_family_are_wider() -> None:
    assert simultaneous_quantile(30, 1) == pytest.approx(stats.t(30).ppf(0.975))
    assert simultaneous_quantile(30, 10) == pytest.approx(stats.t(30).ppf(1 - 0.025 / 10))
