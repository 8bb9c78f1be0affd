"""Numbers as text: which cells are numbers, and what a comma or a point in them means."""

import re
from collections.abc import Callable, Sequence

import numpy as np

from manyserver.sizes.files.shown import shortened

__all__ = ["DECIMALS", "NO_SEPARATOR", "VALUE", "is_name", "numbers"]

NO_SEPARATOR = "\x1f"
"""For a text of one column: it does not occur in any."""

DECIMALS = {
    mark: re.compile(rf"[+-]?([0-9]+[{mark}]?[0-9]*|[{mark}][0-9]+)([eE][+-]?[0-9]+)?")
    for mark in (".", ",")
}
"""Numbers with a decimal point, and with a decimal comma."""
VALUE = re.compile(r"[+-]?[.,]*[0-9][0-9.,]*([eE][+-]?[0-9]+)?")
"""Numbers with either, or with thousands separators."""
GROUPED = re.compile(r"[+-]?[1-9][0-9]{0,2}([.,][0-9]{3})+")
"""Digits that could be thousands."""
MISSING = {"na", "n/a", "nan", "null", "nil", "none", "inf", "infinity", "missing", "unknown"}
"""Words that stand for a value."""


def is_name(cell: str) -> bool:
    """Whether a cell is more likely the name of a column than a value with a mistake in it."""
    begins_well = cell[:1] not in "+-.,0123456789"
    return begins_well and any(map(str.isalpha, cell)) and cell.casefold() not in MISSING


def numbers(
    cells: Sequence[str], decimal: str | None, separator: str, place: Callable[[int], str]
) -> np.ndarray:
    """Read cells as numbers.

    Parameters
    ----------
    cells : sequence of str
        Without spaces around them.
    decimal : {".", ","} or None
        The decimal mark; found from the cells if it is None.
    separator : str
        What separates the columns. Where it is a comma, a point is a decimal point.
    place : callable
        Says where the cell of an index stands, for messages.

    Returns
    -------
    numpy.ndarray, shape (cell,)
        May hold infinity, for numbers that are too large.

    Raises
    ------
    ValueError
        If a cell is something else, or could be one of two numbers.
    """
    mark = decimal or _mark(cells, separator, place)
    number = DECIMALS[mark].fullmatch
    for index, cell in enumerate(cells):
        if not number(cell):
            raise ValueError(f"{place(index)}{_told(cell, cells)}: {_wanted(cell, decimal)}")
    if mark == ",":
        cells = [cell.replace(",", ".") for cell in cells]
    return np.fromiter(map(float, cells), float, len(cells))


def _mark(cells: Sequence[str], separator: str, place: Callable[[int], str]) -> str:
    points = [cell for cell in cells if "." in cell]
    commas = [cell for cell in cells if "," in cell]
    if commas and (points or separator == NO_SEPARATOR):
        return "."
    marked = commas or ([] if separator == "," else points)
    if marked and all(map(GROUPED.fullmatch, marked)):
        raise ValueError(
            f"{place(cells.index(marked[0]))} = {shortened(marked[0])!r}: could have thousands "
            "separators or decimals; decimal = '.' or ',' tells which is the decimal mark"
        )
    return "," if commas else "."


def _told(cell: str, cells: Sequence[str]) -> str:
    """Show a cell, unless it may be from a text that holds no numbers at all."""
    if is_name(cell) and not any(map(VALUE.fullmatch, cells)):
        return ""
    return f" = {shortened(cell)!r}"


def _wanted(cell: str, decimal: str | None) -> str:
    hint = (
        "; decimal = ',' reads a comma as decimal mark"
        if not decimal and DECIMALS[","].fullmatch(cell)
        else ""
    )
    return f"must be a number >= 0, without unit or thousands separator{hint}"
