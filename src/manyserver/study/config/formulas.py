"""Arithmetic on the axes of a study: ``1 - f``, ``2*r/3``; exact, and nothing else is evaluated."""

import ast
import math
import operator
from collections.abc import Callable, Collection, Mapping
from fractions import Fraction
from functools import cache
from typing import Any

from manyserver.model import plain_number
from manyserver.validation import shown, suggestion

__all__ = ["Number", "as_floats", "evaluated", "is_formula", "names_in", "told"]

Number = Fraction | bool
LONGEST = 200
"""Letters of a formula."""
OPERATIONS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


@cache
def _parsed(text: str) -> ast.expr | None:
    """Return the tree of a text that is arithmetic; None of any other."""
    if len(text) > LONGEST:
        return None
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return None
    return tree if all(_is_arithmetic(node) for node in ast.walk(tree)) else None


def _is_arithmetic(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        value: Any = node.value
        return type(value) in (int, float) and math.isfinite(value)
    known = (ast.BinOp, ast.UnaryOp, ast.USub, ast.Name, ast.Load, *OPERATIONS)
    return isinstance(node, known)


def is_formula(text: str) -> bool:
    """Whether a text is arithmetic on names.

    Examples
    --------
    >>> is_formula("1 - f"), is_formula("f**2"), is_formula("1/2")
    (True, False, False)
    """
    return bool(_names(text))


@cache
def _names(text: str) -> frozenset[str]:
    tree = _parsed(text)
    nodes = () if tree is None else ast.walk(tree)
    return frozenset(node.id for node in nodes if isinstance(node, ast.Name))


def names_in(value: object, known: Collection[str]) -> frozenset[str]:
    """Return the names of axes that occur in the formulas of plain values.

    A text that names none of the axes is no formula.

    Parameters
    ----------
    value : object
        Text, or lists and mappings of such.
    known : collection of str
        Names of the axes.

    Examples
    --------
    >>> sorted(names_in({"d": ["d", "2*d"], "ties": "fastest"}, ["d", "r"]))
    ['d']
    """
    if isinstance(value, str):
        return _names(value).intersection(known)
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return frozenset().union(*(names_in(item, known) for item in value))
    return frozenset()


def evaluated(value: Any, at: Mapping[str, Number]) -> Any:
    """Put the values of axes into the formulas of plain values.

    Parameters
    ----------
    value : object
        Text, or lists and mappings of such; what names no axis stays as it is.
    at : mapping
        Exact values of the axes by name.

    Returns
    -------
    object
        Formulas are exact numbers: an int where they are whole, else a Fraction.

    Raises
    ------
    ValueError
        If a formula divides by zero, or names something that is no axis.

    Examples
    --------
    >>> evaluated({"d": ["d", "2*d"], "ties": "fastest"}, {"d": Fraction(3)})
    {'d': [3, 6], 'ties': 'fastest'}
    >>> evaluated("1 - f/2", {"f": Fraction(1, 2)})
    Fraction(3, 4)
    """
    if isinstance(value, Mapping):
        return {key: evaluated(item, at) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [evaluated(item, at) for item in value]
    if not (isinstance(value, str) and names_in(value, at)):
        return value
    for name in sorted(_names(value) - at.keys()):
        raise ValueError(f"{shown(value)}: there is no axis {name!r}; {suggestion(name, list(at))}")
    tree = _parsed(value)
    assert tree is not None
    try:
        number = _value(tree, at)
    except ZeroDivisionError:
        raise ValueError(f"{shown(value)}: divides by zero ({told(value, at)})") from None
    if isinstance(number, bool):
        return number
    return int(number) if number.denominator == 1 else number


def told(value: object, at: Mapping[str, Number]) -> str:
    """Say which values the axes have that occur in plain values.

    Examples
    --------
    >>> told(["d", "r"], {"d": Fraction(3), "r": Fraction(3, 2)})
    'd = 3, r = 3/2'
    """
    return ", ".join(f"{name} = {at[name]}" for name in sorted(names_in(value, at)))


def _value(node: ast.expr, at: Mapping[str, Number]) -> Number:
    match node:
        case ast.Name():
            return at[node.id]
        case ast.Constant():
            return Fraction(plain_number(node.value))
        case ast.UnaryOp():
            return -Fraction(_value(node.operand, at))
        case ast.BinOp():
            left, right = (Fraction(_value(side, at)) for side in (node.left, node.right))
            found: Fraction = OPERATIONS[type(node.op)](left, right)
            return found
    raise AssertionError(node)


def as_floats(value: Any) -> Any:
    """Return plain values in which ratios are floats.

    Examples
    --------
    >>> as_floats({"split": [Fraction(1, 4), Fraction(3, 4)], "d": 2})
    {'split': [0.25, 0.75], 'd': 2}
    """
    if isinstance(value, Mapping):
        return {key: as_floats(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_floats(item) for item in value]
    return float(value) if isinstance(value, Fraction) else value
