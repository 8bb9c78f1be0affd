"""The models that a study can be about, found by :mod:`manyserver.registry`.

A model is a :class:`~manyserver.study.models.base.Model` in a package here, or an entry point of
the group ``manyserver.models`` in any other one. Methods, kinds of figures and kinds of fits are
for the model that their class names.
"""

from typing import Any

from manyserver.registry import Registry
from manyserver.study.models.base import Model

__all__ = ["Model", "axes", "load", "names"]

REGISTRY: Registry[Model[Any]] = Registry("model", Model, __name__, key="model")
names = REGISTRY.names


def load(name: object) -> Model[Any]:
    """Return a model.

    Raises
    ------
    ValueError
        If there is no such model.
    """
    return REGISTRY.find(name)()


def axes() -> tuple[str, ...]:
    """Return the axes of all models.

    Examples
    --------
    >>> [axis for axis in axes() if axis in load("halfin_whitt").axes]
    ['beta']
    """
    return tuple(dict.fromkeys(axis for name in names() for axis in load(name).axes))
