"""Fits of how finite systems approach the limit, on cubes whose rates are known."""

import json
import math
import os
from typing import Any

import numpy as np
import pytest
import xarray as xr

from manyserver import fits
from manyserver.fits.propagation_of_chaos import dependence

SEED = int(os.environ.get("MANYSERVER_TEST_SEED", "1"))
SERVERS = np.array([10.0, 20, 50, 100, 1000, 10000])
SWEEP = ("method_name", "system", "policy", "n_servers", "load")
LEVELS = 6
LIMIT = np.array([[1.0, 0.6, 0.3, 0.1, 0.02, 0.0], [1.0, 0.5, 0.2, 0.05, 0.01, 0.0]])
SHIFT = np.array([[0.0, 0.5, 1.0, 0.4, 0.1, 0.0], [0.0, -0.3, 0.6, 0.2, 0.0, 0.0]])
"""Coefficients of 1/N in the queue tails."""
VARIANCE = np.array([[0.0, 0.3, 0.2, 0.1, 0.02, 0.0], [0.0, 0.4, 0.3, 0.1, 0.02, 0.0]])
STEP = np.array([1.0, -1.0, 0, 0, 0, 0])
DEPENDENCE = 0.1
PER_LEVEL = ("pool", "level")
PAIR = ("pool", "level", "other_pool", "other_level")


def make_cube(noise: float = 0.0, seed: int = 0) -> xr.Dataset:
    """Two pools of one half each; everything is off its limit by 1/N, with relative noise."""
    generator = np.random.default_rng((SEED, seed))
    shapes: dict[str, tuple[str, ...]] = {
        "sojourn_mean": (),
        "sojourn_mean_correction": (),
        "jobs_per_server_variance": (),
        "queue_tail": PER_LEVEL,
        "queue_tail_correction": PER_LEVEL,
        "queue_tail_variance": PER_LEVEL,
        "occupancy_covariance": PAIR,
    }
    sizes = {"pool": 2, "level": LEVELS, "other_pool": 2, "other_level": LEVELS}
    names = [*shapes, *(f"{name}_half_width" for name in shapes if "correction" not in name)]
    data = {
        name: np.full(
            (3, 1, 1, 7, 1, *(sizes[dim] for dim in shapes[name.removesuffix("_half_width")])),
            np.nan,
        )
        for name in names
    }

    def simulated(name: str, n: int, value: Any, spread: Any) -> None:
        error = noise * np.abs(spread) * np.ones(np.shape(value))
        data[name][0, 0, 0, n, 0] = generator.normal(value, error)
        data[f"{name}_half_width"][0, 0, 0, n, 0] = 1.96 * error

    covariance = occupancy_covariance(math.inf)
    for n, servers in enumerate(SERVERS):
        simulated("sojourn_mean", n, 2 + 3 / servers, 3 / servers)
        simulated("jobs_per_server_variance", n, 5 * (1 + 4 / servers), 5)
        simulated("queue_tail", n, LIMIT + SHIFT / servers, SHIFT / servers)
        simulated("queue_tail_variance", n, VARIANCE * (1 + 2 / servers), VARIANCE)
        simulated("occupancy_covariance", n, occupancy_covariance(servers), 0.05 * covariance)
        for name, value in (
            ("sojourn_mean_correction", 3),
            ("jobs_per_server_variance", 5),
            ("queue_tail_correction", SHIFT),
            ("queue_tail_variance", VARIANCE),
            ("occupancy_covariance", covariance),
        ):
            data[name][2, 0, 0, n, 0] = value
    data["sojourn_mean"][1, 0, 0, -1] = 2
    data["queue_tail"][1, 0, 0, -1] = LIMIT
    return xr.Dataset(
        {
            name: ((*SWEEP, *shapes[name.removesuffix("_half_width")]), array)
            for name, array in data.items()
        },
        coords={
            "method_name": ["simulation", "mean_field", "refined_mean_field"],
            "system": ["unequal"],
            "policy": ["some"],
            "n_servers": [*SERVERS, math.inf],
            "load": [0.5],
            "arrival_rate": (("system", "load"), [[0.5]]),
            "policy_name": ("policy", ["scheme1"]),
            "policy_parameters": ("policy", [json.dumps({"d": [2, 2]})]),
            "pool_speed": (("system", "pool"), [[2 / 3, 4 / 3]]),
            "pool_fraction": (("system", "pool"), [[0.5, 0.5]]),
        },
    )


