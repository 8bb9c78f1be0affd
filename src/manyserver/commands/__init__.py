"""The commands ``manyserver VERB``; each is one call into the package."""

from manyserver.commands.build import check, cube, figures, fits, schema, tables, unit, verify
from manyserver.commands.inspect import clean, diff, provenance, status, why
from manyserver.commands.one_point import point
from manyserver.commands.planning import plan
from manyserver.commands.summary import claims, report

__all__ = ["SECTIONS"]

SECTIONS = {
    "Commands": [point, plan, check, status, why, claims, report, provenance, diff, clean, schema],
    "What the rules of the workflow call": [unit, cube, fits, tables, figures, verify],
}
"""The commands by the heading under which the help lists them, in this order."""
