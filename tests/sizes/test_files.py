"""Files of sizes as spreadsheets, databases and public traces write them: right, or refused."""

import bz2
import gzip
import lzma
import os
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import xarray as xr
from netCDF4 import Dataset
from pyarrow import parquet

import manyserver as ms
from manyserver.sizes.empirical import Empirical
from manyserver.sizes.files import read_sizes

SIZES = [0.5, 1.25, 1000.5]
PLAIN = "job,seconds\n1,0.5\n2,1.25\n3,1000.5\n"
GERMAN = "Auftrag;Größe;Dauer (s)\r\nä;7;0,5\r\nö;8;1,25\r\nü;9;1000,5\r\n"
BY_NAME = {"column": "seconds"}
DAUER = {"column": "Dauer (s)"}
COMMA = {"decimal": ","}


def zipped(*texts: str) -> bytes:
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for number, text in enumerate(texts):
            archive.writestr(f"part{number}.csv", text)
    return stream.getvalue()


def write(folder: Path, content: str | bytes) -> Path:
    path = folder / "jobs"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read(path: Path, **parameters: Any) -> list[float]:
    sizes: list[float] = read_sizes(str(path), **parameters)[0].tolist()
    return sizes


RIGHT: dict[str, tuple[str | bytes, dict[str, Any]]] = {
    "comma": (PLAIN, BY_NAME),
    "semicolon": (PLAIN.replace(",", ";"), BY_NAME),
    "tab": (PLAIN.replace(",", "\t"), BY_NAME),
    "pipe": (PLAIN.replace(",", "|"), BY_NAME),
    "spaces": ("  job   seconds\n 1   0.5\n10  1.25 \n 3 1000.5\n", BY_NAME),
    "comma and space": (PLAIN.replace(",", ", "), BY_NAME),
    "by number": (PLAIN, {"column": 2}),
    "numbers as names": (PLAIN.replace("job", "2020"), BY_NAME),
    "told": (PLAIN, {**BY_NAME, "separator": ",", "decimal": "."}),
    "one column": ("seconds\n0.5\n1.25\n1000.5", {}),
    "no header": ("0.5\n1.25\n1000.5\n", {}),
    "no header, by number": ("1;0.5\n2;1.25\n3;1000.5\n", {"column": 2}),
    "CRLF": (PLAIN.replace("\n", "\r\n"), BY_NAME),
    "CR": (PLAIN.replace("\n", "\r"), BY_NAME),
    "byte order mark": (PLAIN.encode("utf-8-sig"), {"column": "seconds"}),
    "comments and blanks": ('# a, "b\n\n' + PLAIN.replace("2,", "  # c\n \t\n,\n2,"), BY_NAME),
    "comment as header": ("# job seconds\n1 0.5\n2 1.25\n3 1000.5\n", {"column": 2}),
    "quoted": ('"job","seconds"\n"a,\n#b","0.5"\n"c ""d""", "1.25"\n,1000.5\n', BY_NAME),
    "exponents": ("seconds\n5e-1\n+1.25E0\n.10005e+4\n", {}),
    "dates with spaces": (
        "time,seconds\n2020-01-01 00:00,0.5\n2020-01-01 00:01,1.25\n,1000.5\n",
        BY_NAME,
    ),
    "German, UTF-8": (GERMAN, DAUER),
    "German, byte order mark": (GERMAN.encode("utf-8-sig"), DAUER),
    "German, Windows-1252": (GERMAN.encode("cp1252"), DAUER),
    "German, UTF-16 with tabs": (GERMAN.replace(";", "\t").encode("utf-16"), DAUER),
    "German, quoted": (GERMAN.replace("1000,5", '"1000,5"'), DAUER),
    "German, told": (GERMAN, {**DAUER, **COMMA, "separator": ";"}),
    "German, one column": ("Dauer\n0,5\n1,25\n1000,5\n", COMMA),
    "German, no header": ("0,5;1\n1,25;2\n1000,5;3\n", {"column": 1, "separator": ";"}),
    "German with commas": ('a,seconds\n1,"0,5"\n2,"1,25"\n3,"1000,5"\n', BY_NAME),
    "gzip": (gzip.compress(PLAIN.encode()), BY_NAME),
    "bzip2": (bz2.compress(PLAIN.encode()), BY_NAME),
    "xz": (lzma.compress(PLAIN.encode()), BY_NAME),
    "zip": (zipped(PLAIN), BY_NAME),
}


