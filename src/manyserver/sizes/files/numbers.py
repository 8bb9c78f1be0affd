"""Numbers as text: which cells are numbers, and what a comma or a point in them means."""

import re
from collections.abc import Callable, Sequence

import numpy as np

from manyserver.sizes.files.shown import shortened

__all__ = [
    "DECIMALS",
    "NO_SEPARATOR",
    "VALUE",
    "WITH_UNIT",
    "decimal_mark",
    "is_name",
    "numbers",
]

NO_SEPARATOR = "\x1f"
"""For a text of one column: it does not occur in any."""

DECIMALS = {
    mark: re.compile(rf"[+-]?([0-9]+[{mark}]?[0-9]*|[{mark}][0-9]+)([eE][+-]?[0-9]+)?")
    for mark in (".", ",")
}
"""Numbers with a decimal point, and with a decimal comma."""
VALUE = re.compile(r"[+-]?[.,]*[0-9][0-9.,]*([eE][+-]?[0-9]+)?")
"""Numbers with either, or with thousands separators."""
WITH_UNIT = re.compile(r"[+-]?[0-9.,]+( [0-9]{3})*([.,][0-9]*)?([eE][+-]?[0-9]+)?[^0-9]*")
"""The same, perhaps with spaces between thousands, and with a unit."""
GROUPED = re.compile(r"[+-]?[1-9][0-9]{0,2}([.,][0-9]{3})+")
"""Digits that could be thousands."""
MISSING = {"na", "n/a", "nan", "null", "nil", "none", "inf", "infinity", "missing", "unknown"}
"""Words that stand for a value."""


def is_name(cell: str) -> bool:
    """Whether a cell is more likely the name of a column than a value with a mistake in it."""
    begins_well = cell[:1] not in "+-.,0123456789"
    return begins_well and any(map(str.isalpha, cell)) and cell.casefold() not in MISSING


def decimal_mark(
    cells: Sequence[str], separator: str, sample: Sequence[str], place: Callable[[int], str]
) -> str:
    """Find the decimal mark of a column; any, if with neither all cells are numbers.

    Parameters
    ----------
    cells, place
        As in :func:`numbers`.
    separator : str
        What separates the columns. Where it is a comma, a point is a decimal point, unless quoted
        cells of the `sample`, from any column, have commas in their numbers.
    sample : sequence of str

    Raises
    ------
    ValueError
        If cells with a mark could all have thousands separators.
    """
    points = [cell for cell in cells if "." in cell]
    commas = [cell for cell in cells if "," in cell]
    if commas and (points or separator == NO_SEPARATOR):
        return "."
    certain = separator == "," and not any("," in cell and VALUE.fullmatch(cell) for cell in sample)
    marked = commas or ([] if certain else points)
    if marked and all(map(GROUPED.fullmatch, marked)):
        raise ValueError(
            f"{place(cells.index(marked[0]))} = {shortened(marked[0])!r}: could have thousands "
            "separators or decimals; decimal = '.' or ',' tells which is the decimal mark"
        )
    return "," if commas else "."


def numbers(cells: Sequence[str], decimal: str, place: Callable[[int], str]) -> np.ndarray:
    """Read cells as numbers.

    Parameters
    ----------
    cells : sequence of str
        Without spaces around them.
    decimal : {".", ","}
        The decimal mark.
    place : callable
        Says where the cell of an index stands, for messages.

    Returns
    -------
    numpy.ndarray, shape (cell,)
        May hold infinity, for numbers that are too large.

    Raises
    ------
    ValueError
        If a cell is something else.
    """
    number = DECIMALS[decimal].fullmatch
    for index, cell in enumerate(cells):
        if not number(cell):
            raise ValueError(
                f"{place(index)}{_told(cell, cells)}: must be a number >= 0, without unit or "
                f"thousands separator{_hint(cell, decimal)}"
            )
    if decimal == ",":
        cells = [cell.replace(",", ".") for cell in cells]
    return np.fromiter(map(float, cells), float, len(cells))


def _told(cell: str, cells: Sequence[str]) -> str:
    """Show a cell, unless it may be from a text that holds no numbers at all."""
    if is_name(cell) and not any(map(VALUE.fullmatch, cells)):
        return ""
    return f" = {shortened(cell)!r}"


def _hint(cell: str, decimal: str) -> str:
    for mark in DECIMALS.keys() - {decimal}:
        if DECIMALS[mark].fullmatch(cell):
            return f"; decimal = {mark!r} reads it, if that is the decimal mark"
    return ""
