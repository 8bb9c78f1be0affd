"""Find the modules of a package by file name, and say what there is when one is not found."""

import importlib
from collections.abc import Iterable
from pkgutil import iter_modules
from types import ModuleType

from manyserver.study.validation import suggestion

__all__ = ["load", "modules"]


def modules(package: str, support: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the names of the modules of a package, sorted, without importing them.

    Parameters
    ----------
    package : str
        Full name of the package.
    support : iterable of str
        Modules that are not to be listed.

    Examples
    --------
    >>> modules("manyserver.study.fits")
    ('distance', 'finite_size', 'fluctuation', 'propagation_of_chaos', 'tail_growth')
    """
    found = iter_modules(importlib.import_module(package).__path__)
    return tuple(sorted(module.name for module in found if module.name not in support))


def load(package: str, kind: str, noun: str, support: Iterable[str] = ()) -> ModuleType:
    """Import one of :func:`modules`.

    Raises
    ------
    ValueError
        If there is no such module; `noun` says what it would have been.
    """
    known = modules(package, support)
    if kind not in known:
        raise ValueError(f"kind = {kind!r}: unknown {noun}; {suggestion(kind, known)}")
    return importlib.import_module(f"{package}.{kind}")
