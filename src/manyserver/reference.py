"""What the keys of a study mean, for editors and readers, generated from the typed classes.

Editors read JSON schemas. Readers read tables in ``config/README.md``, each between a comment
``<!-- table: NAME -->`` and a comment ``<!-- end of table -->``.
"""

import inspect
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, fields
from functools import reduce
from operator import or_
from typing import Any, get_args

from pydantic import BaseModel, TypeAdapter

from manyserver import figures, fits, methods, policies, sizes
from manyserver.analysis.kinds import Kind
from manyserver.methods import Method
from manyserver.study import models
from manyserver.study.config.axes import Axis
from manyserver.study.config.workflow_config import WorkflowConfig

__all__ = ["schemas", "tables", "with_tables"]

MARKED = re.compile(r"(<!-- table: (.+?) -->\n).*?(<!-- end of table -->)", re.DOTALL)
COLUMNS = ("meaning", "values", "default")
PARAMETER = re.compile(r"^(\w+) : (.*)\n((?:    .*\n?)*)", re.MULTILINE)
WORDS = {
    "bool": "boolean",
    "float": "number",
    "int": "integer",
    "object": "keys",
    "sequence": "list",
    "str": "text",
    "string": "text",
}
RANGE = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")
Row = tuple[str, str, str, str]


def schemas() -> dict[str, str]:
    """Return the JSON schemas of ``config.yaml`` and of a study's file, by name."""
    configs: Any = reduce(or_, [models.load(name).config_class for name in models.names()])
    found = {
        "config": WorkflowConfig.model_json_schema(),
        "study": TypeAdapter(configs).json_schema(),
    }
    return {name: json.dumps(schema, indent=2) + "\n" for name, schema in found.items()}


def with_tables(text: str) -> str:
    """Return a text in which the tables between the comments are up to date.

    Raises
    ------
    ValueError
        If there is no table of a name.
    """
    known = tables()
    for _, name, _ in MARKED.findall(text):
        if name not in known:
            raise ValueError(f"table: {name}: must be one of {', '.join(known)}")
    return MARKED.sub(lambda match: f"{match[1]}\n{known[match[2]]}\n{match[3]}", text)


def tables() -> dict[str, str]:
    """Return all tables in Markdown, by name.

    There is one for ``config.yaml``, one for the study of every model, one for every key in it that
    has keys of its own, one for axes, one each for the methods, figures and fits of the model, and
    one each for policies and laws.
    """
    found = {"config": _table("key", _keys(WorkflowConfig))}
    for model in models.names():
        for key, config in _nested(model, models.load(model).config_class):
            found[key] = _table("key", _keys(config))
        kinds: dict[str, Iterable[Method[Any, Any] | Kind[Any]]] = {
            "methods": map(methods.load, methods.names(model)),
            "figures": map(figures.load, figures.kinds(model)),
            "fits": map(fits.load, fits.kinds(model)),
        }
        for word, ones in kinds.items():
            found[f"{model} {word}"] = _table(f"{word} and their options", _options(list(ones)))
    found["dispatching axis"] = _table("key", _keys(Axis))
    for word, registry in (("policies", policies.REGISTRY), ("laws", sizes.REGISTRY)):
        classes = map(registry.find, registry.names())
        rows = [row for one in classes for row in _parameters(one)]
        found[word] = _table(f"{word} and their parameters", rows)
    return found


def _table(first: str, rows: Iterable[Row]) -> str:
    lines = [(first, *COLUMNS), ("---",) * 4, *rows]
    cells = ([cell.replace("|", "\\|") for cell in line] for line in lines)
    return "".join(f"| {' | '.join(line)} |\n" for line in cells)


def _nested(name: str, config: type[BaseModel]) -> Iterator[tuple[str, type[BaseModel]]]:
    """Yield a part of a configuration, and the parts in it by their keys."""
    yield name, config
    for key, field in config.model_fields.items():
        for inner in _models(field.annotation) if key != "methods" else ():
            yield from _nested(f"{name.split()[0]} {key}", inner)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)


def _keys(model: type[BaseModel], indent: str = "") -> list[Row]:
    schema = model.model_json_schema()
    rows = []
    for key, told in schema["properties"].items():
        default = "required" if model.model_fields[key].is_required() else _default(told)
        meaning, values = _line(told.get("description", "")), _values(told, schema)
        rows.append((f"`{indent}{key}`", meaning, values, default))
    return rows


def _options(ones: list[Any]) -> list[Row]:
    """Write what all have, and then each with the options that it alone has."""
    rows = {one.name: _keys(one.options_class, "  ") for one in ones}
    shared = [row for row in rows[ones[0].name] if all(row in own for own in rows.values())]
    found = [("all", "", "", ""), *shared] if shared else []
    for one in ones:
        found.append((f"`{one.name}`", _line(one.title), "", ""))
        found.extend(row for row in rows[one.name] if row not in shared)
    return found


def _parameters(chosen: Any) -> Iterator[Row]:
    """Write a dataclass and its parameters by its docstring."""
    text = inspect.getdoc(chosen) or ""
    yield f"`{chosen.name}`", _line(text.split("\n\n")[0]), "", ""
    described = {name: (kind, told) for name, kind, told in PARAMETER.findall(f"{text}\n")}
    for field in fields(chosen):
        kind, told = described.get(field.name, ("", ""))
        if field.init and told:
            default = "required" if field.default is MISSING else _word(field.default)
            yield f"`  {field.name}`", _line(told), _in_words(kind), default


def _in_words(kind: str) -> str:
    """Say in words what a docstring allows.

    Examples
    --------
    >>> _in_words("int or sequence of float, shape (pool,), optional")
    'integer or list of number, one per pool'
    """
    kind = re.sub(r", shape \((\w+),\)", r", one per \1", kind.removesuffix(", optional"))
    return re.sub(r"[a-z]+", lambda match: WORDS.get(match[0], match[0]), kind)


def _line(text: str) -> str:
    return " ".join(text.replace("``", "`").split()).rstrip(".")


def _word(value: object) -> str:
    if value is None or value in ("", (), [], {}):
        return ""
    if isinstance(value, float):
        value = f"{value:g}".replace("+", "")
    elif not isinstance(value, str):
        value = json.dumps(value).replace('"', "")
    return f"`{value}`"


def _default(told: dict[str, Any]) -> str:
    return _word(told.get("default"))


def _values(told: dict[str, Any], whole: dict[str, Any]) -> str:
    """Say in words what a JSON schema allows."""
    if "$ref" in told:
        return _values(whole["$defs"][told["$ref"].rsplit("/", 1)[1]], whole)
    if "anyOf" in told:
        parts = [_values(part, whole) for part in told["anyOf"] if part.get("type") != "null"]
        return " or ".join(dict.fromkeys(parts))
    if "enum" in told or "const" in told:
        return ", ".join(f"`{value}`" for value in told.get("enum", [told.get("const")]))
    if told.get("type") == "array":
        inner = _values(told.get("items", {}), whole)
        return f"list of {inner}" if inner else "list"
    kind = told.get("type", "")
    return f"{WORDS.get(kind, kind)}{_range(told)}"


def _range(told: dict[str, Any]) -> str:
    low, above, high, below = (told.get(key) for key in RANGE)
    first = low if above is None else above
    last = high if below is None else below
    if first is None and last is None:
        return ""
    if last is None:
        return f" {'>=' if above is None else '>'} {first:g}"
    if first is None:
        return f" {'<=' if below is None else '<'} {last:g}"
    return f" in {'[' if above is None else '('}{first:g}, {last:g}{']' if below is None else ')'}"
