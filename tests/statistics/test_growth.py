import math
import os

import numpy as np
import pytest

from manyserver.statistics.growth import growth_per_level

SEED = int(os.environ.get("MANYSERVER_TEST_SEED", "1"))


@pytest.mark.parametrize("d", [2, 3, 5])
@pytest.mark.parametrize("load", [0.3, 0.9])
def test_growth_of_sq_d_is_d(d: int, load: float) -> None:
    log_tail = [math.log(load) * (d**k - 1) / (d - 1) for k in range(8)]
    rate = growth_per_level(log_tail)
    assert rate.estimate == pytest.approx(d, abs=1e-12)
    assert rate.standard_error < 1e-12
    assert rate.note == ""


@pytest.mark.parametrize(("contraction", "deepest"), [(0.07, 7), (0.15, 9), (0.5, 16)])
def test_growth_that_converges_lies_within_its_window_error(
    contraction: float, deepest: int
) -> None:
    growth = 7.464
    steps = [1.0]
    for k in range(deepest):
        steps.append(steps[-1] * (growth + contraction**k))
    rate = growth_per_level(-np.cumsum([0.0, *steps]))
    assert abs(rate.estimate - growth) < rate.standard_error
    assert rate.standard_error < contraction ** (deepest - 2)
    assert rate.note == ""


def test_growth_is_taken_over_the_period() -> None:
    exponents = [0.0, 1.0, 1.5]
    while len(exponents) < 14:
        exponents.append(9 * exponents[-2])
    rate = growth_per_level(-np.array(exponents), period=2)
    assert rate.estimate == pytest.approx(3.0)
    assert math.isnan(growth_per_level(-np.array(exponents[:6]), period=2).estimate)


def test_geometric_tail_has_growth_one() -> None:
    assert growth_per_level(np.log(0.8) * np.arange(30)).estimate == pytest.approx(1.0)


def test_growth_that_does_not_converge_says_so() -> None:
    steps = np.cumprod(1 + np.arange(8.0))
    rate = growth_per_level(-np.cumsum([0.0, *steps]))
    assert rate.note == "the growth is not seen to converge"
    assert rate.standard_error >= 1


def test_noisy_levels_are_excluded_and_listed() -> None:
    tail = 0.9 ** (2.0 ** np.arange(9) - 1)
    rate = growth_per_level(np.log(tail), 1e-6 / tail)
    assert rate.excluded == (7.0, 8.0)
    assert rate.window == (0.0, 6.0)
    assert rate.note == "error exceeds signal from level 7"
    assert abs(rate.estimate - 2) < rate.standard_error


def test_noise_of_the_tail_is_in_the_standard_error() -> None:
    """200 fits; each level's error is at most 3 sigma, so all are within 3 of theirs."""
    generator = np.random.default_rng(SEED)
    tail = 0.9 ** (2.0 ** np.arange(6) - 1)
    errors = np.array([0, 1, 2, 3, 4, 5]) * 1e-3
    for _ in range(200):
        noise = np.clip(generator.normal(size=6), -3, 3) * errors
        rate = growth_per_level(np.log(tail) + noise, errors)
        assert abs(rate.estimate - 2) < 3 * rate.standard_error


@pytest.mark.parametrize("missing", [np.nan, -np.inf])
def test_missing_levels_end_the_tail(missing: float) -> None:
    log_tail = np.array([0, -1, -3, -7, -15, missing, missing])
    rate = growth_per_level(log_tail)
    assert rate.estimate == 2.0
    assert rate.excluded == (5.0, 6.0)
    short = growth_per_level(log_tail[[0, 1, 2, 5]])
    assert math.isnan(short.estimate)
    assert short.note == "3 usable levels, 4 needed"


def test_a_noisy_tail_ends_where_it_does_not_decrease() -> None:
    rate = growth_per_level([0, -1, -3, -7, -15, -15, -20], [0, *[0.01] * 6])
    assert rate.excluded == (5.0, 6.0)
    assert rate.note.startswith("error exceeds signal from level 5")


def test_growth_refuses() -> None:
    with pytest.raises(ValueError, match="decrease"):
        growth_per_level([0, -1, -0.5, -3])
    with pytest.raises(ValueError, match="period = 0"):
        growth_per_level([0, -1, -3, -7], period=0)
    with pytest.raises(ValueError, match="shapes"):
        growth_per_level([0, -1, -3, -7], [0, 0])
