import dataclasses
import json
import math

import numpy as np
import pytest
import xarray as xr
from pydantic import ValidationError

from manyserver import fits
from manyserver.fits.row import columns, fit_row
from manyserver.statistics.rates import Points, no_rate

SERVERS = [10.0, 30.0, 100.0, 300.0, math.inf]
SWEEP = ("method_name", "system", "policy", "n_servers", "arrival_rate")
LEVELS = 9


def make_cube() -> xr.Dataset:
    """SQ(2) and SQ(3) on equal servers, in closed form, with a bias of exactly 1/N."""
    rates = np.array([0.5, 0.9])
    d = np.array([2.0, 3.0])
    level = np.arange(LEVELS)
    exponents = (d[:, None] ** level - 1) / (d[:, None] - 1)
    log_tail = np.log(rates)[:, None] * exponents[:, None, :]
    shape = (2, 1, 2, len(SERVERS), 2)
    sojourn, half_width = np.full(shape, np.nan), np.full(shape, np.nan)
    tails, logs, tail_errors = (np.full((*shape, 1, LEVELS), np.nan) for _ in range(3))
    limit = np.exp(log_tail)[..., 1:].sum(axis=-1) / rates
    sojourn[1, 0, :, -1] = limit
    for n, servers in enumerate(SERVERS[:-1]):
        sojourn[0, 0, :, n] = limit + 1 / servers
        half_width[0, 0, :, n] = 0.005
    tails[1, 0, :, -1, :, 0] = np.exp(log_tail)
    logs[1, 0, :, -1, :, 0] = log_tail
    tails[0, 0, :, 2, :, 0] = np.exp(log_tail)
    tail_errors[0, 0, :, 2, :, 0] = 0.05
    return xr.Dataset(
        {
            "sojourn_mean": (SWEEP, sojourn),
            "sojourn_mean_half_width": (SWEEP, half_width),
            "queue_tail": ((*SWEEP, "pool", "level"), tails),
            "queue_tail_half_width": ((*SWEEP, "pool", "level"), tail_errors),
            "queue_log_tail": ((*SWEEP, "pool", "level"), logs),
        },
        coords={
            "method_name": ["simulation", "mean_field"],
            "system": ["equal"],
            "policy": ["two", "three"],
            "n_servers": SERVERS,
            "arrival_rate": rates,
            "load": (("system", "arrival_rate"), rates[None, :]),
            "policy_name": ("policy", ["sq", "sq"]),
            "policy_parameters": ("policy", [json.dumps({"d": 2}), json.dumps({"d": 3})]),
            "pool_speed": (("system", "pool"), [[1.0]]),
            "pool_fraction": (("system", "pool"), [[1.0]]),
        },
    )


@pytest.mark.parametrize("kind", fits.kinds("dispatching"))
def test_every_kind_gives_a_table(kind: str) -> None:
    table = fits.compute(kind, make_cube())
    assert list(table.columns) == columns("system", "policy", "arrival_rate", "load")
    assert set(table["fit"]) <= {kind}


@pytest.mark.parametrize("kind", fits.kinds("dispatching"))
def test_what_is_not_known_has_no_error_and_no_window(kind: str) -> None:
    cube = make_cube()
    # Errors that exceed every signal.
    noisy = cube.assign({name: 1e3 * cube[name] for name in cube if "half_width" in str(name)})
    for data in (cube, noisy):
        table = fits.compute(kind, data)
        assert table["standard_error"][table["estimate"].isna()].isna().all()
        assert not table["window"].astype(str).str.contains("nan").any()


def test_no_points_have_no_window() -> None:
    points = Points(np.empty(0), np.empty(0), None, (10.0, 20.0), "error exceeds signal")
    nothing = no_rate(points, "0 usable points")
    curve = make_cube().isel(system=0, policy=0, arrival_rate=0)
    row = fit_row(curve, nothing, method="simulation", quantity="x", parameter="y")
    assert (row["window"], row["n_points"], row["excluded"]) == ("", 0, "10 20")
    known = dataclasses.replace(nothing, standard_error=0.0)
    assert np.isnan(fit_row(curve, known, method="", quantity="", parameter="")["standard_error"])


def test_tail_growth_is_d_with_its_error() -> None:
    table = fits.compute("tail_growth", make_cube())
    assert list(table["policy"]) == ["two", "two", "three", "three"]
    assert list(table["arrival_rate"]) == [0.5, 0.9, 0.5, 0.9]
    assert list(table["expected"]) == pytest.approx([2, 2, 3, 3])
    assert list(table["estimate"]) == pytest.approx([2, 2, 3, 3], abs=1e-9)
    assert (table["standard_error"] < 1e-9).all()
    assert set(table["window"]) == {"0 to 8"}


def test_tail_growth_of_simulated_tails_excludes_noise() -> None:
    table = fits.compute("tail_growth", make_cube(), {"methods": ["simulation"]})
    assert set(table["n_servers"]) == {100.0}
    two = table[(table["policy"] == "two") & (table["arrival_rate"] == 0.9)].iloc[0]
    assert two["excluded"] == "5 6 7 8"
    assert two["note"] == "error exceeds signal from level 5"
    assert abs(two["estimate"] - 2) < two["standard_error"]
    three = table[(table["policy"] == "three") & (table["arrival_rate"] == 0.5)].iloc[0]
    assert math.isnan(three["estimate"])
    assert three["note"].startswith("3 usable levels, 4 needed")


def test_tails_without_logarithm_or_half_width_are_fitted_as_they_are() -> None:
    cube = make_cube().drop_vars(["queue_log_tail", "queue_tail_half_width"])
    table = fits.compute("tail_growth", cube)
    assert list(table["estimate"]) == pytest.approx([2, 2, 3, 3], abs=1e-6)


def test_finite_size_recovers_the_exponent() -> None:
    table = fits.compute("finite_size", make_cube())
    table = table[table["parameter"] == "exponent"]
    assert list(table["estimate"]) == pytest.approx([-1.0] * 4, abs=1e-6)
    assert set(table["expected"]) == {-1.0}
    # At 300 servers the bias is 0.0033 and its half-width 0.005.
    assert set(table["excluded"]) == {"300"}
    assert set(table["window"]) == {"10 to 100"}


def test_curves_without_finite_systems_or_limit_give_no_row() -> None:
    cube = make_cube()
    assert len(fits.compute("finite_size", cube.isel(n_servers=slice(-1)))) == 0
    assert len(fits.compute("finite_size", cube.isel(n_servers=[-1]))) == 0


def test_policies_are_chosen() -> None:
    table = fits.compute("tail_growth", make_cube(), {"policies": ["three"]})
    assert set(table["policy"]) == {"three"}


def test_unknown_things_are_refused() -> None:
    with pytest.raises(ValueError, match=r"kind = 'tail_grow'.*did you mean 'tail_growth'"):
        fits.compute("tail_grow", make_cube())
    with pytest.raises(ValidationError, match="policy\n  Extra inputs are not permitted"):
        fits.load("tail_growth").options_class(policy=["two"])
    with pytest.raises(ValueError, match=r"policy = 'four'.*two, three"):
        fits.compute("tail_growth", make_cube(), {"policies": ["four"]})
    with pytest.raises(ValueError, match=r"method = 'exact'.*simulation, mean_field"):
        fits.compute("finite_size", make_cube(), {"method": "exact"})
