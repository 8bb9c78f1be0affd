import math
import os

import numpy as np
import pytest

from manyserver.statistics.rates import coefficient, power_law

SEED = int(os.environ.get("MANYSERVER_TEST_SEED", "1"))
SERVERS = np.array([10, 20, 50, 100, 200, 500, 1000])


@pytest.mark.parametrize("exponent", [-1.0, -0.5])
def test_power_law_is_recovered_within_its_standard_error(exponent: float) -> None:
    """400 fits; mean and spread of z, each within 4 of its standard errors (1 in 16,000)."""
    generator = np.random.default_rng(SEED)
    truth = 0.7 * SERVERS**exponent
    errors = 0.02 * truth * np.linspace(0.5, 3, SERVERS.size)
    rates = [power_law(SERVERS, generator.normal(truth, errors), errors) for _ in range(400)]
    z = np.array([(rate.estimate - exponent) / rate.standard_error for rate in rates])
    assert abs(z.mean()) < 4 / math.sqrt(z.size)
    # The window error makes the standard error too large where a power law holds throughout.
    assert 0.6 < z.std() < 1 + 4 / math.sqrt(2 * z.size)


def test_power_law_without_errors_is_exact_on_exact_data() -> None:
    rate = power_law(SERVERS, -3.0 / SERVERS)
    assert rate.estimate == pytest.approx(-1.0, abs=1e-12)
    assert rate.prefactor == pytest.approx(-3.0)
    assert rate.window == (10.0, 1000.0)
    assert rate.n_points == SERVERS.size
    assert rate.excluded == ()
    assert rate.note == ""


def test_power_law_covers_the_exponent_it_has_not_reached_yet() -> None:
    rate = power_law(SERVERS, (1 + 3 / SERVERS) / SERVERS)
    assert 1e-4 < abs(rate.estimate + 1) < 3 * rate.standard_error
    assert rate.standard_error < 0.01
    three = power_law(SERVERS[:3], (1 + 3 / SERVERS[:3]) / SERVERS[:3])
    assert 0.01 < abs(three.estimate + 1) < 3 * three.standard_error


def test_what_small_systems_add_is_the_second_term() -> None:
    rate = power_law(SERVERS, 0.7 * SERVERS**-0.5 * np.exp(4 / SERVERS), 1e-3 / SERVERS)
    assert rate.estimate == pytest.approx(-0.5, abs=1e-9)
    assert rate.prefactor == pytest.approx(0.7)
    assert rate.second_term == pytest.approx(4)
    assert math.isnan(power_law(SERVERS[:3], 1 / SERVERS[:3]).second_term)


@pytest.mark.parametrize("second", [0.0, 3.0, -3.0])
@pytest.mark.parametrize("relative", [0.003, 0.05])
def test_intervals_cover_although_small_systems_are_not_on_the_law(
    second: float, relative: float
) -> None:
    """300 fits each; 95 % intervals cover at least 88 % (1 in 10,000 if they cover 94 %)."""
    generator = np.random.default_rng(SEED)
    x = 1 / SERVERS
    truth = 0.7 * x * (1 + second * x + (second * x) ** 2 / 2)
    errors = relative * truth * np.linspace(0.5, 2, SERVERS.size)
    noisy = generator.normal(truth, errors, (300, SERVERS.size))
    for fit, expected in ((power_law, -1.0), (coefficient, 0.7)):
        rates = [fit(SERVERS, y, errors) for y in noisy]
        covered = [abs(rate.estimate - expected) < 1.96 * rate.standard_error for rate in rates]
        assert np.mean(covered) > 0.88


def test_a_coefficient_is_recovered_within_its_standard_error() -> None:
    """400 fits; mean and spread of z, each within 4 of its standard errors (1 in 16,000)."""
    generator = np.random.default_rng(SEED)
    truth = 0.7 / SERVERS - 2 / SERVERS**2
    errors = 0.02 * truth * np.linspace(0.5, 3, SERVERS.size)
    rates = [coefficient(SERVERS, generator.normal(truth, errors), errors) for _ in range(400)]
    z = np.array([(rate.estimate - 0.7) / rate.standard_error for rate in rates])
    assert abs(z.mean()) < 4 / math.sqrt(z.size)
    assert 0.6 < z.std() < 1 + 4 / math.sqrt(2 * z.size)


