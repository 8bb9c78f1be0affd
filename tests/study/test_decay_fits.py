"""Fits of how waiting and blocking vanish, on cubes whose decay is known."""

import json
import math
from typing import Any

import numpy as np
import pytest
import xarray as xr

from manyserver import fits
from manyserver.statistics.erlang import erlang_b

SERVERS = [10.0, 20.0, 40.0, 80.0, 160.0]
LOAD, IDLE = 0.7, 0.3
SWEEP = ("method_name", "system", "policy", "n_servers", "load")
COEFFICIENT = 1 / (IDLE * (1 + IDLE))
EMPTY, WAITING = "empty_router_probability", "waiting_probability"
BLOCKING, SOJOURN = "blocking_probability", "sojourn_mean"


def make_cube(buffer: float, error: float = 0.001) -> xr.Dataset:
    """PULL with one and two routers, by Erlang's formula and by the leading order."""
    n = np.array(SERVERS)
    erlang = np.array([erlang_b(int(servers), LOAD * servers) for servers in n])
    empty = np.stack([erlang, COEFFICIENT / n * (1 + 1 / np.sqrt(n))])
    # One router has every server busy when it is empty, two have a part.
    hit = np.array([[1.0], [LOAD]]) * empty
    values = {
        EMPTY: empty,
        WAITING: 0 * hit if buffer == 1 else hit,
        BLOCKING: hit if buffer == 1 else 0.01 * n ** -np.array([[1.0], [0.5]]) * empty,
        SOJOURN: 1 + hit,
    }
    if math.isinf(buffer):
        values[BLOCKING] = 0 * hit
    shape = (2, 1, 2, len(SERVERS) + 1, 1)
    data = {}
    for name, value in values.items():
        array, spread = np.full(shape, np.nan), np.full(shape, np.nan)
        array[0, 0, :, :-1, 0] = value
        spread[0, 0, :, :-1, 0] = 1.96 * error * (value - (1 if name == SOJOURN else 0))
        array[1, 0, :, -1, 0] = 1.0 if name == SOJOURN else 0.0
        data[name], data[f"{name}_half_width"] = (SWEEP, array), (SWEEP, spread)
    routers = [json.dumps({"routers": number}) for number in (1, 2)]
    return xr.Dataset(
        data,
        coords={
            "method_name": ["simulation", "mean_field"],
            "system": ["equal"],
            "policy": ["one", "two"],
            "n_servers": [*SERVERS, math.inf],
            "load": [LOAD],
            "arrival_rate": (("system", "load"), [[LOAD]]),
            "policy_name": ("policy", ["pull", "pull"]),
            "policy_parameters": ("policy", routers),
            "pool_speed": (("system", "pool"), [[1.0]]),
            "pool_fraction": (("system", "pool"), [[1.0]]),
            "pool_buffer": (("system", "pool"), [[buffer]]),
        },
    )


def picked(table: Any, **where: Any) -> Any:
    for column, value in where.items():
        table = table[table[column] == value]
    return table


@pytest.mark.parametrize("law", ["auto", None])
def test_decays_agree_with_theory(law: str | None) -> None:
    for policy, name in (("one", "exponential"), ("two", "power")):
        options = {"policies": [policy], "law": law or name}
        table = fits.compute("decay", make_cube(math.inf), options)
        assert set(table["quantity"]) == {EMPTY, WAITING}
        parameters = {"one": {"decay per server"}, "two": {"exponent", "coefficient of 1/n"}}
        assert set(table["parameter"]) == parameters[policy]
        off = abs(table["estimate"] - table["expected"]) / table["standard_error"]
        assert (off < 2).all()
        assert (table["standard_error"] < 0.25 * abs(table["expected"])).all()


def test_expected_values_are_those_of_theory() -> None:
    table = fits.compute("decay", make_cube(math.inf))
    decays = picked(table, policy="one")["expected"]
    assert list(decays) == pytest.approx([LOAD - 1 - math.log(LOAD)] * 2, rel=1e-12)
    assert set(picked(table, policy="two", parameter="exponent")["expected"]) == {-1.0}
    constants = picked(table, policy="two", parameter="coefficient of 1/n")
    assert list(constants["expected"]) == pytest.approx([COEFFICIENT, LOAD * COEFFICIENT])


def test_a_coefficient_that_is_a_guess_says_so() -> None:
    cube = make_cube(math.inf)
    cube["policy_parameters"] = ("policy", [json.dumps({"routers": n}) for n in (2, 3)])
    table = fits.compute("decay", cube, {"law": "power"})
    guessed = table["note"].str.contains("what is expected is a guess")
    three = (table["policy"] == "two") & (table["parameter"] == "coefficient of 1/n")
    assert three.any()
    assert (guessed == three).all()


def test_buffers_change_what_is_expected_of_blocking() -> None:
    one = fits.compute("decay", make_cube(1), {"law": "power", "quantities": [BLOCKING]})
    rows = picked(one, policy="two")
    assert list(rows["expected"]) == pytest.approx([-1.0, LOAD * COEFFICIENT])
    assert len(fits.compute("decay", make_cube(1), {"quantities": [WAITING]})) == 0
    two = picked(fits.compute("decay", make_cube(2), {"quantities": [BLOCKING]}), policy="two")
    assert list(two["parameter"]) == ["exponent"]
    assert list(two["expected"]) == [-1.5]
    (row,) = picked(
        fits.compute("decay", make_cube(2), {"quantities": [BLOCKING], "law": "exponential"}),
        policy="one",
    ).to_dict("records")
    assert row["estimate"] == pytest.approx(row["expected"], rel=0.03)


def test_the_sojourn_time_vanishes_beside_its_limit() -> None:
    table = fits.compute("decay", make_cube(math.inf), {"quantities": [SOJOURN]})
    (row,) = picked(table, policy="two", parameter="coefficient of 1/n").to_dict("records")
    assert row["quantity"] == "sojourn_mean - limit"
    assert row["expected"] == pytest.approx(LOAD * COEFFICIENT)
    without = make_cube(math.inf).sel({"method_name": ["simulation"]})
    assert len(fits.compute("decay", without, {"quantities": [SOJOURN]})) == 0


def test_what_was_seen_too_rarely_is_listed() -> None:
    cube = make_cube(math.inf)
    rare = (cube["n_servers"] >= 80) & (cube["policy"] == "one") & np.isfinite(cube["n_servers"])
    cube[EMPTY] = cube[EMPTY].where(~rare | cube[EMPTY].isnull(), 0.0)
    cube[f"{EMPTY}_half_width"] = cube[f"{EMPTY}_half_width"].where(~rare)
    table = fits.compute("decay", cube, {"quantities": [EMPTY], "law": "exponential"})
    row = picked(table, policy="one").iloc[0]
    assert row["excluded"].split()[-2:] == ["80", "160"]
    assert "too few events from 80 on" in row["note"]


def test_other_policies_have_no_theory() -> None:
    cube = make_cube(math.inf).assign_coords(
        policy_name=("policy", ["jiq", "sq"]),
        policy_parameters=("policy", [json.dumps({"d": 1}), json.dumps({"d": 2})]),
    )
    table = fits.compute("decay", cube, {"quantities": [EMPTY]})
    assert picked(table, policy="one")["expected"].notna().all()
    assert picked(table, policy="two")["expected"].isna().all()
