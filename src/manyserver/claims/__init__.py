"""Claims: statements of the papers, decided by the cubes and fits.

A claim is a :class:`~manyserver.claims.base.Claim` in a module here, or an entry point of the group
``manyserver.claims`` in any other package; :mod:`manyserver.registry` finds it.
"""

from typing import TYPE_CHECKING

from manyserver.claims.base import Claim, Finding, NotBuilt, NotComputable, Verdict
from manyserver.claims.evidence import Evidence
from manyserver.registry import Registry

if TYPE_CHECKING:
    from manyserver.claims.results import Results

__all__ = [
    "Claim",
    "Evidence",
    "Finding",
    "NotBuilt",
    "NotComputable",
    "Verdict",
    "findings",
    "load",
    "names",
    "studies",
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


def studies() -> list[str]:
    """Return the names of the studies from which claims are decided, in alphabetical order."""
    return sorted({study for name in names() for study in load(name).studies})


def findings(results: "Results") -> list[Finding]:
    """Decide all claims, in the order of the papers and of what they are called there."""
    found = (load(name) for name in names())
    claims = sorted(found, key=lambda one: (one.paper, one.number, one.name))
    return [claim.finding(results) for claim in claims]