def test_a_coefficient_may_change_its_sign_and_lists_what_is_excluded() -> None:
    y = 0.7 / SERVERS - 20 / SERVERS**2
    errors = np.full(SERVERS.size, 1e-6)
    errors[2] = 1.0
    rate = coefficient(SERVERS, y, errors)
    assert rate.estimate == pytest.approx(0.7)
    assert rate.second_term == pytest.approx(-20)
    assert rate.excluded == (50.0,)
    assert rate.note == "error exceeds signal at 50"
    nothing = coefficient([10, 20], [0.1, 0.05])
    assert math.isnan(nothing.estimate)
    assert nothing.note == "2 usable points, 3 needed"


def test_curvature_hidden_in_noise_is_in_the_standard_error() -> None:
    """400 fits of (1 + 3/N)/N: the exponent -1 of large N is not excluded with confidence."""
    generator = np.random.default_rng(SEED)
    errors = np.full(SERVERS.size, 1.5e-3)
    truth = (1 + 3 / SERVERS) / SERVERS
    rates = [power_law(SERVERS, generator.normal(truth, errors), errors) for _ in range(400)]
    z = np.array([(rate.estimate + 1) / rate.standard_error for rate in rates])
    assert abs(np.nanmedian(z)) < 2
    assert np.isfinite(z).mean() > 0.9


def test_points_whose_error_exceeds_their_signal_are_listed_and_change_nothing() -> None:
    errors = np.full(SERVERS.size, 1e-3)
    y = 2.0 / SERVERS
    y[-2:] = [1.9e-3, -1.0e-3]
    rate = power_law(SERVERS, y, errors)
    assert rate.excluded == (500.0, 1000.0)
    assert rate.note == "error exceeds signal at 500, 1000"
    y[-2:] = [-1.9e-3, 0.0]
    assert power_law(SERVERS, y, errors) == rate


def test_small_systems_that_do_not_follow_the_law_are_dropped() -> None:
    y = 2.0 / SERVERS
    y[:2] *= 3
    rate = power_law(SERVERS, y, 1e-3 * y)
    assert rate.excluded == (10.0, 20.0)
    assert rate.note == "not yet on the law at 10, 20"
    assert rate.estimate == pytest.approx(-1.0, abs=1e-9)


def test_scatter_beyond_the_errors_widens_the_standard_error() -> None:
    y = 2.0 / SERVERS * np.array([1, 1, 1, 1, 1.5, 0.5, 1.5])
    rate = power_law(SERVERS, y, 1e-3 * y)
    assert "scatter exceeds the errors" in rate.note
    assert rate.standard_error > 0.1


@pytest.mark.parametrize(
    ("y", "note"),
    [
        ([0.1, 0.05, np.nan], "2 usable points, 3 needed"),
        ([0.1, 0.05, 1e-5], "2 usable points, 3 needed; error exceeds signal at 50"),
        ([0.1, -0.05, 0.02], "the signal changes sign"),
        ([np.nan, np.nan, np.nan], "0 usable points, 3 needed"),
    ],
)
def test_data_that_do_not_support_a_power_law_say_so(y: list[float], note: str) -> None:
    rate = power_law([10, 20, 50], y, [1e-3, 1e-3, 1e-3])
    assert math.isnan(rate.estimate)
    assert math.isnan(rate.standard_error)
    assert rate.note == note


@pytest.mark.parametrize(
    ("x", "y", "errors"),
    [
        ([1, 2], [1, 2, 3], None),
        ([1, 2, 2], [1, 2, 3], None),
        ([0, 1, 2], [1, 2, 3], None),
        ([1, 2, 3], [1, 2, 3], [1, 1]),
        ([1, 2, 3], [1, 2, 3], [1, -1, 1]),
    ],
)
def test_power_law_refuses(x: list[float], y: list[float], errors: list[float] | None) -> None:
    with pytest.raises(ValueError, match=r"x:|shapes|standard_errors"):
        power_law(x, y, errors)
