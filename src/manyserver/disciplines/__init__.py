"""Disciplines of service, found by :mod:`manyserver.registry`."""

from typing import Any

from manyserver.disciplines.base import Discipline
from manyserver.registry import Registry

__all__ = ["Discipline", "discipline", "names"]

REGISTRY = Registry("discipline", Discipline, __name__, key="discipline")
names = REGISTRY.names


def __getattr__(name: str) -> Any:
    return REGISTRY.exported(name)


def discipline(name: str) -> Discipline:
    """Make a discipline from its name.

    Raises
    ------
    ValueError
        If the name is unknown.

    Examples
    --------
    >>> discipline("ps").title
    'processor sharing'
    """
    return REGISTRY.make(name)
