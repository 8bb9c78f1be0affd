"""One registry for each kind of plug-in: its classes by name, found by folder and by entry point.

A plug-in is a class that derives from the abstract base of its kind and has a `name` of its own.
It is found in the package of its kind, where one file is enough, or in any other installed package
that names it as an entry point. Policies and laws have parameters, and are made anew for every
use; a method, a fit, a figure or a model has none, and one object of it serves all
(:meth:`ModelRegistry.get`).

Nothing is imported before it is asked for. A class is first looked for in the module of its name;
entry points are read as text, and imported by name.
"""

import importlib
import inspect
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, fields
from functools import cached_property
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from manyserver.checks import shown, suggestion

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["DEFAULT_MODEL", "ModelRegistry", "Named", "OfModel", "PluginError", "Registry"]

DEFAULT_MODEL = "dispatching"
"""Model of a study, a method, a figure or a fit that names none."""


class PluginError(ValueError):
    """A plug-in that cannot be used: it cannot be imported, is of no kind, or its name is taken."""


class Named(Protocol):
    """A plug-in."""

    name: ClassVar[str]


class OfModel(Named, Protocol):
    """A plug-in for studies of one model."""

    model: ClassVar[str]


T = TypeVar("T", bound=Named)
M = TypeVar("M", bound=OfModel)


class Registry(Generic[T]):
    """The plug-ins of one kind.

    Parameters
    ----------
    kind : str
        What errors call one of them.
    base : type
        Abstract base class of all.
    package : str
        Package with a file for each; its last word also names the group of entry points, such as
        ``manyserver.policies``.
    key : str
        Where a study or a caller names one; errors begin with it.

    Examples
    --------
    >>> from manyserver.policies import Policy
    >>> policies = Registry("policy", Policy, "manyserver.policies")
    >>> policies.find("jsq")
    <class 'manyserver.policies.jsq.JSQ'>
    """

    def __init__(self, kind: str, base: type[T], package: str, key: str = "name"):
        self.kind, self.base, self.package, self.key = kind, base, package, key
        self.group = f"manyserver.{package.rsplit('.', 1)[-1]}"
        self._loaded: dict[str, type[T]] = {}

    def names(self) -> tuple[str, ...]:
        """Return the names of all, in alphabetical order."""
        return tuple(sorted({*self._own, *self._outside}))

    def find(self, name: object) -> type[T]:
        """Return the class of a name.

        Raises
        ------
        ValueError
            If there is none.
        PluginError
            If it cannot be used.
        """
        key = name if isinstance(name, str) else ""
        if key not in self._loaded:
            self._loaded[key] = self._found(key, name)
        return self._loaded[key]

    def make(self, name: str, **parameters: Any) -> T:
        """Make an object of a dataclass from its name and parameters.

        Raises
        ------
        ValueError
            If the name or a parameter is unknown, or one is missing or out of its range.
        """
        chosen, which = self.find(name), f"{self.kind} {name!r}"
        known = {field.name: field for field in fields(chosen) if field.init}  # type: ignore[arg-type]
        for key, value in parameters.items():
            if key not in known:
                told = suggestion(key, known)
                raise ValueError(f"{key} = {value!r}: unknown parameter of {which}; {told}")
        for key, field in known.items():
            if field.default is field.default_factory is MISSING and key not in parameters:
                raise ValueError(f"{key}: is missing; {which} needs it")
        return chosen(**parameters)

    def exported(self, attribute: str) -> type[T]:
        """Return the class that a module of the package defines, by the name of the class.

        Raises
        ------
        AttributeError
            If there is none.
        """
        # Other attributes are modules, which Python looks up as they are imported.
        if attribute[:1].isupper():
            for found in self._own.values():
                if found.__name__ == attribute:
                    return found
        raise AttributeError(f"module {self.package!r} has no attribute {attribute!r}")

    def _found(self, name: str, given: object) -> type[T]:
        found = self._module(name).get(name) or self._own.get(name)
        if name not in self._outside:
            if found is None:
                raise self._unknown(given, self.names())
            return found
        entry = self._outside[name]
        which = f"the {self.kind} {name!r} of {_owner(entry)}"
        if found is not None:
            raise PluginError(f"{which}: must have another name; {found.__module__} has this one")
        try:
            chosen = entry.load()
        except Exception as error:
            told = f"{type(error).__name__}: {error}"
            raise PluginError(f"{which}: cannot import {entry.value}: {told}") from error
        if not (inspect.isclass(chosen) and issubclass(chosen, self.base)):
            base = f"{self.base.__module__}.{self.base.__name__}"
            raise PluginError(f"{which}: {entry.value} must be a subclass of {base}")
        if vars(chosen).get("name") != name:
            raise PluginError(f"{which}: {entry.value} must have name = {name!r}")
        return chosen

    def _unknown(self, given: object, known: Iterable[str]) -> ValueError:
        told = suggestion(str(given), known)
        return ValueError(f"{self.key} = {shown(given)}: unknown {self.kind}; {told}")

    @cached_property
    def _own(self) -> dict[str, type[T]]:
        """The classes in the package, by name."""
        found: dict[str, type[T]] = {}
        for module in iter_modules(importlib.import_module(self.package).__path__):
            for name, one in self._module(module.name).items():
                if found.setdefault(name, one) is not one:
                    told = f"{found[name].__module__} and {one.__module__} have one of this name"
                    raise PluginError(f"the {self.kind} {name!r}: {told}")
        return found

    def _module(self, module: str) -> dict[str, type[T]]:
        """Return the classes in one module of the package, by name; none if there is no module."""
        path = f"{self.package}.{module}"
        if not module.isidentifier() or find_spec(path) is None:
            return {}
        return dict(self._classes(path))

    def _classes(self, path: str) -> Iterator[tuple[str, type[T]]]:
        for member in vars(importlib.import_module(path)).values():
            if (
                inspect.isclass(member)
                and member.__module__ == path
                and issubclass(member, self.base)
                and "name" in vars(member)
            ):
                yield member.name, member

    @cached_property
    def _outside(self) -> "dict[str, EntryPoint]":
        """The entry points of other packages, by name."""
        from importlib.metadata import entry_points

        found: dict[str, EntryPoint] = {}
        for entry in entry_points(group=self.group):
            other = found.setdefault(entry.name, entry)
            if other.value != entry.value:
                owners = f"{_owner(other)} and {_owner(entry)}"
                raise PluginError(f"the {self.kind} {entry.name!r}: {owners} have one of this name")
        return found


def _owner(entry: "EntryPoint") -> str:
    return f"the package {entry.dist.name}" if entry.dist else entry.value


class ModelRegistry(Registry[M]):
    """The plug-ins of a kind of which each is for studies of one model."""

    def names(self, model: str | None = None) -> tuple[str, ...]:
        """Return the names of all, or of those for a model, in alphabetical order."""
        names = super().names()
        return tuple(n for n in names if model is None or self.find(n).model == model)

    def get(self, name: str, model: str | None = None) -> M:
        """Return the plug-in of a name.

        Raises
        ------
        ValueError
            If there is none, or it is for another model than the one named.
        """
        try:
            chosen = self.find(name)
        except PluginError:
            raise
        except ValueError:
            raise self._unknown(name, self.names(model)) from None
        if model is not None and chosen.model != model:
            told = f"is a {self.kind} of the model {chosen.model}"
            raise ValueError(
                f"{self.key} = {name!r}: {told}; {suggestion(name, self.names(model))}"
            )
        return chosen()
