"""Check plain values against a pydantic model, with one line for each thing that is wrong."""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from manyserver.checks import shown, suggestion

__all__ = ["ConfigError", "Document", "Mistakes", "shown", "suggestion", "validated"]

M = TypeVar("M", bound=BaseModel)

MOST_LINES = 50
LONGEST_LINE = 2000


class ConfigError(ValueError):
    """A configuration that cannot be used; one line for each thing that is wrong.

    Lines that are very long are shortened, and only the first lines of very many are kept.

    Parameters
    ----------
    lines : iterable of str
        What is wrong.
    more : int, optional
        Number of further mistakes, which are not told.

    Examples
    --------
    >>> str(ConfigError(["a.yaml: seed = -1: must be greater than or equal to 0"]))
    'a.yaml: seed = -1: must be greater than or equal to 0'
    """

    def __init__(self, lines: Iterable[str], more: int = 0):
        unique = tuple(dict.fromkeys(lines))
        kept = [_shortened(line) for line in unique[:MOST_LINES]]
        more += len(unique) - len(kept)
        self.lines = (*kept, *([f"... and {more} more mistakes"] if more else []))
        super().__init__("\n".join(self.lines))


def _shortened(line: str) -> str:
    half = LONGEST_LINE // 2
    return line if len(line) <= LONGEST_LINE else f"{line[:half]} ... {line[-half:]}"


def _nowhere(key: str) -> int | None:
    return None


@dataclass(frozen=True)
class Document:
    """The content of a file, and the lines on which its keys stand.

    Parameters
    ----------
    path : pathlib.Path
        The file.
    content : Any
        Plain values.
    line : callable
        Line of a dotted key such as ``systems.a.pools[0]``, or of what is nearest to it; None if
        nothing is.
    """

    path: Path
    content: Any
    line: Callable[[str], int | None] = _nowhere

    def at(self, key: str) -> str:
        """Say where a key stands: the file, and the line if it is known.

        Examples
        --------
        >>> Document(Path("a.yaml"), {"seed": 1}, lambda key: 12).at("seed")
        'a.yaml, line 12'
        """
        line = self.line(key)
        return str(self.path) if line is None else f"{self.path}, line {line}"


class Mistakes:
    """Gathers what is wrong with one file, so that all of it can be told at once.

    Examples
    --------
    >>> mistakes = Mistakes(Document(Path("a.yaml"), {}))
    >>> mistakes.add("unit", "is too large")
    >>> mistakes.lines
    ['a.yaml: unit: is too large']
    """

    def __init__(self, document: Document):
        self.document = document
        self.lines: list[str] = []

    def add(self, key: str, message: object) -> None:
        """Add what is wrong with a key."""
        self.lines.append(f"{self.document.at(key)}: {key}: {message}")

    def stop(self) -> None:
        """Raise a ConfigError if anything was wrong so far."""
        if self.lines:
            raise ConfigError(self.lines)


def validated(
    model: type[M],
    content: object,
    document: Document,
    *,
    inside: str = "",
    context: dict[str, Any] | None = None,
) -> M:
    """Validate plain values, with an error of one line for each thing that is wrong.

    Nothing is converted: text is no number, and a Boolean is neither.

    Parameters
    ----------
    model : type
        The pydantic model.
    content : object
        What YAML gave.
    document : Document
        Where it stands.
    inside : str, optional
        Key in the document that holds `content`.
    context : dict, optional
        Handed to the validators.

    Raises
    ------
    ConfigError
        If the values do not fit the model.
    """
    # As JSON, since pydantic's strict mode then takes a list for a tuple, but nothing else.
    text = json.dumps(content, default=str, ensure_ascii=False).encode(errors="replace")
    try:
        return model.model_validate_json(text, strict=True, context=context)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False)
    # What lacks a valid item is not told where the items themselves are.
    parents = {one["loc"][:i] for one in found for i in range(len(one["loc"]))}
    told = [one for one in found if one["type"] != "too_short" or one["loc"] not in parents]
    lines = [_line(one, document, inside, model) for one in told[:MOST_LINES]]
    raise ConfigError(lines, len(told) - len(lines))


def _line(error: ErrorDetails, document: Document, inside: str, model: type[BaseModel]) -> str:
    loc, value = error["loc"], error["input"]
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc]
    key = f"{inside}{''.join(parts)}".lstrip(".")
    prefix = f"{document.at(key)}: {key}" if key else document.at(key)
    told = f"{prefix} = {shown(value)}" if key else f"{prefix}: {shown(value)}"
    message = error["msg"].removeprefix("Value error, ")
    match error["type"]:
        case "missing":
            return f"{prefix}: missing; this key is required"
        case "extra_forbidden":
            allowed = suggestion(str(loc[-1]), _keys(model, loc[:-1]))
            return f"{told}: unknown key; {allowed}"
        case "one_rate":
            return f"{prefix}: {message}"
        case "value_error" if (match := _INSIDE.match(message)) and match[1] != loc[-1]:
            return f"{document.at(f'{key}.{match[1]}')}: {key}.{message}"
        case "value_error":
            return f"{prefix} = {message.removeprefix(f'{loc[-1]} = ')}"
        case "string_type" if isinstance(value, (bool, int, float)):
            return f"{told}: must be text; put it in quotes: '{shown(value)}'"
    kind = error["type"].removesuffix("_type").removesuffix("_parsing")
    if kind in _KINDS:
        return f"{told}: must be {_KINDS[kind]}"
    for subject in ("Input", "Tuple", "List", "Dictionary", "String"):
        message = message.removeprefix(f"{subject} should ")
    return f"{told}: must {message}"


_INSIDE = re.compile(r"(?!null|true|false)([a-z_]+)(?:: | = )")
"""How a message begins that is about a key inside the value."""
_KINDS = {
    "model": "keys with values, such as 'key: value'",
    "dict": "keys with values, such as 'key: value'",
    "tuple": "a list",
    "list": "a list",
    "string": "text",
    "int": "an integer",
    "int_from_float": "an integer",
    "float": "a number",
    "bool": "true or false",
}
"""What a value must be, by pydantic's type of the error."""


def _keys(annotation: Any, loc: tuple[int | str, ...]) -> list[str]:
    """Names of the fields of the model that lies at a place in another one."""
    for part in (*loc, None):
        optional = get_origin(annotation) in (Union, UnionType)
        annotation = get_args(annotation)[0] if optional else annotation
        origin = get_origin(annotation)
        if part is None:
            break
        if origin is None and part not in annotation.model_fields:
            annotation = get_args(annotation.__annotations__["__pydantic_extra__"])[1]
        elif origin is None:
            annotation = annotation.model_fields[part].annotation
        else:
            annotation = get_args(annotation)[1 if origin is dict else 0]
    return list(annotation.model_fields)
