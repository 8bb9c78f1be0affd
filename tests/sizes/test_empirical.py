"""Measured sizes: files that are read, and files that are refused."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import manyserver as ms
from manyserver.sizes.empirical import Empirical


def read(*arguments: object, **parameters: object) -> Empirical:
    law = ms.size_law("empirical", *arguments, **parameters)
    assert isinstance(law, Empirical)
    return law


def write(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def test_a_column_of_a_csv_file(tmp_path: Path) -> None:
    file = write(tmp_path / "jobs.csv", "\ufeffjob, bytes\n1,10\n2,30\n\n3,20\n")
    law = read(file=file, column="bytes")
    assert (law.count, law.mean, law.measured_mean) == (3, 20, 20)
    assert law.quantile([0.0, 0.3, 0.5, 0.99]).tolist() == [10, 10, 20, 30]
    scaled = read(file=file, column="bytes", mean=1)
    assert (scaled.mean, scaled.measured_mean) == (1, 20)
    assert scaled.quantile(0.99) == 1.5
    assert scaled.scv == pytest.approx(law.scv) == pytest.approx(np.var([10, 20, 30]) / 400)
    assert scaled.digest == law.digest == read(values=[30, 20, 10]).digest
    assert scaled != law


def test_the_only_column_needs_no_name(tmp_path: Path) -> None:
    assert read(file=write(tmp_path / "one.csv", "seconds\n1\n3\n")).mean == 2


def test_a_variable_of_a_netcdf_file(tmp_path: Path) -> None:
    data = xr.Dataset({"work": (("day", "job"), np.array([[1.0, 2.0], [3.0, 6.0]])), "host": 1})
    path = tmp_path / "jobs.nc"
    data.to_netcdf(path)
    law = read(file=path, column="work", mean=1)
    assert (law.count, law.measured_mean) == (4, 3)


NO_SOURCE: list[tuple[Mapping[str, object], str]] = [
    ({}, "one of file and values"),
    ({"file": "a.csv", "values": [1]}, "one of file and values"),
    ({"file": 3}, "file = 3: must be a path"),
    ({"values": 3}, "values: are of type int; must be a list"),
    ({"values": [1, -1]}, r"values\[1\] = -1"),
    ({"values": [10**400]}, "values: must all be less than"),
    *(
        ({"values": values}, "values: must all be numbers")
        for values in (["x"], [1, "2"], [1, True], [1, 1j], [[1.0]], np.array([True]))
    ),
    *(
        ({"values": [1], name: value}, f"{name} = '{value}': is for a file, not for values")
        for name, value in {"column": "a", "separator": ";", "decimal": ","}.items()
    ),
]


def test_what_is_no_source_of_sizes(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no such file"):
        read(file=tmp_path / "none.csv")
    for parameters, message in NO_SOURCE:
        with pytest.raises(ValueError, match=message):
            read(**parameters)
