"""Laws of the job size, found by discovery.

Every module in this package that defines a :class:`~manyserver.sizes.base.SizeLaw` with a `name`
adds it to the registry; nothing else has to change for a new law.
"""

import difflib
import importlib
import inspect
import pkgutil
from dataclasses import MISSING, fields
from functools import cache

from manyserver.sizes.base import SizeLaw

__all__ = ["SizeLaw", "names", "size_class", "sizes"]


@cache
def _registry() -> dict[str, type[SizeLaw]]:
    found: dict[str, type[SizeLaw]] = {}
    for module in pkgutil.iter_modules(__path__):
        members = inspect.getmembers(importlib.import_module(f"{__name__}.{module.name}"))
        for _, member in members:
            if inspect.isclass(member) and issubclass(member, SizeLaw) and "name" in vars(member):
                found[member.name] = member
    return dict(sorted(found.items()))


def names() -> tuple[str, ...]:
    """Return the names of all laws, in alphabetical order."""
    return tuple(_registry())


def size_class(name: str) -> type[SizeLaw]:
    """Return the class of a law.

    Raises
    ------
    ValueError
        If there is no law of this name.
    """
    try:
        return _registry()[name]
    except (KeyError, TypeError):
        raise ValueError(f"name = {name!r}: {_allowed('law', name, names())}") from None


def sizes(name: str, **parameters: object) -> SizeLaw:
    """Make a law of the job size from its name and parameters.

    Parameters
    ----------
    name : str
        One of :func:`manyserver.sizes.names`.
    **parameters
        Those of that law, for example ``shape=2.5``. Every law takes `mean`, which is one by
        default: the unit of time is the mean job size divided by speed 1. A `phase_type` or
        `empirical` law keeps the mean of what it is given unless one is asked for.

    Returns
    -------
    SizeLaw

    Raises
    ------
    ValueError
        If the name or a parameter is unknown, missing, or out of its range.

    Examples
    --------
    >>> import manyserver as ms
    >>> ms.sizes("pareto", shape=2.5)
    Pareto(shape=2.5, mean=1.0)
    >>> float(ms.sizes("hyperexponential", scv=4).quantile(0.99).round(3))
    10.746
    """
    chosen = size_class(name)
    known = {field.name: field for field in fields(chosen) if field.init}  # type: ignore[arg-type]
    for key in parameters:
        if key not in known:
            raise ValueError(
                f"{key} = {parameters[key]!r}: law {name!r}: "
                f"{_allowed('parameter', key, tuple(known))}"
            )
    for key, field in known.items():
        if field.default is MISSING and key not in parameters:
            raise ValueError(f"{key}: is missing; law {name!r} needs it")
    return chosen(**parameters)


def _allowed(kind: str, given: object, known: tuple[str, ...]) -> str:
    close = difflib.get_close_matches(str(given), known, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"is not a {kind}; {hint}must be one of {', '.join(known)}"