@pytest.mark.parametrize(("content", "parameters"), RIGHT.values(), ids=RIGHT)
def test_files_that_are_read(
    tmp_path: Path, content: str | bytes, parameters: dict[str, Any]
) -> None:
    path = write(tmp_path, content)
    assert read(path, **parameters) == SIZES
    law = ms.size_law("empirical", file=path, mean=1, **parameters)
    assert isinstance(law, Empirical)
    values = ms.size_law("empirical", values=SIZES[::-1])
    assert law.digest == values.digest  # type: ignore[attr-defined]
    assert ms.size_law(law.name, **law.parameters) == law


def cells(*values: str) -> str:
    """A file with some cells from line 3 on."""
    return "a;b\n1;2\n" + "".join(f"{value};3\n" for value in values)


A = {"column": "a"}
NUMBER = "must be a number >= 0, without unit or thousands separator"
EITHER = "could have thousands separators or decimals; decimal = '.' or ','"
WRONG_CELLS = [
    *(
        "0.5 s",
        "12ms",
        "",
        "NA",
        "nan",
        "inf",
        "Infinity",
        "-",
        "0x1F",
        "1_000",
        "٣",
        "\u22125",
        "x",
    ),
    *("2020-01-01", "5%", "$5", "1 000", "1'000", "1e", "--1", "1.234,5", "1,234.5", "true"),
]
WRONG: dict[str, tuple[str | bytes, dict[str, Any], str]] = {
    **{f"cell {one}": (cells(one), A, f", line 3, a = {one!r}: {NUMBER}") for one in WRONG_CELLS},
    **{
        f"first cell {one}": (f"{one}\n1\n2\n", {"separator": ";"}, "line 1, column 1")
        for one in WRONG_CELLS
        if one not in ("", "x", "true")
    },
    "too large": (cells("1e400"), A, "line 3, a = inf: must be a finite number >= 0"),
    "negative": (cells("-2", "-3"), A, "line 3, a = -2: must be a finite number >= 0 (2 such"),
    "zeros": ("a\n0\n-0\n", {}, "are all zero"),
    "decimal comma, read as rows": ("a,seconds\n1,0,5\n2,1,5\n", BY_NAME, "line 2: has 3 cells"),
    "short row": (
        "a,b\n1,2\n3\n",
        {"column": "b"},
        "line 3: has 1 cells; must have 2, like line 1",
    ),
    "line numbers": ('# c\n\na,b\n1,"x\n#y"\n#, "z\n2,"w"\n3\n', A, "line 8: has 1 cells"),
    "open quote": ('a,b\n1,"x\n2,3\n', A, "line 2: is not a row"),
    "thousands or decimals": (cells("1,234"), A, f"line 3, a = '1,234': {EITHER}"),
    "thousands or decimals, points": (cells("1.234"), A, f"line 3, a = '1.234': {EITHER}"),
    "both": (cells("0,5", "1.5"), A, "line 3, a = '0,5'"),
    "thousands, told": (cells("1.234"), {**A, **COMMA}, "a = '1.234'"),
    "one column": ("a\n1,5\n", {}, "column 1 = '1,5': " + NUMBER + "; decimal = ',' reads it"),
    "separators": ("1,5;2,5\n3,5;4,5\n", {"column": 1}, "separated by ',' or ';'; must be told"),
    "units and separators": ("1,5 s;2\n3,5 s;4\n", {"column": 1}, "separated by ',' or ';'"),
    "units, one column or two": ("1,5ms\n2,5ms\n", {"column": 1}, "separated by ',' or nothing"),
    "spaces or thousands": ("1 234\n5 678\n", {"column": 1}, "separated by spaces or nothing"),
    "commas in other columns": (
        'a,b\n1.234,"2,5"\n',
        A,
        f"line 2, a = '1.234': {EITHER}",
    ),
    "one column or two": ("1,5\n2,5\n", {"column": 1}, "separated by ',' or nothing"),
    "two of a name": ("a,a\n1,2\n", A, "column = 'a': "),
    "no such column": ("a,b\n1,2\n", {"column": "c"}, "must be one of those of "),
    "no name": ("a,b\n1,2\n", {}, "column = None: must be one of those of "),
    "no header": ("1,2,3\n4,5,6\n", {}, "no header; must be a number from 1 to 3"),
    "no header, a name": ("1,2,3\n4,5,6\n", A, "no header; must be a number from 1 to 3"),
    "number too large": ("a,b\n1,2\n", {"column": 3}, "column = 3: must be from 1 to 2"),
    "column": ("a\n1\n", {"column": 1.5}, "column = 1.5: must be the name"),
    "separator": ("a\n1\n", {"separator": "x"}, "separator = 'x': must be one of"),
    "decimal": ("a\n1\n", {"decimal": [","]}, "decimal = [',']: must be"),
    "empty": ("", {}, "is empty"),
    "header alone": ("a,b\n", A, "is empty"),
    "comments alone": ("#\n\n", {}, "is empty"),
    "UTF-16 without mark": (PLAIN.encode("utf-16-le"), {}, "is no text; must be"),
    "no encoding": (b"a\x81\xff\n1\n", {}, "is not in UTF-8 or Windows-1252; must be"),
    "half UTF-16": (PLAIN.encode("utf-16")[:-1], {}, "is not in utf-16"),
    "spreadsheet": (zipped("a", "b"), {}, "holds 2 files; must be"),
    "old spreadsheet": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(99), {}, "is no text; must be"),
    "picture": (b"\x89PNG\r\n\x1a\n" + bytes(9), {}, "is no text; must be"),
    "endless line": ("1" * 2**21, {}, "has a line that is too long"),
    "cut gzip": (gzip.compress(PLAIN.encode())[:-20], {}, "cannot be read: it is damaged"),
    "cut xz": (lzma.compress(PLAIN.encode())[:-20], {}, "cannot be read: it is damaged"),
    "cut zip": (zipped(PLAIN)[:-20], {}, "cannot be read: it is damaged"),
    "encrypted zip": (
        zipped(PLAIN)
        .replace(b"PK\x03\x04\x14\0\0", b"PK\x03\x04\x14\0\1")
        .replace(b"PK\x01\x02\x14\x03\x14\0\0", b"PK\x01\x02\x14\x03\x14\0\1"),
        {},
        "cannot be read: it is damaged or enc",
    ),
    "cut Parquet": (b"PAR1" + bytes(50), {}, "cannot be read: the Parquet file is damaged"),
    "cut NetCDF": (b"\x89HDF\r\n\x1a\n" + bytes(50), {}, "cannot be read: "),
    "cut classic NetCDF": (b"CDF\x01" + bytes(3), {}, "cannot be read: "),
}


