"""Claims: statements of the papers, decided by the cubes and fits.

A claim is a :class:`~manyserver.claims.base.Claim` in a module here, or an entry point of the group
``manyserver.claims`` in any other package; :mod:`manyserver.registry` finds it.
"""

from manyserver.claims.base import Claim, Finding, NotBuilt, NotComputable, Verdict
from manyserver.claims.evidence import Evidence
from manyserver.registry import Registry

__all__ = [
    "Claim",
    "Evidence",
    "Finding",
    "NotBuilt",
    "NotComputable",
    "Verdict",
    "load",
    "names",
]

REGISTRY: Registry[Claim] = Registry("claim", Claim, __name__)
names = REGISTRY.names


def load(name: str) -> Claim:
    """Return the claim of a name.

    Raises
    ------
    ValueError
        If there is none.
    """
    return REGISTRY.find(name)()