def occupancy_covariance(servers: float) -> np.ndarray:
    """N times the covariance if two distinct servers differ from independent ones by 0.1/N.

    With N_j servers in the pool, of the same pool that is
    N / N_j (diag(p) - p p') + N (1 - 1 / N_j) times what the joint law differs by.
    """
    tails = LIMIT + (0 if math.isinf(servers) else SHIFT / servers)
    covariance = np.empty((2, LEVELS, 2, LEVELS))
    for one in range(2):
        for other in range(2):
            joint = DEPENDENCE * np.outer(STEP, STEP)
            if one == other:
                law = -np.diff(tails[one], append=0.0)
                joint = 2 * (np.diag(law) - np.outer(law, law)) + joint * (1 - 2 / servers)
            covariance[one, :, other] = joint
    return covariance


def picked(table: Any, parameter: str, **where: Any) -> Any:
    chosen = table[table["parameter"] == parameter]
    for column, value in where.items():
        chosen = chosen[chosen[column].isna() if value is None else chosen[column] == value]
    return chosen


@pytest.mark.parametrize(
    ("kind", "exponent"),
    [
        ("finite_size", -1.0),
        ("fluctuation", -0.5),
        ("distance", -1.0),
        ("propagation_of_chaos", -1.0),
    ],
)
def test_exponents_and_coefficients_are_recovered(kind: str, exponent: float) -> None:
    table = fits.compute(kind, make_cube())
    found = picked(table, "exponent")
    assert set(found["expected"]) == {exponent}
    # The law of the fluctuations, 1 + e / N, is the first two terms of the fitted one.
    assert list(found["estimate"]) == pytest.approx([exponent] * len(found), abs=0.01)
    assert (abs(found["estimate"] - exponent) < 3 * found["standard_error"] + 1e-9).all()
    coefficients = picked(table, "coefficient of 1/N")
    assert list(coefficients["estimate"]) == pytest.approx(list(coefficients["expected"]), rel=1e-6)
    assert len(coefficients) == len(found) > 0


def test_coefficients_are_those_of_the_theory() -> None:
    cube = make_cube()
    (bias,) = picked(fits.compute("finite_size", cube), "coefficient of 1/N")["expected"]
    assert bias == 3
    spread = picked(fits.compute("fluctuation", cube), "coefficient of 1/N")
    assert list(picked(spread, "coefficient of 1/N", pool=None)["expected"]) == [5]
    assert list(picked(spread, "coefficient of 1/N", pool=1, level=2)["expected"]) == [0.3]
    table = picked(fits.compute("distance", cube), "coefficient of 1/N", pool=1)
    assert list(table["expected"]) == pytest.approx([1.1, 0.6])
    chaos = picked(fits.compute("propagation_of_chaos", cube), "coefficient of 1/N")
    assert list(chaos["pool"]) == ["0 0", "0 1", "1 1"]
    assert list(chaos["expected"]) == pytest.approx([2 * DEPENDENCE] * 3)


@pytest.mark.parametrize("kind", ["finite_size", "fluctuation"])
def test_standard_errors_are_right(kind: str) -> None:
    """60 cubes with noise of 3 %: mean and spread of z of one exponent, each within 4 errors."""
    z = []
    for seed in range(60):
        row = picked(fits.compute(kind, make_cube(0.03, seed)), "exponent").iloc[0]
        z.append((row["estimate"] - row["expected"]) / row["standard_error"])
    assert abs(np.mean(z)) < 4 / math.sqrt(len(z))
    assert 0.5 < np.std(z) < 1 + 4 / math.sqrt(2 * len(z))


