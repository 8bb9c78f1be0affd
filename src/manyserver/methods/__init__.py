"""The methods that compute a point, found by :mod:`manyserver.registry`.

A method is a :class:`~manyserver.methods.base.Method` in a module here, or an entry point of the
group ``manyserver.methods`` in any other package.
"""

from typing import Any

from manyserver.methods.base import METHOD, ROLE, Draws, Method, Problem, Role
from manyserver.registry import ModelRegistry

__all__ = ["METHOD", "ROLE", "Draws", "Method", "Problem", "Role", "load", "names"]

REGISTRY: ModelRegistry[Method[Any, Any]] = ModelRegistry("method", Method, __name__)
load = REGISTRY.get


def names(model: str | None = None, *roles: Role) -> tuple[str, ...]:
    """Return the names of all methods, or of those for a model and in some roles, sorted.

    Examples
    --------
    >>> names("halfin_whitt", Role.LIMIT)
    ('diffusion',)
    """
    known = REGISTRY.names(model)
    return tuple(name for name in known if not roles or load(name).role in roles)
