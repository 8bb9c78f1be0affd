"""Read the axes of a sweep: exact numbers from lists, ranges and the word ``limit``."""

from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from manyserver.checks import is_real, is_whole
from manyserver.model import plain_number
from manyserver.validation import shown

__all__ = ["Grid", "Servers", "read_grid", "read_number", "read_servers"]

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
