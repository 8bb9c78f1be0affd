"""The methods that compute a point, found by discovery.

A method is one module here: ``mean_field.py`` is the method ``mean_field``. It is also the entry
module for the fingerprint of the method's code, so it imports nothing of :mod:`manyserver.study`,
and imports what computes inside :func:`compute`, so that reading a study stays fast. It has

``TITLE``
    one line of plain words;
``MODEL``
    the model whose points it computes; without it, ``dispatching``. Below, SUBJECT are the
    arguments that stand for a point of the model: a system and a policy, or beta and a number of
    servers;
``RANDOM``
    whether the result depends on a seed;
``STARTS_FROM``
    packages that it uses for a starting point alone, on which the law of its result does not
    depend; the fingerprint leaves them out;
``Options``
    a frozen pydantic model of its options, each with a default;
``applies(system)``, ``applies(beta, n_servers)``
    whether it can compute this point;
``refusal(SUBJECT, options)``
    why a point is left out although the method applies, as a word or two for the cube; empty if
    it is computed. It must be quick, as it is asked before any job starts;
``compute(SUBJECT, options, seed)``
    the result, an :class:`xarray.Dataset` with variables that the model knows; the
    seed is 0 where it has no meaning. A method that finds out only now that it cannot compute
    the point returns a dataset without variables, whose attribute ``status`` says so;
``kept_options(options)``
    the options, as plain values, in which points must agree so that one can start from what
    another has kept; `compute` of a method with this function also takes a `cache`, which is a
    :class:`manyserver.study.storage.kept.Kept`;
``COMPILES``
    whether it has a kernel compiled, which takes some seconds once for every version of its code;
    without it, it has not;
``check(beta, options)``
    raises a ValueError if options do not fit a beta; without it, all do;
``memory(SUBJECT)``
    bytes that a point takes, also with `sizes` and `discipline`; without it, no more than any job;
``ANSWER``
    the variable without which a result is wrong; without it, ``sojourn_mean``;
``FOLLOWS_JOBS``
    whether `compute` also takes `sizes` and `discipline`, where a study has the key ``jobs``;
    without it, it does not.
"""

import importlib
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Protocol, cast

from pydantic import BaseModel

from manyserver import discovery

__all__ = [
    "Method",
    "answer",
    "compiles",
    "follows_jobs",
    "kept_options",
    "load",
    "memory",
    "names",
]


class Method(Protocol):
    """What every module in this package provides."""

    TITLE: str
    RANDOM: bool
    STARTS_FROM: tuple[str, ...]
    Options: type[BaseModel]
    applies: Callable[..., bool]
    refusal: Callable[..., str]
    compute: Callable[..., Any]


@cache
def names(model: str | None = None) -> tuple[str, ...]:
    """Return the names of all methods, or of those for a model, in alphabetical order.

    Examples
    --------
    >>> names("dispatching")
    ('exact', 'mean_field', 'refined_mean_field', 'simulation')
    """
    return discovery.modules(__name__, model=model)


def load(name: str) -> Method:
    """Return the module of a method.

    Raises
    ------
    ModuleNotFoundError
        If there is no such method.
    """
    return cast(Method, importlib.import_module(f"{__name__}.{name}"))


def answer(name: str) -> str:
    """Return the variable without which a result of a method is wrong.

    Examples
    --------
    >>> answer("simulation"), answer("chain")
    ('sojourn_mean', 'scaled_waiting_mean')
    """
    return str(getattr(load(name), "ANSWER", "sojourn_mean"))


def kept_options(name: str, options: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the options in which points agree that can start from each other's work.

    Parameters
    ----------
    name : str
        Of the method.
    options : mapping
        Those that differ from their defaults.

    Returns
    -------
    dict or None
        None if the method keeps nothing.

    Examples
    --------
    >>> kept_options("simulation", {"precision": 0.01})
    {'horizon': None, 'moments': False, 'max_events': 10000000000.0}
    >>> kept_options("mean_field", {})
    """
    method = load(name)
    chosen = getattr(method, "kept_options", None)
    return None if chosen is None else dict(chosen(method.Options(**options)))


def compiles(name: str) -> bool:
    """Return whether a method has a kernel compiled.

    Examples
    --------
    >>> compiles("simulation"), compiles("mean_field")
    (True, False)
    """
    return bool(getattr(load(name), "COMPILES", False))


def memory(name: str, *subject: Any, **keywords: Any) -> float:
    """Return the bytes that a point of a method takes; 0 if it is no more than any job does."""
    needed = getattr(load(name), "memory", None)
    return 0.0 if needed is None else float(needed(*subject, **keywords))


def follows_jobs(name: str) -> bool:
    """Return whether a method takes a law of the job sizes and a discipline.

    Examples
    --------
    >>> [name for name in names("dispatching") if follows_jobs(name)]
    ['mean_field', 'simulation']
    """
    return bool(getattr(load(name), "FOLLOWS_JOBS", False))
