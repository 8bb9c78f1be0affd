from collections.abc import Callable

import numpy as np
import pytest

from manyserver.statistics.crossings import crossings

CURVES: dict[str, tuple[Callable[[np.ndarray], np.ndarray], float]] = {
    "exp": (lambda x: np.exp(2 * x) - 3, np.log(3) / 2),
    "pole": (lambda x: 1 / (1.2 - x) - 1.6, 1.2 - 1 / 1.6),
    "power": (lambda x: x**7 - 0.1, 0.1 ** (1 / 7)),
}


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("count", [6, 11, 21])
def test_the_error_covers_the_interpolation(name: str, count: int) -> None:
    curve, zero = CURVES[name]
    for shift in np.linspace(-0.04, 0.04, 21):
        x = np.linspace(0.05, 0.95, count) + shift
        (found,) = crossings(x, curve(x))
        assert abs(found.place - zero) <= found.half_width + 1e-12
        assert found.window[0] <= zero <= found.window[1]
        assert found.rises


def test_more_points_know_it_better() -> None:
    curve, _ = CURVES["pole"]
    errors = []
    for count in (8, 16, 32):
        x = np.linspace(0, 1, count)
        errors.append(crossings(x, curve(x))[0].half_width)
    assert errors[2] < errors[1] / 4 < errors[0] / 16


def test_the_error_covers_the_noise() -> None:
    # 2,000 draws: four standard errors of the coverage are 0.02, a false alarm in 16,000.
    generator = np.random.default_rng(1)
    curve, zero = CURVES["exp"]
    x = np.linspace(0, 1, 11)
    hits = 0
    for _ in range(2000):
        (found,) = crossings(x, curve(x) + 0.01 * generator.standard_normal(11), np.full(11, 0.01))
        hits += abs(found.place - zero) <= found.half_width
    assert hits / 2000 > 0.95 - 0.02


def test_noise_is_no_crossing() -> None:
    generator = np.random.default_rng(2)
    x = np.linspace(0, 1, 11)
    found = [
        crossings(x, 0.01 * generator.standard_normal(11), np.full(11, 0.01)) for _ in range(200)
    ]
    # Two of eleven values must differ from zero, with opposite signs: about one draw in ten.
    assert np.mean([bool(one) for one in found]) < 0.25
    assert crossings(x, np.zeros(11)) == []


def test_missing_values_have_no_crossing_beside_them() -> None:
    x = np.linspace(0, 1, 6)
    y = np.array([-3.0, -2.0, np.nan, 1.0, 2.0, 3.0])
    assert crossings(x, y) == []
    (found,) = crossings([0.0, 1.0], [-1.0, 1.0])
    assert found.place == pytest.approx(0.5)
    assert np.isnan(found.half_width)
