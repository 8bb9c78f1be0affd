"""Check plain values against a pydantic model, with one line for each thing that is wrong."""

import difflib
from collections.abc import Iterable
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

__all__ = ["ConfigError", "Mistakes", "suggestion", "validated"]

M = TypeVar("M", bound=BaseModel)


class ConfigError(ValueError):
    """A configuration that cannot be used; one line for each thing that is wrong.

    Examples
    --------
    >>> str(ConfigError(["a.yaml: seed = -1: must be greater than or equal to 0"]))
    'a.yaml: seed = -1: must be greater than or equal to 0'
    """

    def __init__(self, lines: Iterable[str]):
        self.lines = tuple(dict.fromkeys(lines))
        super().__init__("\n".join(self.lines))


class Mistakes:
    """Gathers what is wrong with one file, so that all of it can be told at once.

    Examples
    --------
    >>> mistakes = Mistakes("a.yaml")
    >>> mistakes.add("unit", "is too large")
    >>> mistakes.lines
    ['a.yaml: unit: is too large']
    """

    def __init__(self, where: str):
        self.where = where
        self.lines: list[str] = []

    def add(self, key: str, message: object) -> None:
        """Add what is wrong with a key."""
        self.lines.append(f"{self.where}: {key}: {message}")

    def stop(self) -> None:
        """Raise a ConfigError if anything was wrong so far."""
        if self.lines:
            raise ConfigError(self.lines)


def suggestion(word: str, allowed: Iterable[str]) -> str:
    """Say which words are allowed, and which one was probably meant.

    Examples
    --------
    >>> suggestion("polices", ["policies", "systems"])
    "did you mean 'policies'? Allowed: policies, systems"
    """
    known = sorted(allowed)
    near = difflib.get_close_matches(word, known, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"{hint}Allowed: {', '.join(known)}"


def validated(
    model: type[M],
    content: object,
    where: str,
    *,
    inside: str = "",
    context: dict[str, Any] | None = None,
) -> M:
    """Validate plain values, with an error of one line for each thing that is wrong.

    Parameters
    ----------
    model : type
        The pydantic model.
    content : object
        What YAML gave.
    where : str
        The file, which the messages begin with.
    inside : str, optional
        Key in that file that holds `content`.
    context : dict, optional
        Handed to the validators.

    Raises
    ------
    ConfigError
        If the values do not fit the model.
    """
    try:
        return model.model_validate(content, context=context)
    except ValidationError as errors:
        lines = [_line(error, where, inside, model) for error in errors.errors()]
    raise ConfigError(lines)


def _line(error: ErrorDetails, where: str, inside: str, model: type[BaseModel]) -> str:
    loc = error["loc"]
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc]
    key = f"{inside}{''.join(parts)}".lstrip(".")
    prefix = f"{where}: {key}" if key else where
    shown = f"{prefix} = {_short(error['input'])}"
    message = error["msg"].removeprefix("Value error, ")
    match error["type"]:
        case "missing":
            return f"{prefix}: missing; this key is required"
        case "extra_forbidden":
            allowed = suggestion(str(loc[-1]), _keys(model, loc[:-1]))
            return f"{shown}: unknown key; {allowed}"
        case "one_rate":
            return f"{prefix}: {message}"
        case "value_error":
            return f"{prefix} = {message.removeprefix(f'{loc[-1]} = ')}"
    for subject in ("Input", "Tuple", "Dictionary", "String"):
        message = message.removeprefix(f"{subject} should ")
    return f"{shown}: must {message}"


def _keys(annotation: Any, loc: tuple[int | str, ...]) -> list[str]:
    """Names of the fields of the model that lies at a place in another one."""
    for part in (*loc, None):
        optional = get_origin(annotation) in (Union, UnionType)
        annotation = get_args(annotation)[0] if optional else annotation
        origin = get_origin(annotation)
        if part is None:
            break
        if origin is None:
            annotation = annotation.model_fields[part].annotation
        else:
            annotation = get_args(annotation)[1 if origin is dict else 0]
    return list(annotation.model_fields)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
