"""Find the modules of a package by file name, and say what there is when one is not found."""

import importlib
from collections.abc import Iterable
from pkgutil import iter_modules
from types import ModuleType

from manyserver.validation import shown, suggestion

__all__ = ["DEFAULT_MODEL", "load", "model_of", "modules"]

DEFAULT_MODEL = "dispatching"
"""Model of a study, a method, a figure or a fit that names none."""


def model_of(module: ModuleType) -> str:
    """Return the model that a method, a kind of figure or a kind of fit is for."""
    return str(getattr(module, "MODEL", DEFAULT_MODEL))


def modules(package: str, support: Iterable[str] = (), model: str | None = None) -> tuple[str, ...]:
    """Return the names of the modules of a package, sorted, without importing them.

    Parameters
    ----------
    package : str
        Full name of the package.
    support : iterable of str
        Modules that are not to be listed.
    model : str, optional
        Import them, and list those for this model only.

    Examples
    --------
    >>> modules("manyserver.study.models")
    ('dispatching', 'halfin_whitt')
    """
    found = iter_modules(importlib.import_module(package).__path__)
    names = sorted(module.name for module in found if module.name not in support)
    return tuple(
        name
        for name in names
        if model is None or model_of(importlib.import_module(f"{package}.{name}")) == model
    )


def load(
    package: str, kind: str, noun: str, support: Iterable[str] = (), model: str | None = None
) -> ModuleType:
    """Import one of :func:`modules`.

    Raises
    ------
    ValueError
        If there is no such module, or it is for another model than the one named; `noun` says
        what it would have been.
    """
    if kind not in modules(package, support):
        known = modules(package, support, model)
        key = "model" if noun == "model" else "kind"
        raise ValueError(f"{key} = {shown(kind)}: unknown {noun}; {suggestion(kind, known)}")
    module = importlib.import_module(f"{package}.{kind}")
    if model is not None and model_of(module) != model:
        known = modules(package, support, model)
        raise ValueError(
            f"kind = {kind!r}: is a {noun} of the model {model_of(module)}; "
            f"{suggestion(kind, known)}"
        )
    return module
