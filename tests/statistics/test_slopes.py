import numpy as np
import pytest

from manyserver.statistics.slopes import straight_slope

X = 4.0 ** np.arange(2, 9)


def test_a_power_is_fitted_to_all_points() -> None:
    rate = straight_slope(X, -3 * X**-0.7)
    assert rate.estimate == pytest.approx(-0.7, abs=1e-12)
    assert rate.prefactor == pytest.approx(-3)
    assert rate.standard_error < 1e-12
    assert (rate.window, rate.n_points, rate.excluded, rate.note) == ((16, 65536), 7, (), "")


def test_the_window_begins_where_the_slope_stays() -> None:
    rate = straight_slope(X, X**-0.5 * (1 - 3 / X))
    assert rate.excluded == (16.0,)
    assert rate.note == "not yet straight at 16"
    assert abs(rate.estimate + 0.5) < 2 * rate.standard_error
    strict = straight_slope(X, X**-0.5 * (1 - 3 / X), largest_shift=1e-4)
    assert strict.excluded == (16.0, 64.0, 256.0, 1024.0)
    assert abs(strict.estimate + 0.5) < 1e-3
    assert straight_slope(X, X**-0.5 * (1 - 3 / X), largest_shift=0).n_points == 3


def test_missing_points_are_left_out() -> None:
    y = X**-0.5
    y[[0, 3]] = np.nan, 0.0
    assert straight_slope(X, y).excluded == (16.0, 1024.0)


@pytest.mark.parametrize(
    ("y", "note"),
    [([1.0, 0.5], "2 usable points, 3 needed"), ([1.0, -0.5, 0.2], "the signal changes sign")],
)
def test_what_cannot_be_fitted_says_so(y: list[float], note: str) -> None:
    rate = straight_slope(X[: len(y)], y)
    assert np.isnan(rate.estimate)
    assert rate.note == note


@pytest.mark.parametrize("x", [[1.0, 2.0], [1.0, 1.0, 2.0], [0.0, 1.0, 2.0]])
def test_bad_abscissae_are_refused(x: list[float]) -> None:
    with pytest.raises(ValueError, match="x: must be positive and increasing"):
        straight_slope(x, [3.0, 2.0, 1.0])