@pytest.mark.parametrize(("content", "parameters", "message"), WRONG.values(), ids=WRONG)
def test_files_that_are_refused(
    tmp_path: Path, content: str | bytes, parameters: dict[str, Any], message: str
) -> None:
    path = write(tmp_path, content)
    with pytest.raises(ValueError) as caught:
        ms.size_law("empirical", file=path, **parameters)
    assert message in str(caught.value)
    assert str(caught.value).isprintable()


SECRETS = [
    "root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1:daemon:/usr/sbin:/bin/sh\n",
    "-----BEGIN KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ\n-----END KEY-----\n",
    "user,root,word\nalice,x,root\n",
    "root,b3Bl,7\nbob,root,8\n",
    "[root]\nb3Bl = root\n",
    '{"root": "b3Bl"}\n',
    "\x1b[2Jroot\x1b]0;b3Bl\x07\n1\n",
]


@pytest.mark.parametrize("text", SECRETS)
@pytest.mark.parametrize("parameters", [{}, A, {"column": 1}, {"column": 2}])
def test_nothing_is_shown_of_a_file_without_sizes(
    tmp_path: Path, text: str, parameters: dict[str, Any]
) -> None:
    with pytest.raises(ValueError) as caught:
        ms.size_law("empirical", file=write(tmp_path, text), **parameters)
    told = str(caught.value).replace(str(tmp_path), "")
    assert told.isprintable()
    assert not any(word in told for word in ("root", "b3Bl", "BEGIN", "alice"))


def test_names_and_cells_are_shortened(tmp_path: Path) -> None:
    names = ",".join(f"{'n' * 500}{number}" for number in range(500))
    path = write(tmp_path, f"{names}\n{','.join('1' * 500)}\n")
    with pytest.raises(ValueError, match=r"nnn\.\.\., 488 more$"):
        read(path, column="a")
    with pytest.raises(ValueError, match=r"line 2, column 1 = '9{24}\.\.\.'"):
        read(write(tmp_path, f"a\n{'9' * 500}x\n"))


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", Path(os.devnull)):
        with pytest.raises(ValueError, match="must be a file"):
            read(path)
    with pytest.raises(FileNotFoundError, match="no such file"):
        read(tmp_path / "none\0")


