"""Tables of what job sizes do: insensitivity, and percentiles against a target."""

import math

import numpy as np
import pytest
import xarray as xr
from matplotlib.container import ErrorbarContainer
from tests.figures.conftest import PolicySpec, make_cube, with_jobs

from manyserver import figures, fits

POLICIES: list[PolicySpec] = [(f"scheme{i} d=(2,2)", f"scheme{i}", {"d": [2, 2]}) for i in (1, 2)]


@pytest.fixture(scope="module")
def cube() -> xr.Dataset:
    """Three laws with the same means, but the second policy is 10 % slower with law b."""
    plain = make_cube(policies=POLICIES, arrival_rates=(0.5, 0.9), n_servers=(100,))
    plain = plain.assign_coords({"method_name": plain["method_name"]})
    found = with_jobs(plain, a=1.0, b=4.0, heavy=math.inf)
    means, variance = found["sojourn_mean"].copy(), found["sojourn_variance"].copy()
    slow = {"method_name": 0, "policy": 1, "jobs": 1}
    means[slow] *= 1.1
    variance[{"method_name": 0, "jobs": 1}] *= 3
    reliable = xr.ones_like(means)
    reliable[{"jobs": 2}] = 0.0
    return found.assign(sojourn_mean=means, sojourn_variance=variance, interval_reliable=reliable)


def test_means_that_differ_are_told_from_those_that_agree(cube: xr.Dataset) -> None:
    table = fits.compute("insensitivity", cube)
    table = table[table["parameter"] == "relative deviation of the mean from a"]
    assert len(table) == 2 * 2 * 2
    differs = table["note"].str.startswith("differs")
    wrong = (table["jobs"] == "b") & (table["policy"] == POLICIES[1][0])
    assert differs.tolist() == wrong.tolist()
    assert table["estimate"][wrong].to_numpy() == pytest.approx(0.1)
    assert table["note"].str.contains(r"Holm, 8 rows").all()
    unreliable = table["note"].str.endswith("half-width not reliable")
    assert unreliable.tolist() == (table["jobs"] == "heavy").tolist()


def test_deviations_from_the_limit_are_bounded_together(cube: xr.Dataset) -> None:
    table = fits.compute("insensitivity", cube, {"jobs": ["a"], "reference": "b"})
    table = table[table["parameter"] == "relative deviation of the mean from the limit"]
    # Means are invented with a bias of 1/N, and half-widths of 0.1 %; 1.96 of their errors.
    assert table["estimate"].to_numpy() == pytest.approx(0.01, abs=0.003)
    assert table["standard_error"].to_numpy() == pytest.approx(0.00051, rel=0.01)
    assert set(table["note"].str.extract(r"limit \(95 %, (\d+) rows together\)")[0]) == {"4"}
    by_theory = {0.5: 0.1656 / 0.98089, 0.9: 3.7756 / 1.75499}
    equal = make_cube(
        systems={"C": [("1/2", "2/3"), ("1/2", "4/3")]},
        policies=POLICIES[:1],
        arrival_rates=(0.5, 0.9),
        n_servers=(100,),
    )
    table = fits.compute("insensitivity", with_jobs(equal, a=1.0))
    for rate, expected in zip(table["arrival_rate"], table["expected"], strict=True):
        # The coefficients of 1/N of figure 3 of arXiv:1502.05786.
        assert expected == pytest.approx(by_theory[rate] / 100, rel=1e-3)


def test_variances_are_compared_where_there_are_any(cube: xr.Dataset) -> None:
    table = fits.compute("insensitivity", cube)
    table = table[table["parameter"] == "ratio of the variance to that of a"]
    assert set(table["jobs"]) == {"b"}
    assert table["estimate"].to_numpy() == pytest.approx(3.0)
    assert table["note"].str.startswith("differs").all()


def test_a_cube_without_jobs_has_nothing_to_compare() -> None:
    plain = make_cube(policies=POLICIES[:1], arrival_rates=(0.5,), n_servers=(100,))
    assert len(fits.compute("insensitivity", plain)) == 0


def quantile(cube: xr.Dataset, policy: int, rate: int) -> float:
    place = {"method_name": 0, "n_servers": 0, "system": 0, "policy": policy, "arrival_rate": rate}
    return float(cube["sojourn_quantile"].isel(place).isel(jobs=0).sel(quantile=0.99))


def test_a_target_is_met_or_not_or_nobody_can_tell(cube: xr.Dataset) -> None:
    """Half-widths of percentiles are 5 % of them."""
    value = quantile(cube, 0, 0)
    for factor, verdict in ((1.06, "meets"), (1.04, "cannot tell"), (0.94, "does not meet")):
        options = {"at_most": factor * value, "jobs": ["a"], "policies": [POLICIES[0][0]]}
        table = fits.compute("targets", cube, options)
        first = table.iloc[0]
        assert first["note"].split(":")[0] == verdict
        assert first["estimate"] == value
        assert first["standard_error"] == pytest.approx(0.05 * value / 1.96, rel=1e-3)
        last = table.iloc[-1]
        assert last["parameter"] == f"largest arrival_rate that meets {factor * value:g}"
        assert last["note"] == ("highest of all" if verdict == "meets" else "meets at no load")


def test_the_largest_load_counts_up_to_the_first_failure(cube: xr.Dataset) -> None:
    best = 1.2 * max(quantile(cube, policy, 1) for policy in (0, 1))
    told = fits.compute("targets", cube, {"at_most": best, "jobs": ["a"]})
    told = told[told["parameter"].str.startswith("largest")]
    assert told["estimate"].tolist() == [0.9, 0.9]
    assert told["note"].tolist() == ["highest of all"] * 2
    broken = cube.copy(deep=True)
    broken["sojourn_quantile"][{"method_name": 0, "policy": 0, "arrival_rate": 0}] *= 100
    told = fits.compute("targets", broken, {"at_most": best, "jobs": ["a"]})
    told = told[told["parameter"].str.startswith("largest")]
    assert told["note"].tolist() == ["meets at no load", "highest of all"]


