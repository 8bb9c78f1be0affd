"""Measured sizes: files that are read, and files that are refused."""

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import manyserver as ms
from manyserver.sizes.empirical import Empirical


def read(*arguments: object, **parameters: object) -> Empirical:
    law = ms.sizes("empirical", *arguments, **parameters)
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
    data["work"][1, 0] = np.nan
    data.to_netcdf(tmp_path / "holes.nc")
    with pytest.raises(ValueError, match=r"work\[2\] = nan: must be a finite number >= 0"):
        read(file=tmp_path / "holes.nc", column="work")


BAD = [
    ("a,b\n1,2\n", {"column": "c"}, "column = 'c': must be one of those of .*: a, b"),
    ("a,b\n1,2\n", {}, "column = None: must be one of"),
    ("a\n", {}, "is empty"),
    ("", {}, "column = None"),
    ("a\n1\nx\n", {}, "line 3, a = 'x': must be a number"),
    ("a,b\n1,2\n3\n", {"column": "b"}, "line 3, b = '': must be a number"),
    ("a\n1\n-2\n-3\n", {}, r"line 3, a = -2: must be a finite number >= 0 \(2 such values\)"),
    ("a\n1\nnan\n", {}, "line 3, a = nan"),
    ("a\ninf\n", {}, "line 2, a = inf"),
    ("a\n0\n0\n", {}, "all zero"),
]


@pytest.mark.parametrize(("text", "parameters", "message"), BAD)
def test_bad_files(tmp_path: Path, text: str, parameters: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read(file=write(tmp_path / "bad.csv", text), **parameters)


def test_what_is_no_source_of_sizes(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no such file"):
        read(file=tmp_path / "none.csv")
    for parameters in ({}, {"file": "a.csv", "values": [1]}):
        with pytest.raises(ValueError, match="one of file and values"):
            read(**parameters)
    for values, message in ((3, "must be a list"), (["x"], "numbers"), ([[1.0]], "one dimension")):
        with pytest.raises(ValueError, match=message):
            read(values=values)
    with pytest.raises(ValueError, match=r"values\[1\] = -1"):
        read(values=[1, -1])


def test_text_in_a_netcdf_file(tmp_path: Path) -> None:
    xr.Dataset({"host": ("job", ["a", "b"])}).to_netcdf(tmp_path / "text.nc")
    with pytest.raises(ValueError, match="must be numbers"):
        read(file=tmp_path / "text.nc", column="host")