def test_a_million_rows(tmp_path: Path) -> None:
    sizes = np.random.default_rng(1).exponential(size=1_000_000)
    text = "job;seconds\n" + "".join(
        f"{number};{size!r}\n" for number, size in enumerate(sizes.tolist())
    )
    path = write(tmp_path, gzip.compress(text.replace(".", ",").encode(), 1))
    np.testing.assert_array_equal(read_sizes(str(path), "seconds")[0], sizes)


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "jobs"
    table = {
        "seconds": pa.array(SIZES),
        "single": pa.array([0.5, 1.25, 1000.5], pa.float32()),
        "count": pa.array([1, 2, 3], pa.int64()),
        "holes": pa.array([1, None, 3], pa.int64()),
        "text": pa.array(["1", "2", "3"]),
        "truth": pa.array([True, False, True]),
        "time": pa.array([1, 2, 3], pa.timestamp("s")),
        "twice": pa.array([1, 2, 3]),
    }
    parquet.write_table(
        pa.Table.from_arrays([*table.values(), table["twice"]], [*table, "twice"]), path
    )
    assert read(path, column="seconds") == read(path, column="single") == SIZES
    assert read(path, column="count") == [1, 2, 3]
    with pytest.raises(ValueError, match=r"holes\[1\] = nan: must be a finite number"):
        ms.size_law("empirical", file=path, column="holes")
    for column in ("text", "truth", "time"):
        with pytest.raises(ValueError, match=f"{column}: has type .*; must be numbers"):
            read(path, column=column)
    with pytest.raises(ValueError, match=r"column = 'twice': .* has 2 of this name"):
        read(path, column="twice")
    with pytest.raises(ValueError, match=r"column = None: must be one of those of .*: seconds, "):
        read(path)
    with pytest.raises(ValueError, match=r"separator = ';': .* is not text"):
        read(path, column="count", separator=";")


def test_netcdf(tmp_path: Path) -> None:
    path = tmp_path / "jobs"
    xr.Dataset(
        {
            "seconds": ("job", SIZES, {"units": "seconds"}),
            "count": ("job", [1, 2, 3]),
            "when": ("job", np.array([1, 2, 3], "M8[s]").astype("M8[ns]")),
            "text": ("job", ["1", "2", "3"]),
            "masked": ("job", [1.0, 2.0, -9.0], {}, {"_FillValue": -9.0}),
        },
        {"job": [1, 2, 3]},
    ).to_netcdf(path, engine="netcdf4")
    with Dataset(path, "a") as file:
        file.createVariable("unwritten", "f4", ("job",))[:2] = 1
        file.createVariable("scaled", "i2", ("job",)).scale_factor = 0.25
        file["scaled"][:] = SIZES
    assert read(path, column="seconds") == read(path, column="scaled") == SIZES
    assert read(path, column="count") == [1, 2, 3]
    for column in ("masked", "unwritten"):
        with pytest.raises(ValueError, match=rf"{column}\[2\] = nan: must be a finite number"):
            ms.size_law("empirical", file=path, column=column)
    for column in ("when", "text"):
        with pytest.raises(ValueError, match=f"{column}: holds .*; must be numbers"):
            read(path, column=column)
    for other in (None, "job", 1):
        with pytest.raises(ValueError, match=f"column = {other!r}: must be one of those of"):
            read(path, column=other)


def test_what_differs_only_in_how_it_is_written_has_one_digest() -> None:
    shipped = Path(__file__).parents[2] / "config" / "data" / "job_sizes.csv"
    law = ms.size_law("empirical", file=shipped, column="seconds", mean=1)
    assert law.digest.startswith("3520b75b6cc7b800")  # type: ignore[attr-defined]
    zero, minus = (ms.size_law("empirical", values=[1, zero]) for zero in (0.0, -0.0))
    assert zero.digest == minus.digest  # type: ignore[attr-defined]


@pytest.mark.parametrize("values", [[1e308, 1e308], [5e-324, 5e-324]])
def test_a_mean_does_not_overflow(values: list[float]) -> None:
    law = ms.size_law("empirical", values=values, mean=1)
    assert isinstance(law, Empirical)
    assert (law.measured_mean, law.scv) == (values[0], 0)
    assert law.quantile([0.1, 0.9]).tolist() == [1, 1]
