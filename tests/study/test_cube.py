import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import manyserver as ms
from manyserver.study.cube import build_cube, write_cube
from manyserver.study.running.compute import compute_unit
from manyserver.study.storage.records import Record, encode
from manyserver.study.storage.store import Store
from manyserver.study.study import Study, read_study

SKEWED = [{"fraction": "1/2", "speed": "1/5"}, {"fraction": "1/2", "speed": "9/5"}]
TWO_SYSTEMS = {
    "systems": {
        "one": {"pools": [{"fraction": 1, "speed": 1}]},
        "skewed": {"pools": SKEWED},
    },
    "policies": [{"name": "sq", "d": 2}, {"name": "optimal_split", "label": "best split"}],
    "unstable": "skip",
}


def built(study: Study, folder: Path) -> xr.Dataset:
    files = []
    for name, unit in study.units.items():
        files.append(folder / f"{name}.jsonl")
        compute_unit(unit, Store(folder / "points"), files[-1], say=lambda line: None)
    return build_cube(study, files)


def test_values_stand_where_their_labels_say(write_study: Any, tmp_path: Path) -> None:
    study = read_study(write_study(TWO_SYSTEMS))
    cube = built(study, tmp_path)
    axes = ("method_name", "system", "policy", "n_servers", "arrival_rate")
    assert tuple(cube.sizes)[:5] == axes
    assert cube.sojourn_mean.dims == axes
    assert cube.queue_tail.dims == (*axes, "pool", "level")
    assert cube.system.values.tolist() == ["one", "skewed"]
    assert cube.policy.values.tolist() == ["sq d=2", "best split"]
    assert cube.n_servers.values.tolist() == [math.inf]
    for point in study.points:
        labels = {**point.labels, "n_servers": math.inf}
        here = cube.sel({"method_name": "mean_field", **labels})
        assert here.point_id.item() == point.id
        if not point.left_out:
            problem: Any = point.subject.problem
            alone = ms.fixed_point(problem.system, problem.policy)
            assert here.status.item() == "ok"
            assert here.sojourn_mean.item() == alone.sojourn_mean.item()
            pools, levels = alone.queue_tail.shape
            tail = here.queue_tail.values[:pools, :levels]
            assert tail.tolist() == alone.queue_tail.values.tolist()
            assert np.isnan(here.queue_tail.values[pools:]).all()
            assert np.isnan(here.queue_tail.values[:, levels:]).all()


def test_what_is_missing_is_nan_with_a_reason(write_study: Any, tmp_path: Path) -> None:
    cube = built(read_study(write_study(TWO_SYSTEMS)), tmp_path)
    unstable = cube.sel(system="skewed", policy="sq d=2", arrival_rate=0.5).squeeze()
    assert unstable.status.item() == "unstable"
    assert np.isnan(unstable.sojourn_mean.item())
    assert (cube.status == "unstable").sum().item() == 2
    assert np.isfinite(cube.sojourn_mean).sum().item() == 6


def test_coordinates_describe_systems_and_policies(write_study: Any, tmp_path: Path) -> None:
    cube = built(read_study(write_study(TWO_SYSTEMS)), tmp_path)
    assert cube.pool_speed.dims == ("system", "pool")
    np.testing.assert_array_equal(cube.pool_speed, [[1, np.nan], [0.2, 1.8]])
    np.testing.assert_array_equal(cube.pool_fraction, [[1, np.nan], [0.5, 0.5]])
    assert cube["load"].sel(system="skewed").values.tolist() == [0.5, 0.7]
    assert cube.policy_name.values.tolist() == ["sq", "optimal_split"]
    assert json.loads(cube.policy_parameters.values[0])["d"] == 2


def test_a_sweep_over_the_load_gives_that_axis(write_study: Any, tmp_path: Path) -> None:
    pools = [{"fraction": "1/2", "speed": 1}, {"fraction": "1/2", "speed": 3}]
    changes = {
        "sweep": {"load": [0.5, 0.9], "n_servers": "limit"},
        "systems.unequal.pools": pools,
    }
    cube = built(read_study(write_study(changes)), tmp_path)
    assert cube.sojourn_mean.dims[-1] == "load"
    assert cube.arrival_rate.dims == ("system", "load")
    assert cube.arrival_rate.values.tolist() == [[1.0, 1.8]]


def test_the_file_opens_with_all_that_was_written(write_study: Any, tmp_path: Path) -> None:
    cube = built(read_study(write_study(TWO_SYSTEMS)), tmp_path)
    path = tmp_path / "cube.nc"
    write_cube(cube, path)
    with xr.open_dataset(path) as opened:
        xr.testing.assert_identical(opened.load(), cube)
        assert opened.sojourn_mean.attrs["units"] == "time"
        assert opened.sojourn_mean.attrs["symbol"] == "W"
    again = tmp_path / "again.nc"
    write_cube(cube, again)
    assert again.read_bytes() == path.read_bytes()


def test_provenance(write_study: Any, tmp_path: Path) -> None:
    study = read_study(write_study(TWO_SYSTEMS))
    attrs = built(study, tmp_path).attrs
    assert attrs["title"] == "Small"
    assert attrs["study"] == "small"
    assert attrs["source"].startswith("manyserver ")
    assert json.loads(attrs["code_fingerprints"]) == {
        f"mean_field {point.subject.title}": [point.code] for point in study.points
    }
    libraries = json.loads(attrs["library_versions"])
    assert sorted(libraries) == ["manyserver", "numba", "numpy", "python", "scipy"]
    assert libraries["numpy"] == [np.__version__]
    assert json.loads(attrs["study_config"])["sweep"]["n_servers"] == [None]


def test_a_missing_unit_is_refused(write_study: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is in none of the unit files"):
        build_cube(read_study(write_study()), [])


@pytest.mark.parametrize(
    "values,expected",
    [
        ({}, "ok"),
        ({"precision_met": True, "interval_reliable": True}, "ok"),
        ({"precision_met": False, "interval_reliable": False}, "precision not met"),
        ({"interval_reliable": False}, "interval not reliable"),
    ],
)
def test_a_result_that_is_not_good_enough_says_so(
    values: dict[str, bool], expected: str, write_study: Any, tmp_path: Path
) -> None:
    study = read_study(write_study({"policies": [{"name": "sq", "d": 2}], "unit": []}))
    files = []
    for name, unit in study.units.items():
        lines = [
            encode(Record(point.parameters, point.code, {"sojourn_mean": 1.0, **values}))
            for point in unit.points
        ]
        files.append(tmp_path / f"{name}.jsonl")
        files[-1].parent.mkdir()
        files[-1].write_text("".join(lines))
    assert set(build_cube(study, files).status.values.ravel().tolist()) == {expected}
