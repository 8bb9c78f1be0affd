"""The methods that compute a point, found by discovery.

A method is one module here: ``mean_field.py`` is the method ``mean_field``. It is also the entry
module for the fingerprint of the method's code, so it imports nothing of :mod:`manyserver.study`,
and imports what computes inside :func:`compute`, so that reading a study stays fast. It has

``TITLE``
    one line of plain words;
``RANDOM``
    whether the result depends on a seed;
``STARTS_FROM``
    packages that it uses for a starting point alone, on which the law of its result does not
    depend; the fingerprint leaves them out;
``Options``
    a frozen pydantic model of its options, each with a default;
``applies(system)``
    whether it can compute this system;
``refusal(system, policy, options)``
    why a point is left out although the method applies, as a word or two for the cube; empty if
    it is computed. It must be quick, as it is asked before any job starts;
``compute(system, policy, options, seed)``
    the result, an :class:`xarray.Dataset` with the names of :mod:`manyserver.variables`; the
    seed is 0 where it has no meaning. A method that finds out only now that it cannot compute
    the point returns a dataset without variables, whose attribute ``status`` says so.
"""

import importlib
import pkgutil
from collections.abc import Callable
from functools import cache
from typing import Any, Protocol, cast

from pydantic import BaseModel

from manyserver.model import System
from manyserver.policies import Policy

__all__ = ["Method", "load", "names"]


class Method(Protocol):
    """What every module in this package provides."""

    TITLE: str
    RANDOM: bool
    STARTS_FROM: tuple[str, ...]
    Options: type[BaseModel]
    applies: Callable[[System], bool]
    refusal: Callable[[System, Policy, Any], str]
    compute: Callable[[System, Policy, Any, int], Any]


@cache
def names() -> tuple[str, ...]:
    """Return the names of all methods, in alphabetical order.

    Examples
    --------
    >>> names()
    ('exact', 'mean_field', 'refined_mean_field', 'simulation')
    """
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


def load(name: str) -> Method:
    """Return the module of a method.

    Raises
    ------
    ModuleNotFoundError
        If there is no such method.
    """
    return cast(Method, importlib.import_module(f"{__name__}.{name}"))
