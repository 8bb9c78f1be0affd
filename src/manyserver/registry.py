"""Classes that are found by discovery, and made from their names and parameters."""

import difflib
import importlib
import inspect
import pkgutil
from collections.abc import Iterable
from dataclasses import MISSING, fields
from typing import Any, TypeVar

__all__ = ["discovered", "found", "made"]

T = TypeVar("T")


def discovered(base: type, package: str, path: Iterable[str]) -> dict[str, type[Any]]:
    """Return the classes with a `name` that the modules of a package define, by that name.

    Parameters
    ----------
    base : type
        Of these classes.
    package : str
        Name of the package.
    path : iterable of str
        Its ``__path__``.
    """
    classes: dict[str, type[Any]] = {}
    for module in pkgutil.iter_modules(path):
        members = inspect.getmembers(importlib.import_module(f"{package}.{module.name}"))
        for _, member in members:
            if inspect.isclass(member) and issubclass(member, base) and "name" in vars(member):
                classes[vars(member)["name"]] = member
    return dict(sorted(classes.items()))


def found(classes: dict[str, type[T]], name: object, kind: str) -> type[T]:
    """Return the class of a name.

    Raises
    ------
    ValueError
        If there is none.
    """
    try:
        return classes[name]  # type: ignore[index]
    except (KeyError, TypeError):
        raise ValueError(f"name = {name!r}: {_allowed(kind, name, classes)}") from None


def made(chosen: type[T], name: str, kind: str, parameters: dict[str, Any]) -> T:
    """Make an object of a dataclass.

    Raises
    ------
    ValueError
        If a parameter is unknown or missing.
    """
    known = {field.name: field for field in fields(chosen) if field.init}  # type: ignore[arg-type]
    for key in parameters:
        if key not in known:
            raise ValueError(
                f"{key} = {parameters[key]!r}: {kind} {name!r}: {_allowed('parameter', key, known)}"
            )
    for key, field in known.items():
        if field.default is MISSING and key not in parameters:
            raise ValueError(f"{key}: is missing; {kind} {name!r} needs it")
    return chosen(**parameters)


def _allowed(kind: str, given: object, known: Iterable[str]) -> str:
    names = list(known)
    close = difflib.get_close_matches(str(given), names, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"is not a {kind}; {hint}must be one of {', '.join(names)}"
