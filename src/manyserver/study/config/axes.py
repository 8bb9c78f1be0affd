"""Read the axes of a sweep: exact numbers from lists, ranges and the word ``limit``."""

from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from manyserver.checks import is_real, is_whole
from manyserver.methods.base import Strict
from manyserver.model import plain_number
from manyserver.study.config.formulas import Number
from manyserver.validation import shown

__all__ = [
    "AXIS_SCHEMA",
    "Axis",
    "Grid",
    "Servers",
    "Values",
    "read_axis",
    "read_grid",
    "read_number",
    "read_servers",
    "untitled",
]

MOST_VALUES = 100_000


def read_number(value: object) -> Fraction:
    """Read a positive number as it is written: 0.1 is one tenth, ``"2/3"`` is two thirds.

    Raises
    ------
    ValueError
        If `value` is not a positive number.

    Examples
    --------
    >>> read_number(0.1), read_number("2/3")
    (Fraction(1, 10), Fraction(2, 3))
    """
    allowed = f"{shown(value)}: must be a number greater than zero, or a ratio such as 2/3"
    if not (is_real(value) or isinstance(value, str)):
        raise ValueError(allowed)
    try:
        number = Fraction(plain_number(value))
    except (ValueError, ZeroDivisionError):
        raise ValueError(allowed) from None
    if number <= 0:
        raise ValueError(allowed)
    return number


def read_grid(value: object) -> tuple[Fraction, ...]:
    """Read a list of numbers, or a range given by its start, stop and step or count.

    The stop is included when the steps reach it.

    Raises
    ------
    ValueError
        If `value` is neither, or not increasing without repetition.

    Examples
    --------
    >>> [float(x) for x in read_grid({"start": 0.1, "stop": 0.4, "step": 0.1})]
    [0.1, 0.2, 0.3, 0.4]
    >>> [float(x) for x in read_grid({"start": 0.5, "stop": 0.9, "count": 3})]
    [0.5, 0.7, 0.9]
    """
    if isinstance(value, dict):
        numbers = _read_range(value)
    elif isinstance(value, (list, tuple)):
        numbers = [read_number(item) for item in value]
    else:
        numbers = [read_number(value)]
    if not numbers or any(b <= a for a, b in pairwise(numbers)):
        raise ValueError(f"{shown(value)}: must hold at least one number, in increasing order")
    return tuple(numbers)


def _read_range(value: dict) -> list[Fraction]:
    if set(value) not in ({"start", "stop", "step"}, {"start", "stop", "count"}):
        raise ValueError(
            f"{shown(value)}: a range must have exactly the keys start, stop and step, "
            "or start, stop and count"
        )
    start, stop = (read_number(value[key]) for key in ("start", "stop"))
    if "step" in value:
        step = read_number(value["step"])
        count = (stop - start) // step + 1
    else:
        count = value["count"]
        if not is_whole(count) or count < 2:
            raise ValueError(f"count = {shown(count)}: must be an integer, at least 2")
        step = (stop - start) / (count - 1)
    if not 1 <= count <= MOST_VALUES or stop < start:
        raise ValueError(
            f"{shown(value)}: must run upwards from start to stop, in at most {MOST_VALUES} values"
        )
    return [start + i * step for i in range(count)]


def read_servers(value: object) -> tuple[int | None, ...]:
    """Read numbers of servers; the word ``limit`` (None here) stands for infinitely many.

    Raises
    ------
    ValueError
        If an item is neither a positive integer nor ``limit``, or occurs twice.

    Examples
    --------
    >>> read_servers([10, 100, "limit"])
    (10, 100, None)
    """
    items: list[Any] = list(value) if isinstance(value, (list, tuple)) else [value]
    for item in items:
        if item != "limit" and (not is_whole(item) or item < 1):
            raise ValueError(f"{shown(item)}: must be an integer, at least 1, or the word limit")
    if not items or len(set(items)) < len(items):
        raise ValueError(f"{shown(value)}: must hold at least one number of servers, each once")
    finite = sorted(item for item in items if item != "limit")
    return (*finite, None) if "limit" in items else tuple(finite)


def read_axis(value: object) -> tuple[Number, ...]:
    """Read the values of an axis of the study's own, in the order in which they stand.

    Raises
    ------
    ValueError
        If there is none, one is neither a positive number nor true or false, or one occurs twice.

    Examples
    --------
    >>> [str(number) for number in read_axis([1, "3/2", 2])]
    ['1', '3/2', '2']
    >>> read_axis({"start": 1, "stop": 3}) == (1, 2, 3)
    True
    """
    if isinstance(value, dict):
        return read_grid(value if {"step", "count"} & value.keys() else {**value, "step": 1})
    items = list(value) if isinstance(value, (list, tuple)) else [value]
    numbers = [item if isinstance(item, bool) else read_number(item) for item in items]
    if not numbers or len({(type(number), number) for number in numbers}) < len(numbers):
        raise ValueError(f"{shown(value)}: must hold at least one number, each once")
    return tuple(numbers)


_NUMBER: dict = {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "string"}]}
_RANGE: dict = {
    "type": "object",
    "properties": {
        "start": _NUMBER,
        "stop": _NUMBER,
        "step": _NUMBER,
        "count": {"type": "integer", "minimum": 2},
    },
    "required": ["start", "stop"],
    "additionalProperties": False,
}
_SERVERS: dict = {"anyOf": [{"type": "integer", "minimum": 1}, {"const": "limit"}]}

Grid = Annotated[
    tuple[Fraction, ...],
    BeforeValidator(read_grid),
    WithJsonSchema({"anyOf": [_NUMBER, {"type": "array", "items": _NUMBER}, _RANGE]}),
]
"""Numbers in increasing order, exact."""

Servers = Annotated[
    tuple[int | None, ...],
    BeforeValidator(read_servers),
    WithJsonSchema({"anyOf": [_SERVERS, {"type": "array", "items": _SERVERS}]}),
]
"""Numbers of servers in increasing order; None, at the end, is the limit."""

_VALUE: dict = {"anyOf": [*_NUMBER["anyOf"], {"type": "boolean"}]}

_VALUES: dict = {"anyOf": [_VALUE, {"type": "array", "items": _VALUE}, _RANGE]}

Values = Annotated[
    tuple[Number, ...],
    BeforeValidator(read_axis),
    WithJsonSchema(_VALUES),
]
"""Exact numbers, or true and false, each once."""


class Axis(Strict):
    """An axis of the study's own: numbers that stand for a name in systems, policies or jobs."""

    values: Values
    """Numbers, or true and false: one, a list, or {start, stop, step or count}, where the step is
    1 if neither is given."""
    along: str | None = None
    """Another axis with as many values; the two then go together. By default every value
    meets all of the other axes."""
    symbol: str = ""
    """How figures write it, in the language of TeX without $; by default its name."""
    title: str = ""
    """What it is, in a few words for figures and the cube; by default its name."""


def untitled(name: str) -> str:
    """Return what the cube says of an axis that has no title."""
    return f"axis {name} of the study"


AXIS_SCHEMA: dict = {"anyOf": [*_VALUES["anyOf"], Axis.model_json_schema()]}
"""JSON schema of an axis of a study's own: its values alone, or an :class:`Axis`."""
