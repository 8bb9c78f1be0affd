"""Columns of text files: CSV and its relatives, read in one way or not at all.

Blank lines and lines that begin with # are left out, and all rows must be as long as the first,
which may be a header. What separates the columns is found by trying: under one separator only may
all rows be of one length, and have the column that is asked for.
"""

import csv
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from io import TextIOWrapper
from itertools import chain, islice
from pathlib import Path

import numpy as np

from manyserver.sizes.files.numbers import (
    DECIMALS,
    NO_SEPARATOR,
    VALUE,
    WITH_UNIT,
    decimal_mark,
    is_name,
    numbers,
)
from manyserver.sizes.files.shown import one_of, shown
from manyserver.sizes.files.streams import Lines, encoding_of, opened

__all__ = ["read"]

SEPARATORS = {",": "','", ";": "';'", "\t": "tabs", "|": "'|'", " ": "spaces"}
"""What may separate columns, and what messages call it."""
SAMPLE = 100
"""Rows that tell which separator it is."""

Record = tuple[int, list[str]]
"""The number of the first line of a row, and its cells."""


@dataclass
class Column:
    """The cells of a column; `place` says where the one of an index stands."""

    where: str
    label: str
    cells: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)

    def place(self, index: int) -> str:
        return f"{self.where}, line {self.lines[index]}, {self.label}"


def read(
    path: Path,
    where: str,
    column: str | int | None,
    separator: str | None,
    decimal: str | None,
) -> tuple[np.ndarray, Callable[[int], str]]:
    """Read a column of numbers; see :func:`manyserver.sizes.files.read_sizes`."""
    if separator is not None and separator not in [*SEPARATORS]:
        allowed = ", ".join(map(repr, SEPARATORS))
        raise ValueError(f"separator = {separator!r}: must be one of {allowed}")
    if decimal is not None and decimal not in [*DECIMALS]:
        raise ValueError(f"decimal = {decimal!r}: must be '.' or ','")
    records = partial(_records, path, where, encoding_of(path, where))
    if separator is None:
        candidates = [one for one in (*SEPARATORS, NO_SEPARATOR) if one != decimal]
        samples = {one: _sample(records(one)) for one in candidates}
        separator = _separator(samples, where, column)
    found = _column(records(separator), where, column)
    if decimal is None:
        rows = [row for _, row in _sample(records(separator))]
        sample = [cell.strip() for row in rows for cell in row]
        between = separator if len(rows[0]) > 1 else NO_SEPARATOR
        decimal = decimal_mark(found.cells, between, sample, found.place)
    return numbers(found.cells, decimal, found.place), found.place


def _records(path: Path, where: str, encoding: str, separator: str) -> Iterator[Record]:
    with opened(path, where) as stream, TextIOWrapper(stream, encoding) as text:
        lines = Lines(text, where)
        rows = csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=True)
        first = 1
        try:
            for row in rows:
                if row and (row[0] or len(row) == 1 or any(map(str.strip, row))):
                    yield first, row
                first = rows.line_num + 1
                lines.begins = True
        except csv.Error as error:
            raise ValueError(f"{where}, line {first}: is not a row: {error}") from None


def _sample(records: Iterator[Record]) -> list[Record]:
    """Return the first rows, up to one that cannot be read."""
    sample = []
    with suppress(ValueError):
        for record in islice(records, SAMPLE):
            sample.append(record)
    return sample


def _separator(samples: dict[str, list[Record]], where: str, column: str | int | None) -> str:
    """Find what separates the columns; if nothing fits, what explains best why it does not."""
    fitting, widths = [], {NO_SEPARATOR: 1}
    for separator, sample in samples.items():
        lengths = {len(row) for _, row in sample}
        if lengths <= {1} or (separator == " " and (len(lengths) > 1 or _padded(sample))):
            continue
        widths[separator] = width = len(sample[0][1])
        named = isinstance(column, str) and column in map(str.strip, sample[0][1])
        numbered = isinstance(column, int) and column <= width
        if len(lengths) == 1 and (named or numbered):
            fitting.append(separator)
    if column == 1 and all(WITH_UNIT.fullmatch(row[0]) for _, row in samples[NO_SEPARATOR]):
        fitting.append(NO_SEPARATOR)  # Rows such as 1,5 could be one column as well.
    if len(fitting) > 1:
        known = {**SEPARATORS, NO_SEPARATOR: "nothing"}
        raise ValueError(
            f"{where}: columns could be separated by {' or '.join(known[one] for one in fitting)}; "
            "must be told by separator, or by decimal = ',' if a comma is the decimal mark"
        )
    return fitting[0] if fitting else max(widths, key=widths.__getitem__)


def _padded(sample: list[Record]) -> bool:
    """Whether spaces stand beside another separator."""
    return any(cell[0] in ",;|" or cell[-1] in ",;|" for _, row in sample for cell in row if cell)


def _column(records: Iterator[Record], where: str, column: str | int | None) -> Column:
    """Take one column out of rows of equal length.

    Raises
    ------
    ValueError
        If there is no such column, or a row is of another length.
    """
    beginning = list(islice(records, 2))
    if not beginning:
        raise ValueError(f"{where}: is empty; must hold at least one size")
    position = _position([row for _, row in beginning], where, column)
    label = shown(column) if isinstance(column, str) else f"column {position + 1}"
    found = Column(where, label)
    line, row = beginning[0]
    cell = row[position].strip()
    header = isinstance(column, str) or is_name(cell)
    if not header and not VALUE.fullmatch(cell):
        raise ValueError(
            f"{where}, line {line}, {label}: is neither a number nor the name of a column"
        )
    width, first = len(row), line
    for line, row in chain(beginning[header:], records):
        if len(row) != width:
            raise ValueError(
                f"{where}, line {line}: has {len(row)} cells; must have {width}, like line {first}"
            )
        found.cells.append(row[position].strip())
        found.lines.append(line)
    return found


def _position(rows: list[list[str]], where: str, column: str | int | None) -> int:
    """Find a column by its name in the first row, or by its number."""
    names = [name.strip() for name in rows[0]]
    width = len(names)
    if column is None and width == 1:
        return 0
    if isinstance(column, int):
        if not 1 <= column <= width:
            raise ValueError(f"column = {column}: must be from 1 to {width}; so many has {where}")
        return column - 1
    named = column in names and not VALUE.fullmatch(str(column))
    if not named and any(map(VALUE.fullmatch, names)):
        raise ValueError(
            f"column = {column!r}: {where} has numbers in its first row, and no header; must be a "
            f"number from 1 to {width}"
        )
    if not named and not any(VALUE.fullmatch(cell.strip()) for cell in rows[-1]):
        # Perhaps no table at all, but something that is nobody's business.
        raise ValueError(f"column = {column!r}: must be one of the columns of {where}")
    return names.index(one_of(where, column, names))