def test_unreliable_and_unstable_points_meet_no_target(cube: xr.Dataset) -> None:
    told = fits.compute("targets", cube, {"at_most": 1e6, "jobs": ["heavy"]})
    assert set(told["note"]) == {"cannot tell: interval not reliable", "meets at no load"}
    status = xr.full_like(cube["sojourn_mean"], "ok", dtype=object)
    status[{"policy": 0}] = "unstable"
    missing = cube.where(cube["policy"] != POLICIES[0][0]).assign(status=status)
    told = fits.compute("targets", missing, {"at_most": 1e6, "jobs": ["a"]})
    assert told["note"].tolist()[:2] == ["does not meet: unstable"] * 2


def test_targets_in_units_of_the_file(cube: xr.Dataset) -> None:
    mean = fits.compute("targets", cube, {"at_most": 5, "jobs": ["a"]})
    file = fits.compute("targets", cube, {"at_most": 10, "jobs": ["a"], "unit": "measured"})
    # The mean of the measured sizes is 2.
    np.testing.assert_allclose(file["estimate"][:4], 2 * mean["estimate"][:4])
    assert file["note"].tolist() == mean["note"].tolist()
    unknown = cube.assign_coords(measured_mean=("jobs", [np.nan] * 3))
    assert len(fits.compute("targets", unknown, {"unit": "measured"})) == 0
    with pytest.raises(ValueError, match="the cube holds no value to draw"):
        figures.draw("targets", unknown, {"unit": "measured"})


def test_the_table_of_targets_is_in_the_order_of_the_loads(cube: xr.Dataset) -> None:
    slow = cube.copy(deep=True)
    slow["sojourn_quantile"][{"policy": 0}] *= 100
    at_most = 1.2 * quantile(cube, 1, 1)
    figure = figures.draw("targets", slow, {"at_most": at_most, "jobs": ["a", "b"]})
    assert [axes.get_title() for axes in figure.axes] == ["a", "b"]
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert names == ["Scheme 2, $d = (2, 2)$", "Scheme 1, $d = (2, 2)$"]
    colours = {patch.get_facecolor() for patch in figure.axes[0].patches}
    assert len(figure.axes[0].patches) == len(figure.axes[0].texts) == 4
    assert len(colours) == 2


def test_panels_of_percentiles_are_chosen(cube: xr.Dataset) -> None:
    figure = figures.draw("percentiles", cube, {"quantiles": [0.9, 0.99], "jobs": ["a", "b"]})
    assert [axes.get_title() for axes in figure.axes] == ["$q = 0.9$", "$q = 0.99$", "", ""]
    assert [axes.get_ylabel() for axes in figure.axes] == ["a", "", "b", ""]
    with pytest.raises(ValueError, match=r"quantile = 0\.95: is not in the cube"):
        figures.draw("percentiles", cube, {"quantiles": [0.95]})


def test_infinite_variances_are_not_drawn_and_their_means_are_hollow(cube: xr.Dataset) -> None:
    figure = figures.draw("insensitivity", cube, {"policies": [POLICIES[0][0]]})
    above, below = figure.axes
    assert len(above.containers) == 3
    assert len(below.containers) == 2
    faces = [
        container.lines[0].get_markerfacecolor()
        for container in above.containers
        if isinstance(container, ErrorbarContainer)
    ]
    assert faces.count("white") == 1
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "half-width not reliable" in labels


def test_a_simulated_value_without_a_half_width_is_not_taken_for_exact(cube: xr.Dataset) -> None:
    batches = xr.full_like(cube["sojourn_mean"], 32.0)
    unknown = cube.assign(
        n_batches=batches,
        n_controls=0 * batches,
        sojourn_mean_half_width=np.nan * cube["sojourn_mean_half_width"],
        sojourn_quantile_half_width=np.nan * cube["sojourn_quantile_half_width"],
    )
    told = fits.compute("targets", unknown, {"at_most": 1e6, "jobs": ["a"]})
    judged = told[told["parameter"].str.startswith("percentile")]
    assert set(judged["note"]) == {"cannot tell: no half-width"}
    assert judged["standard_error"].isna().all()
    told = fits.compute("insensitivity", unknown)
    means = told[told["quantity"] == "sojourn_mean"]
    assert means["note"].str.startswith("cannot tell: no half-width").all()
    assert means["standard_error"].isna().all()


@pytest.mark.parametrize("swept", ["load", "arrival_rate"])
def test_targets_say_for_which_load_they_hold(swept: str, cube: xr.Dataset) -> None:
    if swept == "load":
        cube = cube.drop_vars("load").rename(arrival_rate="load")
        cube = cube.assign_coords(arrival_rate=("load", 0.5 * cube["load"].values))
    else:
        cube = cube.assign_coords(load=(swept, 2 * cube[swept].values))
    told = fits.compute("targets", cube, {"at_most": 5, "jobs": ["a"]})
    judged = told["parameter"].str.startswith("percentile")
    assert told["load"][judged].tolist() == 2 * cube["load"].values.tolist()
    assert told["arrival_rate"][judged].tolist() == 2 * cube["arrival_rate"].values.tolist()
    # The largest load is an estimate, and holds at no load alone; of a grid, it has no error.
    assert told[["load", "arrival_rate", "standard_error"]][~judged].isna().all(axis=None)
    assert told["standard_error"][told["estimate"].isna()].isna().all()
