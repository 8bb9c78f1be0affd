import math
import os
from collections.abc import Callable

import numpy as np
import pytest

from manyserver.statistics.rates import coefficient, power_law

SEED = int(os.environ.get("MANYSERVER_TEST_SEED", "1"))
SERVERS = np.array([10, 20, 50, 100, 200, 500, 1000])


Sequence = tuple[np.ndarray, np.ndarray, np.ndarray | None]


def noisy(x: np.ndarray, y: np.ndarray, generator: np.random.Generator) -> Sequence:
    errors = np.abs(y) * 10 ** generator.uniform(-3, -1) * np.linspace(0.5, 2, x.size)
    return x, generator.normal(y, errors), errors


def second_term(generator: np.random.Generator, exponent: float) -> Sequence:
    """Return a law with a second term of the size of the first one at the first point."""
    x = SERVERS.astype(float)
    return x, x**exponent * (1 + generator.uniform(-0.8, 3) * 10 / x), None


def third_term(generator: np.random.Generator, exponent: float) -> Sequence:
    x = SERVERS.astype(float)
    second, third = generator.normal(0, 0.4, 2)
    return x, x**exponent * np.exp(second * 10 / x + third * (10 / x) ** 2), None


def half_orders(generator: np.random.Generator, exponent: float) -> Sequence:
    x = np.geomspace(16, 16384, 11)
    terms = generator.normal(0, [0.7, 0.5, 0.4]) @ np.stack(
        [(x / 16) ** (-k / 2) for k in (1, 2, 3)]
    )
    return x, x**exponent * np.exp(terms), None


def crossover(generator: np.random.Generator, exponent: float) -> Sequence:
    """Return a law that is another one below some x."""
    x = SERVERS.astype(float)
    return x, (x + 10 ** generator.uniform(0, 1.7)) ** exponent, None


def with_noise(generator: np.random.Generator, exponent: float) -> Sequence:
    return noisy(*second_term(generator, exponent)[:2], generator)


def crossover_with_noise(generator: np.random.Generator, exponent: float) -> Sequence:
    return noisy(*crossover(generator, exponent)[:2], generator)


def change_of_sign(generator: np.random.Generator, exponent: float) -> Sequence:
    x = SERVERS.astype(float)
    return noisy(x, x**exponent * (1 - 10 ** generator.uniform(0.5, 2.5) / x), generator)


def unknown_order(generator: np.random.Generator, exponent: float) -> Sequence:
    x = SERVERS.astype(float)
    order = generator.choice([0.5, 0.75, 1.0, 1.5, 2.0])
    y = x**exponent * (1 + generator.normal(0, 0.4) * (10 / x) ** order)
    return noisy(x, y, generator) if generator.random() < 0.5 else (x, y, None)


FAMILIES: dict[str, tuple[Callable[[np.random.Generator, float], Sequence], float | None]] = {
    "second term": (second_term, 1.0),
    "third term": (third_term, 1.0),
    "half orders": (half_orders, 0.5),
    "crossover": (crossover, 1.0),
    "noise": (with_noise, 1.0),
    "crossover, noise": (crossover_with_noise, 1.0),
    "change of sign": (change_of_sign, 1.0),
    "unknown order": (unknown_order, None),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_intervals_cover_the_exponent_and_the_coefficient(name: str) -> None:
    """400 sequences; where intervals cover 93 %, one test in 10,000 fails."""
    family, order = FAMILIES[name]
    generator = np.random.default_rng((SEED, len(name)))
    told = {"exponent": np.zeros(0, dtype=bool), "coefficient": np.zeros(0, dtype=bool)}
    for _ in range(400):
        exponent = -generator.choice([0.25, 0.5, 1.0, 2.0])
        sequence = family(generator, exponent)
        for key, rate, truth in (
            ("exponent", power_law(*sequence, order=order), exponent),
            ("coefficient", coefficient(*sequence, power=-exponent, order=order), 1.0),
        ):
            if np.isfinite(rate.estimate):
                covered = abs(rate.estimate - truth) <= 1.96 * rate.standard_error + 1e-9
                told[key] = np.append(told[key], covered)
            else:
                assert rate.note
    for seen in told.values():
        assert seen.mean() > 0.93 - 3.72 * math.sqrt(0.93 * 0.07 / seen.size)
    assert told["coefficient"].size > 300
    if name == "change of sign":
        # A fit that does not see the change has too few points left, or knows little.
        assert 50 < told["exponent"].size < 200
    else:
        assert told["exponent"].size > 300


def test_power_law_without_errors_is_exact_on_exact_data() -> None:
    rate = power_law(SERVERS, -3.0 / SERVERS)
    assert rate.estimate == pytest.approx(-1.0, abs=1e-9)
    assert rate.standard_error < 5e-4
    assert rate.prefactor == pytest.approx(-3.0, rel=1e-6)
    assert rate.window == (10.0, 1000.0)
    assert rate.n_points == SERVERS.size
    assert rate.excluded == ()
    assert rate.note == ""


def test_what_small_systems_add_is_the_second_term() -> None:
    rate = power_law(SERVERS, 0.7 * SERVERS**-0.5 * (1 + 4 / SERVERS), 1e-8 / SERVERS)
    assert rate.estimate == pytest.approx(-0.5, abs=1e-6)
    assert rate.prefactor == pytest.approx(0.7, rel=1e-5)
    assert rate.second_term == pytest.approx(4, rel=1e-3)


def test_more_and_larger_systems_know_it_better() -> None:
    errors = []
    for x in (SERVERS[:4], SERVERS, np.append(SERVERS, [2000, 5000, 10000])):
        errors.append(power_law(x, (1 + 3 / x) / x).standard_error)
    assert errors[2] < errors[1] < errors[0] / 3


def test_a_coefficient_may_change_its_sign_and_lists_what_is_excluded() -> None:
    y = 0.7 / SERVERS - 20 / SERVERS**2
    errors = np.full(SERVERS.size, 1e-7)
    errors[2] = 1.0
    rate = coefficient(SERVERS, y, errors)
    assert abs(rate.estimate - 0.7) < 1.96 * rate.standard_error < 0.01
    assert rate.second_term == pytest.approx(-20 / 0.7, rel=0.05)
    assert rate.excluded == (50.0,)
    assert rate.note == "error exceeds signal at 50"
    nothing = coefficient([10, 20], [0.1, 0.05])
    assert math.isnan(nothing.estimate)
    assert nothing.note == "2 usable points, 3 needed"


def test_points_whose_error_exceeds_their_signal_are_listed_and_change_nothing() -> None:
    errors = np.full(SERVERS.size, 1e-3)
    y = 2.0 / SERVERS
    y[-2:] = [1.9e-3, -1.0e-3]
    rate = power_law(SERVERS, y, errors)
    assert rate.excluded == (500.0, 1000.0)
    assert rate.note == "error exceeds signal at 500, 1000"
    y[-2:] = [-1.9e-3, 0.0]
    assert power_law(SERVERS, y, errors) == rate


def test_a_window_far_from_the_limit_says_so() -> None:
    x = np.array([10.0, 11, 12, 13])
    rate = power_law(x, x**-0.5 * (1 + 3 * (10 / x) ** 0.5), 1e-3 / x, order=0.5)
    assert math.isnan(rate.estimate)
    assert rate.note.startswith("not near the limit: at 13 the law may be off by")


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
