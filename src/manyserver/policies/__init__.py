"""Dispatching policies, found by discovery.

Every module in this package that defines a :class:`~manyserver.policies.base.Policy` adds it to
the registry under its `name`; nothing else has to change for a new policy.
"""

import difflib
import importlib
import inspect
import pkgutil
from dataclasses import MISSING, fields
from functools import cache

from manyserver.policies.base import Branch, Draw, Policy, Sampling
from manyserver.policies.sampling import full

__all__ = ["Branch", "Draw", "Policy", "Sampling", "full", "names", "policy", "policy_class"]


@cache
def _registry() -> dict[str, type[Policy]]:
    found: dict[str, type[Policy]] = {}
    for module in pkgutil.iter_modules(__path__):
        members = inspect.getmembers(importlib.import_module(f"{__name__}.{module.name}"))
        for _, member in members:
            if inspect.isclass(member) and issubclass(member, Policy) and "name" in vars(member):
                found[member.name] = member
    return dict(sorted(found.items()))


def names() -> tuple[str, ...]:
    """Return the names of all policies, in alphabetical order."""
    return tuple(_registry())


def policy_class(name: str) -> type[Policy]:
    """Return the class of a policy.

    Raises
    ------
    ValueError
        If there is no policy of this name.
    """
    try:
        return _registry()[name]
    except (KeyError, TypeError):
        raise ValueError(f"name = {name!r}: {_allowed('policy', name, names())}") from None


def policy(name: str, **parameters: object) -> Policy:
    """Make a policy from its name and parameters.

    Parameters
    ----------
    name : str
        One of :func:`manyserver.policies.names`.
    **parameters
        The fields of that policy, for example ``d=[2, 2]``. Policies that draw servers take
        ``replacement=False``: whether one draw may look at the same server twice.

    Returns
    -------
    Policy

    Raises
    ------
    ValueError
        If the name or a parameter is unknown, missing, or out of its range.

    Examples
    --------
    >>> import manyserver as ms
    >>> ms.policy("scheme1", d=[2, 2])
    Scheme1(d=(2, 2), replacement=False)
    """
    chosen = policy_class(name)
    known = {field.name: field for field in fields(chosen)}  # type: ignore[arg-type]
    for key in parameters:
        if key not in known:
            raise ValueError(
                f"{key} = {parameters[key]!r}: policy {name!r}: "
                f"{_allowed('parameter', key, tuple(known))}"
            )
    for key, field in known.items():
        if field.default is MISSING and key not in parameters:
            raise ValueError(f"{key}: is missing; policy {name!r} needs it")
    return chosen(**parameters)


def _allowed(kind: str, given: object, known: tuple[str, ...]) -> str:
    close = difflib.get_close_matches(str(given), known, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"is not a {kind}; {hint}must be one of {', '.join(known)}"
