"""Checks of single values that users hand in: each error names the parameter and what is allowed.

Numbers of numpy are numbers, also as arrays without dimensions; truth values are none.
"""

import difflib
import math
import reprlib
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any, TypeGuard, TypeVar

import numpy as np

__all__ = [
    "checked_array",
    "checked_count",
    "checked_flag",
    "checked_kind",
    "checked_number",
    "checked_range",
    "is_real",
    "is_whole",
    "plain",
    "refusal",
    "shown",
    "suggestion",
]

LONGEST = 200
"""Characters of a value that an error shows."""

MOST_NAMES = 50
"""Names that a suggestion lists."""

_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = 80
_REPR.maxlist = _REPR.maxtuple = _REPR.maxdict = 10
_WORDS = {None: "null", True: "true", False: "false"}

Kind = TypeVar("Kind")


def refusal(name: str, value: object, allowed: str) -> ValueError:
    """Return the error for a parameter of a value that is not allowed."""
    shown = repr(value)
    if len(shown) > LONGEST:
        shown = shown[:LONGEST] + "..."
    return ValueError(f"{name} = {shown}: must be {allowed}")


def plain(value: object) -> Any:
    """Return the number in an array without dimensions, and anything else as it is."""
    return value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value


def is_real(value: object) -> TypeGuard[float]:
    """Return whether a value is a real number; ``True`` is none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_whole(value: object) -> TypeGuard[int]:
    """Return whether a value is an integer; ``True`` is none."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def checked_number(
    name: str,
    value: object,
    above: float = 0.0,
    closed: bool = False,
    *,
    below: float = math.inf,
    otherwise: str = "",
) -> float:
    """Return a finite number between two bounds, or raise ValueError.

    Parameters
    ----------
    name : str
        The parameter's.
    value : object
    above, below : float
        Exclusive bounds.
    closed : bool
        Whether `above` itself is allowed.
    otherwise : str
        What else is allowed, for the error.

    Examples
    --------
    >>> checked_number("horizon", np.array(2))
    2.0
    """
    allowed = "a finite number"
    if above > -math.inf:
        allowed += f" >= {above:g}" if closed else f" greater than {above:g}"
    if below < math.inf:
        allowed += f"{' and' if above > -math.inf else ''} less than {below:g}"
    if otherwise:
        allowed += f", or {otherwise}"
    number = plain(value)
    if not is_real(number):
        raise refusal(name, value, allowed)
    try:
        result = float(number)
    except OverflowError:
        result = math.inf
    if not (math.isfinite(result) and above <= result < below) or (result == above and not closed):
        raise refusal(name, value, allowed)
    return result


def checked_range(name: str, value: object, least: float, most: float) -> float:
    """Return a number from `least` to `most`, or raise ValueError."""
    number = plain(value)
    if is_real(number) and least <= number <= most:
        return float(number)
    raise refusal(name, value, f"a number from {least:g} to {most:g}")


def checked_count(
    name: str, value: object, least: int = 1, *, most: int | None = None, otherwise: str = ""
) -> int:
    """Return an integer of at least, and at most, some value, or raise ValueError.

    Examples
    --------
    >>> checked_count("replications", np.int64(8))
    8
    """
    number = plain(value)
    if not is_whole(number) or number < least or (most is not None and number > most):
        allowed = f"an integer >= {least}" + ("" if most is None else f" and <= {most}")
        raise refusal(name, value, f"{allowed}, or {otherwise}" if otherwise else allowed)
    return int(number)


def checked_array(name: str, value: object, allowed: str) -> np.ndarray:
    """Return an array of numbers of any shape, or raise ValueError."""
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise refusal(name, value, allowed) from None


def checked_flag(name: str, value: object) -> bool:
    """Return a truth value, or raise ValueError."""
    if not isinstance(value, bool | np.bool_):
        raise refusal(name, value, "true or false")
    return bool(value)


def checked_kind(name: str, value: object, kind: type[Kind], allowed: str) -> Kind:
    """Return an object of a class, or raise ValueError."""
    if not isinstance(value, kind):
        raise refusal(name, value, allowed)
    return value


def shown(value: object) -> str:
    """Write a value for a message: as YAML has it, and shortened where it is long.

    Examples
    --------
    >>> shown("a"), shown(None), shown(list(range(10**5)))
    ("'a'", 'null', '[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...]')
    """
    if value is None or isinstance(value, bool):
        return _WORDS[value]
    return _REPR.repr(value)


def suggestion(word: str, allowed: Iterable[str]) -> str:
    """Say which words are allowed, and which one was probably meant.

    Examples
    --------
    >>> suggestion("polices", ["policies", "systems"])
    "did you mean 'policies'? Allowed: policies, systems"
    """
    known = sorted(allowed)
    near = difflib.get_close_matches(str(word), known, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    more = ", ..." if len(known) > MOST_NAMES else ""
    return f"{hint}Allowed: {', '.join(known[:MOST_NAMES]) or 'none'}{more}"
