"""Fluctuations of averages over time, and the expansion in the number of servers."""

from functools import cache

import numpy as np
import pytest
import xarray as xr
from tests.diffusion.reference import Row, rows, stationary

import manyserver as ms

expansion = cache(ms.halfin_whitt.expansion)


@cache
def fluctuations(beta: float) -> xr.Dataset:
    return ms.halfin_whitt.fluctuations(beta)


@pytest.mark.parametrize("row", rows("asymptotic variance"), ids=str)
def test_asymptotic_variances_are_those_of_the_table(row: Row) -> None:
    """That of Y1 is exactly 2."""
    name = f"y{1 if 'Y1' in row.quantity else 2}_asymptotic_variance"
    value, error = (float(fluctuations(row.beta)[key]) for key in (name, f"{name}_error"))
    # The table gives four digits.
    assert value == pytest.approx(row.value, abs=row.error or 1e-7, rel=1e-3 if row.error else 0)
    assert error < 1e-4 * value


def test_the_asymptotic_variance_is_that_of_long_paths() -> None:
    """Against simulation, at 5 standard errors of the variance of 2000 averages: 6e-7.

    Averages over a finite time T have a variance smaller by some relaxation time over T, and the
    steps of length h one of the order of h: 0.1 covers both.
    """
    beta, horizon = 2.0, 80.0
    start = (-beta, float(stationary(beta).y2_mean))
    paths = ms.halfin_whitt.path(beta, horizon, step=0.05, start=start, replications=2000, seed=5)
    averages = paths.y2.isel(time=slice(200, None)).mean("time").values
    length = horizon - 10.0
    found = length * averages.var()
    exact = float(fluctuations(beta).y2_asymptotic_variance)
    kurtosis = np.mean((averages - averages.mean()) ** 4) / averages.var() ** 2
    error = found * np.sqrt((kurtosis - 1) / len(averages))
    assert abs(found - exact) < 5 * error + 0.1 * exact


@pytest.mark.parametrize("row", [r for r in rows("c1", "c2") if r.beta >= 1], ids=str)
def test_coefficients_are_those_of_the_table(row: Row) -> None:
    name = "first_coefficient" if row.quantity.startswith("c1") else "second_coefficient"
    result = expansion(row.beta)
    assert float(result[name]) == pytest.approx(row.value, abs=row.error, rel=0)
    assert float(result[f"{name}_error"]) < row.error


def test_two_terms_come_close_to_the_exact_mean() -> None:
    result, n = expansion(1.0), 2500
    limit = float(stationary(1.0).y2_mean)
    exact = float(ms.halfin_whitt.chain(1.0, n).q2_mean) / 50
    first, second = float(result.first_coefficient), float(result.second_coefficient)
    assert limit - first / 50 - second / n == pytest.approx(exact, abs=1e-4)
    assert abs(limit - exact) > 0.04


@pytest.mark.parametrize(
    ("function", "beta", "message"),
    [
        (ms.halfin_whitt.fluctuations, 0.0, "beta = 0.0: must be"),
        (ms.halfin_whitt.fluctuations, 7.0, "beta = 7.0: must be from 0.01 to 6"),
        (ms.halfin_whitt.expansion, 0.05, "beta = 0.05: must be at least 0.1"),
        (ms.halfin_whitt.expansion, float("nan"), "beta = nan: must be"),
    ],
)
def test_bad_input_is_named(function: object, beta: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        function(beta)  # type: ignore[operator]


def test_the_portrait_refuses_levels_below_beta() -> None:
    with pytest.raises(ValueError, match=r"levels = \[1\.0\]: .*at least one greater than beta"):
        ms.halfin_whitt.portrait(1.0, levels=[1.0])
    with pytest.raises(ValueError, match=r"kappa = 0\.5: must be at least beta = 1"):
        ms.halfin_whitt.portrait(1.0, levels=[2.0, 0.5])
