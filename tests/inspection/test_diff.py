from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import xarray as xr

import manyserver as ms
from manyserver.inspection.diff import compare_cubes
from manyserver.schema import Purpose
from manyserver.study import models

if TYPE_CHECKING:
    from tests.inspection.conftest import Project

AXES = ("method_name", "rate")


def write(path: Path, mean: np.ndarray, rates: list[float], batches: float = np.inf) -> Path:
    """A cube with one simulated and one deterministic method."""
    shape = (2, len(rates))
    width = np.stack([np.full(len(rates), 0.2), np.full(len(rates), np.nan)])
    variables = {
        "sojourn_mean": (AXES, np.stack([mean, np.ones(len(rates))])),
        "sojourn_mean_half_width": (AXES, width),
        "residual": (AXES, np.stack([np.full(len(rates), np.nan), np.full(len(rates), 1e-6)])),
        "n_batches": (AXES, np.full(shape, batches)),
        "status": (AXES, np.full(shape, "ok", dtype=object)),
    }
    coords = {"method_name": ["simulation", "mean_field"], "rate": rates}
    cube = xr.Dataset(variables, coords=coords, attrs={"model": "dispatching"})
    cube.to_netcdf(path, engine="netcdf4")
    return path


@pytest.mark.parametrize("model", models.names())
def test_what_is_compared_follows_from_its_purpose(model: str, tmp_path: Path) -> None:
    """Values that differ by a half are told, and no others; none if its error is as large."""
    schema = models.load(model).schema
    values = schema.of_purpose(Purpose.VALUE, schema.variables)
    relative = schema.of_purpose(Purpose.RELATIVE_ERROR, schema.variables)
    others = [*values, *schema.of_purpose(Purpose.DIAGNOSTIC, schema.variables)]

    def differing(errors: list[str]) -> set[str]:
        files = []
        for value in (1.0, 1.5):
            found = dict.fromkeys(others, value) | dict.fromkeys(errors, 0.9)
            cube = xr.Dataset({name: (AXES, [[one]]) for name, one in found.items()})
            cube = cube.assign(status=(AXES, [["ok"]])).assign_attrs(model=model)
            files.append(tmp_path / f"{value}.nc")
            cube.assign_coords(method_name=["a"], rate=[1.0]).to_netcdf(files[-1], engine="netcdf4")
        first, second = files
        return {one.variable for one in compare_cubes(first, second, 0.05, 1e-9).differences}

    assert differing([]) == set(values)
    assert differing(relative) == set()
    for place in range(len(schema.errors_of(""))):
        assert differing([schema.errors_of(name)[place] for name in values]) == set()


def test_one_error_may_hold_for_a_whole_law(tmp_path: Path) -> None:
    files = []
    for value in (0.5, 0.6):
        law = (("x1", *AXES), np.full((3, 1, 1), value))
        cube = xr.Dataset({"y1_cdf": law, "y1_cdf_error": (AXES, [[0.04]])})
        cube = cube.assign(status=(AXES, [["ok"]])).assign_attrs(model="halfin_whitt")
        files.append(tmp_path / f"{value}.nc")
        cube.assign_coords(method_name=["a"], rate=[1.0]).to_netcdf(files[-1], engine="netcdf4")
    first, second = files
    assert compare_cubes(first, first, 0.05, 1e-9).same
    found = compare_cubes(first, second, 0.05, 1e-9).differences
    assert [one.variable for one in found] == [f"y1_cdf[{place}]" for place in range(3)]
    assert found[0].allowed == pytest.approx(0.08)


def test_two_runs_with_jobs_agree(tmp_path: Path) -> None:
    """Of one study, with other random numbers: a false alarm in a hundred thousand seeds."""
    system, policy = ms.System(0.5, [ms.Pool(1, 1)], n_servers=10), ms.policy("sq", d=2)
    files = []
    for seed in (1, 2):
        run = ms.simulate(system, policy, discipline="ps", horizon=500, seed=seed)
        cube = run.drop_attrs().expand_dims({"method_name": ["simulation"], "rate": [0.5]})
        cube = cube.astype(float).assign_attrs(model="dispatching")
        files.append(tmp_path / f"{seed}.nc")
        cube.assign(status=(AXES, [["ok"]])).to_netcdf(files[-1], engine="netcdf4")
    first, second = files
    found = compare_cubes(first, second, level=1e-5, relative=1e-9)
    assert found.simulated > 20
    assert found.differences == []


