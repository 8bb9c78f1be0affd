"""A cube is a file that tools for NetCDF understand (CF conventions), and that opens fast."""

from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import pytest

from manyserver.study.cube import CHUNK_BYTES, build_cube, write_cube
from manyserver.study.storage.records import Record
from manyserver.study.storage.unit_file import write_unit
from manyserver.study.study import read_study

NOT_OF_A_VALUE = {"point_id", "point_seed", "reason", "status"}


@pytest.fixture
def cube(write_study: Any, tmp_path: Path) -> Path:
    """A cube whose values are made up."""
    grid = {"start": 0.1, "stop": 0.9, "count": 200}
    study = read_study(write_study({"sweep.arrival_rate": grid, "unit": []}))
    values = {
        "sojourn_mean": 1.5,
        "sojourn_mean_half_width": 0.1,
        "queue_tail": np.full((2, 400), 0.5).tolist(),
    }
    files = []
    for name, unit in study.units.items():
        files.append(tmp_path / f"{name}.jsonl")
        write_unit(files[-1], unit, (Record(p.parameters, p.code, values) for p in unit.points))
    path = tmp_path / "cube.nc"
    write_cube(build_cube(study, files), path)
    return path


def test_every_variable_is_described(cube: Path) -> None:
    with netCDF4.Dataset(cube) as data:
        assert data.Conventions == "CF-1.11"
        assert {"title", "source", "history"} <= set(data.ncattrs())
        for name, variable in data.variables.items():
            if name not in {"policy_name", "policy_parameters"}:
                assert variable.long_name, name
            is_number = variable.dtype is not str and name not in NOT_OF_A_VALUE
            if is_number and name not in data.dimensions:
                assert variable.units, name
            if name in data.dimensions and variable.dtype is not str:
                # CF 2.5.1: coordinates have no missing values.
                assert "_FillValue" not in variable.ncattrs()
        assert data["sojourn_mean"].ancillary_variables == "status sojourn_mean_half_width"


def test_values_are_compressed_in_parts_that_are_read_alone(cube: Path) -> None:
    with netCDF4.Dataset(cube) as data:
        tail = data["queue_tail"]
        assert tail.filters()["zlib"] and tail.filters()["shuffle"]
        chunks = tail.chunking()
        assert np.prod(tail.shape) * 8 > CHUNK_BYTES
        assert CHUNK_BYTES / 10 < np.prod(chunks) * 8 <= CHUNK_BYTES
        # A curve of a policy, with all rates and levels, is one part or few.
        assert chunks[-2:] == list(tail.shape[-2:])
    assert cube.stat().st_size < 0.1 * 400 * 2 * 400 * 8