@pytest.mark.parametrize("kind", ["distance", "propagation_of_chaos"])
def test_errors_of_distances_are_not_too_small(kind: str) -> None:
    """30 cubes; errors are bounds, so that at most 1 in 20 exponents is off by two of them."""
    off = 0
    for seed in range(30):
        row = picked(fits.compute(kind, make_cube(0.02, seed)), "exponent").iloc[0]
        off += abs(row["estimate"] - row["expected"]) > 2 * row["standard_error"]
    assert off <= 3


@pytest.mark.parametrize(
    ("kind", "variable"),
    [
        ("finite_size", "sojourn_mean"),
        ("fluctuation", "jobs_per_server_variance"),
        ("distance", "queue_tail"),
        ("propagation_of_chaos", "occupancy_covariance"),
    ],
)
def test_a_noise_floor_is_excluded_and_listed(kind: str, variable: str) -> None:
    cube = make_cube(0.01)
    half_width = cube[f"{variable}_half_width"]
    # At 1000 and 10000 servers the errors are as large as the values.
    kept = (cube["n_servers"] < 1000) | half_width.isnull()
    cube[f"{variable}_half_width"] = half_width.where(kept, 20.0)
    for row in fits.compute(kind, cube).to_dict("records"):
        if kind != "fluctuation" or math.isnan(row["level"]):
            assert row["excluded"].split()[-2:] == ["1000", "10000"]
            assert "error exceeds signal at 1000, 10000" in row["note"]
            assert row["window"].endswith("100")


def test_a_fit_that_the_data_do_not_support_says_so() -> None:
    cube = make_cube().isel(n_servers=[0, 1, -1])
    for kind in ("finite_size", "fluctuation", "distance", "propagation_of_chaos"):
        table = fits.compute(kind, cube)
        assert table["estimate"].isna().all()
        assert set(table["note"]) == {"2 usable points, 3 needed"}


def test_without_theory_nothing_is_expected() -> None:
    cube = make_cube().sel({"method_name": ["simulation", "mean_field"]})
    for kind in ("fluctuation", "propagation_of_chaos"):
        assert picked(fits.compute(kind, cube), "coefficient of 1/N")["expected"].isna().all()


def test_two_servers_of_an_exact_chain() -> None:
    """P(Q1 = k, Q2 = l) by listing all pairs of servers, against the covariances."""
    import manyserver as ms
    from manyserver.exact import exact, stationary_law

    pools = [ms.Pool("1/2", "2/3"), ms.Pool("1/2", "4/3")]
    system = ms.System(0.6, pools, n_servers=4)
    policy = ms.policy("scheme1", d=[2, 2])
    result = exact(system, policy, tolerance=1e-4, moments=True)
    law = stationary_law(system, policy, tolerance=1e-4)
    curve = result.expand_dims({"method_name": ["exact"], "n_servers": [4.0]})
    curve = curve.assign_coords(
        pool_speed=("pool", system.speeds), pool_fraction=("pool", system.fractions)
    )
    for pair, servers in (((0, 0), [(0, 1), (1, 0)]), ((0, 1), [(0, 2), (0, 3), (1, 2), (1, 3)])):
        held = -np.diff(result.queue_tail.values, axis=1, append=0.0)
        levels = held.shape[1]
        joint = np.zeros((levels, levels))
        for one, other in servers:
            first, second = law.jobs[:, one], law.jobs[:, other]
            np.add.at(joint, (first, second), law.probabilities / len(servers))
        distance = np.abs(joint - np.outer(held[pair[0]], held[pair[1]])).sum() / 2
        series = dependence(curve, pair, "exact")
        assert series is not None
        assert series[1][0] == pytest.approx(distance, rel=1e-9)
        assert series[2] is None
