import math
import os

import numpy as np
import pytest

from manyserver.statistics.decay import LawName, decay, leading_coefficient

SEED = int(os.environ.get("MANYSERVER_TEST_SEED", "1"))
SERVERS = np.array([10.0, 20, 30, 50, 80, 120, 200])


def law_of(name: LawName) -> np.ndarray:
    """Probabilities of 0.4 to 10^-6, or to 0.02, with a correction for small n."""
    if name == "exponential":
        return np.asarray(1.2 * SERVERS**-0.5 * np.exp(-0.06 * SERVERS + 3 / SERVERS))
    return np.asarray(3 / SERVERS * np.exp(1 / np.sqrt(SERVERS)))


def counted(law: np.ndarray, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Estimate probabilities by 20000 trials each; what was never seen has no error."""
    seen = generator.poisson(20000 * law)
    return seen / 20000, np.where(seen > 0, np.sqrt(seen), np.nan) / 20000


@pytest.mark.parametrize(
    ("name", "value", "power"), [("exponential", 0.06, -0.5), ("power", -1.0, 0.0)]
)
def test_exact_laws_are_told_apart_and_recovered(name: LawName, value: float, power: float) -> None:
    found = decay(SERVERS, law_of(name), power=power)
    assert found.law == name
    assert abs(found.rate.estimate - value) <= 1.96 * found.rate.standard_error + 1e-9
    assert found.rate.standard_error < 0.03 * abs(value)
    assert found.rate.n_points == SERVERS.size


@pytest.mark.parametrize("name", ["exponential", "power"])
def test_rare_events_are_fitted_with_the_right_error(name: LawName) -> None:
    """200 series of counts; errors hold half of the correction too, so that z spreads less."""
    generator = np.random.default_rng((SEED, 1))
    value, power = {"exponential": (0.06, -0.5), "power": (-1.0, 0.0)}[name]
    z = []
    for _ in range(200):
        rate = decay(SERVERS, *counted(law_of(name), generator), law=name, power=power).rate
        z.append((rate.estimate - value) / rate.standard_error)
    assert abs(np.mean(z)) < 0.5
    assert np.std(z) < 1 + 4 / math.sqrt(2 * len(z))
    # With errors that are right or too large at most 1 in 20 is off by two, plus 4 deviations.
    assert np.mean(np.abs(z) > 2) < 0.05 + 4 * math.sqrt(0.05 * 0.95 / len(z))


@pytest.mark.parametrize("name", ["exponential", "power"])
def test_the_more_probable_law_is_the_right_one(name: LawName) -> None:
    """60 series; the wrong law is chosen in 12 with a chance below 1e-4 if it is in one of 20."""
    generator = np.random.default_rng((SEED, 2))
    power = {"exponential": -0.5, "power": 0.0}[name]
    found = [decay(SERVERS, *counted(law_of(name), generator), power=power) for _ in range(60)]
    assert sum(one.law != name for one in found) < 12


def test_a_series_ends_at_its_first_poor_point() -> None:
    y = np.array([0.1, 0.05, 0.02, 0.01, 1e-5, 2e-4, 0.0])
    errors = np.array([1e-4, 1e-4, 1e-4, 1e-4, 1e-5, 1e-6, np.nan])
    rate = decay(SERVERS, y, errors, law="power").rate
    assert rate.excluded[-3:] == (80.0, 120.0, 200.0)
    assert "too few events from 80 on" in rate.note
    rate = leading_coefficient(SERVERS, y, errors)
    assert rate.excluded[-3:] == (80.0, 120.0, 200.0)


def test_nothing_seen_is_no_fit() -> None:
    rate = decay(SERVERS, np.zeros(7), np.full(7, np.nan)).rate
    assert math.isnan(rate.estimate)
    assert rate.note == "too few events from 10 on; 0 usable points, 3 needed"


def test_laws_that_data_cannot_tell_apart_are_named() -> None:
    y = 1 / SERVERS
    found = decay(SERVERS, y, y / 5)
    assert "the data fit both laws" in found.rate.note or found.law == "power"


def test_the_leading_coefficient_has_the_half_integer_term() -> None:
    rate = leading_coefficient(SERVERS, 2.5 / SERVERS + 4 / SERVERS**1.5)
    assert abs(rate.estimate - 2.5) < 1.96 * rate.standard_error < 0.05
    assert rate.second_term == pytest.approx(4 / 2.5, rel=0.2)


def test_a_flat_stretch_is_no_proof() -> None:
    """PULL with two routers and a buffer of one, exact: n y is flat here and goes on to 2.564."""
    n = np.array([40.0, 80, 160])
    y = np.array([0.069056274, 0.034825077, 0.017179093])
    rate = leading_coefficient(n, y, 0.01 * y)
    assert "not near the limit" in rate.note or abs(rate.estimate - 2.564) < (
        1.96 * rate.standard_error
    )


@pytest.mark.parametrize(
    ("x", "y", "errors", "message"),
    [
        ([1, 2, 2], [1, 1, 1], None, "x: must be positive and increasing"),
        ([0, 1, 2], [1, 1, 1], None, "x: must be positive and increasing"),
        ([1, 2, 3], [1, 1], None, "x: must be positive and increasing"),
        ([1, 2, 3], [1, 1, 1], [1, 1], r"shape \(2,\); must have \(3,\)"),
        ([1, 2, 3], [1, 1, 1], [1, -1, 1], "must not be negative"),
    ],
)
def test_bad_series_are_refused(
    x: list[float], y: list[float], errors: list[float] | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        decay(x, y, errors)