def test_equal_laws_are_seldom_called_different(tmp_path: Path) -> None:
    # 40 comparisons of 200 normal values each, with a level of 0.05 a comparison: more than 11
    # alarms have probability 1e-6.
    random = np.random.default_rng(1)
    rates = [float(rate) for rate in range(200)]
    alarms = 0
    for _ in range(40):
        first, second = (
            write(tmp_path / f"{i}.nc", random.normal(5, 0.2 / 1.96, 200), rates) for i in "ab"
        )
        alarms += not compare_cubes(first, second, level=0.05, relative=1e-9).same
    assert alarms <= 11


def test_infinite_values_are_compared(tmp_path: Path) -> None:
    rates = [0.1, 0.2]
    first = write(tmp_path / "a.nc", np.array([np.inf, 1.0]), rates)
    second = write(tmp_path / "b.nc", np.array([np.inf, np.inf]), rates)
    assert compare_cubes(first, first, 0.01, 1e-9).same
    assert len(compare_cubes(first, second, 0.01, 1e-9).differences) == 1


def test_what_differs_is_told_with_what_was_allowed(project: "Project", tmp_path: Path) -> None:
    first = write(tmp_path / "a.nc", np.array([5.0, 5.0, 5.0]), [0.1, 0.2, 0.3])
    second = write(tmp_path / "b.nc", np.array([5.1, 6.0, 5.0]), [0.1, 0.2, 0.4])
    said = project.call("diff", str(first), str(second), code=1).splitlines()
    assert said == [
        "only in the first: rate 0.3",
        "only in the second: rate 0.4",
        "method_name simulation, rate 0.2: sojourn_mean 5 and 6, apart 1, allowed 0.41",
        "2 simulated and 2 deterministic values compared: 1 values differ (level of a false alarm "
        "0.01 for all simulated values together, by Bonferroni; relative tolerance 1e-09 for the "
        "others)",
    ]
    same = project.call("diff", str(first), str(first))
    assert same.startswith("3 simulated and 3 deterministic values compared: agree")


def test_few_batches_allow_more(tmp_path: Path) -> None:
    allowed = []
    for batches in (3.0, 1000.0):
        first, second = (
            write(tmp_path / f"{i}.nc", np.array([mean]), [0.1], batches)
            for i, mean in (("a", 5.0), ("b", 500.0))
        )
        (found,) = compare_cubes(first, second, level=0.01, relative=0.0).differences
        allowed.append(found.allowed)
    # Quantiles of Student's t, 9.925 with 2 and 2.581 with 999 degrees of freedom; the half-widths
    # are 4.303 and 1.962 standard errors.
    expected = [np.sqrt(2) * 0.2 * 9.925 / 4.303, np.sqrt(2) * 0.2 * 2.581 / 1.962]
    assert allowed == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("apart,same", [(1e-6, True), (1e-5, False)])
def test_deterministic_values_have_their_stated_errors(
    apart: float, same: bool, tmp_path: Path
) -> None:
    first = write(tmp_path / "a.nc", np.array([5.0]), [0.1])
    with xr.open_dataset(first) as data:
        changed = data.load()
    changed["sojourn_mean"][1, 0] += apart
    changed.to_netcdf(tmp_path / "b.nc", engine="netcdf4")
    found = compare_cubes(first, tmp_path / "b.nc", level=0.01, relative=1e-9)
    assert found.same is same


def test_a_point_that_only_one_has(tmp_path: Path) -> None:
    first = write(tmp_path / "a.nc", np.array([5.0, 5.0]), [0.1, 0.2])
    second = write(tmp_path / "b.nc", np.array([5.0, np.nan]), [0.1, 0.2])
    found = compare_cubes(first, second, level=0.01, relative=1e-9)
    assert found.only_first == ["method_name simulation, rate 0.2"]
    assert not found.same


def test_files_that_are_no_cubes(project: "Project", tmp_path: Path) -> None:
    (tmp_path / "a.nc").write_text("nothing")
    said = project.call("diff", str(tmp_path / "a.nc"), str(tmp_path / "a.nc"), code=1)
    assert "cannot be compared" in said
